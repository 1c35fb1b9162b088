"""What can be asked to leave: frozen, schema-checked values."""

from .document import MARK, SCHEMA_ID, Cell, Column, OutputDocument, format_cell
from .schema import check_document, document_errors, known_types

__all__ = [
    "MARK",
    "SCHEMA_ID",
    "Cell",
    "Column",
    "OutputDocument",
    "check_document",
    "document_errors",
    "format_cell",
    "known_types",
]
