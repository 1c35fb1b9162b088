"""`sacro-deltab rules test|prove|waiver`: does the law hold what it says, and exceptions from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import InputError
from ..base.writing import write_file

waiver_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Exceptions: ask for one, sign it.")

RulesOption = Annotated[
    str | None,
    typer.Option("--rules", help="A packaged name or a folder (./mine).", show_default="the packaged set"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
ProfileOption = Annotated[str | None, typer.Option("--profile", help="Site profile: a file, or a packaged name.")]


def register(rules_app: typer.Typer) -> None:
    """Add what a committee does with the law to the `rules` group."""
    rules_app.command("test", epilog="Example: sacro-deltab rules test --rules rules/deltab-disclosure")(test_rules)
    rules_app.command(epilog="Example: sacro-deltab rules prove --rules ./my-rules --against deltab-disclosure")(prove)
    rules_app.add_typer(waiver_app, name="waiver")


def test_rules(rules: RulesOption = None, as_json: JsonOption = False) -> None:
    """Run every example, change every limit by one step and see whether one notices, and prove what the clauses ask.

    Exit 0: every example passes, at least 98 % of the changes are noticed, every requirement holds. 1: not so.
    """
    from ..rules import load_ruleset
    from ..rules.own_tests import test_ruleset

    report = test_ruleset(load_ruleset(rules))
    _tell(report.to_json(), report.lines(), as_json)
    raise typer.Exit(0 if report.ok else 1)


def prove(
    rules: RulesOption = None,
    profile: ProfileOption = None,
    against: Annotated[
        str | None, typer.Option("--against", help="Another rule set: what it stops and this one lets through.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide for every kind of output whether anything can pass that breaks a clause; say which rules never decide.

    Exit 0: every requirement holds (and, with --against, nothing more gets through). 1: a case that gets through.
    """
    from ..rules import load_ruleset
    from ..rules.prove import let_through
    from ..rules.prove import prove as prove_all

    ruleset = load_ruleset(rules, profile=profile)
    proof = prove_all(ruleset)
    more = let_through(load_ruleset(against), ruleset) if against is not None else []
    lines = proof.lines()
    if against is not None:
        lines.append(f"Against {against}: {len(more) or 'no'} cases that it stops get through here")
        lines += [f"  {gap}" for gap in more]
    data = {**proof.to_json(), "against": [str(gap) for gap in more]}
    _tell(data, lines, as_json)
    raise typer.Exit(1 if proof.gaps or more else 0)


def _tell(data: object, lines: list[str], as_json: bool) -> None:
    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=str) if as_json else "\n".join(lines))


@waiver_app.command(epilog="Example: sacro-deltab rules waiver request outputs idp_summary --out waivers/")
def request(
    folder: Annotated[Path, typer.Argument(help="Session folder with inside/.")],
    name: Annotated[str, typer.Argument(help="Name of the blocked output.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the files; stdout without it.")] = None,
    rules: RulesOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the waiver that this output would need, with the digests it must hold, for the committee to fill in.

    Exit 0: written. 2: nothing blocks it, or what blocks it can never be waived.
    """
    from ..rules import decide, load_ruleset
    from ..rules.stored import find_outputs
    from ..rules.waivers import request as write_request
    from ..rules.waivers import to_yaml

    ruleset = load_ruleset(rules, profile=profile)
    stored = find_outputs(folder, name)[0]
    if stored.sha256 is None:
        raise InputError(
            f"the digest of {name!r} as it would leave is not in the evidence",
            path=folder,
            next_step="Release the output again with this version; then ask for the waiver.",
        )
    today = datetime.now(UTC).date()
    asked = write_request(ruleset, decide(ruleset, stored.facts), stored.sha256, today)
    if not asked:
        raise InputError(
            f"no waiver can help {name!r}: no rule that can be waived blocks it",
            next_step=f"`sacro-deltab rules explain {folder} {name}` says what does.",
        )
    files = {w["waiver"]["id"]: to_yaml(w, ruleset.rule(w["waiver"]["rule"]).title) for w in asked}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for waiver_id, text in files.items():
            write_file(out / f"{waiver_id}.yaml", text)
    if as_json:
        typer.echo(json.dumps({"output": name, "waivers": [w["waiver"] for w in asked]}, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(files.values()) if out is None else "\n".join(str(out / f"{i}.yaml") for i in files))
