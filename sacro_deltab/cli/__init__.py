"""The command line. Each subcommand group is one module; heavy imports happen inside the commands."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from importlib import import_module

import typer

from ..errors import SacroDeltabError

app = typer.Typer(
    name="sacro-deltab",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Judge, produce and certify brain-age outputs that are asked to leave a Trusted Research Environment.",
)

# Each module has `register(app)`, which adds its commands; none imports numpy, pandas or acro at the top.
_GROUPS = (
    "run",
    "check",
    "certify",
    "review",
    "tables",
    "basis",
    "rules",
    "ledger",
    "plan",
    "attack",
    "aggregate",
)


@cache
def _register() -> None:
    for name in _GROUPS:
        try:
            module = import_module(f".{name}", __package__)
        except ModuleNotFoundError as error:
            if error.name == f"{__package__}.{name}":
                continue
            raise
        module.register(app)


def main(argv: list[str] | None = None) -> None:
    """Console entry point. Known errors become one message on stderr and the exit code they carry."""
    gc.set_threshold(50_000, 20, 100)  # importing ACRO makes half a million objects that stay: a second of collections
    _register()
    try:
        app(args=argv)
    except SacroDeltabError as error:
        sys.stderr.write(f"sacro-deltab: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing to say
        sys.exit(2)
    except UnicodeEncodeError:
        sys.stderr.write(
            "sacro-deltab: a name holds bytes that are not UTF-8. Next step: rename that file or option.\n"
        )
        sys.exit(2)
    except Exception as error:
        # A traceback can carry values of people, so it is shown only where somebody inside asks for it.
        if os.environ.get("SACRO_DELTAB_DEBUG"):
            raise
        sys.stderr.write(
            f"sacro-deltab: internal error ({type(error).__name__}); nothing counts as passed. "
            "Next step: repeat with SACRO_DELTAB_DEBUG=1 inside the TRE and report the fault.\n"
        )
        sys.exit(2)


__all__ = ["app", "main"]
