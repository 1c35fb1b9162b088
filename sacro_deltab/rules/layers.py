"""Layers: small files on a rule set, network below TRE below project; each tightens, adds and pins what it stands on.

Whatever lets more through (a looser number, a retired rule, a new kind of output) stands under `loosen`, `retire`,
`kinds` or `constants` and counts only where the committee's signature over the file holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import RuleSetError
from ..base.opening import read_file
from .constants import put_in_place, users
from .digests import decision_digest, semantic_digest
from .facts import FactValue
from .fits import misfit, read_parameter
from .layer_changes import Changed, changed_rule
from .loader import first_at_each_place, load_base, raise_problems
from .marked_yaml import MarkedFile, Problem, read_marked
from .model import Layer, Loosened, ParameterValue, Rule, RuleSet, Stack
from .schema_check import check, did_you_mean
from .seals import EVERYBODY, NOBODY, Seals, beside, within

LEVELS = ("network", "tre", "project")
_ADDS = {"rules", "kinds", "facts", "sources", "decisions", "suppression_mark"}
_ENTRY = re.compile(r"^\s*- +\{? *rule: *[\"']?([A-Z]{2}-\d{2,})")


@dataclass(frozen=True)
class _File:
    """One layer file as read; its header is the same whichever way it was written."""

    path: Path
    raw: bytes
    marked: MarkedFile
    head: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        return sha256_hex(self.raw)

    def wrong(self, what: str, *path: Any, rule: str | None = None) -> None:
        """Note a misfit at a place of the file."""
        self.marked.problems.append(Problem(self.marked.place(*path), what, rule))

    def stop(self) -> None:
        """Raise what was noted."""
        raise_problems(first_at_each_place(self.marked.problems), f"the layer {self.path}")


def load_ruleset(
    source: str | Path | None = None,
    *,
    profile: str | Path | None = None,
    seals: Seals = NOBODY,
    today: date | None = None,
) -> RuleSet:
    """Load and check a rule set with the layers on it.

    Parameters
    ----------
    source
        None for the packaged `deltab-disclosure`; a packaged name; a folder; or a file in the folder.
    profile
        The top layer's file, or the name of one under `layers/` of the rule set; those below it are found by what
        it stands on.
    seals
        What the committee signed (`certificate.law`); nobody signed anything by default, and the set is a draft.

    Raises
    ------
    RuleSetError
        With every error of every file, each as `file:line:column: rule: what; did you mean …`.
    """
    base = _sealed(load_base(source), seals, today or datetime.now(UTC).date())
    return base if profile is None else lay(base, find_layer(base, profile), seals)


def _sealed(base: RuleSet, seals: Seals, today: date) -> RuleSet:
    """With the state and the signed decisions that signatures give it."""
    if base.status == "retired":
        return replace(base, state="retired")
    if not seals.committee:
        return base
    seal = seals.find(within(base.folder, "approval"), "approval", base.id, base.sha256)
    signed = {}
    for d in base.decisions.values():
        found = seals.find(within(base.folder, d.id), "decision", d.id, decision_digest(d))
        signed[d.id] = d if found is None else replace(d, signed=found.to_json())
    state = "draft" if seal is None else seal.state_on(today)
    return replace(base, state=state, decisions=MappingProxyType(signed))


def find_layer(base: RuleSet, name: str | Path) -> Path:
    """The layer's file: a path, or a name among the rule set's own layers."""
    path = Path(name)
    if path.is_file():
        return path
    named = Path(base.folder) / "layers" / f"{name}.yaml"
    if len(path.parts) == 1 and named.is_file():
        return named
    known = sorted(p.stem for p in named.parent.glob("*.yaml"))
    raise RuleSetError(
        f"there is no layer {str(name)!r}{did_you_mean(str(name), known)}",
        next_step=f"Give a layer's file, or one of: {', '.join(known) or 'none are packaged'}.",
    )


def lay(base: RuleSet, top: Path, seals: Seals = NOBODY) -> RuleSet:
    """The rule set with a layer and all that it stands on; RuleSetError names each line that may not stand there."""
    return _laid(base, _files(base, top), seals)


def supposing(base: RuleSet, name: str, body: Mapping[str, Any]) -> RuleSet:
    """The law with the body of a layer as if the committee had signed it: to try a reading out, never to judge."""
    on = {"id": base.id, "version": base.version, "sha256": semantic_digest(base)}
    head = {"id": name.lower(), "level": "project", "title": name, "version": "1", "on": on}
    text = json.dumps({"layer": head, **body}, ensure_ascii=False).encode()
    return _laid(base, [_read(Path(name), text)], EVERYBODY)


def _files(base: RuleSet, top: Path) -> list[_File]:
    """The layer's file and those below it, lowest first."""
    files = [_read(top)]
    while (on := files[0].head["on"]["id"]) != base.id:
        upper = files[0]
        near = [upper.path.with_name(f"{on}.yaml"), Path(base.folder) / "layers" / f"{on}.yaml"]
        found = next((p for p in near if p.is_file()), None)
        if found is None:
            upper.wrong(f"is for the rule set {on!r}, not {base.id!r}, and no layer {on}.yaml lies beside it", "layer")
            upper.stop()
        assert found is not None
        files.insert(0, _read(found))
        if LEVELS.index(files[0].head["level"]) >= LEVELS.index(upper.head["level"]):
            what = f"a {upper.head['level']} layer stands on lower ones, and {on} is of level {files[0].head['level']}"
            upper.wrong(what, "layer", "level")
            upper.stop()
    return files


def layer_id(path: Path) -> str:
    """Id of the layer in a file; RuleSetError where it is none."""
    return str(_read(path).head["id"])


def _read(path: Path, text: bytes | None = None) -> _File:
    raw = read_file(path) if text is None else text
    marked = read_marked(path, str(path), raw=raw)
    if marked.data is not None and check(marked, "layer") and ("layer" in marked.data) == ("profile" in marked.data):
        marked.problems.append(Problem(marked.place(), "a layer has the header 'layer' (or, from 0.1, 'profile')"))
    marked.name_entries(_ENTRY)
    raise_problems(first_at_each_place(marked.problems), f"the layer {path}")
    old = marked.data.pop("profile", None)
    head = marked.data.get("layer") or {**old, "level": "tre", "version": "1", "on": {"id": old["ruleset"]}}
    marked.data["layer"] = head
    return _File(path, raw, marked, head)


def _laid(base: RuleSet, files: Sequence[_File], seals: Seals) -> RuleSet:
    if not files:
        return base
    below, top = _laid(base, files[:-1], seals), files[-1]
    pinned = _pin(below, top)
    seal = seals.find(beside(top.path), "layer", top.head["id"], top.sha256)
    signed = seal is not None
    said, loosened = _constants(below, top, signed)
    top.stop()
    numbers = {n: v for f in files for n, v in f.marked.data.get("constants", {}).items()}
    adds = tuple((str(f.path), f.raw) for f in files if _ADDS & set(f.marked.data))
    whole = load_base(Path(base.folder), constants=numbers, added=adds) if numbers or adds else base
    rules = {rule.id: rule for rule in whole.rules}
    for file in files[:-1]:
        _changes(whole, file, rules, again=True, signed=True)
    found = _changes(whole, top, rules, again=False, signed=signed)
    loosened += [Loosened(top.head["id"], c.said, c.outputs) for c in found if c.loosens]
    loosened += _added(below, whole, top, signed)
    parameters, looser = _parameters(whole, below, top, rules, signed)
    loosened += looser
    said += [one.what for one in looser]
    by = None if seal is None else seal.to_json()  # the layer's signature covers its own decisions
    decisions = {d: replace(one, signed=by) for d, one in whole.decisions.items()}
    attest = {**(below.profile.attest if below.profile else {}), **_attest(whole, top)}
    top.stop()
    layer = Layer(
        top.head["id"], top.head["level"], top.head["version"], top.head["title"], top.sha256, pinned,
        (*said, *(c.said for c in found), *_new(below, whole)), tuple(loosened),
    )  # fmt: skip
    lower = below.profile.layers if below.profile else ()
    ledgers = (below.profile.ledgers if below.profile else ()) + tuple(
        MappingProxyType(dict(entry)) for entry in top.marked.data.get("ledgers", ())
    )
    return replace(
        whole,
        rules=tuple(rules[rule.id] for rule in whole.rules),
        parameters=MappingProxyType(parameters),
        decisions=MappingProxyType({**decisions, **below.decisions}),
        state=below.state if pinned else "draft",
        profile=Stack((*lower, layer), MappingProxyType(attest), ledgers),
    )


def _pin(below: RuleSet, top: _File) -> bool:
    """Whether what the layer stands on is pinned; another version or meaning than it pins is a problem."""
    on = top.head["on"]
    if "sha256" not in on:
        return False
    version = below.profile.layers[-1].version if below.profile else below.version
    means = semantic_digest(below)
    if (on["version"], on["sha256"]) != (version, means):
        what = f"stands on {on['id']} {on['version']} {on['sha256'][:12]}…, and that is now {version}, {means}"
        top.wrong(f"{what}: read `rules diff`, then renew the pin", "layer", "on", "sha256")
    return True


def _constants(below: RuleSet, top: _File, signed: bool) -> tuple[list[str], list[Loosened]]:
    """What the layer sets constants to, in words; a looser number without a signature, or an unknown name, is wrong."""
    said, loosened = [], []
    for name, value in top.marked.data.get("constants", {}).items():
        old = below.constants.get(name)
        if old is None:
            top.wrong(f"no constant {name!r}{did_you_mean(name, below.constants)}", "constants", name)
            continue
        words = f"{name}: {old.value} → {value}"
        if old.stricter == "none" or not _stricter(old.stricter, old.value, value):
            if not signed:
                what = f"loosens the constant {words}: only a layer that the committee signed may"
                top.wrong(what, "constants", name)
            loosened.append(
                Loosened(top.head["id"], words, frozenset().union(*(r.outputs for r in users(below, name))))
            )
        said.append(words)
    return said, loosened


def _changes(whole: RuleSet, file: _File, rules: dict[str, Rule], *, again: bool, signed: bool) -> list[Changed]:
    """Lay the file's changes on the rules; `again` for a layer that was judged when the one above it was not there."""
    marked = read_marked(file.path, str(file.path), raw=file.raw)  # anew: the numbers behind names may be others now
    marked.problems = file.marked.problems
    put_in_place(marked, whole.constants)
    out = []
    for key in ("tighten", "loosen", "retire"):
        for index, entry in enumerate(marked.data.get(key, ())):
            old = rules.get(entry["rule"])
            if old is None:
                file.wrong(f"no rule {entry['rule']}{did_you_mean(entry['rule'], rules)}", key, index, "rule")
                continue
            found = changed_rule(whole, marked, key, index, old, signed=signed, again=again)
            if found is not None:
                rules[old.id] = found.rule
                out.append(found)
    return out


def _new(below: RuleSet, whole: RuleSet) -> list[str]:
    """What a layer adds, in words."""
    known = {r.id for r in below.rules}
    rules = [f"{r.id} added: {r.title}" for r in whole.rules if r.id not in known]
    more: dict[str, Iterable[str]] = {
        "kind": whole.outputs.keys() - below.outputs.keys(),
        "clause": whole.clauses.keys() - below.clauses.keys(),
        "decision": whole.decisions.keys() - below.decisions.keys(),
    }
    mark = [f"the mark {below.mark} → {whole.mark}"] if whole.mark != below.mark else []
    return rules + mark + [f"{what} {k} added" for what, names in more.items() for k in sorted(names)]


def _added(below: RuleSet, whole: RuleSet, top: _File, signed: bool) -> list[Loosened]:
    """A new kind lets out what was blocked; a new rounding or label changes what a known kind says."""
    out = []
    for kind in whole.output_types - below.output_types:
        if not signed:
            top.wrong(f"adds the kind {kind}: only a layer that the committee signed may", "kinds", kind)
        out.append(Loosened(top.head["id"], f"kind {kind} added", frozenset({kind})))
    if whole.mark != below.mark:
        if not signed and "suppression_mark" in top.marked.data:
            top.wrong("lets a mark tell how many: only a layer that the committee signed may", "suppression_mark")
        tables = frozenset(r for rule in whole.rules if rule.for_each == "cell" for r in rule.outputs)
        out.append(Loosened(top.head["id"], f"the mark {below.mark} → {whole.mark}", tables))
    known = {r.id for r in below.rules}
    for rule in whole.rules:
        if rule.id not in known and rule.deed == "round" and rule.outputs & below.output_types and not signed:
            top.wrong(f"{rule.id} rounds kinds that are rounded below: only a signed layer may", "rules", rule=rule.id)
    return out


def _parameters(
    whole: RuleSet, below: RuleSet, top: _File, rules: Mapping[str, Rule], signed: bool
) -> tuple[dict[str, ParameterValue], list[Loosened]]:
    """The numbers that stand alone, with those of the layer; a looser one without a signature is wrong."""
    specs = whole.parameter_specs
    out = dict(whole.parameters)
    loosened = []
    for name, spec in specs.items():
        if spec.rule is not None:
            out[name] = read_parameter(spec, rules)
        elif spec.constant is None:
            out[name] = below.parameters[name]
    for name, value in top.marked.data.get("parameters", {}).items():
        one = specs.get(name)
        if one is None:
            what = f"no parameter {name!r}{did_you_mean(name, specs)}"
        elif one.rule is not None:
            what = f"{name} is set by {one.rule}: tighten that rule"
        elif one.constant is not None:
            what = f"{name} is the constant {one.constant}: set that under constants"
        elif one.stricter == "none":
            what = f"{name} has no stricter side: register a bounds file instead"
        elif isinstance(one.value, int) and not isinstance(value, int):
            what = f"{name} is a whole number"
        elif not (tight := _stricter(one.stricter, out[name], value)) and not signed:
            what = f"the layer loosens {name}: only one that the committee signed may"
        else:
            if not tight:  # no rule says whom such a number concerns: every kind is told
                loosened.append(Loosened(top.head["id"], f"{name}: {out[name]} → {value}", whole.output_types))
            out[name] = value
            continue
        top.wrong(what, "parameters", name)
    return out, loosened


def _stricter(side: str, old: Any, new: Any) -> bool:
    return bool(new >= old if side == "higher" else 0 < new <= old)


def _attest(whole: RuleSet, top: _File) -> dict[str, FactValue]:
    out: dict[str, FactValue] = {}
    for name, value in top.marked.data.get("attest", {}).items():
        spec = whole.facts.get(name)
        if spec is None:
            what: str | None = f"{name!r} is not a fact{did_you_mean(name, whole.facts)}"
        elif spec.by not in ("attested", "declared"):
            what = f"{name} is {spec.by}: nobody can pin it"
        else:
            what = misfit(spec, value)
            what = f"{name} {what}" if what else None
        if what:
            top.wrong(what, "attest", name)
        else:
            out[name] = value
    return out
