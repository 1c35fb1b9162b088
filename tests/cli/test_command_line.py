"""The command line as a whole: help by role, general options, errors for people and for machines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from sacro_deltab.cli import app, main
from sacro_deltab.cli.roles import ROLES, UNLISTED, UPSTREAM

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """(exit code, stdout, stderr) of one command."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(list(arguments))
        seen = capsys.readouterr()
        return int(stopped.value.code or 0), seen.out, seen.err

    return call


def test_the_top_lists_at_most_twenty_commands_by_role_in_whole_sentences(run: Run) -> None:
    code, out, _ = run("--help")
    listed = re.findall(r"^  ([a-z][a-z-]+) {2,}\S", out, re.MULTILINE)
    assert code == 0 and 10 < len(listed) <= 20 and not set(listed) & set(UNLISTED)
    assert out.count("...") == 1  # COMMAND [ARGS]...
    titles = [t for t in ROLES if f"{t}:" in out]
    assert titles == sorted(titles, key=out.index) and len(titles) > 4 and "Others:" not in out
    assert run("-h")[1] == out


@pytest.mark.parametrize("command", [(), ("check",), ("ledger",), ("ledger", "show"), ("rules",), ("predict",)])
def test_h_is_help_everywhere(run: Run, command: tuple[str, ...]) -> None:
    code, out, err = run(*command, "-h")
    assert code == 0 and "Usage:" in out and not err


def test_completion_is_offered(run: Run) -> None:
    assert "--install-completion" in run("-h")[1]


def test_errors_are_json_where_json_is_asked_for(run: Run) -> None:
    code, out, err = run("check", "nowhere-at-all", "--json")
    told = json.loads(out)
    assert code == told["exit_code"] == 2 and told["error"]["what"] in err and told["error"]["path"] == "nowhere-at-all"
    code, out, err = run("run", "--no-such-option", "--json")
    assert code == 2 and "No such option" in json.loads(out)["error"]["what"] and "Usage:" in err
    assert not run("check", "nowhere-at-all")[1]


@pytest.mark.parametrize("option", sorted(UPSTREAM))
def test_upstreams_options_are_kept_or_say_what_to_use(run: Run, option: str) -> None:
    _, out, err = run("run", option, "x")
    assert f"{option} is upstream deltab's" in err and not out


def test_quiet_and_verbose_may_stand_anywhere(run: Run) -> None:
    for arguments in (("-q", "rules", "list"), ("rules", "list", "-q"), ("rules", "list", "-v")):
        code, out, _ = run(*arguments)
        assert code == 0 and out


def test_no_option_has_two_short_meanings() -> None:
    """`-h`, `-q` and `-v` are the whole command line's; no command gives them another meaning."""
    main_options = {"-h", "-q", "-v"}
    for info in app.registered_commands:
        assert info.callback is not None
        for hint in getattr(info.callback, "__annotations__", {}).values():
            assert not main_options & set(re.findall(r'"(-[a-z])"', str(hint)))
