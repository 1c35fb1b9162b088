"""Folder or file to a report, nothing of it trusted: `check_paths` is the one way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .check import check_paths

__all__ = ["check_paths"]


def __getattr__(name: str) -> Any:
    """Import on first use: `sacro-deltab --help` starts without any reader."""
    if name != "check_paths":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .check import check_paths  # late: every reader, numpy with them

    return check_paths
