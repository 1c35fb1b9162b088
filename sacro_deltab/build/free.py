"""How much an output can say besides its judged numbers: names, title, labels and their order, in bits at most."""

from __future__ import annotations

import math

from ..outputs.document import OutputDocument

_PRINTABLE = math.log2(95)  # a sign that a keyboard has
_ANY = math.log2(0x110000)  # any other sign


def free_bits(name: str, title: str, document: OutputDocument | None) -> int:
    """Bits of the texts that somebody chose and of the order of rows; of a note that stays inside, name and title."""
    texts, rows = [name, title], 0
    if document is not None:
        rows = len(document.rows)
        texts += [text for column in document.columns for text in (column.name, column.unit)]
        texts += [str(row[0]) for row in document.rows] + [str(word) for word in document.about.get("where", ())]
    signs = sum(_PRINTABLE if sign.isascii() else _ANY for text in texts for sign in text)
    return math.ceil(signs + math.lgamma(rows + 1) / math.log(2))
