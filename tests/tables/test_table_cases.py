"""Every shared case, every field, and the same from a file that holds only the question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sacro_deltab.tables.answers import audit_answer, protect_answer

CASES = Path(__file__).parents[2] / "fixtures" / "cases" / "suppression"
COUNTS = sorted(p.name for p in CASES.glob("*.json") if json.loads(p.read_text())["kind"] in ("counts", "means"))
OTHER = sorted(p.name for p in CASES.glob("*.json") if p.name not in COUNTS)
ANSWERS = ("min_complementary_exact", "min_complementary_policy", "withhold_at_minimum", "primary")
SET_FIELDS = (
    "name", "suppressed", "n_interval", "mean_interval", "exactly_disclosed", "smallest_derivable_union",
    "safe_exact", "safe_policy", "attackable", "withhold",
)  # fmt: skip


def load(name: str) -> dict:
    return json.loads((CASES / name).read_text())


def question(data: dict) -> dict:
    """Only what a person would ask: no answer anywhere."""
    asked = {k: v for k, v in data.items() if k not in ANSWERS}
    if "published_sets" in data:
        asked["published_sets"] = [{k: s[k] for k in ("name", "suppressed")} for s in data["published_sets"]]
    if "derived_group" in data:
        asked["derived_group"] = {"atoms": data["derived_group"]["atoms"]}
    return asked


@pytest.mark.parametrize("name", COUNTS)
def test_audit(name: str) -> None:
    data = load(name)
    answer, safe = audit_answer(question(data))
    assert answer["primary"] == data["primary"]
    assert [s["name"] for s in answer["published_sets"]] == [s["name"] for s in data["published_sets"]]
    for got, want in zip(answer["published_sets"], data["published_sets"], strict=True):
        for field in SET_FIELDS:
            if field == "mean_interval":
                assert got[field] == {c: pytest.approx(iv, abs=1e-9) for c, iv in want.get(field, {}).items()}
            else:
                assert got[field] == want[field], field
    assert safe == all(s["safe_policy"] for s in data["published_sets"])
    if "derived_group" in data:
        for field, value in data["derived_group"].items():
            assert answer["derived_group"][field] == value


@pytest.mark.parametrize("name", COUNTS)
def test_protect(name: str) -> None:
    data = load(name)
    answer, safe = protect_answer(question(data), policy="policy", objective="cells")
    assert safe and answer["protection"]["audit"]["safe_policy"]
    assert set(data["primary"]) <= set(answer["protection"]["suppressed"])
    for key in ("min_complementary_exact", "min_complementary_policy"):
        if key not in data:
            continue
        want, got = data[key], answer[key]
        assert got["count"] == want["count"]
        for field in ("n_sets", "unique", "sets", "min_weight", "min_weight_sets"):
            if "sets" in got and field in want:
                assert got[field] == want[field], (key, field)
    if data.get("min_complementary_policy"):
        chosen = answer["protection"]
        assert chosen["proved_optimal"] and chosen["count"] == data["min_complementary_policy"]["count"]
        assert chosen["complementary"] in data["min_complementary_policy"]["min_weight_sets"]
    if "withhold_at_minimum" in data:
        assert answer["withhold_at_minimum"] == data["withhold_at_minimum"]


def test_three_way_minimum_is_listed_on_request() -> None:
    from sacro_deltab.tables import problem_from_json
    from sacro_deltab.tables.minimum import minimum_sets

    data = load("H03_parent_primary_total_fixed.json")
    assert minimum_sets(problem_from_json(question(data)), "policy", largest=40) == data["min_complementary_policy"]


@pytest.mark.parametrize("name", OTHER)
def test_other_kinds(name: str) -> None:
    data = load(name)
    if "facts" in data:
        data["facts"] = {k: v for k, v in data["facts"].items() if k in ("suppressed", "true")}
    answer, _ = audit_answer(data)
    data = load(name)
    assert answer.get("facts", {}).items() >= data.get("facts", {}).items()
    if data["kind"] == "dominance":
        for field in ("n", "sum", "naive_share_max_over_sum", "naive_share_absmax_over_sum", "abs_share",
                      "violates_abs_rule", "min_n_ok", "count_cell_share", "count_cell_violates"):  # fmt: skip
            assert answer[field] == data[field], field
