"""The command line. Each subcommand group is one module; heavy imports happen inside the commands."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Annotated, NoReturn

import typer

from ..base.errors import SacroDeltabError
from ..base.version import __version__
from .progress import set_level, wanted
from .roles import ByRole, WholeSentences, upstream_hint

# Of the click that typer brings along, which exports no name for it.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="sacro-deltab",
    cls=ByRole,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Judge, produce and certify brain-age outputs that are asked to leave a Trusted Research Environment.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sacro-deltab {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001  (its callback ends the program)
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only results and errors.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say seconds, and more on errors.")] = False,
) -> None:
    """Options of every command; they may also stand after it."""
    set_level(-1 if quiet else int(verbose))


# Each module has `register(app)`, which adds its commands; none imports numpy, pandas or acro at the top.
_GROUPS = (
    "init",
    "run",
    "predict",
    "check",
    "certify",
    "review",
    "desk",
    "release",
    "tables",
    "basis",
    "rules",
    "ledger",
    "plan",
    "attack",
    "aggregate",
    "trust",
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
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.typer_instance.info.cls = WholeSentences


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
    """Console entry point. Known errors become one message on stderr and the exit code they carry; with `--json` they
    stand on stdout as JSON too."""
    gc.set_threshold(50_000, 20, 100)  # importing ACRO makes half a million objects that stay: a second of collections
    _register()
    arguments = _general_first(sys.argv[1:] if argv is None else argv)
    try:
        with stoppable():
            code = app(args=arguments, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except UsageError as error:
        error.show()  # type: ignore[attr-defined]
        hint = upstream_hint(arguments)
        sys.stderr.write(f"{hint}\n" if hint else "")
        _fail(SacroDeltabError(str(error), next_step=hint), arguments, quiet=True)
    except SacroDeltabError as error:
        _fail(error, arguments)
    except (Exception, Stopped, typer.Abort) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing to say
            sys.exit(2)
        if os.environ.get("SACRO_DELTAB_DEBUG") and isinstance(error, Exception) and not isinstance(error, OSError):
            raise  # a traceback can carry values of people, so it is shown only where somebody inside asks for it
        _fail(_in_words(error), arguments)


def _general_first(arguments: list[str]) -> list[str]:
    """`-q` and `-v` are the whole command line's, wherever they stand before `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    general = [a for a in arguments[:end] if a in ("-q", "--quiet", "-v", "--verbose")]
    return [*dict.fromkeys(general), *(a for a in arguments[:end] if a not in general), *arguments[end:]]


def _in_words(error: BaseException) -> SacroDeltabError:
    """Any other end of a command, as an error of ours."""
    if isinstance(error, (Stopped, typer.Abort)):
        return SacroDeltabError(
            "stopped before the end; no output folder is left, and budget that was spent stays spent",
            next_step="see what was spent with `sacro-deltab ledger history`, then run the command again.",
        )
    if isinstance(error, UnicodeEncodeError):
        return SacroDeltabError("a name holds bytes that are not UTF-8", next_step="rename that file or option.")
    if isinstance(error, OSError):
        return SacroDeltabError(
            f"{error.strerror or type(error).__name__}; nothing counts as passed",
            path=error.filename,
            next_step="check the place, its permissions and its free space, then run the command again.",
        )
    return SacroDeltabError(
        f"internal error ({type(error).__name__}); nothing counts as passed",
        next_step="repeat with SACRO_DELTAB_DEBUG=1 inside the TRE and report the fault.",
    )


def _fail(error: SacroDeltabError, arguments: list[str], *, quiet: bool = False) -> NoReturn:
    if not quiet:
        sys.stderr.write(f"sacro-deltab: {error}\n")
    if error.inside and wanted.level > 0:
        sys.stderr.write(f"  (inside: {error.inside})\n")
    if "--json" in arguments:
        told = {"what": error.what, "path": error.path, "place": error.place, "next_step": error.next_step}
        data = {"schema": "sacro_deltab/error/1", "error": told, "exit_code": error.exit_code}
        sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
    sys.exit(error.exit_code)


__all__ = ["app", "main"]
