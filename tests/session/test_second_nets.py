"""What catches a fault of the program itself, as a user would meet it: the first net is cut, the second must hold.

`make nets` switches each of them off in turn and expects one of these tests to notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.judging import judge
from sacro_deltab.session import recording

SITES = np.repeat(["North", "South", "East", "West"], 100)


def _left(session: Any) -> list[str]:
    return sorted(path.name for path in session.journal.files.iterdir())


def test_numbers_that_nobody_rounded_do_not_leave(
    make_session: Callable[..., Any], deltas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "transform", lambda document, _actions, _suppressed: document)
    session = make_session()
    entry = session.release_group_means(deltas, SITES, name="by_site")
    assert entry.status == "fail" and entry.kept_inside
    exact = repr(float(deltas[:100].mean()))[:6]
    assert not any(exact in path.read_text() for path in session.journal.files.iterdir())


def test_a_document_that_breaks_its_schema_after_rounding_does_not_leave(
    make_session: Callable[..., Any], deltas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = judge.transform
    monkeypatch.setattr(judge, "transform", lambda *given: replace(right(*given), title="a\x07b"))
    session = make_session()
    with pytest.raises(InputError, match="schema"):
        session.release_group_means(deltas, SITES, name="by_site")
    assert _left(session) == [] and not session.entries


def test_a_record_that_the_viewer_cannot_show_is_not_added(
    make_session: Callable[..., Any], deltas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sacro_deltab.build.record.summary", lambda *_args, **_kwargs: "pass; <script>")
    session = make_session()
    with pytest.raises(InputError):
        session.release_group_means(deltas, SITES, name="by_site")
    assert not session.live.results.results and _left(session) == []


def test_what_acro_refuses_leaves_nothing_behind(
    make_session: Callable[..., Any], deltas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> str:
        raise RuntimeError("no")

    monkeypatch.setattr(recording, "add_record", refuse)
    session = make_session()
    with pytest.raises(InputError):
        session.release_group_means(deltas, SITES, name="by_site")
    assert _left(session) == []
    assert [step["step"] for step in session.journal.steps()][-2:] == ["output", "drop"]
