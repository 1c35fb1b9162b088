"""`sacro-deltab rules`: read, check, test, compare, explain and print the rule set."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import InputError
from ..base.writing import write_file
from . import law
from .law import JsonOption, ProfileOption, RulesOption, TrustOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..rules import RuleSet
    from ..rules.replay import Again

rules_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The rule set: list, show, check, test, compare, print."
)

DocumentsOption = Annotated[
    Path | None, typer.Option("--documents", help="Folder with the governing documents: their own words are printed.")
]


def register(app: typer.Typer) -> None:
    """Add the `rules` group."""
    law.register(rules_app)
    app.add_typer(rules_app, name="rules")


def _load(rules: str | None, profile: str | None = None, trust: Path | None = None) -> RuleSet:
    from ..rules import load_ruleset  # late: a command loads what it needs

    if trust is None:
        return load_ruleset(rules, profile=profile)
    from ..certificate.law import committee  # brings sqlalchemy

    return load_ruleset(rules, profile=profile, seals=committee(trust))


def _stack(text: str, layer: str | None, trust: Path | None) -> RuleSet:
    """What `diff` compares: SET, LAYER (on the packaged set) or SET+LAYER."""
    rules, plus, named = text.partition("+")
    if Path(text).is_file() and Path(text).name != "ruleset.yaml":
        rules, plus, named = "", "+", text
    if layer is not None and plus:
        raise InputError(f"{text} names a layer already", next_step="Leave --layer out.")
    return _load(rules or None, named if plus else layer, trust)


def _json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=str))


def _words(ruleset: RuleSet, documents: Path | None) -> dict[str, str]:
    if documents is None:
        return {}
    from ..rules.documents import read_documents  # late: a command loads what it needs

    return read_documents(ruleset, documents).words


@rules_app.command("list", epilog="Example: sacro-deltab rules list --output beta1")
def list_rules(
    rules: RulesOption = None,
    profile: ProfileOption = None,
    output: Annotated[str | None, typer.Option("--output", help="Only the rules on this output type.")] = None,
    as_json: JsonOption = False,
) -> None:
    """One line a rule: id, worst effect, title."""
    from ..rules.describe import effect_word, rule_json  # late: a command loads what it needs
    from ..rules.schema_check import did_you_mean

    ruleset = _load(rules, profile)
    if output is not None and output not in ruleset.outputs:
        raise InputError(f"no output type {output!r}{did_you_mean(output, ruleset.outputs)}")
    chosen = [r for r in ruleset.rules if output is None or output in r.outputs]
    if as_json:
        _json({"rule_set": ruleset.statement(), "rules": [rule_json(ruleset, r) for r in chosen]})
        return
    typer.echo(f"{ruleset.id} {ruleset.version} sha256:{ruleset.sha256}")
    section = ""
    for rule in chosen:
        if rule.section != section:
            section = rule.section
            typer.echo(f"\n{section}")
        marks = "".join(f" [{m}]" for m in (rule.direction, rule.status if rule.status != "active" else None) if m)
        typer.echo(f"  {rule.id}  {effect_word(rule):<9} {rule.title}{marks}")


@rules_app.command(epilog="Example: sacro-deltab rules show SC-03 --documents policy/")
def show(
    name: Annotated[
        str | None, typer.Argument(help="Id of a rule, decision or clause, an output type or a fact.")
    ] = None,
    rules: RulesOption = None,
    profile: ProfileOption = None,
    documents: DocumentsOption = None,
    effective: Annotated[
        bool, typer.Option("--effective", help="The law in force: layers, digest to pin, every number and rule.")
    ] = False,
    trust: TrustOption = None,
    as_json: JsonOption = False,
) -> None:
    """Everything about one rule, decision, clause, output type or fact; with --effective all that is in force."""
    from ..rules import describe  # late: a command loads what it needs
    from ..rules.effective import effective as in_force

    if (name is None) != effective:
        raise InputError("say what to show", next_step="Name a rule, decision, clause, kind or fact, or --effective.")
    ruleset = _load(rules, profile, trust)
    if name is None:
        lines, data = in_force(ruleset)
    else:
        lines, data = describe.show(ruleset, name, _words(ruleset, documents))
    if as_json:
        _json(data)
    else:
        typer.echo("\n".join(lines))


@rules_app.command(epilog="Example: sacro-deltab rules check --documents policy/ --waivers waivers/")
def check(
    rules: RulesOption = None,
    profile: Annotated[
        list[str] | None, typer.Option("--layer", "--profile", help="Check this layer (default: all in layers/).")
    ] = None,
    waivers: Annotated[
        Path | None, typer.Option("--waivers", help="Waiver file or folder (default: the rule set's waivers/).")
    ] = None,
    documents: DocumentsOption = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load everything; check layers, waivers and, with --documents, every clause against the documents.

    Exit 0: all is well. 1: a clause is not where the rule set says. 2: something does not load.
    """
    from ..certificate.law import committee  # late: a command loads what it needs
    from ..rules.checking import check_all
    from ..rules.loader import RuleSetProblems  # late: a command loads what it needs

    try:
        report = check_all(rules, layers=profile, waivers=waivers, documents=documents, seals=committee(trust))
    except RuleSetProblems as problems:
        if not as_json:
            raise
        _json({"ok": False, "problems": [str(p) for p in problems.problems]})
        raise typer.Exit(2) from problems
    if as_json:
        _json(report.to_json())
    else:
        typer.echo("\n".join(report.lines()))
    raise typer.Exit(0 if report.ok else 1)


@rules_app.command(epilog="Example: sacro-deltab rules coverage --documents policy/")
def coverage(rules: RulesOption = None, documents: DocumentsOption = None, as_json: JsonOption = False) -> None:
    """Clauses, limits, decisions, outputs and examples: what has a rule, and why the rest has none.

    Exit 0: no clause lacks a rule or a reason. 1: a gap, named with its line.
    """
    from ..rules.coverage import coverage as measure  # late: a command loads what it needs
    from ..rules.coverage import to_json, to_lines

    ruleset = _load(rules)
    report = measure(ruleset)
    words = _words(ruleset, documents)
    if as_json:
        _json(to_json(report))
    else:
        typer.echo("\n".join(to_lines(ruleset, report, words)))
    raise typer.Exit(1 if report.gaps else 0)


@rules_app.command(epilog="Example: sacro-deltab rules explain outputs delta_by_diagnosis")
def explain(
    path: Annotated[
        Path, typer.Argument(help="Session folder, evidence.json, an output in it, a facts file, or an output type.")
    ],
    name: Annotated[str | None, typer.Argument(help="Name of the output; all of them without it.")] = None,
    rules: RulesOption = None,
    profile: ProfileOption = None,
    view: Annotated[str, typer.Option("--view", help="inside (numbers; stays in the TRE) or outside.")] = "inside",
    waivers: Annotated[Path | None, typer.Option("--waivers", help="Waiver file or folder.")] = None,
    no_waivers: Annotated[bool, typer.Option("--no-waivers", help="Show the verdict without waivers.")] = False,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in sentences what the rules make of stored facts, what was met, and what to do next."""
    from ..rules import decide, decision_to_json, load_waivers  # late: a command loads what it needs
    from ..rules import explain as explain_decision
    from ..rules.stored import find_outputs, with_form  # late: a command loads what it needs

    if view not in ("inside", "outside"):
        raise InputError(f"--view is inside or outside, not {view!r}")
    side: Any = view
    ruleset = _load(rules, profile)
    granted = load_waivers(waivers) if waivers is not None and not no_waivers else ()
    words = _words(ruleset, documents)
    if name is None and str(path) in ruleset.outputs and not path.exists():  # what would be asked of one of this type
        from ..rules.describe import explain_type

        lines, data = explain_type(ruleset, str(path), words)
        _json(data) if as_json else typer.echo("\n".join(lines))
        return
    out = []
    for stored in find_outputs(path, name):
        decision = decide(ruleset, stored.facts, waivers=granted, output_sha256=stored.sha256)
        decision = with_form(decision, stored.form)
        if as_json:
            out.append(decision_to_json(decision, side, ruleset=ruleset))
        else:
            typer.echo(explain_decision(ruleset, decision, view=side, facts=stored.facts, words=words))
    if as_json:
        _json({"rule_set": ruleset.statement(), "view": view, "outputs": out})


@rules_app.command(epilog="Example: sacro-deltab rules diff deltab-disclosure ./my-rules --replay outputs")
def diff(
    old: Annotated[str, typer.Argument(help="A rule set (folder or packaged name), a layer, or SET+LAYER.")],
    new: Annotated[str, typer.Argument(help="What to compare with it, written alike.")],
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Lay this layer on NEW.")] = None,
    replay: Annotated[
        list[Path] | None, typer.Option("--replay", help="Session folders or facts files to judge by both.")
    ] = None,
    note: Annotated[
        Path | None, typer.Option("--note", help="Also write one page about it for a committee (it stays inside).")
    ] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every difference between two stacks, STRICTER or LOOSER, and the stored outputs judged differently."""
    from ..rules import ruleset_diff as compare  # late: a command loads what it needs
    from ..rules.replay import replay as judge_again

    before, after = _stack(old, None, trust), _stack(new, profile, trust)
    found = compare.diff(before, after)
    replayed = judge_again(before, after, replay, _rerun) if replay else []
    if note is not None:
        from ..base.writing import write_file  # late: a command loads what it needs
        from ..rules.note import render_note

        write_file(note, render_note(before, after, found, replayed, asked=bool(replay)))
    if as_json:
        _json(compare.to_json(before, after, found, replayed, asked=bool(replay)))
    else:
        typer.echo("\n".join(compare.to_lines(found, replayed, asked=bool(replay))))


def _rerun(path: Path, ruleset: RuleSet, by: RuleSet) -> Mapping[str, Again | None] | None:
    """A session's tables chosen, rounded and attacked again under other rules."""
    from ..base.strict import DATA, read_json  # late: a command loads what it needs
    from ..session.asked import replay_session  # brings numpy and the table engine

    evidence = read_json(path, bounds=DATA)
    return replay_session(evidence, ruleset, by) if isinstance(evidence, dict) and "outputs" in evidence else None


@rules_app.command(epilog="Example: sacro-deltab rules book --out rule-book.html --documents policy/")
def book(
    out: Annotated[Path | None, typer.Option("--out", help="File to write; stdout without it.")] = None,
    rules: RulesOption = None,
    profile: ProfileOption = None,
    documents: DocumentsOption = None,
    short: Annotated[
        bool, typer.Option("--short", help="The booklet for a committee: tables, numbers, ten decisions.")
    ] = False,
    readings: Annotated[
        Path | None,
        typer.Option(
            "--readings", help="Stored sessions: a page of the decisions by how many of their verdicts each moves."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """One printable, self-contained HTML page: rules, clauses, decisions to sign, examples, change log."""
    from ..rules import readings as both  # late: a command loads what it needs
    from ..rules.book import book_data, render_book
    from ..rules.booklet import booklet_data, render_booklet

    ruleset = _load(rules, profile)
    words = _words(ruleset, documents)
    found = None if readings is None else both.weigh(ruleset, [readings], _rerun)
    if as_json:
        _json(found or (booklet_data(ruleset) if short else book_data(ruleset, words)))
        return
    page = both.page(ruleset, found) if found else render_booklet(ruleset) if short else render_book(ruleset, words)
    if out is None:
        sys.stdout.write(page)
        return
    write_file(out, page)
    typer.echo(f"{out}: {len(ruleset.rules)} rules, {len(ruleset.clauses)} clauses, {len(ruleset.decisions)} decisions")


@rules_app.command(epilog="Example: sacro-deltab rules new MP-24 --rules ./my-rules --write")
def new(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the new rule, as in MP-24.")],
    rules: RulesOption = None,
    write: Annotated[bool, typer.Option("--write", help="Append it to the section file of the rule set.")] = False,
    as_json: JsonOption = False,
) -> None:
    """A stub of a new rule with two boundary examples: it loads at once, change it from there."""
    from ..rules.stub import stub, write_stub  # late: a command loads what it needs

    if write and rules is None:
        raise InputError("the packaged rule set is not changed", next_step="Copy it and give the copy with --rules.")
    ruleset = _load(rules)
    text = stub(ruleset, rule_id)
    where = str(write_stub(ruleset, rule_id)) if write else None
    if as_json:
        _json({"id": rule_id, "yaml": text, "written_to": where})
    elif where is not None:
        typer.echo(f"{where}: {rule_id} added at the end; change it, then run `sacro-deltab rules test`.")
    else:
        typer.echo(text, nl=False)
