"""results.json and config.json as a session leaves them: fixed order, fixed form, one byte string for one content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..outputs.document import OutputDocument
from .record import Header, paper, record

CERTIFICATE = "certificate.dsse.txt"
CERTIFICATE_RECORD = "certificate"
OWN_KEY = "deltab"  # our entry in `acro.config`: the viewer shows it under "ACRO risk profile"
_WHAT = "The certificate in the form that the viewer shows."
TOOL = {"@type": "SoftwareApplication", "name": "ACRO", "url": "https://github.com/AI-SDC/ACRO"}
_NUMBERS = frozenset(
    {
        "safe_threshold",
        "safe_dof_threshold",
        "safe_nk_n",
        "safe_nk_k",
        "safe_pratio_p",
        "survival_safe_threshold",
        "safe_round_base",
    }
)
_FLAGS = frozenset({"check_missing_values", "zeros_are_disclosive", "federated", "suppress"})
_EXTENSION = re.compile(r"\.[a-z]{1,5}")
_MAX_EXTENSIONS = 12


def own_records(
    evidence: Mapping[str, Any], documents: Mapping[str, OutputDocument | None]
) -> dict[str, dict[str, Any]]:
    """Our records by uid, in the order of their names: what the evidence says of an order stays inside with it."""
    header = Header.of(evidence["session"])
    entries = sorted(evidence["outputs"], key=lambda entry: str(entry["name"]))
    return {str(e["name"]): record(e, documents.get(str(e["name"])), header) for e in entries}


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


def config_faults(config: Any, data: bytes, header: Header | None) -> Sequence[str]:
    """Entries of config.json that ACRO does not write, or not in this form; and bytes that nobody wrote like that.

    Its numbers are the site's own and so cannot be made again: they have at most four digits after the point.
    """
    if not isinstance(config, dict):
        return ["it is no object"]
    faults = [] if json.dumps(config, indent=4).encode("utf-8") == data else ["its bytes are not those ACRO writes"]
    for key, value in config.items():
        if key == OWN_KEY:
            good = header is not None and value == own_config(header)
        elif key in _NUMBERS:
            good = type(value) in (int, float) and 0 <= value <= 10_000 and round(value, 4) == value
        elif key in _FLAGS:
            good = type(value) is bool
        else:
            good = key == "blocked_extensions" and _extensions(value)
        if not good:
            faults.append(f"{str(key)[:40]!r} is no entry of the form ACRO writes")
    return faults


def _extensions(value: Any) -> bool:
    texts = value if isinstance(value, list) and all(isinstance(v, str) for v in value) else [""]
    return len(texts) <= _MAX_EXTENSIONS and len(set(texts)) == len(texts) and all(map(_EXTENSION.fullmatch, texts))
