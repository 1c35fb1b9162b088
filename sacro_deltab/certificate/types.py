"""The types of statements that this program writes and reads, and what each must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import CertificateError, UnreadableError
from ..base.schemas import faults
from .layout import ENVELOPE

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
TYPE_ROOT = "https://w3id.org/sacro-deltab/"  # a name, never fetched
PREDICATE_TYPE = TYPE_ROOT + "certificate/v2"
PREDICATE_TYPE_1 = TYPE_ROOT + "certificate/v1"  # read for ever, written no more
INSIDE_TYPE = TYPE_ROOT + "certificate-inside/v1"
SUPPORTED = {  # predicate type → schema; every version ever written stays here
    PREDICATE_TYPE: "certificate",
    PREDICATE_TYPE_1: "certificate-v1",
}


def check_type(statement: Any) -> None:
    """Refuse what is not a statement, or one of a version this program does not know.

    Raises
    ------
    CertificateError
        Not an in-toto Statement v1.
    UnreadableError
        A predicate of another version; the message says which version is needed.
    """
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise CertificateError("the payload is not an in-toto Statement v1.", path=ENVELOPE)
    kind = str(statement.get("predicateType"))
    if kind in SUPPORTED:
        return
    if kind.startswith(TYPE_ROOT + "certificate/") and kind != INSIDE_TYPE:
        version = kind.rsplit("/", 1)[-1][:20]
        raise UnreadableError(
            f"this certificate is of version {version}, and this program reads {_versions()}.",
            path=ENVELOPE,
            next_step=f"verify it with a sacro-deltab that reads certificate/{version}.",
        )
    raise CertificateError("the payload is not a certificate of sacro-deltab.", path=ENVELOPE)


def schema_problems(statement: Mapping[str, Any]) -> list[str]:
    """Where a statement departs from its schema; values are not repeated."""
    return [str(fault) for fault in faults(statement, SUPPORTED[statement["predicateType"]])]


def _versions() -> str:
    return ", ".join(sorted(kind.removeprefix(TYPE_ROOT) for kind in SUPPORTED))
