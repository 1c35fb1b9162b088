"""`--help` by who uses a command: at most twenty at the top, each with its whole first sentence."""

from __future__ import annotations

import re
from typing import Any

import typer.core

# Commands in the order in which each role meets them. What is not named here is listed under OTHERS.
ROLES: dict[str, tuple[str, ...]] = {
    "For researchers": ("demo", "init", "run", "plan", "basis", "predict", "attack"),
    "For output checkers": ("check", "desk", "certify", "verify", "release"),
    "For governance": ("rules",),
    "For TRE staff": ("ledger", "attest", "keygen", "trust"),
    "For federations": ("job", "aggregate"),
    "For tables alone": ("tables",),
}
# known, and on their pages: a form of `certify`, another name of `verify`, the desk in a terminal,
# and what `job new` asks for one basis, for other federations
UNLISTED = ("crate", "verify-pooled", "review", "simulate-federation")
OTHERS = "Others"

# Options of upstream deltab that mean something else here, or nothing: what to use.
UPSTREAM = {
    "--load": "sacro-deltab predict --weights FILE applies a model; models that were fitted here are not pickled.",
    "--save": "a model leaves as judged weights (run --epsilon); what was fitted without noise stays inside.",
    "--save-text": "every released parameter is a CSV and a JSON file in the output folder.",
    "--predict": "sacro-deltab predict --weights FOLDER --features FILE --out FILE.",
    "--predict-ages": "sacro-deltab predict --ages FILE.",
    "--predict-features": "sacro-deltab predict --features FILE.",
    "--predict-output": "sacro-deltab predict --out FILE (one row a person; it stays inside).",
    "--true-ages-output": "the ages are in the file that you gave; nothing copies them.",
    "--overwrite": "files are never overwritten: name another. `run --overwrite` sets an old folder aside.",
    "--debug": "-v says more; SACRO_DELTAB_DEBUG=1 shows tracebacks inside the TRE.",
}


class WholeSentences(typer.core.TyperGroup):
    """A group whose help shows each command's first sentence uncut."""

    sections: dict[str, tuple[str, ...]] = {}  # noqa: RUF012

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, by role where the group has roles."""
        names = [n for n in self.list_commands(ctx) if self._shown(ctx, n)]
        known = {name for section in self.sections.values() for name in section}
        sections = dict(self.sections)
        sections[OTHERS if sections else "Commands"] = tuple(n for n in names if n not in known)
        for title, wanted in sections.items():
            rows = [(n, self._sentence(ctx, n)) for n in wanted if n in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _shown(self, ctx: Any, name: str) -> bool:
        command = self.get_command(ctx, name)
        return command is not None and not command.hidden and name not in UNLISTED

    def _sentence(self, ctx: Any, name: str) -> str:
        command = self.get_command(ctx, name)
        text = " ".join(((command.help if command else "") or "").split("\b")[0].split())
        return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


class ByRole(WholeSentences):
    """The top of the command line."""

    sections = ROLES


def upstream_hint(arguments: list[str]) -> str | None:
    """The line for an option of upstream deltab's that this command does not have."""
    for argument in arguments:
        name = argument.split("=", 1)[0]
        if name in UPSTREAM:
            return f"{name} is upstream deltab's. Here: {UPSTREAM[name]}"
    return None
