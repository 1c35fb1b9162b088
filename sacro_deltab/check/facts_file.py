"""`--facts FILE`: what the TRE attests about single files, so that they can be judged without a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..judging.said import read_form
from ..rules.facts import Fact, Facts, Part, Provider

_STEP = 'Write {"output_type": "delta_mean", "facts": {"n": 412}} or what `facts_to_json` gives.'
_TOP = frozenset({"output_name", "output_type", "type", "title", "facts", "parts", "files", "note", "by", "schema"})


@dataclass(frozen=True)
class Attested:
    """Facts about one file."""

    output_type: str | None
    title: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def to_facts(self, name: str, output_type: str) -> Facts:
        """As the rules take them; everything in this file counts as attested."""
        said = {key: Fact(key, value, Provider.ATTESTED) for key, value in self.facts.items()}
        return Facts(name, output_type, said, self.parts)


@dataclass(frozen=True)
class FactsFile:
    """A read facts file: one entry for every file, or entries by file name."""

    default: Attested | None
    by_file: Mapping[str, Attested]

    def for_file(self, name: str) -> Attested | None:
        """The entry for a file, by its name, then its stem, then the default."""
        base = name.replace("\\", "/").rsplit("/", 1)[-1].rsplit("!", 1)[-1]
        stem = base.rsplit(".", 1)[0]
        return self.by_file.get(base) or self.by_file.get(stem) or self.default

    @property
    def is_for_one(self) -> bool:
        """A single entry that names a type: it can only be about one output."""
        return self.default is not None and self.default.output_type is not None and not self.by_file


def read_facts(path: str | Path) -> FactsFile:
    """Read `--facts`.

    Raises
    ------
    InputError
        When it is not strict JSON or an entry is not what the form allows.
    """
    name = str(path)
    data = read_form(path)
    if not isinstance(data, dict):
        raise InputError("it is not a JSON object", path=name, next_step=_STEP)
    if data.get("schema") == "sacro_deltab/declare/1":
        return _attestation(data, name)
    entries = data.get("files")
    if entries is None:
        return FactsFile(_entry(data, name, "document"), {})
    if not isinstance(entries, dict) or not all(isinstance(v, dict) for v in entries.values()):
        raise InputError("`files` must map file names to facts", path=name, place="files", next_step=_STEP)
    return FactsFile(None, {key: _entry(value, name, f"files/{key}") for key, value in entries.items()})


def _attestation(data: Mapping[str, Any], path: str) -> FactsFile:
    """What `run --attest` takes: facts of every output, and facts by output name."""
    if data.get("role") != "tre_staff":
        raise InputError("only TRE staff attest (role: tre_staff)", path=path, place="role", next_step=_STEP)
    common = data.get("facts", {})
    outputs = data.get("outputs", {})
    if (
        not isinstance(common, dict)
        or not isinstance(outputs, dict)
        or not all(isinstance(v, dict) for v in outputs.values())
    ):
        raise InputError("`facts` and `outputs` must map names to values", path=path, next_step=_STEP)
    own = {name: _entry({"facts": {**common, **facts}}, path, f"outputs/{name}") for name, facts in outputs.items()}
    return FactsFile(_entry({"facts": common}, path, "document"), own)


def _entry(data: Mapping[str, Any], path: str, place: str) -> Attested:
    facts = data.get("facts")
    if facts is None:  # the flat form: every key that is not of the frame is a fact
        facts = {key: value for key, value in data.items() if key not in _TOP}
    elif unknown := set(data) - _TOP:
        raise InputError(f"it has an unknown key {sorted(unknown)[0]!r}", path=path, place=place, next_step=_STEP)
    if not isinstance(facts, dict):
        raise InputError("`facts` must map names to values", path=path, place=place, next_step=_STEP)
    kind = data.get("output_type", data.get("type"))
    if kind is not None and not isinstance(kind, str):
        raise InputError("`output_type` must be a word", path=path, place=place, next_step=_STEP)
    title = data.get("title")
    return Attested(
        output_type=kind,
        title=title if isinstance(title, str) else None,
        facts={key: _value(value, path, f"{place}/facts/{key}") for key, value in facts.items()},
        parts=_parts(data.get("parts"), path, place),
    )


def _value(value: Any, path: str, place: str) -> Any:
    if isinstance(value, dict):
        value = value.get("value")
    if type(value) not in (bool, int, float, str):
        raise InputError("a fact must be true, false, a number or a word", path=path, place=place, next_step=_STEP)
    return value


def _parts(data: Any, path: str, place: str) -> tuple[Part, ...]:
    if data is None:
        return ()
    if isinstance(data, dict):  # {"AD": {"cell.n": 140}, ...}
        data = [{"kind": _kind(facts), "key": key, "facts": facts} for key, facts in data.items()]
    if not isinstance(data, list):
        raise InputError("`parts` must be a list or map rows to facts", path=path, place=place, next_step=_STEP)
    out = []
    for number, entry in enumerate(data):
        where = f"{place}/parts/{number}"
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("key"), str)
            or not isinstance(entry.get("facts"), dict)
        ):
            raise InputError("a part needs `key` and `facts`", path=path, place=where, next_step=_STEP)
        facts = {
            key: Fact(key, _value(value, path, f"{where}/{key}"), Provider.ATTESTED)
            for key, value in entry["facts"].items()
        }
        raw = entry.get("value")
        value = float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
        out.append(Part(str(entry.get("kind") or _kind(entry["facts"])), entry["key"], facts, value))
    if len({part.key for part in out}) != len(out):
        raise InputError("two parts have the same key", path=path, place=place, next_step=_STEP)
    return tuple(out)


def _kind(facts: Any) -> str:
    names = list(facts) if isinstance(facts, dict) else []
    if any(name.startswith(("cell.", "band.")) for name in names):
        return "cell"
    return "quantile" if any(name.startswith("quantile.") for name in names) else "row"
