"""`sacro-deltab review DIR --key K` and `review status DIR`: a checker decides on each file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import InputError
from ..base.verdicts import NOTHING
from .asking import TRUST_VARIABLE, find_trust, prompt_passphrase

if TYPE_CHECKING:
    from ..certificate.review import FileDecision, FileStatus, Question

_HELP = """Answer each question and decide each file of DIR, or show with `review status DIR` who is awaited.

Every file is accepted, returned (to be mended) or refused, with a reason. The decisions are signed and sealed; they
open when both checkers have submitted. Run the same command again to open yours. The author's key is refused.
Decisions lie in DIR/inside/review and never leave with the files.

--answers FILE (YAML or JSON) instead of questions on the terminal; "*" stands for every file not named:

    files: {"*": {decision: accept, reason: read in full, answers: {"*": looked at}}}

Exit code: 0 done, 1 refused or a review does not hold, 2 unreadable; status: 0 all accepted, 3 somebody is awaited, 1
returned or refused.

Examples:

    sacro-deltab review outputs --key checker1.pem --trust trust.json

    sacro-deltab review status outputs --trust trust.json
"""


def register(app: typer.Typer) -> None:
    """Add `review`."""
    app.command("review", help=_HELP)(review)


def review(
    target: Annotated[list[str], typer.Argument(metavar="[status] DIR", help="The folder.", show_default=False)],
    key: Annotated[Path | None, typer.Option("--key", help="The checker's private key.")] = None,
    trust: Annotated[
        Path | None, typer.Option("--trust", help="Trust file. Default: trust.json beside the key.")
    ] = None,
    passphrase_file: Annotated[Path | None, typer.Option("--passphrase-file", help="File with the passphrase.")] = None,
    answers: Annotated[Path | None, typer.Option("--answers", help="Answers from a YAML or JSON file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Review, or show the state of a review."""
    if target[0] == "status" and len(target) == 2:
        _status(Path(target[1]), trust, as_json)
        return
    if len(target) != 1:
        raise InputError("name one folder, or `status` and one folder.")
    if key is None:
        raise InputError("a review is signed.", next_step="name your key with --key FILE.")
    _submit(Path(target[0]), key, trust, passphrase_file, answers, as_json)


def _submit(
    folder: Path, key: Path, trust: Path | None, passphrase_file: Path | None, answers: Path | None, as_json: bool
) -> None:
    from ..certificate.keys import load_key, read_passphrase, refuse_key_inside  # late: a command loads what it needs
    from ..certificate.review import load_record, submit
    from ..ledger.trust import load_trust  # late: a command loads what it needs

    refuse_key_inside(key, folder)
    trusted = load_trust(find_trust(trust, key, folder))
    opened = load_key(key, read_passphrase(passphrase_file, prompt_passphrase))
    record = load_record(folder)
    if not record.signed:
        typer.echo("not certified yet: verdicts and questions are the session's own", err=True)
    decide = _from_file(answers) if answers is not None else _ask
    done = submit(folder, opened, trusted, decide)
    if as_json:
        typer.echo(json.dumps({"done": done}, indent=1))
    else:
        for line in done:
            typer.echo(line)


def _from_file(path: Path) -> Callable[[Question], FileDecision]:
    from ..base.schemas import faults  # late: a command loads what it needs
    from ..certificate.review import FileDecision
    from ..rules.marked_yaml import read_marked  # late: a command loads what it needs

    marked = read_marked(path, str(path), as_text=True)  # `no` is an answer, not a boolean
    if marked.problems:
        raise InputError(f"the answers cannot be read: {'; '.join(map(str, marked.problems[:5]))}.", path=path)
    data: Any = marked.data
    if wrong := faults(data, "review", "$defs", "answers"):
        hint = "; text with a comma needs quotes inside { }" if wrong[0].keyword == "minLength" else ""
        raise InputError(f"the answers do not follow their schema: {wrong[0]}{hint}.", path=path)

    def decide(question: Question) -> FileDecision:
        entry = data["files"].get(question.file, data["files"].get("*"))
        if entry is None:
            raise InputError("the answers say nothing of this file.", path=path, place=question.file)
        given = entry.get("answers", {})
        found = {q: given.get(q, given.get("*", "")) for q in question.questions}
        return FileDecision(entry["decision"], entry["reason"], found)

    return decide


def _ask(question: Question) -> FileDecision:

    from ..certificate.review import DECISIONS, FileDecision  # late: a command loads what it needs

    if not sys.stdin.isatty():
        raise InputError("there is no terminal to ask on.", next_step="give --answers FILE.")
    typer.echo(f"\n{question.file} (sha256 {question.sha256[:16]}), verdict {question.verdict}")
    answers = {text: str(typer.prompt(f"  {text}\n  answer")) for text in question.questions}
    decision = ""
    while decision not in DECISIONS:
        decision = str(typer.prompt(f"  decision ({', '.join(DECISIONS)})")).strip().lower()
    return FileDecision(decision, str(typer.prompt("  reason")), answers)


def _status(folder: Path, trust: Path | None, as_json: bool) -> None:
    from ..certificate.review import load_record, read_submissions, status  # late: a command loads what it needs
    from ..ledger.trust import load_trust

    beside = Path("trust.json")  # inside the TRE, where the folder has not travelled yet
    found = beside if trust is None and TRUST_VARIABLE not in os.environ and beside.is_file() else trust
    trusted = load_trust(find_trust(found, None, folder))
    changed: list[str] = []
    record = load_record(folder, changed=changed)
    submissions, problems = read_submissions(
        record.inventory, record.predicate["certificate_id"], trusted, datetime.now(UTC)
    )
    problems += [f"{name} is not the file the certificate is about; certify the folder again" for name in changed]
    states = status(record, submissions)
    if as_json:
        typer.echo(json.dumps(_status_json(states, problems), indent=1))
    else:
        _print_status(states, problems)
    raise typer.Exit(_exit(states, problems))


def _print_status(states: list[FileStatus], problems: list[str]) -> None:
    for problem in problems:
        typer.echo(f"FAIL {problem}")
    for state in states:
        votes = ", ".join(f"{role} {vote}" for role, vote in state.votes.items())
        typer.echo(f"{state.outcome:9} {state.file}: {votes} (certificate: {state.verdict})")
    if not states:
        typer.echo(NOTHING)
    awaited = sorted({role for s in states for role in s.awaited})
    typer.echo(f"awaited: {', '.join(awaited) or 'nobody'}")


def _status_json(states: list[FileStatus], problems: list[str]) -> dict[str, Any]:
    return {
        "problems": problems,
        "files": [
            {"file": s.file, "outcome": s.outcome, "votes": dict(s.votes), "awaited": s.awaited, "verdict": s.verdict}
            for s in states
        ],
    }


def _exit(states: list[FileStatus], problems: list[str]) -> int:
    outcomes = {s.outcome for s in states}
    if problems or not states or outcomes & {"refused", "returned"}:
        return 1
    return 3 if "awaited" in outcomes else 0
