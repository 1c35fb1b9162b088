"""Nothing passes the compiled schema checks that the jsonschema package refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sacro_deltab.base.resources import rules_dir, schema
from sacro_deltab.base.shape import Compiler, fits
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.rules import schema_check
from sacro_deltab.rules.marked_yaml import read_marked

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.text(max_size=3), st.just("pass"),
    st.just("x" * 400), st.lists(st.integers(0, 1), max_size=3),
)  # fmt: skip


def _basis() -> dict[str, Any]:
    people = smith_cohort(60, 6, seed=1)
    return Basis.from_public(people.X, people.age, people.feature_names, n_components=2, made_on="simulated").to_json()


def _declared() -> dict[str, Any]:
    return {
        "schema": "sacro_deltab/declare/1", "role": "researcher", "by": "A. Researcher", "date": "2026-11-30",
        "facts": {"output.declared": True, "n": 3}, "outputs": {"beta1": {"output.declared": False}},
    }  # fmt: skip


SAMPLES: dict[str, dict[str, Any]] = {"basis": _basis(), "declare": _declared()}


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


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_fit(name: str) -> None:
    assert fits(SAMPLES[name], name)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_edits_fit_only_where_jsonschema_agrees(data: Any) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    changed = edited(SAMPLES[name], data.draw)
    assert fits(changed, name) == Draft202012Validator(schema(name)).is_valid(changed)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_edited_rules_fit_only_where_jsonschema_agrees(data: Any) -> None:
    path = data.draw(st.sampled_from(sorted(Path(rules_dir()).glob("dt-*.yaml")) or sorted(rules_dir().glob("*.yaml"))))
    rules = read_marked(path, path.name).data.get("rules") or [{"require": {}}]
    rule = data.draw(st.sampled_from(rules))
    verb = next(verb for verb in schema_check.VERBS if verb in rule)
    changed = edited(rule, data.draw)
    plain = schema_check._schema("ruleset", f"rule_{verb}")
    quick = next(Compiler({}).compile(plain)(changed, "$"), None) is None
    assert not quick or Draft202012Validator(plain).is_valid(changed)


@pytest.mark.parametrize("name", ["basis", "bounds", "declare", "evidence", "table-problem", "certificate", "review"])
def test_every_keyword_of_these_schemas_is_known(name: str) -> None:
    fits({}, name)


def test_all_output_types_compile() -> None:
    from sacro_deltab.outputs.schema import _quick, known_types

    for kind in [None, *known_types()]:
        assert _quick(kind)({}, "$") is not None
