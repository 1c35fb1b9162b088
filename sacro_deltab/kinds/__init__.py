"""Kinds of output: one file a kind, or a family that is one truth. A file is found by being here.

The vocabulary of the rule set is the one table of kinds; a file says what only code can.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from .kind import Inside, Kind, Made, Measured, Reading


def _found() -> Iterator[tuple[str, Kind]]:
    for module in pkgutil.iter_modules(__path__):
        for kind in getattr(importlib.import_module(f"{__name__}.{module.name}"), "KINDS", ()):
            yield kind.name, kind


KINDS: Mapping[str, Kind] = dict(_found())

__all__ = ["KINDS", "Inside", "Kind", "Made", "Measured", "Reading"]
