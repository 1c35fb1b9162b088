"""Records that ACRO made: the fields and forms that it writes, and which of its texts somebody was free to choose.

ACRO 1.0.2, and 0.4.8 to 0.4.12 as ACRO-R and Stata users have them. Whatever has another form cannot leave. Where ACRO
itself takes a text from a person (a comment, an exception, the command as it was typed, names in `outcome` and `fair`,
a record's own name) a person reads it, and what the package packs for release has nothing in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_OLD = ("negative", "missing", "threshold", "p-ratio", "nk-rule", "all-values-are-same")
_NEW = (
    *("MinimumDoFCheck", "MinimumThresholdCheck", "NKCheck", "PPercentCheck", "PresenceOfLinkedTableCheck"),
    *("RequiredZeroCheck", "PresenceOfZeroCheck", "StatbarnDataCheck", "AllSameValuesCheck", "MissingCheck"),
)
_CHECKS = "|".join(re.escape(check) for check in (*_OLD, *_NEW))
# checks whose marks say that a cell is small; those of dominance mean nothing where a value is negative
_SMALL = frozenset({"threshold", "all-values-are-same", "MinimumThresholdCheck", "AllSameValuesCheck"})
_DOMINANCE = frozenset({"p-ratio", "nk-rule"})
_TYPES = frozenset({"table", "tabular", "regression", "survival plot", "histogram", "pie chart", "custom"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?")
_WORD = re.compile(r"[A-Za-z][A-Za-z _-]{0,39}")
_CONTEXT = "https://w3id.org/statbarnsdc#"
_OUTCOME = re.compile(rf"(ok)?(({_CHECKS})(; ?)?)*")
_SENTENCES = (
    "Name of analysis not recognised in ontology",
    "A manual review against other outputs for differencing is recommended",
    "a manual check is needed for possible linked tables",
    "a manual check may be needed if related plots have been produced",
    "Review Notes",
    "Dominance not defined when negative value are present",
    "missing values have been ignored when calculating mean/std etc",
    "Please check this is the expected behaviour",
    "Please check extreme bin edges are not disclosive",
    "Please also check bin ends and empty bins are not disclosive",
    "Please also check for missing categories",
    "Disclosive Histogram Redacted",
    "Pie Chart Redacted",
    "risk appetite states zeros not disclosive",
    "empty column after dropping NaN",
)
_VARIABLES = r"[Vv]ariables defining table are:  \[((?:'[^']{1,80}'(?:, )?)*)\]"
_SUMMARY = re.compile(
    rf"(?:(?:negative|missing) values found|(?:{_CHECKS}):|pass|review|fail|([A-Za-z]{{1,60}}) ?:"
    r"|\d{1,6} cells (?:may need suppressing|suppressed)|dof=-?\d{1,9}(?:\.0)? ?(?:>=|<) ?\d{1,4}"
    rf"|{_VARIABLES}|{'|'.join(map(re.escape, _SENTENCES))}|[;:. \n-])"
)
OWN_EXCEPTIONS = frozenset(
    {"", "Suppression automatically applied where needed", "Events Reported when min_threshold accumulated"}
)
_FREE = ("comments", "exception", "command", "outcome", "fair")


def form_faults(record: Mapping[str, Any]) -> Iterator[str]:
    """Fields that ACRO does not write in this form; those that `parse_results` reads are not looked at again."""
    if record.get("type") not in _TYPES:
        yield "type"
    if not isinstance(when := record.get("timestamp"), str) or not _TIME.fullmatch(when):
        yield "timestamp"
    if not _summary(record.get("summary"), _variables(record)):
        yield "summary"
    if not _properties(record.get("properties")):
        yield "properties"
    if not all(isinstance(item, Mapping) and "url" not in item and _sdc(item.get("sdc")) for item in record["files"]):
        yield "files"
    if not _outcome(record.get("outcome")):
        yield "outcome"
    if not _fair(record.get("fair", {})):
        yield "fair"


def free_texts(record: Mapping[str, Any]) -> list[str]:
    """Places in which a person chose the text; none where ACRO wrote its own words there."""
    free = {
        "comments": record.get("comments"),
        "exception": record.get("exception") not in OWN_EXCEPTIONS,
        "command": record.get("command"),
        "names in outcome": record.get("outcome"),
        "names in fair": _variables(record) - {"", "unknown"},
        "uid": not re.fullmatch(r"output_\d{1,5}", str(record.get("uid"))),
    }
    return [place for place, there in free.items() if there]


def blanked(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of others as it is packed for release: with nothing where a person could write."""
    empty = {field: type(record[field])() for field in _FREE if field in record and record[field] is not None}
    return {**record, **empty, "summary": record["status"]}


def marked_cells(sdc: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Check, row and column of every cell that one of ACRO's disclosure checks marks."""
    counted = _map(sdc.get("summary"))
    telling = _SMALL | (_DOMINANCE if counted.get("negative") == 0 else frozenset())
    for check, cells in _map(sdc.get("cells")).items():
        if check in telling:
            yield from ((check, row, column) for row, column in cells)


def was_checked(record: Mapping[str, Any], sdc: Mapping[str, Any]) -> bool:
    """Whether ACRO ran its checks: the old form counts cells, the new one names the checks as well."""
    counted = set(_map(sdc.get("summary")))
    return bool(counted) and (("fair" not in record and counted.issuperset(_OLD)) or bool(record.get("fair")))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@cache
def _ontology() -> frozenset[str]:
    """Names of ACRO's analyses, risks, statbarns and mitigations, from its files: importing it takes four seconds."""
    spec = find_spec("acro")
    folder = Path(str(spec.origin)).parent if spec is not None else Path()
    parts = [json.loads((folder / f"{part}.json").read_text("utf-8")) for part in ("analyses", "statbarns", "risks")]
    mitigations = {name for risk in parts[2].values() for name in risk["mitigations"]}
    return frozenset({"", *(name.removeprefix(_CONTEXT) for part in parts for name in part), *mitigations, *_NEW})


def _summary(text: object, variables: frozenset[str]) -> bool:
    """Made of ACRO's words alone, one after another; it names the variables that `fair` names."""
    if not isinstance(text, str) or len(text) > 4_000:
        return False
    at = 0
    while at < len(text):
        found = _SUMMARY.match(text, at)
        if found is None or (found[1] is not None and found[1] not in _ontology()):
            return False
        if not variables.issuperset(re.findall(r"'([^']*)'", found[2] or "")):
            return False
        at = found.end()
    return True


def _variables(record: Mapping[str, Any]) -> frozenset[str]:
    fair = _map(record.get("fair"))
    names = fair.get("independent")
    return frozenset(map(str, [*(names if isinstance(names, list) else ()), fair.get("dependent", "")]))


def _properties(value: object) -> bool:
    own = _map(value)
    dof, base = own.get("dof", 0), own.get("round_base", 0)
    return (
        set(own) <= {"method", "mitigation", "dof", "round_base"}
        and all(isinstance(own.get(k, "x"), str) and _WORD.fullmatch(own.get(k, "x")) for k in ("method", "mitigation"))
        and all(type(n) in (int, float) and n == round(n) and abs(n) < 10**9 for n in (dof, base))
    )


def _sdc(value: object) -> bool:
    """Counts of cells and their places, row by row, of ACRO's own checks; the counts are those of the places."""
    own = _map(value)
    counts, cells = _map(own.get("summary")), _map(own.get("cells"))
    return (
        set(own) <= {"summary", "cells"}
        and set(counts) <= {*_OLD, *_NEW, "suppressed"}
        and set(cells) <= {*_OLD, *_NEW}
        and all(type(n) is (bool if check == "suppressed" else int) for check, n in counts.items())
        and all(places == sorted(map(list, {tuple(p) for p in places})) for places in cells.values())
        and all(counts.get(c) == len(places) for c, places in cells.items() if places and c != "MinimumDoFCheck")
        and all(0 <= n <= 10_000_000 for n in counts.values())
    )


def _outcome(value: object) -> bool:
    columns = _map(value)
    texts = [text for rows in columns.values() for text in (_map(rows).values() if isinstance(rows, Mapping) else [1])]
    return isinstance(value, Mapping) and all(isinstance(t, str) and _OUTCOME.fullmatch(t) for t in texts)


def _fair(value: object) -> bool:
    own = _map(value)
    lists = [own.get(k, []) for k in ("risks", "checks_needed", "common_mitigations")]
    named = [own.get("context", ""), own.get("statbarn", ""), *(n for one in lists if type(one) is list for n in one)]
    status = _map(own.get("check_status", {}))
    variables = own.get("independent", [])
    return (
        isinstance(value, Mapping)
        and set(own) <= {"context", "statbarn", "risks", "checks_needed", "common_mitigations", "check_status",
                         "dependent", "independent"}
        and all(isinstance(one, list) and len(one) <= 60 for one in (*lists, variables))
        and _ontology().issuperset(str(n).removeprefix(_CONTEXT) for n in (*named, *status))
        and all(state in ("pass", "review", "fail") for state in status.values())
        and all(isinstance(name, str) for name in (own.get("dependent", ""), *variables))
    )  # fmt: skip
