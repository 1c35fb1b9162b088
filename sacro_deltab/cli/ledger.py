"""`sacro-deltab ledger …`: the privacy budget, its history and whether anybody has changed it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import InputError
from ..base.strict import DATA, read_json
from ..base.writing import write_file
from . import registering
from .asking import LEDGER, AsJson, Key, Url, Who, account_name, say_json

if TYPE_CHECKING:
    from ..ledger import Ledger

_OPEN_HELP = """Make a ledger and its key, or open one (an older one is upgraded after a copy).

A ledger counts only where the TRE's trust file or layer pins its id and head key: --trust FILE does the first,
and the two lines that a layer needs are printed.

Example: sacro-deltab ledger open --ledger budget.db --key /secure/ledger.key --trust trust.json
"""
_SHOW_HELP = """What each cohort has spent, and what is left of the limits last applied.

Example: sacro-deltab ledger show --ledger budget.db --plot budget.png
"""
_HISTORY_HELP = """Every entry in order; spends that nothing answers (a crashed run) are marked ORPHAN.

Example: sacro-deltab ledger history --ledger budget.db --cohort dpuk-site-a
"""
_VERIFY_HELP = """Read the whole chain again. Exit code: 0 sound, 1 changed, 2 unreadable.

--certificate FILE (certificate.json or certificate.dsse.json, repeatable) also asks for the head that it names: a
ledger put back from an older copy does not have it.

Example: sacro-deltab ledger verify --ledger budget.db --certificate outputs/certificate.json
"""
_EXPORT_HELP = """All entries as CSV for governance; no counts of people and no fingerprints.

Example: sacro-deltab ledger export --ledger budget.db --out budget.csv
"""
_ROTATE_HELP = """Continue a ledger under a new key, when its key was lost or may have leaked.

Nothing that was spent is forgotten: a new ledger is made that holds every spend of the old one. The people of each
cohort have to be registered again (the next run of each does it); until then overlaps are not checked, and that is
reviewed. Take the old ledger's pin out of the trust file or layer: whoever holds the old key can still write there.

Example: sacro-deltab ledger rotate-key --ledger budget.db --to budget-2.db --new-key /secure/ledger-2.key
"""
_DISJOINT_HELP = """A named person states that two cohorts share nobody, so that each has a budget of its own.

Example: sacro-deltab ledger disjoint site-a site-b --by "Dr A. Example" --reason "each numbers its people from 1"
"""
_Node = Annotated[str, typer.Option("--node", help="Name of this node in the trust file.")]
_Trust = Annotated[Path | None, typer.Option("--trust", help="Trust file that says whether the ledger counts.")]


def register(app: typer.Typer) -> None:
    """Add the `ledger` group."""
    group = typer.Typer(no_args_is_help=True, help="The privacy budget: open, show, history, verify, export.")
    group.command("open", help=_OPEN_HELP)(_open)
    group.command("show", help=_SHOW_HELP)(_show)
    group.command("history", help=_HISTORY_HELP)(_history)
    group.command("verify", help=_VERIFY_HELP)(_verify)
    group.command("export", help=_EXPORT_HELP)(_export)
    group.command("disjoint", help=_DISJOINT_HELP)(_disjoint)
    registering.register(group)
    group.command("rotate-key", help=_ROTATE_HELP)(_rotate)
    app.add_typer(group, name="ledger")


def _pins(trust: Path | None) -> Any:
    if trust is None:
        return ()
    from ..ledger.trust import load_trust  # late: a command loads what it needs

    return load_trust(trust).ledgers


def _reader(url: str, trust: Path | None, *, checked: bool = True) -> Ledger:
    """An existing ledger, upgraded when it can be written and is older."""
    from ..ledger import open_ledger  # late: a command loads what it needs
    from ..ledger.store import parse_url

    file = parse_url(url)[1]
    frozen = not checked or (file is not None and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)))
    return open_ledger(url, create=False, read_only=frozen, pins=_pins(trust), checked=checked)


def _open(
    ledger: Url = LEDGER,
    key: Key = None,
    trust: _Trust = None,
    node: _Node = "local",
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs
    from ..ledger.trust import pin_ledger

    book = open_ledger(ledger, key=key, who=account_name(who))
    key_path = str(book.signing_key().path)
    if trust is not None:
        pin_ledger(trust, book.id, book.head_key, node=node)
    pin = book.pin().to_json()
    if as_json:
        say_json(
            {"schema": "sacro_deltab/ledger-open/1", **pin, "ledger": book.where, "key": key_path, "head": book.head}
        )
        return
    typer.echo(f"ledger    {book.where}")
    typer.echo(f"key       {key_path} (keep it where researchers cannot read or write, and back it up)")
    if trust is not None:
        typer.echo(f"pinned in {trust}")
    typer.echo("A layer pins it with:")
    typer.echo(f'  ledgers:\n    - {{id: "{pin["id"]}", head_key: "{pin["head_key"]}"}}')


def _rotate(
    to: Annotated[str, typer.Option("--to", help="The new ledger: a file that is not there yet, or a server URL.")],
    ledger: Url = LEDGER,
    new_key: Annotated[Path | None, typer.Option("--new-key", help="Its key. Default: FILE.key beside it.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The old key, where it is still there.")] = None,
    trust: _Trust = None,
    node: _Node = "local",
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs
    from ..ledger.carrying import carry_over
    from ..ledger.store import parse_url  # late: a command loads what it needs
    from ..ledger.trust import pin_ledger

    target = parse_url(to)[1]
    if target is not None and target.exists():
        raise InputError("the file exists already", path=target, place="--to", next_step="Name a new one.")
    old = open_ledger(ledger, create=False, read_only=True, key=key)
    book = open_ledger(to, key=new_key, who=account_name(who))
    carry_over(old, book, who=account_name(who))
    if trust is not None:
        pin_ledger(trust, book.id, book.head_key, node=node)
    pin = book.pin().to_json()
    if as_json:
        say_json({"schema": "sacro_deltab/ledger-open/1", **pin, "ledger": book.where, "head": book.head,
              "key": str(book.signing_key().path), "continues": old.id})  # fmt: skip
        return
    typer.echo(f"ledger    {book.where} continues {old.where} ({len(book.accounts())} cohorts)")
    typer.echo(f"key       {book.signing_key().path} (keep it where researchers cannot read or write, and back it up)")
    typer.echo(f'pin       {{id: "{pin["id"]}", head_key: "{pin["head_key"]}"}}')
    typer.echo(f"take out  the pin of {old.id}, and register each cohort's people again")


def _show(
    ledger: Url = LEDGER,
    trust: _Trust = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw the budget over time (PNG).")] = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger.showing import show_json  # late: a command loads what it needs

    book = _reader(ledger, trust)
    data = show_json(book)
    if plot is not None:
        from ..ledger.picture import budget_png  # late: a command loads what it needs

        write_file(plot, budget_png(book))
        data["plot"] = str(plot)
    if as_json:
        say_json(data)
        return
    typer.echo(f"ledger {book.where} ({data['ledger']}), {data['entries']} entries, head {data['head']}")
    typer.echo(f"{'pinned' if book.pinned else 'not pinned'} {'' if trust is None else f'in {trust}'}".rstrip())
    for line in data["partitions"]:
        typer.echo(_partition_line(line))
    if data["orphans"]:
        numbers = ", ".join(str(number) for number in data["orphans"][:20])
        typer.echo(f"spends that nothing answers: {numbers}{' …' if len(data['orphans']) > 20 else ''}")
    if not data["partitions"]:
        typer.echo("nothing was spent yet")


def _partition_line(line: dict[str, Any]) -> str:
    counted, limits = line["counted"], line["limits"]
    of = "" if limits is None else f" of {limits['epsilon_total']:g}"
    of_delta = "" if limits is None else f" of {limits['delta_total']:g}"
    exact = counted["epsilon_exact"]
    text = f"{line['partition']}: ε {counted['epsilon_sum']:g}{of}, δ {counted['delta_sum']:g}{of_delta} (plain sum)"
    if exact is not None and counted["releases"]:
        text += f", exact composition ε {exact:.4g} at δ {limits['delta_per_release']:g}"
    under = ", ".join(f"{e:.4g} under {r}" for r, e in line["epsilon_by_relation"].items() if e)
    text += f"; by neighbouring relation ε {under}" if under else ""
    text += f"; {counted['releases']} releases, {counted['model_exports']} of them models"
    return text + (
        f"; counted together with {', '.join(line['shares_people_with'])}" if line["shares_people_with"] else ""
    )


def _history(
    ledger: Url = LEDGER,
    cohort: Annotated[str | None, typer.Option("--cohort", help="Only entries of this cohort.")] = None,
    unit: Annotated[str, typer.Option("--unit", help="Privacy unit: person or row.")] = "person",
    trust: _Trust = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger.export import entries_json  # late: a command loads what it needs
    from ..ledger.showing import history_line

    book = _reader(ledger, trust)
    entries = book.history(cohort, unit=unit)
    if cohort is not None and not entries:
        raise InputError(
            "the ledger has no entry of this cohort", path=ledger, place="--cohort", next_step="See `ledger show`."
        )
    orphans = {entry.seq for entry in book.orphans()}
    if as_json:
        listed = [e.seq for e in entries if e.seq in orphans]
        say_json(
            {
                "schema": "sacro_deltab/ledger-history/1",
                "ledger": book.id,
                "entries": entries_json(entries),
                "orphans": listed,
            }
        )
        return
    for entry in entries:
        typer.echo(history_line(entry, orphan=entry.seq in orphans))


def _verify(
    ledger: Url = LEDGER,
    key: Key = None,
    trust: _Trust = None,
    certificate: Annotated[
        list[Path] | None, typer.Option("--certificate", help="A certificate whose head must be here.")
    ] = None,
    head: Annotated[list[str] | None, typer.Option("--head", help="A head digest that must be here.")] = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs

    book = open_ledger(ledger, create=False, read_only=True, key=key, pins=_pins(trust), checked=False)
    heads = list(head or [])
    for path in certificate or []:
        heads += _heads(path, book.id)
    start = time.monotonic()

    def progress(entries: int) -> None:
        if time.monotonic() - start > 2:
            typer.echo(f"\rread {entries} entries", nl=False, err=True)

    report = book.verify(heads, progress=progress)
    if time.monotonic() - start > 2:
        typer.echo("", err=True)
    if as_json:
        say_json(report.to_json())
    else:
        for problem in report.problems:
            typer.echo(f"CHANGED  {problem}")
        for note in report.notes:
            typer.echo(f"note     {note}")
        word = "sound" if report.ok else "changed"
        pinned = "pinned" if report.pinned else "not pinned" if trust else "no trust file given"
        typer.echo(
            f"{word}: {report.entries} entries, {len(report.orphans)} unanswered spends, head {report.head} ({pinned})"
        )
    raise typer.Exit(0 if report.ok else 1)


def _heads(path: Path, ledger_id: str) -> list[str]:
    from ..ledger.verifying import heads_in  # late: a command loads what it needs

    document = read_json(path, bounds=DATA)
    heads = heads_in(document, ledger_id)
    if not heads:
        raise InputError(
            "this certificate names no head of this ledger", path=path, next_step="Check which ledger it is of."
        )
    return heads


def _export(
    ledger: Url = LEDGER,
    out: Annotated[Path | None, typer.Option("--out", help="File to write. Default: stdout.")] = None,
    trust: _Trust = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger.export import summary  # late: a command loads what it needs

    book = _reader(ledger, trust)
    if as_json:
        text = json.dumps({"ledger": book.id, "rows": [summary(e) for e in book.history()]}, ensure_ascii=False) + "\n"
    else:
        text = book.export_csv()
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_file(out, text)
        typer.echo(f"wrote {out}", err=True)


def _disjoint(
    one: Annotated[str, typer.Argument(help="A cohort id.")],
    other: Annotated[str, typer.Argument(help="Another cohort id.")],
    by: Annotated[str, typer.Option("--by", help="Name of the person who states it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why they share nobody.")],
    ledger: Url = LEDGER,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs

    entry = open_ledger(ledger, create=False, key=key).declare_disjoint(one, other, by=by, reason=reason)
    if as_json:
        say_json(entry.to_json())
    else:
        typer.echo(f"entry {entry.seq}: {one} and {other} declared disjoint by {by}")
