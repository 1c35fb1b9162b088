"""Facts that a TRE's own package supplies: a layer names one, a plug-in measures it, a rule asks for it."""

from types import SimpleNamespace

import numpy as np
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.rules import checking
from sacro_deltab.rules.checking import check_all
from sacro_deltab.session import plugins

LAYER = """
facts:
  cell.p_ratio: {type: number, unit: share, by: computed, minimum: 0, maximum: 1, means: p-ratio, reads: the p-ratio}
rules:
  - id: ZZ-01
    title: The p-ratio of a cell is at least a tenth
    applies_to: [any_mean_table]
    for_each: cell
    require: {cell.p_ratio: {at_least: 0.1}}
    otherwise: review
    source: [DT-G3]
    examples:
      - {given: {cell.p_ratio: 0.1}, expect: pass}
      - {given: {cell.p_ratio: 0.09}, expect: review}
"""


@pytest.fixture
def place(tmp_path):
    path = write_profile(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + LAYER, encoding="utf-8")
    return tmp_path


def installed(monkeypatch, measure):
    found = [SimpleNamespace(name="cell.p_ratio", load=lambda: measure)]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    monkeypatch.setattr(checking, "entry_points", lambda group: found)


def released(place):
    session = new_session(place)
    rng = np.random.default_rng(5)
    groups = np.repeat(["A", "B"], 200)
    return session, session.release_group_means(np.round(rng.normal(0, 4, 400), 5), by=groups, name="by_group")


def test_what_nobody_supplies_blocks_and_is_said(place):
    session, entry = released(place)
    assert entry.status == "fail"
    assert any("cell.p_ratio" in reason for reason in entry.reasons)
    assert any(text.startswith("cell.p_ratio: neither the package nor a plug-in") for text in session.not_checked)
    assert "no part of the package supplies: cell.p_ratio" in "\n".join(
        check_all(None, layers=[str(place / "profile.yaml")]).lines()
    )


def test_a_plug_in_supplies_it_for_each_row(place, monkeypatch):
    installed(monkeypatch, lambda document, facts: {row[0]: 0.3 if row[0] == "A" else 0.05 for row in document.rows})
    session, entry = released(place)
    assert entry.status == "review"
    assert [f["target"] for f in entry.decision["findings"] if "ZZ-01" in f["rules"]] == ["B"]
    assert not any("p_ratio" in text for text in session.not_checked)
    assert "supplies" not in "\n".join(check_all(None, layers=[str(place / "profile.yaml")]).lines())


def test_a_plug_in_that_fails_is_named(place, monkeypatch):
    installed(monkeypatch, lambda document, facts: 1 / 0)
    with pytest.raises(InputError, match=r"the plug-in of the fact cell\.p_ratio failed \(ZeroDivisionError\)"):
        released(place)
