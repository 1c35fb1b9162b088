"""From raw document and facts to what may be asked to leave: decide, protect, decide again, round, verify.

One function for the session, which chooses complementary cells, and for `check`, which is given the pattern of
marks it found and never re-chooses:

1. *decide* on the raw facts: which cells are primary;
2. *protect*: which other cells must go so that nothing can be worked out (the table engine chooses), then an audit
   by a separate code path of what would be published, together with everything published before;
3. *decide* again with the table facts: withhold, block, review, and every rounding;
4. *transform*: one mark for every suppressed cell, then rounding, then labels;
5. *verify* the transformed document itself. What fails here blocks, whatever the rules said before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.findings import Effect, Finding
from ..base.names import plain_signs
from ..kinds.registry import KINDS
from ..measure.table_audit import TableAudit
from ..outputs import MARK, Cell, Column, OutputDocument, is_mark
from ..rules import RuleSet, decide
from ..rules.facts import Fact, Facts, Part, Provider
from ..rules.types import Action, Decision
from ..tables.rounding import round_value
from .schema import check_document

CELL_KIND = "cell"


class TableContext(Protocol):
    """The table engine as the judge sees it; keys are row labels of one output."""

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        """Rows to suppress besides `primary`."""

    def audit(self, suppressed: frozenset[str]) -> TableAudit:
        """Attack the table published with `suppressed` marked; everything published before is known."""


@dataclass(frozen=True)
class Judged:
    """The judgement of one output.

    `document` is what would leave: None when the output is blocked or withheld. `suppressed` are row keys,
    `complementary` those that the engine added (inside only: outside all marks are alike). `would_sha256` is the
    digest of the JSON form as it would leave were nothing blocked: what a waiver names.
    """

    decision: Decision
    document: OutputDocument | None
    facts: Facts
    suppressed: frozenset[str] = frozenset()
    complementary: frozenset[str] = frozenset()
    withheld: bool = False
    problems: tuple[str, ...] = ()
    audit: TableAudit | None = None
    would_sha256: str | None = None

    @property
    def status(self) -> str:
        """`pass`, `review` or `fail`."""
        return self.decision.status


def judge_output(
    ruleset: RuleSet,
    facts: Facts,
    document: OutputDocument,
    *,
    table: TableContext | None = None,
    pattern: Iterable[str] | None = None,
    waivers: Sequence[Any] = (),
    today: date | None = None,
    output_sha256: str | None = None,
) -> Judged:
    """Judge one output and transform it.

    Parameters
    ----------
    ruleset
        A loaded rule set (`sacro_deltab.rules.load_ruleset`).
    facts
        Facts about the raw output; one part a row for tables, quantiles and coefficients.
    document
        The raw, unrounded document the facts are about. It stays inside.
    table
        The table engine's view. None for outputs that are not tables, or where the facts already hold
        `table.recoverable_cells` and `package.recoverable_cells` (recorded by a session).
    pattern
        Row keys that are marked in a document that arrived: audited as it is, never re-chosen.
        None lets the engine choose.
    waivers, today, output_sha256
        Passed to the rules.

    Returns
    -------
    Judged

    Raises
    ------
    InputError
        When the document does not match its schema or its rows do not match the parts.
    """

    def ask(known: Facts, digest: str | None = output_sha256) -> Decision:
        return decide(ruleset, known, waivers=waivers, today=today, output_sha256=digest)

    check_document(document)
    _check_parts(facts, document)
    marked = None if pattern is None else frozenset(pattern)
    is_table = any(part.kind == CELL_KIND for part in facts.parts)
    primary = _suppressed_by(ask(_without_choice(facts))) if is_table else frozenset()
    known, chosen, audit = _as_table(facts, table, primary, marked, is_table=is_table, mark=ruleset.mark)
    decision = ask(known)
    suppressed = _suppressed_by(decision) | chosen
    released = transform(document, decision.actions, suppressed)
    digest = sha256_hex(released.to_json())
    if waivers and output_sha256 is None:
        decision = ask(known, digest)
    unmarked = suppressed - (suppressed if marked is None else marked)
    problems = [f"row {key!r} is below the threshold but not marked" for key in sorted(unmarked)]
    problems += verify(document, released, decision.actions, suppressed)
    withheld = any(action.verb == "withhold" for action in decision.actions)
    leaves = decision.effect not in (Effect.BLOCK, Effect.WITHHOLD)
    if problems and (leaves or unmarked):
        known = known.with_facts(Fact("rounding.done", False, Provider.COMPUTED))
        decision, leaves = _blocked(ask(known, digest), problems), False
    if leaves:
        check_document(released)
    return Judged(
        decision,
        released if leaves else None,
        known,
        suppressed,
        chosen,
        withheld,
        tuple(problems) if not leaves else (),
        audit,
        digest,
    )


def _as_table(
    facts: Facts,
    table: TableContext | None,
    primary: frozenset[str],
    marked: frozenset[str] | None,
    *,
    is_table: bool,
    mark: str,
) -> tuple[Facts, frozenset[str], TableAudit | None]:
    """The facts with those of the attack on the table, the complementary rows, and the attack itself."""
    chosen = _choose(facts, table, primary, marked) if is_table else frozenset()
    audit: TableAudit | None = None
    if table is not None:
        printed = primary | chosen if marked is None else marked
        audit = table.audit(printed if is_table else frozenset())
    known = _with_table_facts(facts, primary, chosen, audit, is_table)
    if is_table:  # a mark that says "few people" would lie of a complement
        untrue = mark != MARK and bool(chosen - primary)
        known = known.with_facts(Fact("table.mark_untrue", untrue, Provider.COMPUTED))
    return known.with_facts(Fact("rounding.done", True, Provider.COMPUTED)), chosen, audit


def _without_choice(facts: Facts) -> Facts:
    """Facts before anybody chose complementary cells: recorded facts already hold the session's choice."""
    parts = tuple(
        replace(part, facts={name: fact for name, fact in part.facts.items() if name != "cell.complementary"})
        for part in facts.parts
    )
    return Facts(facts.output_name, facts.output_type, facts.facts, parts)


def _suppressed_by(decision: Decision) -> frozenset[str]:
    return frozenset(a.part for a in decision.actions if a.verb == "suppress" and a.part is not None)


def _choose(
    facts: Facts, table: TableContext | None, primary: frozenset[str], marked: frozenset[str] | None
) -> frozenset[str]:
    """Complementary rows: those found in a document that arrived, the engine's, or those recorded in the facts."""
    if marked is not None:
        return marked - primary
    if table is not None:
        return frozenset(table.protect(primary)) - primary
    return frozenset(p.key for p in facts.parts if _flag(p, "cell.complementary"))


def transform(document: OutputDocument, actions: Sequence[Action], suppressed: frozenset[str]) -> OutputDocument:
    """Mark, then round, then label, in that order (D-52). The input is left as it is."""
    rows = [list(row) for row in document.rows]
    marks = {action.part: str(action.args["mark"]) for action in actions if action.verb == "suppress"}
    for row in rows:
        if row[0] in suppressed:
            row[1:] = [marks.get(str(row[0]), MARK)] * (len(row) - 1)
    about = dict(document.about)
    for action in actions:
        if action.verb == "round":
            _round(rows, document.columns, action)
    for action in actions:
        if action.verb != "label":
            continue
        text = plain_signs(str(action.args.get("text", "")))
        if "fact" in action.args:  # a word about the whole output, such as the band of a budget
            about["labels"] = [*about.get("labels", []), text]
            continue
        for row in rows:
            if action.part in (None, row[0]) and not any(map(is_mark, row[1:])):
                row[1:] = [text] * (len(row) - 1)
    if suppressed:
        said = min(marks.get(key, MARK) for key in suppressed)
        why = "one mark stands for every reason" if said == MARK else "it is the number of people, in every column"
        about["suppression"] = f"Cells marked {said} are withheld; {why}."
    return replace(document, rows=tuple(tuple(row) for row in rows), about=about)


def verify(
    raw: OutputDocument, released: OutputDocument, actions: Sequence[Action], suppressed: frozenset[str]
) -> list[str]:
    """Faults of a transformed document: an unmarked suppressed row, a number no rule rounded, a changed name."""
    faults: list[str] = []
    if [row[0] for row in raw.rows] != [row[0] for row in released.rows] or raw.columns != released.columns:
        faults.append("rows or columns changed while rounding")
    rounds = [action for action in actions if action.verb == "round"]
    width = range(1, len(raw.columns))
    whole = {i: [a.args for a in rounds if a.part is None and i in _places(raw.columns, _part(a))] for i in width}
    special = {action.part for action in rounds} - {None}
    for old, row in zip(raw.rows, released.rows, strict=False):
        key = str(row[0])
        if key in suppressed and not all(map(is_mark, row[1:])):
            faults.append(f"row {key!r} is suppressed but shows a number")
        if not KINDS[raw.type].rounded:
            continue
        own = [action for action in rounds if action.part == key] if key in special else ()
        for place in width:
            cell = row[place]
            if not isinstance(cell, int | float) or old[place] is None:
                continue
            asked = whole[place]
            if own:
                asked = asked + [a.args for a in own if place in _places(raw.columns, _part(a))]
            if not asked and raw.columns[place].role != "n":  # an N of 100 or more is exact by the policy (DT-R3)
                faults.append(f"column {raw.columns[place].name!r} of row {key!r} has no rounding rule")
            for how in asked:
                if not _is_rounded(cell, how):
                    faults.append(f"column {raw.columns[place].name!r} of row {key!r} is not rounded")
                    break
    return faults


def _is_rounded(cell: int | float, how: Mapping[str, Any]) -> bool:
    """Whether a number already has the form a rounding asks for; other code than the rounding itself."""
    if how.get("to_nearest") is not None:
        return float(cell) % float(how["to_nearest"]) == 0
    if how.get("decimal_places") is not None:
        return float(f"{cell:.{how['decimal_places']}f}") == cell
    if how.get("significant_figures") is not None:
        return float(f"{cell:.{how['significant_figures'] - 1}e}") == cell
    return True


def _part(action: Action) -> str:
    return str(action.args.get("part", "value"))


def _round(rows: list[list[Cell]], columns: Sequence[Column], action: Action) -> None:

    kinds = ("decimal_places", "significant_figures", "to_nearest")
    how = {kind: action.args[kind] for kind in kinds if action.args.get(kind) is not None}
    if not how:
        return
    places = _places(columns, _part(action))
    for row in rows:
        if action.part is not None and row[0] != action.part:
            continue
        for i in places:
            cell = row[i]
            if isinstance(cell, int | float):
                row[i] = round_value(cell, **how)
                least = 10.0 ** -int(how.get("decimal_places", 0))
                if columns[i].role == "p" and cell < least:
                    row[i] = f"below {least:g}"  # the policy's words for what three decimals would make 0


def _places(columns: Sequence[Column], part: str) -> list[int]:
    """Columns an action is about. In a table of counts the N itself is the value."""
    values = [i for i, column in enumerate(columns) if i and column.role == "value"]
    counts = [i for i, column in enumerate(columns) if i and column.role == "n"]
    if part == "every_p":
        return [i for i, column in enumerate(columns) if i and column.role == "p"]
    return counts if part == "every_n" else values or counts


def _with_table_facts(
    facts: Facts, primary: frozenset[str], chosen: frozenset[str], audit: TableAudit | None, is_table: bool
) -> Facts:
    known = facts
    computed = Provider.COMPUTED
    if is_table:
        interior = [p for p in facts.parts if p.kind == CELL_KIND and not _flag(p, "cell.structural_zero")]
        own = sum(p.key in primary for p in interior)
        gone = sum(p.key in primary or p.key in chosen for p in interior)
        parts = tuple(
            replace(p, facts={**p.facts, "cell.complementary": Fact("cell.complementary", p.key in chosen, computed)})
            if p.kind == CELL_KIND
            else p
            for p in facts.parts
        )
        known = Facts(facts.output_name, facts.output_type, facts.facts, parts)
        known = known.with_facts(
            Fact("table.suppressed_share", gone / len(interior) if interior else 1.0, computed),
            Fact("table.primary_share", own / len(interior) if interior else 1.0, computed),
            Fact("table.suppressed_cells", gone, computed),
            Fact("table.interior_cells", len(interior), computed),
        )
    if audit is not None:
        known = known.with_facts(Fact("package.recoverable_cells", audit.package, computed))
        if is_table:
            known = known.with_facts(Fact("table.recoverable_cells", audit.recoverable, computed))
    return known


def _flag(part: Part, name: str) -> bool:
    fact = part.facts.get(name)
    return fact is not None and fact.value is True


def _check_parts(facts: Facts, document: OutputDocument) -> None:
    if facts.output_type != document.type or facts.output_name != document.name:
        raise InputError(f"the facts are about another output than {document.name!r}")
    keys = [part.key for part in facts.parts]
    rows = {row[0] for row in document.rows}
    if len(set(keys)) != len(keys) or not set(keys) <= rows:
        raise InputError(f"the rows of output {document.name!r} and the parts of its facts differ")
    if any(part.kind == CELL_KIND for part in facts.parts) and set(keys) != rows:
        raise InputError(f"a row of output {document.name!r} has no facts of its own")


def _blocked(decision: Decision, problems: Sequence[str]) -> Decision:
    if decision.effect is Effect.BLOCK:
        return decision
    finding = Finding(
        rules=("check/verify",),
        target="output",
        effect=Effect.BLOCK,
        inside="The transformed document does not hold: " + "; ".join(problems),
        outside="The output did not pass the check after rounding and suppression.",
        next_step="Report this to the maintainers with the session's journal.",
    )
    return replace(decision, effect=Effect.BLOCK, findings=(finding, *decision.findings))
