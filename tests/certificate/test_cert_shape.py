"""The schema check of statements agrees with the jsonschema package."""

from __future__ import annotations

import copy
import json
from typing import Any

import cert_builder as cb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sacro_deltab.base.resources import schema
from sacro_deltab.base.schemas import fits


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return json.loads((cb.make_session(tmp_path_factory.mktemp("s") / "o") / "certificate.json").read_text())


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(p for k, v in below for p in paths(v, (*at, k)))]


def test_both_schemas_are_schemas() -> None:
    for name in ("certificate", "certificate-v1", "review"):
        Draft202012Validator.check_schema(schema(name))


def test_a_statement_has_its_shape(statement: dict[str, Any]) -> None:
    assert fits(statement, "certificate")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-2, 2),
    st.text(max_size=3),
    st.just("pass"),
    st.just("0" * 64),
)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_agrees_with_jsonschema_on_edits(statement: dict[str, Any], data: Any) -> None:
    changed = copy.deepcopy(statement)
    *way, last = data.draw(st.sampled_from([p for p in paths(changed) if p]))
    target = changed
    for key in way:
        target = target[key]
    kind = data.draw(st.sampled_from(["put", "remove", "add"]))
    if kind == "remove":
        del target[last]
    elif kind == "add" and isinstance(target, dict):
        target[data.draw(st.sampled_from(["x", "sha256", "verdict", "by"]))] = data.draw(VALUES)
    else:
        target[last] = data.draw(
            VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(st.text(max_size=2), VALUES, max_size=2)
        )
    other = Draft202012Validator(schema("certificate")).is_valid(changed)
    assert fits(changed, "certificate") == other
