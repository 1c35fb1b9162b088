"""The examples of `docs/register.md` run, in the page's order."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from sacro_deltab.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "register.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    runner, parser, commands = doctest.DocTestRunner(), doctest.DocTestParser(), 0
    for language, block in re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        if language == "python":
            test = parser.get_doctest(block, names, "register.md", str(PAGE), 0)
            runner.run(test, clear_globs=False)
            names = test.globs
            continue
        for step in re.split(r"^\$ sacro-deltab ", block, flags=re.M)[1:]:
            line, _, expected = step.partition("\n")
            out = io.StringIO()
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(io.StringIO()),
                pytest.raises(SystemExit) as stopped,
            ):
                main(shlex.split(line))
            assert not stopped.value.code, line
            assert not expected or out.getvalue() == expected, line
            commands += 1
    assert commands == 5 and runner.tries > 10
    assert runner.failures == 0
