"""The command line. Each subcommand group is one module; heavy imports happen inside the commands."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Annotated

import typer

from .. import __version__
from ..base.errors import SacroDeltabError

app = typer.Typer(
    name="sacro-deltab",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Judge, produce and certify brain-age outputs that are asked to leave a Trusted Research Environment.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sacro-deltab {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Options before any command."""


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


class Stopped(BaseException):
    """Ctrl-C or `kill`: everything that cleans up does so, and nothing takes it for an error it knows."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM into `Stopped`; a second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}

    def stop(_number: int, frame: FrameType | None) -> None:
        while frame is not None:  # what a finaliser raises is lost: try again when it is done
            if frame.f_code.co_name == "__del__" and hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                return
            frame = frame.f_back
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        raise Stopped

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def main(argv: list[str] | None = None) -> None:
    """Console entry point. Known errors become one message on stderr and the exit code they carry."""
    gc.set_threshold(50_000, 20, 100)  # importing ACRO makes half a million objects that stay: a second of collections
    _register()
    try:
        with stoppable():
            app(args=argv)
    except Stopped:
        sys.stderr.write(
            "sacro-deltab: stopped before the end; no output folder is left, and budget that was spent stays spent. "
            "Next step: see what was spent with `sacro-deltab ledger history`, then run the command again.\n"
        )
        sys.exit(2)
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
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        what = error.strerror or type(error).__name__
        sys.stderr.write(
            f"sacro-deltab: {where}{what}; nothing counts as passed. "
            "Next step: check the place, its permissions and its free space, then run the command again.\n"
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
