"""All kinds by name: a file is found by standing in this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from .kind import Kind


def _found() -> Iterator[tuple[str, Kind]]:
    room = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(room.__path__):
        for kind in getattr(importlib.import_module(f"{__package__}.{module.name}"), "KINDS", ()):
            yield kind.name, kind


KINDS: Mapping[str, Kind] = dict(_found())
