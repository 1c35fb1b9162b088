"""What a session says, as it may be repeated outside: only in a form that has no room for a number of the cohort."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from typing import Any

from ..base.version import __version__
from ..judging.said import NO_COLUMNS, few_digits

_DEPENDENCIES = (
    "acro",
    "cryptography",
    "diffprivlib",
    "highspy",
    "numpy",
    "opendp",
    "pandas",
    "scikit-learn",
    "scipy",
    "securesystemslib",
)
_TOKEN = 80  # longest declared word that is repeated in what leaves
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEX = re.compile(r"[0-9a-f]{32,128}")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})")
PERSON = re.compile(r"[^\W\d_]([^\W\d_]|[ .,'’-]){0,79}")  # a name or a role: no digits
VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,2}((a|b|rc|\.dev|\.post)\d{1,2})?")
JOB = re.compile(r"job [A-Za-z0-9][A-Za-z0-9_.-]{0,79}, round \d{1,4}, sha256 [0-9a-f]{64}")
_SENTENCES = (
    "whether these people are in another cohort: there are no person ids",
    NO_COLUMNS,
    "whether a person has several rows: rows were taken as people",
    "differences with earlier releases whose people the ledger does not know",
    "no membership test of the weights: too few people to attack halves of them",
    "The rows of all files are the same people in the same order.",
    "Every row is another person (there is no identifier column).",
    "results.json was reviewed in the viewer after the session was finalised",
)
_NOT_CHECKED = (
    *((re.compile(re.escape(text)), text) for text in _SENTENCES),
    (re.compile(r"ACRO record .*", re.S), "ACRO's own tables whose groups are not known: a person must review them"),
    (re.compile(r"no membership test of the weights: .*", re.S), "no membership test of the weights could be made"),
)


def said(value: object) -> dict[str, Any]:
    """Who said what. Counts and long texts are not repeated: they may be numbers of the cohort."""
    block = mapping(value)
    facts = {}
    for name, entry in sorted(mapping(block.get("facts")).items()):
        given = entry.get("value") if isinstance(entry, Mapping) else entry
        facts[str(name)] = given if repeatable(given) else "stated inside"
    return {
        "by": None if block.get("by") is None else like(block.get("by"), PERSON) or "stated inside",
        "facts": facts,
    }


def repeatable(value: object) -> bool:
    """Whether a declared value may be repeated outside: yes or no, a fraction, or a short word."""
    if isinstance(value, bool):
        return True
    if isinstance(value, float):
        return not value.is_integer() and few_digits(value)
    return isinstance(value, str) and 0 < len(value) <= _TOKEN and value.replace("_", "").replace("-", "").isalpha()


@cache
def versions() -> dict[str, str]:
    """Versions of this package, Python and what the figures rest on, without importing any of it."""
    found = {"sacro_deltab": __version__, "python": platform.python_version()}
    for name in _DEPENDENCIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def session_versions(session: Mapping[str, Any]) -> dict[str, str]:
    """Versions of the package and of ACRO that the session recorded, where they look like versions."""
    tool = mapping(session.get("tool"))
    return {key: str(tool[key]) for key in ("acro", "sacro_deltab") if VERSION.fullmatch(str(tool.get(key)))}


def closed_sentences(texts: Iterable[str]) -> list[str]:
    """What was not checked, as it may be repeated: sentences that this package writes and no others."""
    known = (next((said for form, said in _NOT_CHECKED if form.fullmatch(t)), None) or _job(t) for t in texts)
    out = dict.fromkeys(known)
    jobs = [text for text in out if text.startswith("job ")]
    return [text for text in out if text not in jobs[1:]]  # a session works for one job


def _job(text: str) -> str:
    return text if JOB.fullmatch(text) else "more, which is listed inside"


def like(value: object, form: re.Pattern[str]) -> str | None:
    """A text of a session if it has the form it should have, else nothing: no free text gets out this way."""
    return value if isinstance(value, str) and form.fullmatch(value) else None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
