"""`inside/evidence.json`: what a session measured, for the checker only. Written by the session, read by `check`.

Whoever reads it treats it as *recorded by the session*, never as truth (`facts.facts_from_json(recorded=True)`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..base.errors import InputError, UnreadableError
from ..base.resources import schema
from ..base.shape import fits

SCHEMA_ID = "sacro_deltab/evidence/1"
EVIDENCE_PATH = "inside/evidence.json"
MAX_BYTES = 512 * 1024 * 1024


def dump_evidence(data: Mapping[str, Any]) -> str:
    """Text of the evidence file. NaN is refused; the schema is checked first.

    Raises
    ------
    InputError
        When `data` does not match `schemas/evidence.schema.json`.
    """
    errors = evidence_errors(data)
    if errors:
        raise InputError(f"the evidence does not match its schema: {errors[0]}")

    # One line a part, not an indent: with an indent Python leaves its fast encoder.
    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    return "{\n" + ",\n".join(f"{text(key)}: {text(value)}" for key, value in data.items()) + "\n}\n"


def read_evidence(folder: str | Path) -> dict[str, Any]:
    """Read and check the evidence of a session folder.

    Raises
    ------
    UnreadableError
        When it is missing, too large, not JSON, or does not match its schema.
    """
    path = Path(folder) / EVIDENCE_PATH
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableError("the evidence is larger than any session writes", path=EVIDENCE_PATH)
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnreadableError(
            "there is no evidence", path=EVIDENCE_PATH, next_step="Check the folder inside the TRE, with its inside/."
        ) from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"the evidence cannot be read ({type(error).__name__})", path=EVIDENCE_PATH) from None
    errors = evidence_errors(data)
    if errors:
        raise UnreadableError("the evidence does not match its schema", path=EVIDENCE_PATH, place=errors[0])
    assert isinstance(data, dict)
    return data


def evidence_errors(data: Any) -> list[str]:
    """Faults as `place: what`; values are never echoed."""
    if fits(data, "evidence"):
        return []
    return [
        f"{'/'.join(str(p) for p in error.absolute_path) or 'document'}: breaks {error.validator!r}"
        for error in _validator().iter_errors(data)
    ]


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema("evidence"))
