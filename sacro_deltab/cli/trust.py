"""`sacro-deltab trust`: what a TRE tells others of its keys and ledgers, what it takes from them, and lost keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import RefusedError
from ..base.writing import write_file

_TRUST = typer.Option("--trust", help="The trust file.", show_default=False)
Trust_ = Annotated[Path, _TRUST]


def register(app: typer.Typer) -> None:
    """Add `trust`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keys and ledgers that count: show, "
                        "exchange with other TREs, revoke.")  # fmt: skip
    group.command("show", epilog="Example: sacro-deltab trust show --trust trust.json")(show)
    group.command("export", epilog="Example: sacro-deltab trust export --node site-a --out site-a.trust.json")(export)
    group.command("add", epilog="Example: sacro-deltab trust add site-b.trust.json --fingerprint '12345 67890 …'")(add)
    group.command("revoke", epilog="Example: sacro-deltab trust revoke 3f2a91c0d4 --trust trust.json")(revoke)
    app.add_typer(group, name="trust")


def show(trust: Trust_ = Path("trust.json")) -> None:
    """List keys and ledgers that count, and for whom."""
    from ..ledger.trust import load_trust  # late: a command loads what it needs

    known = load_trust(trust)
    for key in known.keys.values():
        state = f"revoked {key.revoked:%Y-%m-%d}" if key.revoked else f"until {key.valid_to:%Y-%m-%d}"
        typer.echo(f"{key.node:<16} {key.role:<9} {key.keyid[:16]}  {state}")
    for pin in known.ledgers:
        typer.echo(f"{pin.node:<16} ledger    {pin.id[:16]}  head key {pin.head_key[:16]}")


def export(
    node: Annotated[str, typer.Option("--node", help="The name by which the others call this TRE.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; must not exist.")],
    trust: Trust_ = Path("trust.json"),
) -> None:
    """Write this TRE's certificate keys and ledger pins for another TRE, and print their fingerprint."""
    from ..ledger.trust import exported, fingerprint, load_trust, write_trust  # late: a command loads what it needs

    mine = exported(load_trust(trust), node)
    write_file(out, b"{}", new=True)
    write_trust(mine, out)
    typer.echo(f"{out}: {len(mine.keys)} keys, {len(mine.ledgers)} ledgers of {node}. Send it, and read this aloud:")
    typer.echo(fingerprint(mine))


def add(
    file: Annotated[Path, typer.Argument(help="What the other TRE exported.", show_default=False)],
    fingerprint: Annotated[str, typer.Option("--fingerprint", help="The digits that the other TRE read aloud.")],
    trust: Trust_ = Path("trust.json"),
) -> None:
    """Enter another TRE's keys and ledgers, once their fingerprint is the one that was read aloud."""
    from ..ledger.trust import add_node, load_trust
    from ..ledger.trust import fingerprint as fingerprint_of  # late: a command loads what it needs

    other = load_trust(file)
    if fingerprint_of(other).replace(" ", "") != "".join(fingerprint.split()):
        raise RefusedError(
            "this is not the file whose fingerprint was read aloud", path=file,
            next_step="Nothing was entered. Ask the other TRE for its file and fingerprint again.",
        )  # fmt: skip
    add_node(trust, other)
    typer.echo(f"{trust}: knows {', '.join(sorted(other.thresholds))} now")


def revoke(
    key: Annotated[str, typer.Argument(help="Id of the key, or its first characters (8 at least).")],
    trust: Trust_ = Path("trust.json"),
) -> None:
    """Say that a key was lost or taken: no signature and no vote of it counts any more, whatever its date."""
    from ..ledger.trust import revoke_key  # late: a command loads what it needs

    gone = revoke_key(trust, key)
    typer.echo(f"{trust}: {gone.role} of {gone.node}, {gone.keyid[:16]}, counts no more")
