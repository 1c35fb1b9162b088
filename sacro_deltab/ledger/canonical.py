"""One way to write an entry as bytes, and the strict texts that go into it.

Names are refused rather than repaired: a budget that "Site A", "site a " and "sіte a" (Cyrillic i) could each have once
would be no budget.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..base.canonical import canonical_line
from ..base.errors import InputError

ENTRY_TYPE = "sacro_deltab/ledger-entry/1"
GENESIS = "0" * 64  # what the first entry names as the one before it
MAX_BODY = 256 * 1024
UNITS = ("person", "row")

_COHORT = re.compile(r"[a-z0-9](?:[a-z0-9._:-]{0,94}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def body_text(body: Mapping[str, Any]) -> str:
    """Canonical body of an entry; more than 256 KiB is refused."""
    text = canonical_line(dict(body))
    if len(text) > MAX_BODY:
        raise InputError(
            f"a ledger entry of {len(text)} characters is longer than {MAX_BODY}",
            next_step="Keep digests in `detail`, not contents.",
        )
    return text


def checked_text(value: object, what: str, *, longest: int = 200) -> str:
    """A printable, one-line text of 1 to `longest` characters, in Unicode NFC without blanks at its ends."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be text")
    if not value or len(value) > longest:
        raise InputError(f"{what} must have 1 to {longest} characters")
    if value != value.strip() or any(unicodedata.category(c)[0] == "C" for c in value):
        raise InputError(f"{what} has blanks at its ends or characters that do not print")
    return unicodedata.normalize("NFC", value)


def checked_digest(value: object, what: str = "a digest") -> str:
    """64 lower-case hex digits of a SHA-256; a leading `sha256:` is dropped."""
    text = value.removeprefix("sha256:") if isinstance(value, str) else ""
    if not _DIGEST.fullmatch(text):
        raise InputError(f"{what} must be the 64 lower-case hex digits of a SHA-256")
    return text


def partition_key(cohort: str, unit: str = "person") -> str:
    """Name of a partition in the ledger: `COHORT/UNIT`.

    Parameters
    ----------
    cohort
        Cohort id as the TRE assigned it: ASCII letters, digits and `. _ : -`, 1 to 96 characters, letter or digit at
        both ends. Upper case is the same as lower case. A name that already ends in `/person` or `/row` is accepted.
    unit
        Privacy unit, `person` or `row`.

    Raises
    ------
    InputError
        For any other character, so that look-alikes and blanks cannot open a second budget.
    """
    if not isinstance(cohort, str):
        raise InputError("a cohort id must be text")
    name, slash, given = cohort.partition("/")
    if slash:
        if given not in UNITS:
            raise InputError("a cohort id has no '/' in it, except before its privacy unit person or row")
        unit = given
    if unit not in UNITS:
        raise InputError(f"the privacy unit must be one of {', '.join(UNITS)}")
    lowered = name.lower() if name.isascii() else name
    if not _COHORT.fullmatch(lowered):
        raise InputError(
            "a cohort id is 1 to 96 ASCII letters, digits and . _ : - with a letter or digit at both ends",
            next_step="Use the id that the TRE assigned to the cohort, without blanks or accents.",
        )
    return f"{lowered}/{unit}"


def cohort_of(partition: str) -> str:
    """The cohort id in a partition's name."""
    return partition.partition("/")[0]


def utc_text(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ`, which sorts as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_moment(text: str) -> datetime:
    """Inverse of `utc_text`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
