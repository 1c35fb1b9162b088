"""The vocabulary is the one table of kinds: each has one file, and no other module spells its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sacro_deltab.kinds.registry import KINDS
from sacro_deltab.rules import load_base

PACKAGE = Path(__file__).resolve().parents[2] / "sacro_deltab"
ROOM = PACKAGE / "kinds"
VOCABULARY = frozenset(load_base().outputs)

FIELDS = "fields of a model as its own file keeps them"
WORDS = "a word of this module's own, not the kind"
# Where a kind's name stands for something else. A list that grows is a second table of kinds.
OTHERWISE: dict[str, dict[str, str]] = {
    "outputs/parameters.py": {"*": "what a model's parameters are called: `kinds/weights.py` takes them from here"},
    "model/weights.py": {"*": FIELDS},
    "model/stored.py": {"*": FIELDS},
    "privacy/heuristic.py": {"gamma": FIELDS, "gammasq": FIELDS},
    "federation/results.py": dict.fromkeys(("y_mean", "ysq_mean", "ysq_slope", "gamma", "gammasq"), FIELDS),
    "federation/simulation.py": {"x_mean": FIELDS, "x_std": FIELDS, "y_mean": FIELDS, "correlation": WORDS},
    "federation/pooling.py": {"y_mean": WORDS},
    "federation/report.py": {"y_mean": WORDS},
    "federation/meta.py": {"p_value": WORDS},
    "federation/bundle.py": {"certificate": WORDS},
    "certificate/types.py": {"certificate": WORDS},
    "check/paper_check.py": {"certificate": "the rule about form `check/certificate`"},
    "build/results.py": {"certificate": "the record's name"},
    "cli/ledger.py": {"plot": WORDS},
    "cli/plan.py": {"correlation": WORDS},
    "privacy/plan/planning.py": {"correlation": WORDS},
    "privacy/attack/membership.py": {"attack_report": "a function"},
    "privacy/statistics.py": {"delta_mean": "what a ledger without a session calls it; this room stands below kinds"},
    "rules/stub.py": {"n_subjects": "an example in a file that a person edits"},
    "session/attacking.py": {"attack_report": "a step of the journal"},
    "session/resume.py": {"attack_report": "a step of the journal"},
}


def _names(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in VOCABULARY:
            yield node.value, node.lineno


def test_every_kind_of_the_vocabulary_has_one_file() -> None:
    assert set(KINDS) == VOCABULARY
    here: dict[str, list[str]] = {}
    for path in ROOM.glob("*.py"):
        for name in {name for name, _ in _names(path)}:
            here.setdefault(name, []).append(path.name)
    twice = {name: files for name, files in here.items() if len(files) > 1}
    assert not twice, f"a kind stands in two files: {twice}"


def test_no_other_module_names_a_kind() -> None:
    found, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        allowed = OTHERWISE.get(where, {})
        if path.parent == ROOM or "_data" in path.parts:
            continue
        for name, line in _names(path):
            key = name if name in allowed else "*" if "*" in allowed else None
            used.add((where, key))
            if key is None:
                found.append(f"{where}:{line}: {name!r}")
    assert not found, "a kind is spelt outside its file:\n" + "\n".join(found)
    stale = [(where, key) for where, keys in OTHERWISE.items() for key in keys if (where, key) not in used]
    assert not stale, f"no longer needed: {stale}"


def test_a_kind_that_is_a_table_can_be_recognised_measured_or_is_made_elsewhere() -> None:
    """What the attack must know of is told: everything measured on people prints cells or tells its sums."""
    for kind in KINDS.values():
        if kind.make is not None:
            assert kind.shape, kind.name
            assert kind.part == "cell" or kind.tells is not None or kind.shape == "one_row", kind.name
        assert kind.page.endswith("."), f"{kind.name} has no page"
