"""The evidence page: one self-contained HTML file for the output checker. It stays inside the TRE."""

from .page import render_page

__all__ = ["render_page"]
