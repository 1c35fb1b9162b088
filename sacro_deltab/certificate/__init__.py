"""The signed record of a release: statement, envelope, verification, review, page and crate.

Public names are imported on first use, so that `verify` starts without anything heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certify import certify_folder
    from .crate import write_crate
    from .keys import keygen
    from .page import render_page
    from .seal import new_certificate_id, seal_folder
    from .verify import verify_path

_LAZY = {
    "new_certificate_id": "seal",
    "seal_folder": "seal",
    "certify_folder": "certify",
    "verify_path": "verify",
    "keygen": "keys",
    "render_page": "page",
    "write_crate": "crate",
}

__all__ = [
    "certify_folder",
    "keygen",
    "new_certificate_id",
    "render_page",
    "seal_folder",
    "verify_path",
    "write_crate",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
