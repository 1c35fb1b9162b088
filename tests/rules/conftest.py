from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sacro_deltab.rules import RuleSet, load_ruleset


@pytest.fixture(scope="session")
def ruleset() -> RuleSet:
    return load_ruleset()


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def run_rules(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run `sacro-deltab rules …` in this process, through the real entry point."""

    def run(*args: str) -> Result:
        from sacro_deltab import cli

        try:
            cli.main(["rules", *args])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return run
