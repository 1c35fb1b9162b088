"""The words of a verdict, their one order, and the exit code that each means."""

from __future__ import annotations

from collections.abc import Iterable

VERDICTS = ("pass", "review", "fail")  # best first
NOTHING = "nothing to release"  # where nothing is asked to leave: no pass, since nothing has been judged
_EXIT = {"pass": 0, "review": 3, "fail": 1}


def badness(verdict: str) -> int:
    """0 for `pass`; a word that is none of the three counts as `fail`."""
    return VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS) - 1


def worst(verdicts: Iterable[str]) -> str:
    """The worst of some verdicts; `pass` for none."""
    return VERDICTS[max(map(badness, verdicts), default=0)]


def verdict_on(outputs: Iterable[str], about: Iterable[str] = ()) -> str:
    """The verdict on what is asked to leave, with what is said about the whole; `NOTHING` where nothing is asked."""
    asked = list(outputs)
    found = worst([*asked, *about])
    return found if asked or found == VERDICTS[-1] else NOTHING


def exit_code(verdict: str) -> int:
    """0 meets the policy, 3 a person must look, 1 anything else."""
    return _EXIT.get(verdict, 1)
