"""Records that ACRO made: read by a closed form, whichever version wrote them; free texts go to a person."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sacro_deltab.build.others import blanked, form_faults, free_texts
from sacro_deltab.check import check_paths

CHECKS = ("negative", "missing", "threshold", "p-ratio", "nk-rule", "all-values-are-same")
ROWS = (("Angus", 2.4, 2.6), ("Fife", 2.5, 2.3), ("Moray", 2.7, 2.2))


def record(small: list[list[int]] | None = None, check: str = "threshold") -> dict[str, Any]:
    """A table of means as ACRO 0.4.8 and 0.4.12 write it."""
    small = small or []
    cells = {name: small if name == check else [] for name in CHECKS}
    return {
        "uid": "output_0", "status": "fail" if small else "pass", "type": "table",
        "properties": {"method": "crosstab"},
        "files": [{"name": "output_0_0.csv", "sdc": {
            "summary": {"suppressed": False, **{name: len(cells[name]) for name in CHECKS}}, "cells": cells}}],
        "outcome": {c: {r[0]: f"{check}; " if [i, j] in small else "ok" for i, r in enumerate(ROWS)}
                    for j, c in enumerate(("no", "yes"))},
        "command": "acro.crosstab(df.region, df.smoker)",
        "summary": f"fail; {check}: {len(small)} cells may need suppressing; " if small else "pass",
        "timestamp": "2026-10-05T09:30:00.000000", "comments": ["Mean thickness"], "exception": "",
    }  # fmt: skip


def folder(where: Path, one: dict[str, Any], version: str = "0.4.12") -> Any:
    (where / "checksums").mkdir()
    (where / "output_0_0.csv").write_text("region,no,yes\n" + "".join(f"{r},{a},{b}\n" for r, a, b in ROWS))
    (where / "results.json").write_text(json.dumps({"version": version, "results": {"output_0": one}}, indent=4))
    (where / "config.json").write_text(json.dumps({"safe_threshold": 10, "zeros_are_disclosive": True}, indent=4))
    for name in ("output_0_0.csv", "results.json"):
        (where / "checksums" / f"{name}.txt").write_text(hashlib.sha256((where / name).read_bytes()).hexdigest())
    return check_paths([where])


def told(report: Any) -> list[tuple[str, str]]:
    return [(f.effect.value, f.inside) for f in (*report.folder_findings, *report.outputs[0].findings)]


@pytest.mark.parametrize("version", ["0.4.8", "0.4.12"])
@pytest.mark.parametrize("check", ["threshold", "p-ratio", "nk-rule", "all-values-are-same"])
def test_cells_that_the_old_checks_mark_are_named(tmp_path: Path, version: str, check: str) -> None:
    report = folder(tmp_path, record([[2, 0], [2, 1]], check), version)
    (said,) = [text for effect, text in told(report) if "check " + check in text and effect == "block"]
    assert "row 'Moray', column 'no'; row 'Moray', column 'yes'" in said
    assert not any("ran no check" in text for _, text in told(report))


def test_old_review_hides_no_small_cell(tmp_path: Path) -> None:
    """0.4 says `review` where a value is negative, and its other checks say nothing then: their cells still count."""
    one = record([[2, 0]])
    one |= {"status": "review", "summary": "review; negative values found"}
    assert any("column 'no'" in text for effect, text in told(folder(tmp_path, one)) if effect == "block")


def test_the_honest_twin_is_asked_about_its_texts_only(tmp_path: Path) -> None:
    found = told(folder(tmp_path, record()))
    assert not any("ran no check" in text or "not as ACRO writes" in text for _, text in found)
    assert any("comments, command, names in outcome" in text for effect, text in found if effect == "review")


def _deep(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(one: dict[str, Any]) -> None:
        *way, last = path.split("/")
        here: Any = one
        for step in way:
            here = here[int(step)] if isinstance(here, list) else here[step]
        here[int(last) if isinstance(here, list) else last] = value

    return change


AGES = "61.5 70.2 55.6 62.8"
OTHER_FORMS = {
    "a time with more digits": ("timestamp", "2026-10-05T09:30:00.00000061"),
    "a time of ages": ("timestamp", "T61.70.55.62:80"),
    "a summary of ages": ("summary", f"fail; {AGES}"),
    "a summary of letters": ("summary", "pass; PaulAgedSixtyOne : "),
    "a property of ages": ("properties/method", AGES),
    "a degree of freedom with a fraction": ("properties/dof", 61.57),
    "another property": ("properties/more", 61),
    "an unknown type": ("type", "table 61"),
    "an unknown check": ("files/0/sdc/cells/P0001", []),
    "an unknown count": ("files/0/sdc/summary/P0001", 61),
    "a count that is no number": ("files/0/sdc/summary/threshold", AGES),
    "a count without its cells": ("files/0/sdc/summary/suppressed", 61),
    "cells in an order that says something": ("files/0/sdc/cells/threshold", [[2, 1], [0, 0]]),
    "a cell twice": ("files/0/sdc/cells/threshold", [[2, 1], [2, 1]]),
    "cells that nobody counted": ("files/0/sdc/cells/threshold", [[0, 1]]),
    "another part of sdc": ("files/0/sdc/more", {}),
    "an address": ("files/0/url", "/contents/?" + AGES),
    "an outcome of ages": ("outcome/no/Fife", AGES),
    "an outcome that is a list": ("outcome", [61.5]),
    "a column of an outcome that is a text": ("outcome/no", AGES),
    "fair of ages": ("fair", {"statbarn": AGES}),
    "fair with letters": ("fair", {"risks": ["PaulAgedSixtyOne"]}),
    "fair with more": ("fair", {"people": []}),
    "a status in fair": ("fair", {"check_status": {"NKCheck": AGES}}),
}


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_another_form_than_acros_is_no_record(name: str) -> None:
    one = record()
    assert not list(form_faults(one))
    _deep(*OTHER_FORMS[name])(one)
    assert list(form_faults(one)), name


def test_a_folder_with_another_form_fails(tmp_path: Path) -> None:
    one = record()
    one["timestamp"] = "T61.70.55.62:80"
    assert any("not as ACRO writes it: timestamp" in text for effect, text in told(folder(tmp_path, one)))


def test_what_is_packed_has_nothing_where_a_person_could_write() -> None:
    one = record() | {"exception": AGES, "fair": {"dependent": AGES, "independent": [AGES]}}
    assert free_texts(one) == ["comments", "exception", "command", "names in outcome", "names in fair"]
    packed = blanked(one)
    assert not free_texts(packed)
    assert list(packed) == list(one)
    assert not list(form_faults(packed))
    assert packed["summary"] == one["status"]  # it may name variables
    kept = ("uid", "status", "files", "timestamp", "properties", "type")
    assert {key: packed[key] for key in kept} == {key: one[key] for key in kept}
