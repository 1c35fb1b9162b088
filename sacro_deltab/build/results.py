"""results.json and config.json as a session leaves them: fixed order, fixed form, one byte string for one content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..outputs.document import OutputDocument
from .record import Header, Outside, paper, record

CERTIFICATE = "certificate.dsse.txt"
CERTIFICATE_RECORD = "certificate"
OWN_KEY = "deltab"  # our entry in `acro.config`: the viewer shows it under "ACRO risk profile"
_WHAT = "The certificate in the form that the viewer shows."
TOOL = {"@type": "SoftwareApplication", "name": "ACRO", "url": "https://github.com/AI-SDC/ACRO"}
_EXTENSIONS = (".svg", ".gph", ".pdf", ".eps", ".ps", ".html", ".doc", ".docx", ".xls", ".xlsx", ".pkl", ".rds", ".dta")


def _flag(value: Any) -> bool:
    return type(value) is bool


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 10_000


def _share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1 and round(value, 2) == value


def _extensions(value: Any) -> bool:
    return type(value) is list and value == [extension for extension in _EXTENSIONS if extension in value]


_FORMS: dict[str, Callable[[Any], bool]] = {  # ACRO's settings in the order in which it writes them
    "safe_threshold": _whole,
    "safe_dof_threshold": _whole,
    "safe_nk_n": _whole,
    "safe_nk_k": _share,
    "safe_pratio_p": _share,
    "check_missing_values": _flag,
    "survival_safe_threshold": _whole,
    "zeros_are_disclosive": _flag,
    "safe_round_base": _whole,
    "federated": _flag,
    "blocked_extensions": _extensions,
    "suppress": _flag,
}


def own_records(
    evidence: Mapping[str, Any], documents: Mapping[str, OutputDocument | None]
) -> dict[str, dict[str, Any]]:
    """Our records by uid, in the order of their names: what the evidence says of an order stays inside with it."""
    header = Header.of(evidence["session"])
    entries = sorted(evidence["outputs"], key=lambda entry: str(entry["name"]))
    return {str(e["name"]): record(Outside.of(e), documents.get(str(e["name"])), header) for e in entries}


def results_bytes(evidence: Mapping[str, Any], own: Mapping[str, Any], others: Mapping[str, Any]) -> bytes:
    """The whole of results.json: our records, those that ACRO made for the researcher, the certificate's."""
    header = Header.of(evidence["session"])
    records = {**own, **dict(sorted(others.items(), key=lambda item: natural(item[0])))}
    records[CERTIFICATE_RECORD] = paper(CERTIFICATE_RECORD, CERTIFICATE, _WHAT, header)
    return dumped({"version": header.acro, "tool": {**TOOL, "version": header.acro}, "results": records})


def dumped(value: Mapping[str, Any]) -> bytes:
    """JSON as ACRO writes it."""
    return json.dumps(value, indent=4, allow_nan=False).encode("ascii")


def natural(uid: str) -> tuple[Any, ...]:
    """`output_2` before `output_10`."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", uid) if part)


def own_config(header: Header) -> dict[str, str]:
    """Our entry in config.json."""
    name, version, digest = header.rule_set
    return {"rule_set": f"{name} {version}", "sha256": digest, "session": header.certificate_id}


def config_faults(config: Any, data: bytes, session: Mapping[str, Any] | None) -> Sequence[str]:
    """What in config.json ACRO does not write, in another form or order; in a session of ours, what was not recorded.

    Parameters
    ----------
    session
        The `session` block of the evidence; None for a folder without one: its numbers are the site's own.
    """
    if not isinstance(config, dict):
        return ["it is no object"]
    own = {} if session is None else {OWN_KEY: own_config(Header.of(session))}
    expected = config if session is None else {**(session.get("acro_config") or {}), **own}
    faults = (
        [] if json.dumps(expected, indent=4).encode("utf-8") == data else ["its bytes are not those that were made"]
    )
    if [key for key in config if key in _FORMS] != [key for key in _FORMS if key in config]:
        faults.append("its entries stand in another order than ACRO's")
    return faults + [
        f"{str(key)[:40]!r} is no entry of the form ACRO writes"
        for key, value in config.items()
        if not (_FORMS[key](value) if key in _FORMS else key in own and value == own[key])
    ]
