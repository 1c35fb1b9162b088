"""Both readings of a decision on stored sessions: what moves is what the reading says; the page is what was found."""

import json
import random

import pytest

from sacro_deltab.base import resources
from sacro_deltab.cli import rules as command
from sacro_deltab.rules import load_base
from sacro_deltab.rules.booklet import booklet_data
from sacro_deltab.rules.layers import supposing
from sacro_deltab.rules.readings import known, others, page, weigh
from sacro_deltab.rules.replay import replay

BASE = load_base()
STORED = resources.data_root() / "fixtures" / "replay"
pytestmark = pytest.mark.skipif(not STORED.is_dir(), reason="fixtures are not part of the wheel")


def moved(body, *sessions):
    files = [STORED / f"{name}.json" for name in sessions]
    found = replay(BASE, supposing(BASE, "trial", body), files, command._rerun)
    return {r.name: r for r in found if r.changed}


def other(decision):
    return others(BASE)[decision]


def test_small_tables_leave_where_they_are_exempt():
    found = moved(other("D-32"), "clinic-1")
    assert {(r.before, r.after) for r in found.values()} == {("withhold", "suppress")}
    assert set(found) == {"mean_by_dx", "n_by_dx"}
    assert not any(r.derivable for r in found.values())


def test_a_later_project_leaves_where_the_budget_resets():
    found = moved(other("D-59"), "later-project")
    assert {r.before for r in found.values()} == {"block"}
    assert "block" not in {r.after for r in found.values()}
    assert moved(other("D-59"), "training-1") == {}


def test_only_the_weights_that_the_reading_frees_leave_without_noise():
    found = moved(other("D-12"), "without-noise-1")
    assert set(found) == {"beta2", "beta2sq", "gamma", "gammasq", "folded_weights"}  # β₁ needs noise by both readings


def test_the_attacker_of_the_law_as_it_is_looks_at_what_would_leave():
    """At a minimum of 10 two groups of 13 together need no complement, and follow from the rest: fewer than 20."""
    found = moved(other("D-03"), "clinic-11")
    assert found["n_by_dx"].derivable == {"a group of fewer than 20"}
    assert found["n_by_dx"].leaves > 0
    assert not any(r.derivable for r in moved(other("D-31"), "clinic-1", "clinic-11").values())


def test_a_reading_that_does_not_load_says_so():
    with pytest.raises(Exception, match="did you mean"):
        supposing(BASE, "trial", {"retire": [{"rule": "SC-99", "because": "trial"}]})


def test_the_page_and_the_booklet_are_what_was_found():
    found = known(BASE)
    text = (resources.data_root() / "docs" / "decisions.md").read_text(encoding="utf-8")
    assert text == page(BASE, found), "run `make readings`"
    first = [one["id"] for one in found["ranked"]][:10]
    assert [d["id"] for d in booklet_data(BASE)["decisions"]] == first
    told = text.split("## The others")[0]
    assert all(f" {d}: " in told for d in ("D-12", "D-31", "D-32", "D-49", "D-55", "D-57", "D-59"))


def test_a_replayed_ranking_is_that_of_the_page():
    """One decision that needs no table made again, another each time the sample's seed is changed."""
    quick = [d for d, one in others(BASE).items() if list(one) == ["retire"]]
    (name,) = random.Random(3).sample(quick, 1)
    files = [STORED / f"{stem}.json" for stem in ("training-2", "without-noise-1", "later-project")]
    found = weigh(BASE, files, command._rerun, only={name})
    (one,) = found["ranked"]
    told = next(x for x in known(BASE)["ranked"] if x["id"] == name)
    stems = ("training-2:", "without-noise-1:", "later-project:")
    assert sorted(one["outputs"]) == sorted(o for o in told["outputs"] if o.startswith(stems))


@pytest.mark.soak
def test_the_whole_ranking_is_found_again():
    found = weigh(BASE, [STORED], command._rerun)
    stored = json.loads((resources.rules_dir() / "readings.json").read_text(encoding="utf-8"))
    assert found["ranked"] == stored["ranked"], "run `make readings`"
