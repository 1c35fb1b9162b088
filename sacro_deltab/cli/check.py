"""`sacro-deltab check`: judge a session folder, single outputs, or anything that may be sent."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import InputError
from ..base.writing import write_file

if TYPE_CHECKING:
    from ..judging.report import Report

_HELP = """Judge what is asked to leave.

Exit code: 0 meets the policy, 1 at least one file fails or nothing is asked to leave, 3 a person must review, 2 usage
or unreadable input.

Nothing in the files is believed or run: statuses, thresholds, digests and keys in them are printed and re-derived.

Examples:

    sacro-deltab check outputs --layer site.yaml --ledger budget.db

    sacro-deltab check delta_mean.csv --facts attested.json

    sacro-deltab check model.pkl deltab.txt --format json

    sacro-deltab check outputs --letter
"""

_PATHS = typer.Argument(help="Session folders, ACRO folders, archives or single files.", show_default=False)
_RULES = typer.Option("--rules", help="Rule set: a name or a folder. Default: the packaged one.")
_PROFILE = typer.Option("--layer", "--profile", help="Top layer on the rules.")
_FORMAT = typer.Option("--format", help="text, json or html.")
_JSON = typer.Option("--json", help="Same as --format json.")
_FACTS = typer.Option("--facts", help="Facts attested by the TRE about files that have no evidence (JSON).")
_DECLARE = typer.Option("--declare", help="What the researcher declares now (JSON, role researcher).")
_ATTEST = typer.Option("--attest", help="What TRE staff attest (JSON, role tre_staff); same as --facts.")
_COHORT = typer.Option("--cohort", help="The cohort (CSV, one row a person): every fact is measured again.")
_TRUST = typer.Option("--trust", help="Trust file: which ledgers and keys count.")
_LEDGER = typer.Option("--ledger", help="The privacy ledger. Default: budget.db beside the folder, if one is pinned.")
_WAIVERS = typer.Option("--waivers", help="Waivers to apply (file or folder). Default: those of the rule set.")
_DRAFT = typer.Option("--draft", help="Judge by a rule set that fails its own tests; the report says DRAFT.")
_NO_WAIVERS = typer.Option("--no-waivers", help="Judge without any waiver.")
_FULL = typer.Option("--full", help="Every file with all its findings, instead of every cause once.")
_LETTER = typer.Option("--letter", help="The reply to the researcher, in words that may be said outside.")
_OUT = typer.Option("--out", help="Write the report to this file instead of standard output.")


def register(app: typer.Typer) -> None:
    """Add `check` to the command line."""
    app.command("check", help=_HELP)(check)


def check(
    paths: Annotated[list[Path], _PATHS],
    rules: Annotated[str | None, _RULES] = None,
    profile: Annotated[str | None, _PROFILE] = None,
    format_: Annotated[str, _FORMAT] = "text",
    json_: Annotated[bool, _JSON] = False,
    facts: Annotated[Path | None, _FACTS] = None,
    declare: Annotated[Path | None, _DECLARE] = None,
    attest: Annotated[Path | None, _ATTEST] = None,
    cohort: Annotated[Path | None, _COHORT] = None,
    trust: Annotated[Path | None, _TRUST] = None,
    ledger: Annotated[str | None, _LEDGER] = None,
    waivers: Annotated[Path | None, _WAIVERS] = None,
    no_waivers: Annotated[bool, _NO_WAIVERS] = False,
    draft: Annotated[bool, _DRAFT] = False,
    out: Annotated[Path | None, _OUT] = None,
    full: Annotated[bool, _FULL] = False,
    letter: Annotated[bool, _LETTER] = False,
) -> None:
    """Judge everything named and print one report."""
    from ..check import check_paths  # late: a command loads what it needs

    if json_:
        format_ = "json"
    if format_ not in ("text", "json", "html"):
        raise InputError("the format is text, json or html", place="--format")
    if no_waivers and waivers is not None:
        raise InputError("--waivers and --no-waivers exclude each other")
    ruleset, used = _rules(rules, profile, waivers, no_waivers, draft, trust)
    report = check_paths(
        paths,
        ruleset=ruleset,
        facts_file=_attested(facts, attest),
        declare=declare,
        cohort=cohort,
        trust=trust,
        ledger=ledger,
        waivers=used,
    )
    if letter:
        from ..check.letter import letter as written  # late: a command loads what it needs

        _emit(written(report, ruleset), out)
    else:
        _emit(_rendered(report, format_, out, paths, full), out)
    raise typer.Exit(report.exit_code)


def _attested(facts: Path | None, attest: Path | None) -> Path | None:
    """One file says what the TRE attests."""
    if facts is not None and attest is not None:
        raise InputError("--facts and --attest exclude each other")
    return attest if attest is not None else facts


def _rules(
    rules: str | None,
    profile: str | None,
    waivers: Path | None,
    no_waivers: bool,
    draft: bool = False,
    trust: Any = None,
) -> tuple[Any, Any]:
    from ..certificate.law import committee  # late: a command loads what it needs
    from ..rules import load_waivers
    from ..rules.judging import judging_ruleset  # late: a command loads what it needs

    seals = committee(trust)
    ruleset = judging_ruleset(rules, profile=profile, draft=draft, seals=seals)
    if no_waivers:
        return ruleset, ()
    if waivers is not None:
        return ruleset, load_waivers(waivers, seals=seals)
    folder = Path(ruleset.folder) / "waivers"
    return ruleset, load_waivers(folder, seals=seals) if folder.is_dir() else ()


def _rendered(report: Report, format_: str, out: Path | None, paths: list[Path], full: bool) -> str:

    if format_ == "json":
        return json.dumps(report.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if format_ == "html":
        from ..desk import render_page  # late: a command loads what it needs

        return render_page(report, paths)
    from ..check.text import render  # late: a command loads what it needs

    colour = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return render(report, colour=colour, full=full)


def _emit(text: str, out: Path | None) -> None:
    if out is not None:
        write_file(out, text)
        return

    try:
        typer.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader had enough: the exit code still says what was found
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
