"""One order of verdicts; what is no verdict is never a pass."""

from __future__ import annotations

import pytest

from sacro_deltab.base.findings import Effect
from sacro_deltab.base.verdicts import NOTHING, exit_code, verdict_on, worst


@pytest.mark.parametrize(
    ("given", "word", "code"),
    [([], "pass", 0), (["pass", "review"], "review", 3), (["review", "fail", "pass"], "fail", 1),
     (["pass", "Review"], "fail", 1), (["pass", ""], "fail", 1)],
)  # fmt: skip
def test_the_worst_counts(given: list[str], word: str, code: int) -> None:
    assert worst(given) == word and exit_code(worst(given)) == code


def test_a_word_that_is_none_is_no_pass() -> None:
    assert exit_code("PASS") == 1 and exit_code("nothing to release") == 1


@pytest.mark.parametrize(
    ("outputs", "about", "word"),
    [([], [], NOTHING), ([], ["pass", "review"], NOTHING), ([], ["fail"], "fail"), (["pass"], [], "pass"),
     (["pass"], ["review"], "review"), (["fail"], [], "fail")],
)  # fmt: skip
def test_nothing_is_no_pass(outputs: list[str], about: list[str], word: str) -> None:
    assert verdict_on(outputs, about) == word
    assert (exit_code(word) == 0) == (word == "pass")


def test_effects_and_verdicts_have_one_order() -> None:
    verdicts = [effect.status for effect in Effect]  # worst first
    assert verdicts == sorted(verdicts, key=["fail", "review", "pass"].index)
