"""`inside/evidence.json`: what a session measured, for the checker only. Written by the session, read by `check`.

Whoever reads it treats it as *recorded by the session*, never as truth (`facts.facts_from_json(recorded=True)`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.schemas import faults

SCHEMA_ID = "sacro_deltab/evidence/1"
EVIDENCE_PATH = "inside/evidence.json"


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


def statement_name(output: str) -> str:
    """Under which name the ledger keeps the digest of an output's statement about noise."""
    return f"inside/evidence.json#{output}"


def statement_digest(statement: Mapping[str, Any]) -> str:
    """Digest of a statement about noise."""
    return sha256_hex(canonical_line(statement))


def evidence_errors(data: Any) -> list[str]:
    """Faults as `place: what`; values are never echoed."""
    return [str(fault) for fault in faults(data, "evidence")]
