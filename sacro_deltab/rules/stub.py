"""A new rule as a stub with two boundary examples: it loads at once, and judges as soon as it is filled in."""

from __future__ import annotations

import re
from pathlib import Path

from ..base.errors import InputError
from ..base.writing import write_file
from .loader import load_base, rule_files
from .marked_yaml import read_marked
from .model import RuleSet

STUB = """\
  - id: {id}
    title: N is published only at 20 or more (change me)
    applies_to: [{output}]
    require: {{n: {{at_least: 20}}}}
    otherwise: review
    status: provisional
    source: [{clause}]
    note: A stub; say why the rule is there, and which clause it rests on.
    examples:
      - {{given: {{n: 20}}, expect: pass}}
      - {{given: {{n: 19}}, expect: review}}
"""


def stub(ruleset: RuleSet, rule_id: str) -> str:
    """YAML of a new rule; InputError where the id is not free or not an id."""
    if not re.fullmatch(r"[A-Z]{2}-[0-9]{2}", rule_id):
        raise InputError(f"{rule_id!r} is no rule id", next_step="Two letters, a dash, two digits, as in MP-24.")
    taken = {rule.id: rule for rule in ruleset.rules}
    if rule_id in taken:
        head = rule_id[:3]
        numbers = [int(i[3:]) for i in taken if i.startswith(head)]
        raise InputError(
            f"{rule_id} is taken ({taken[rule_id].place})",
            next_step=f"The next free one is {head}{max(numbers) + 1:02d}.",
        )
    output = "n_subjects" if "n_subjects" in ruleset.outputs else next(iter(ruleset.outputs))
    return STUB.format(id=rule_id, output=output, clause=next(iter(ruleset.clauses)))


def home_of(ruleset: RuleSet, rule_id: str) -> Path:
    """The section file that holds the rules with the same two letters; InputError where there is none."""
    folder = Path(ruleset.folder)
    for path in rule_files(folder):
        rules = (read_marked(path, str(path)).data or {}).get("rules") or []
        if any(str(rule.get("id", "")).startswith(rule_id[:3]) for rule in rules):
            return path
    raise InputError(
        f"no section file holds {rule_id[:2]} rules", path=folder, next_step="Make the file first: section, rules."
    )


def write_stub(ruleset: RuleSet, rule_id: str) -> Path:
    """Append the stub to its section file; the file is put back if the rule set would not load any more."""
    text = stub(ruleset, rule_id)
    path = home_of(ruleset, rule_id)
    before = path.read_text(encoding="utf-8")
    write_file(path, before.rstrip("\n") + "\n\n" + text)
    try:
        load_base(Path(ruleset.folder))
    except InputError:
        write_file(path, before)
        raise
    return path
