"""What all records of a session say alike, as the evidence keeps it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ..base.version import __version__
from ..build.record import Header, loosened
from ..build.results import OWN_KEY

if TYPE_CHECKING:
    from .core import SessionCore


def header(session: SessionCore) -> Header:
    """The header of a record of this session; the time is that of `finalise` and not known before."""
    return Header.of(session_block(session, session.started))


def session_block(session: SessionCore, finished: str) -> dict[str, Any]:
    """The `session` block of the evidence."""
    profile, rules = session.ruleset.profile, session.ruleset
    return {
        "id": session.id,
        "cohort": session.cohort,
        "unit": "person",
        "rule_set": rules.statement() | loosened(rules),
        "profile": None if profile is None else {"id": profile.id, "sha256": profile.sha256},
        "tool": tool_versions(),
        "started": session.started,
        "finished": finished,
        "declared": session.declared.to_json(),
        "attested": session.attested.to_json(),
        "acro_config": {key: value for key, value in session.live.config.items() if key != OWN_KEY},
        "acro_config_changes": list(session.config_changes),
        "salt": session.salt,
    }


@cache
def tool_versions() -> dict[str, str]:
    """This package and ACRO with their versions."""
    return {"sacro_deltab": __version__, "acro": version("acro")}
