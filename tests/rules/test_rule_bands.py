"""Age bands and sites are held to their clauses in every table, not only in the one that is named after them."""

import numpy as np
import pandas as pd
import pytest
from facts_factory import honest

from sacro_deltab.kinds.group_tables import site_facts
from sacro_deltab.measure.grouping import AgeBands, make_grouping
from sacro_deltab.measure.measure import cell_parts
from sacro_deltab.measure.people import Roster
from sacro_deltab.rules import decide, load_ruleset
from sacro_deltab.rules.facts import Fact, Provider

N = 600
AGES = np.linspace(50.5, 79.5, N)
SEX = pd.Series(["F", "M"] * (N // 2), name="sex")


def judged(output_type, by, statistic="mean", **facts):
    ruleset = load_ruleset()
    grouping = make_grouping(by, Roster.of(N, None), None)
    parts = cell_parts(grouping, None if statistic == "count" else np.zeros(N), statistic)
    whole = honest(ruleset, output_type)
    facts = {**site_facts(grouping), **{name.replace("__", "."): value for name, value in facts.items()}}
    whole = whole.with_facts(*(Fact(name, value, Provider.COMPUTED) for name, value in facts.items()))
    decision = decide(ruleset, type(whole)(whole.output_name, output_type, whole.facts, parts))
    return {rule for finding in decision.findings for rule in finding.rules}


@pytest.mark.parametrize(
    ("output_type", "crossed", "statistic"),
    [
        ("delta_mean_by_other", True, "mean"),
        ("delta_sd_by_group", False, "sd"),
        ("delta_sd_by_group", True, "sd"),
        ("count_table", False, "count"),
        ("count_table", True, "count"),
    ],
)
@pytest.mark.parametrize(("width", "wanted"), [(4.0, {"AG-07", "AG-08"}), (5.0, {"AG-08"}), (10.0, set())])
def test_bands_are_wide_enough_in_every_table(output_type, crossed, statistic, width, wanted):
    bands = AgeBands(AGES, width)
    found = judged(output_type, [bands, SEX] if crossed else bands, statistic, n_node=199)
    assert found & {"AG-07", "AG-08"} == wanted


def test_groups_that_are_no_ages_are_not_asked_for_a_width():
    assert not judged("count_table", SEX, "count", n_node=150) & {"AG-07", "AG-08", "AD-02"}


@pytest.mark.parametrize(("sites", "asked"), [(3, True), (4, False)])
def test_sites_of_a_small_federation_are_asked_about_in_crossed_tables(sites, asked):
    site = pd.Series([f"S{i % sites}" for i in range(N)], name="scanner_site")
    assert ("SS-16" in judged("delta_mean_by_other", [SEX, site])) is asked
