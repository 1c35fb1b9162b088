"""Reading what arrived without trusting it, and judging it: `check_paths` is the one way in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .check import check_paths
    from .report import FileReport, Noted, Report

_LAZY = {"check_paths": "check", "Report": "report", "FileReport": "report", "Noted": "report"}

__all__ = ["FileReport", "Noted", "Report", "check_paths"]


def __getattr__(name: str) -> Any:
    """Import on first use: `sacro-deltab --help` starts without any reader."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
