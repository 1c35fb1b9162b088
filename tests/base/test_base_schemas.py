"""The fast validator and the jsonschema package agree; messages name places and keywords, never what was found."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sacro_deltab.base.errors import InputError
from sacro_deltab.base.resources import data_root, schema
from sacro_deltab.base.schemas import check, faults, fits
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis

NAMES = sorted(p.name.removesuffix(".schema.json") for p in (data_root() / "schemas").glob("*.schema.json"))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.text(max_size=3), st.just("pass"),
    st.just("x" * 400), st.lists(st.integers(0, 1), max_size=3),
)  # fmt: skip


def _basis() -> dict[str, Any]:
    people = smith_cohort(60, 6, seed=1)
    return Basis.from_public(people.X, people.age, people.feature_names, n_components=2, made_on="simulated").to_json()


DECLARED = {
    "schema": "sacro_deltab/declare/1", "role": "researcher", "by": "A. Researcher", "date": "2026-11-30",
    "facts": {"output.declared": True, "n": 3}, "outputs": {"beta1": {"output.declared": False}},
}  # fmt: skip
SAMPLES: dict[str, dict[str, Any]] = {"basis": _basis(), "declare": DECLARED}


def edited(value: dict[str, Any], draw: Any) -> dict[str, Any]:
    """The value with one entry changed, added or taken out, anywhere in it."""

    def paths(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        return [at, *(p for k, v in below for p in paths(v, (*at, k)))]

    changed = copy.deepcopy(value)
    *way, last = draw(st.sampled_from([p for p in paths(changed) if p]))
    target: Any = changed
    for key in way:
        target = target[key]
    kind = draw(st.sampled_from(["put", "remove", "add"]))
    if kind == "remove":
        del target[last]
    elif kind == "add" and isinstance(target, dict):
        target[draw(st.sampled_from(["x", "facts", "digest", "schema"]))] = draw(VALUES)
    elif kind == "add":
        target.append(draw(VALUES))
    else:
        target[last] = draw(VALUES)
    return changed


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    fits({}, name)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_edits_fit_where_jsonschema_says_so(data: Any) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    changed = edited(SAMPLES[name], data.draw)
    assert fits(changed, name) == Draft202012Validator(schema(name)).is_valid(changed)
    assert fits(SAMPLES[name], name)


def test_the_end_of_a_pattern_is_the_end_of_the_text() -> None:
    assert not fits({**DECLARED, "date": "2026-11-30\n"}, "declare")  # Python's `$` would pass this


def test_messages_name_places_and_never_values() -> None:
    bad = {**DECLARED, "by": 83.25, "facts": {"n": ["P0001"]}, "P0002": 1, "date": "83.25"}
    found = faults(bad, "declare")
    assert {fault.place for fault in found} >= {"by", "facts/n"}
    text = " ".join(map(str, found)) + repr(found)
    assert not any(value in text for value in ("83.25", "P0001", "P0002"))
    with pytest.raises(InputError) as caught:
        check(bad, "declare", path="d.json", what="a declaration", next_step="See the manual.")
    assert "83.25" not in str(caught.value) and caught.value.place


@pytest.mark.parametrize("value", [{1: 2}, {"x": object()}, {"x": b""}, {"facts": {"x": "\ud800"}}, float("nan")])
def test_what_is_no_json_never_fits(value: Any) -> None:
    assert not fits(value, "declare")
