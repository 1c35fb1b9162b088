"""What several commands ask for: a passphrase, a trust file, a day."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import typer

from ..base.errors import InputError

TRUST_VARIABLE = "SACRO_DELTAB_TRUST"


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
