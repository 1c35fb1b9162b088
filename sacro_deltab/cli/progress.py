"""What the commands say on stderr while they work, and how much of it is wanted (`-q`, `-v`)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import typer


@dataclass
class _Wanted:
    """How much is said: -1 nothing but results and errors, 0 the steps, 1 the steps with seconds and inner detail."""

    level: int = 0
    started: float = field(default_factory=time.monotonic)


wanted = _Wanted()


def set_level(level: int) -> None:
    """From the command line; each run of a command starts anew."""
    wanted.level, wanted.started = level, time.monotonic()


def say(text: str) -> None:
    """One step of work, for whoever waits."""
    if wanted.level < 0:
        return
    after = f" [{time.monotonic() - wanted.started:.1f} s]" if wanted.level > 0 else ""
    typer.echo(f"… {text}{after}", err=True)
