import pytest

from sacro_deltab.rules import RuleSet, load_ruleset


@pytest.fixture(scope="session")
def ruleset() -> RuleSet:
    return load_ruleset()
