"""The examples in docs/model.md and docs/cohort.md run and print what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


@pytest.mark.parametrize("page", ["model.md", "cohort.md"])
def test_examples(page: str) -> None:
    # fences are not part of the doctest syntax: a closing fence after a blank line ends an example cleanly
    result = doctest.testfile(str(Path(__file__).parents[2] / "docs" / page), module_relative=False)
    assert result.attempted > 5 and result.failed == 0
