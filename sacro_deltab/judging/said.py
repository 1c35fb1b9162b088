"""Facts nobody can compute: what the researcher declares and what TRE staff attest, from schema-checked files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import schemas
from ..base.errors import InputError
from ..base.strict import read_json
from ..rules import RuleSet
from ..rules.facts import Fact, FactValue, Provider
from ..rules.marked_yaml import read_marked

NO_COLUMNS = "where columns come from: the TRE registered these people without any"  # not checked by a session
MOST_WORD = 80  # letters of a declared word
_DIGITS = 6  # significant ones of a declared number
SCHEMA_ID = "sacro_deltab/declare/1"
_ROLES = {"researcher": Provider.DECLARED, "tre_staff": Provider.ATTESTED}


@dataclass(frozen=True)
class Said:
    """What one person said. `facts` hold for every output, `outputs[name or type]` for that one only."""

    by: str | None = None
    provider: Provider = Provider.DECLARED
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, FactValue]] = field(default_factory=dict)
    simulated: bool = False
    note: str | None = None

    def about(self, output_name: str, output_type: str) -> dict[str, Fact]:
        """Facts for one output: the general ones, then those of its type, then those of its name."""
        merged = {**self.facts, **self.outputs.get(output_type, {}), **self.outputs.get(output_name, {})}
        return {name: Fact(name, value, self.provider) for name, value in merged.items()}

    def to_json(self) -> dict[str, Any]:
        """Form for evidence and reports."""
        data: dict[str, Any] = {"by": self.by, "facts": dict(self.facts), "simulated": self.simulated}
        if self.outputs:
            data["outputs"] = {key: dict(value) for key, value in self.outputs.items()}
        return data


def few_digits(value: object) -> bool:
    """Whether a declared number has no more digits than somebody types."""
    return isinstance(value, int | float) and float(f"{value:.{_DIGITS}g}") == value


def read_said(source: str | Path | Mapping[str, Any] | None, role: str, ruleset: RuleSet | None = None) -> Said:
    """Read a declaration (role `researcher`) or an attestation (role `tre_staff`).

    Parameters
    ----------
    source
        A JSON file, its content, or None for nothing said.
    role
        Who must be speaking; a file of the other role is refused.
    ruleset
        When given, each fact must exist in it, have its type, and be one this role may supply.

    Raises
    ------
    InputError
        Naming the file and the entry.
    """
    provider = _ROLES[role]
    if source is None:
        return Said(provider=provider)
    path: str | None = None
    data: Any = source
    if not isinstance(source, Mapping):
        path = str(source)
        data = read_form(source)
    step = "See docs/session.md, 'What people say', for the form of the file."
    schemas.check(data, "declare", path=path, what="what people say", next_step=step)
    if data["role"] != role:
        raise InputError(f"the file is signed as {data['role']!r}, not as {role!r}", path=path, place="role")
    said = Said(
        data["by"], provider, data["facts"], data.get("outputs", {}), data.get("simulated", False), data.get("note")
    )
    if ruleset is not None:
        _check_vocabulary(said, ruleset, path)
    return said


def read_form(source: str | Path) -> Any:
    """What people wrote: strict JSON, or the YAML form that `sacro-deltab init` makes (nothing taken off: no facts)."""
    if Path(source).suffix.lower() not in (".yaml", ".yml"):
        return read_json(source)
    marked = read_marked(Path(source), str(source))
    if marked.problems:
        raise InputError(f"the form cannot be read: {marked.problems[0]}", path=source)
    data: Any = marked.data
    if isinstance(data, dict) and data.get("facts", 0) is None:
        data = {**data, "facts": {}}
    return data


def _check_vocabulary(said: Said, ruleset: RuleSet, path: str | None) -> None:
    known: Mapping[str, Any] = ruleset.facts
    for block in (said.facts, *said.outputs.values()):
        for name in block:
            if name not in known:
                raise InputError(f"the rule set knows no fact {name!r}", path=path, place=f"facts/{name}")
