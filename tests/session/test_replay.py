"""`rules diff --replay`: stored sessions made again under other rules come out as the session itself would."""

import json
from functools import cache

import numpy as np
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base import resources
from sacro_deltab.rules import load_ruleset
from sacro_deltab.session.asked import replay_session
from sacro_deltab.session.folder import build_evidence
from sacro_deltab.session.settling import needs_plan, settle

CHANGES = {  # in ruleset.yaml, one place each
    "minimum 10": ("minimum: {value: 20", "minimum: {value: 10"),
    "minimum 15": ("minimum: {value: 20", "minimum: {value: 15"),
    "minimum 30": ("minimum: {value: 20", "minimum: {value: 30"),
    "withhold 50 %": ("withheld_above: {value: 0.30", "withheld_above: {value: 0.50"),
    "withhold 20 %": ("withheld_above: {value: 0.30", "withheld_above: {value: 0.20"),
    "dominance 5 %": ("dominance: {value: 0.10", "dominance: {value: 0.05"),
    "rounding 10": ("count_base: {value: 5", "count_base: {value: 10"),
    "exact from 200": ("exact_from: {value: 100", "exact_from: {value: 200"),
    "interval of 20": ("interval_n: {value: 10", "interval_n: {value: 20"),
    "interval of 4 years": ("interval_years: {value: 2.0", "interval_years: {value: 4.0"),
}


@pytest.fixture(scope="module")
def laws(tmp_path_factory):
    """A copy of the rules for each change; none of them needs its own tests to pass here."""
    folder = tmp_path_factory.mktemp("laws")

    @cache
    def made(name):
        copy = folder / name.replace(" ", "-").replace("%", "pc")
        copy.mkdir()
        for file in resources.rules_dir().glob("*.yaml"):
            text = file.read_text(encoding="utf-8")
            if file.name == "ruleset.yaml" and name in CHANGES:
                assert CHANGES[name][0] in text
                text = text.replace(*CHANGES[name])
            (copy / file.name).write_text(text, encoding="utf-8")
        return copy

    return made


def study(place, rules, seed):
    """Counts, means and SDs by groups of which some are small, with the cohort's own; the seed says which."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([140, 90, 60, 33, 28, 24, 19, 17, 13, 9], size=int(rng.integers(4, 7)), replace=False)
    dx = np.repeat([f"D{i}" for i in range(len(sizes))], sizes)
    people = len(dx)
    dx, sex = dx[rng.permutation(people)], rng.choice(["F", "M"], people)
    site = rng.choice(["S1", "S2", "S3", "S4", "S5"], people, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    delta = np.round(rng.normal(0, 5, people), 6)
    ids = [f"P{i}" for i in range(people)]
    session = new_session(place, people=ids, rules=str(rules), cohort=f"c{seed}", draft=True)
    asked = [
        lambda: session.release_n(),
        lambda: session.release_mean(delta),
        lambda: session.release_group_means(delta, by=dx, name="by_dx"),
        lambda: session.release_counts(by=dx, name="n_dx"),
        lambda: session.release_group_means(delta, by=site, name="by_site"),
        lambda: session.release_counts(by={"dx": dx, "sex": sex}, name="n_dx_sex"),
        lambda: session.release_group_sds(delta, by=sex, name="sd_sex"),
    ]
    for place_of in rng.permutation(len(asked))[: int(rng.integers(3, 6))]:
        asked[place_of]()
    if needs_plan(session):
        settle(session)
    return session


def compared(place, laws, seeds, changes):
    """(outputs compared, those that came out otherwise, those that could not be known)."""
    done, wrong, unknown = 0, [], 0
    for seed in seeds:
        evidence = json.loads(json.dumps(build_evidence(study(place, laws("as it is"), seed))))
        for change in changes:
            really = {e.name: e for e in study(place, laws(change), seed).entries}
            again = replay_session(evidence, load_ruleset(laws(change), profile=place / "profile.yaml"))
            for name, found in again.items():
                done += 1
                if found is None:
                    unknown += 1
                elif (found.effect, found.marked) != (really[name].decision["effect"], set(really[name].suppressed)):
                    wrong.append((seed, change, name, found.effect, really[name].decision["effect"]))
    return done, wrong, unknown


@pytest.fixture
def place(tmp_path):
    write_profile(tmp_path)
    return tmp_path


def test_a_replay_is_what_the_session_would_say(place, laws):
    done, wrong, unknown = compared(place, laws, [3], ["minimum 15", "minimum 30", "withhold 50 %"])
    assert not wrong
    assert done >= 9
    assert not unknown


@pytest.mark.soak
def test_two_hundred_outputs_and_ten_changes(place, laws):
    done, wrong, unknown = compared(place, laws, range(100, 150), list(CHANGES))
    assert not wrong
    assert done >= 2000
    assert not unknown
