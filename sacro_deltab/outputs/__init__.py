"""What can be asked to leave: a flat table as a frozen value. What a kind of output is stands in `kinds/`."""

from .document import MARK, SCHEMA_ID, Cell, Column, OutputDocument, format_cell, is_mark

__all__ = ["MARK", "SCHEMA_ID", "Cell", "Column", "OutputDocument", "format_cell", "is_mark"]
