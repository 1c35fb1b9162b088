import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.cli import rules
from sacro_deltab.rules import RuleSet, load_ruleset


@pytest.fixture(scope="session")
def ruleset() -> RuleSet:
    return load_ruleset()


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def rules_command() -> Any:
    """The `rules` group alone, built once: `main` builds every group anew at each call."""
    app = typer.Typer(name="sacro-deltab", rich_markup_mode=None, pretty_exceptions_enable=False)
    rules.register(app)
    return typer.main.get_command(app)


@pytest.fixture
def run_rules(rules_command: Any, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run `sacro-deltab rules …` in this process; errors end as the entry point ends them."""

    def run(*args: str) -> Result:
        code = 0
        try:
            rules_command.main(args=["rules", *args], prog_name="sacro-deltab")
        except SystemExit as stop:
            code = int(stop.code or 0)
        except SacroDeltabError as error:
            sys.stderr.write(f"sacro-deltab: {error}\n")
            code = error.exit_code
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return run
