"""Where the rule sets and schemas are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent


def data_root() -> Path:
    """Folder that holds `rules/` and `schemas/`."""
    packaged = _PACKAGE / "_data"
    return packaged if packaged.is_dir() else _PACKAGE.parent


def rules_dir(rule_set: str = "deltab-disclosure") -> Path:
    """Folder of one packaged rule set."""
    return data_root() / "rules" / rule_set


@cache
def schema(name: str) -> dict[str, Any]:
    """Load `schemas/NAME.schema.json` (JSON Schema 2020-12)."""
    loaded: dict[str, Any] = json.loads((data_root() / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    return loaded
