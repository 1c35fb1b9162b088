"""The short form of a statement loses nothing, has one spelling, and is small."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import cert_builder as cb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.canonical import canonical_json
from sacro_deltab.base.errors import CertificateError
from sacro_deltab.certificate.packed import FACTS_BY, full, pack
from sacro_deltab.certificate.types import schema_problems


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return json.loads((cb.make_session(tmp_path_factory.mktemp("s") / "o") / "certificate.json").read_text())


NAMES = st.lists(st.sampled_from(["AD-01", "AD-02", "MP-01", "SC-01", "odd"]), unique=True).map(sorted)


def some_output(index: int, rules: dict[str, list[str]], facts: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "name": f"output {index}",
        "type": "beta1",
        "title": "t",
        "files": [f"o{index}.csv", f"o{index}.json"],
        "verdict": "pass",
        "kept_inside": index % 2 == 0,
        "rules": {result: ids for result, ids in rules.items() if ids},
        "cells_marked": index % 3 == 0,
        "says": {"RD-01": "x"} if index % 4 == 0 else {},
        "questions": [],
        "facts": {by: facts.get(by, []) for by in FACTS_BY},
    }


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(["met", "review", "block"]), NAMES),
            st.dictionaries(st.sampled_from(FACTS_BY), NAMES),
        ),
        max_size=6,
    )
)
def test_any_outputs_come_back(packed: dict[str, Any], given_outputs: list[Any]) -> None:
    whole = full(packed)
    outputs = [some_output(i, rules, facts) for i, (rules, facts) in enumerate(given_outputs)]
    whole["predicate"] |= {
        "outputs": outputs,
        "files": [
            {"file": f, "verdict": "pass", "output": o["name"], "kept_inside": o["kept_inside"]}
            for o in outputs
            for f in o["files"]
        ],
    }
    again = pack(whole)
    assert full(again) == whole
    assert schema_problems(again) == []


def test_each_rule_and_fact_is_named_once_a_result(packed: dict[str, Any]) -> None:
    for key, kind, names in (("rules", "result", "rules"), ("facts", "by", "facts")):
        seen = [(g[kind], name, g["of"]) for g in packed["predicate"][key] for name in g[names].split(" ")]
        assert len({(a, b) for a, b, _ in seen}) == len(seen)
    assert len(canonical_json(packed)) < len(canonical_json(full(packed)))


def test_checksum_files_that_are_not_acros_are_kept(packed: dict[str, Any]) -> None:
    whole = full(packed)
    name = next(iter(whole["predicate"]["checksums"]))
    whole["predicate"]["checksums"] |= {name: "0" * 64, "no such file": "1" * 64}
    del whole["predicate"]["checksums"][list(whole["predicate"]["checksums"])[1]]
    assert full(pack(whole)) == whole


def _edit(packed: dict[str, Any], which: str) -> dict[str, Any]:
    edited = copy.deepcopy(packed)
    predicate = edited["predicate"]
    rules = predicate["rules"]
    if which == "a number without an output":
        rules[0]["of"] = "999"
    elif which == "a range without end":
        rules[0]["of"] = "0-999999"
    elif which == "a number twice":
        rules[0]["of"] = "0 0"
    elif which == "downwards":
        rules[0]["of"] = "1-0"
    elif which == "another order":
        rules.reverse()
    elif which == "split":
        rules.insert(0, dict(rules[0]))
    elif which == "a usual value written out":
        predicate["outputs"][0]["says"] = {}
    elif which == "a file of no output":
        predicate["files"]["other.csv"] = "pass"
    elif which == "a file without verdict":
        predicate["files"].popitem()
    elif which == "a checksum written out":
        name = next(s["name"] for s in edited["subject"] if s["name"] not in predicate["checksums"]["without"])
        predicate["checksums"]["other"][name] = full(packed)["predicate"]["checksums"].get(name, "2" * 64)
    return edited


@pytest.mark.parametrize(
    "which",
    [
        "a number without an output",
        "a range without end",
        "a number twice",
        "downwards",
        "another order",
        "split",
        "a usual value written out",
        "a file of no output",
        "a file without verdict",
        "a checksum written out",
    ],
)
def test_there_is_one_spelling(packed: dict[str, Any], which: str) -> None:
    edited = _edit(packed, which)
    assert edited != packed
    with pytest.raises(CertificateError):
        full(edited)


def test_a_bomb_is_refused(packed: dict[str, Any]) -> None:
    bomb = copy.deepcopy(packed)
    bomb["predicate"]["outputs"] *= 2000
    last = len(bomb["predicate"]["outputs"]) - 1
    bomb["predicate"]["rules"] = [{"result": "met", "of": f"0-{last}", "rules": " ".join(["AD-01"] * 2000)}] * 500
    with pytest.raises(CertificateError):
        full(bomb)


def test_what_the_short_form_cannot_carry_is_refused(packed: dict[str, Any], tmp_path: Path) -> None:
    whole = full(packed)
    whole["predicate"]["outputs"][0]["rules"]["met"] = ["two words"]
    with pytest.raises(CertificateError, match="blank"):
        pack(whole)
    whole = full(packed)
    whole["predicate"]["files"] *= 2
    with pytest.raises(CertificateError, match="two outputs"):
        pack(whole)
