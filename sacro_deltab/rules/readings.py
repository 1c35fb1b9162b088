"""Decisions ranked by how many verdicts each moves: the reading not taken is laid on the law, stored outputs judged.

`readings.yaml` says the other reading of a decision as the body of a layer, or why it cannot be replayed. What
was found over the fixtures stands in `readings.json` beside the rules, for booklets; the documentation prints it whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..base.strict import DATA, read_json
from .digests import semantic_digest
from .layers import supposing
from .loader import first_at_each_place, raise_problems
from .marked_yaml import read_marked
from .model import RuleSet
from .replay import UNKNOWN, Again, Replayed, Rerun, replay
from .schema_check import check

FILE = "readings.json"
OTHERS = "readings.yaml"
STORED = "fixtures/replay"
FULL = 12  # decisions that the page tells in full
_HEAD = """\
# Decisions, by what they decide

Made by `sacro-deltab rules book --readings {stored}`: {outputs} outputs of simulated sessions, judged under the law
as it is and under the reading not taken of each decision; tables were chosen, rounded and attacked again. *More*: an
output leaves, or leaves without a person, or shows a group, where it did not; *less*: the other way. A group can be
*worked out* where the attacker of the law as it is finds a marked one, or a small union of marked ones, in what would
leave. The reading in force stays until somebody signs.

The stored sessions are few, and some were made so that a decision shows what it does: read which outputs move, not
the order. A TRE's own sessions give the order that counts there (`--readings DIR`).

The other reading is the body of a layer: `sacro-deltab rules show D-31` prints it.

## The first {full}
"""


def others(ruleset: RuleSet) -> Mapping[str, Mapping[str, Any] | str]:
    """The reading not taken of each decision, as the body of a layer or in words why not; none without the file."""
    path = Path(ruleset.folder) / OTHERS
    if not path.is_file():
        return {}
    marked = read_marked(path, str(path))
    if isinstance(marked.data, dict):
        check(marked, "readings")
    raise_problems(first_at_each_place(marked.problems), str(path))
    found: Mapping[str, Mapping[str, Any] | str] = marked.data["readings"]
    return found


def weigh(
    ruleset: RuleSet, folders: list[Path], rerun: Rerun | None = None, *, only: Collection[str] | None = None
) -> dict[str, Any]:
    """What `readings.json` holds: the decisions whose other reading moves most verdicts first, under which law."""
    as_it_is: dict[Path, Mapping[str, Again | None] | None] = {}

    def once(path: Path, law: RuleSet, by: RuleSet) -> Mapping[str, Again | None] | None:
        assert rerun is not None
        if law is not ruleset:
            return rerun(path, law, by)
        if path not in as_it_is:
            as_it_is[path] = rerun(path, law, by)
        return as_it_is[path]

    ranked: list[dict[str, Any]] = []
    outputs = 0
    written = others(ruleset)
    for name in ruleset.decisions if only is None else only:
        other = written.get(name, "nobody has written its other reading down as rules")
        if isinstance(other, str):
            ranked.append({"id": name, "why": other})
            continue
        replayed = replay(ruleset, supposing(ruleset, name, other), folders, None if rerun is None else once)
        outputs = len(replayed)
        ranked.append({"id": name, **_moved(replayed)})
    ranked.sort(key=lambda one: (-one.get("moved", -1), one["id"]))
    return {"rules": semantic_digest(ruleset), "outputs": outputs, "ranked": ranked}


def _moved(replayed: list[Replayed]) -> dict[str, Any]:
    moved = [r for r in replayed if r.changed and r.after != UNKNOWN]
    alike: dict[tuple[str, str], list[str]] = {}
    for r in moved:
        alike.setdefault((Path(r.path).stem, f"{r.before} → {r.after}{r.groups()}"), []).append(r.name)
    return {
        "moved": len(moved),
        "more": sum(r.leaves > 0 for r in moved),
        "less": sum(r.leaves < 0 for r in moved),
        "derivable": sum(len(r.derivable) for r in moved),
        "unknown": sum(r.after == UNKNOWN for r in replayed),
        "outputs": [f"{where}: {', '.join(names)}: {change}" for (where, change), names in alike.items()],
    }


def known(ruleset: RuleSet) -> dict[str, Any]:
    """The ranking that lies beside the rules, and whether it was found under this very text; empty without one."""
    path = Path(ruleset.folder) / FILE
    if not path.is_file():
        return {}
    found = read_json(path, bounds=DATA)
    return {**found, "current": found["rules"] == semantic_digest(ruleset)}


def page(ruleset: RuleSet, found: Mapping[str, Any]) -> str:
    """The ranking as one page of Markdown: both readings, what leaves more or less, which groups are seen otherwise."""
    ranked = [one for one in found["ranked"] if one.get("moved")]
    still = [one["id"] for one in found["ranked"] if one.get("moved") == 0]
    lines = [_HEAD.format(stored=STORED, outputs=found["outputs"], full=FULL)]
    for place, one in enumerate(ranked[:FULL], start=1):
        d = ruleset.decisions[one["id"]]
        lines += [f"### {place}. {d.id}: {d.ask}", "", f"In force: {d.choose}.  ", f"Not taken: {d.instead}.  "]
        lines += [f"Moves {_counts(one)}; {one['derivable']} groups can be worked out.", ""]
        lines += [*(f"* {said}" for said in one["outputs"]), ""]
    lines += ["## The others", "", "| decision | moves | which |", "| --- | --- | --- |"]
    for one in ranked[FULL:]:
        which = "; ".join(one["outputs"][:3]) + ("; …" if len(one["outputs"]) > 3 else "")
        lines.append(f"| {one['id']} | {_counts(one)} | {which} |")
    lines += ["", f"Move nothing here: {', '.join(still)}.", "", "## Not replayed, and why", ""]
    reasons: dict[str, list[str]] = {}
    for one in found["ranked"]:
        if "why" in one:
            reasons.setdefault(one["why"], []).append(one["id"])
    return "\n".join([*lines, *(f"* {', '.join(ids)}: {why}" for why, ids in reasons.items())]) + "\n"


def _counts(one: Mapping[str, Any]) -> str:
    return f"{one['moved']}: {one['more']} leave more, {one['less']} less"
