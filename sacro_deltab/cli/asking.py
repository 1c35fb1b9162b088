"""What several commands ask for and say: a passphrase, a trust file, a day, a ledger, JSON."""

from __future__ import annotations

import getpass
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import InputError

TRUST_VARIABLE = "SACRO_DELTAB_TRUST"
LEDGER = "budget.db"
Url = Annotated[str, typer.Option("--ledger", help="File, sqlite:///FILE or postgresql://USER@HOST/NAME.")]
Key = Annotated[Path | None, typer.Option("--key", help="The TRE's private key. Default: FILE.key beside the ledger.")]
Who = Annotated[str | None, typer.Option("--who", help="Name for the entry. Default: the account's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def say_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))


def account_name(who: str | None) -> str:
    """The name that was given, or the account's."""
    try:
        return who or getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return f"uid {os.getuid()}"


def prompt_passphrase() -> str:
    """Ask on the terminal, unseen; empty when nobody can be asked."""
    return str(typer.prompt("Passphrase", hide_input=True, err=True)) if sys.stdin.isatty() else ""


def find_trust(given: Path | None, key: Path | None, folder: Path) -> Path:
    """The trust file: as given, by environment, or `trust.json` beside a private key.

    Never one that merely lies about: it may have come with the release.
    """
    if given is not None:
        return given
    named = os.environ.get(TRUST_VARIABLE)
    candidates = [Path(named)] if named else []
    candidates += [key.parent / "trust.json"] if key is not None else []
    for candidate in candidates:
        if candidate.is_file() and not candidate.resolve().is_relative_to(folder.resolve()):
            return candidate
    raise InputError("there is no trust file.", next_step="name it with --trust FILE; `keygen` makes one.")


def day_of(text: str) -> datetime:
    """A day as somebody writes it; today ends now."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(hour=23, minute=59, second=59, tzinfo=UTC)
    except ValueError:
        raise InputError("a day is written YYYY-MM-DD.", place="--at") from None
    return min(day, max(datetime.now(UTC), day.replace(hour=0, minute=0, second=0)))  # today has not ended yet
