"""The evidence page: what it must show, what it must never load, and that a browser opens it without complaint."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sacro_deltab.base.findings import Effect, Finding
from sacro_deltab.desk import render_page
from sacro_deltab.desk.columns import read_table, summarise
from sacro_deltab.judging.report import FileReport, Report

HOSTILE = '<script>alert(1)</script>"&'


def _report(folder: Path) -> Report:
    finding = Finding(
        ("SC-01",), f"site {HOSTILE}", Effect.SUPPRESS, f"too few {HOSTILE}", "too few", ("DT-C1",),
        (f"Is {HOSTILE} public?",), "Merge groups.",
    )  # fmt: skip
    asked = Finding(("ST-02",), "output", Effect.REVIEW, "a person must look")
    entry = FileReport(
        "by_site.csv", "delta_mean_by_site", f"Mean delta {HOSTILE}", findings=[finding, asked], met=("PR-01",),
        facts=[("n", "recorded")], output="by_site", sha256="0" * 64, n_bytes=10, kind="text", request=str(folder),
    )  # fmt: skip
    return Report(
        {"id": "deltab-disclosure", "version": "1", "sha256": "a" * 64, "profile": None},
        [entry],
        declared=[{"name": "egress.route", "value": "tre_airlock", "by": "x", "in": "y", "simulated": True}],
        privacy={"recorded": {"epsilon_sum": 1.5, "epsilon_exact": 1.2}},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "by_site.csv").write_text(
        f'site,n,mean_delta\nA,120,-0.4\n"B {HOSTILE.replace(chr(34), chr(34) * 2)}",*,*\n', encoding="utf-8"
    )
    inside = tmp_path / "inside"
    inside.mkdir()
    cells = [
        {"kind": "cell", "key": "A", "value": -0.41, "facts": {"cell.n": {"value": 120, "by": "computed"}}},
        {"kind": "cell", "key": f"B {HOSTILE}", "value": 3.0, "facts": {"cell.n": {"value": 7, "by": "computed"}}},
    ]
    facts = {"n": {"value": 127, "by": "computed"}, "table.recoverable_cells": {"value": 0, "by": "computed"}}
    output = {
        "name": "by_site", "type": "delta_mean_by_site", "title": "Mean delta", "kept_inside": False,
        "facts": {"facts": facts, "parts": cells}, "suppressed": [f"B {HOSTILE}"], "complementary": [],
        "decision": {"actions": []}, "privacy": None, "merges": [],
    }  # fmt: skip
    evidence = {"session": {"tool": {"sacro_deltab": "0"}}, "outputs": [output]}
    (inside / "evidence.json").write_text(json.dumps(evidence), encoding="utf-8")
    return tmp_path


class _Audit(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                assert value not in self.ids, f"id {value} twice"
                self.ids.add(value)
            if name == "href" and value:
                self.links.append(value)
            if name in ("src", "srcset", "data") and value and not value.startswith("data:"):
                self.loads.append(value)
            assert not name.startswith("on"), f"event handler {name}"


def test_page_says_it_stays_inside_and_answers_in_order(folder: Path) -> None:
    page = render_page(_report(folder), [folder])
    assert "This page stays inside the TRE" in page
    order = [page.index(word) for word in ("What was said, not measured", "Low counts:", "Masking:", "Explanation:")]
    assert order == sorted(order)
    for text in ("120", "primary *", "redacted", "What must be decided", "egress.route", "Merge groups."):
        assert text in page


def test_page_runs_nothing_and_loads_nothing(folder: Path) -> None:
    page = render_page(_report(folder), [folder])
    audit = _Audit()
    audit.feed(page)
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & set(audit.tags)
    assert audit.loads == []
    assert "alert(1)</script>" not in page
    assert all(link[1:] in audit.ids for link in audit.links), "every link on the page has its target"


def test_without_evidence_the_counts_are_unknown(tmp_path: Path) -> None:
    page = render_page(_report(tmp_path), [tmp_path])
    assert "Nothing was recorded under inside" in page


def test_column_summary(folder: Path) -> None:
    table = read_table(folder / "by_site.csv")
    assert table is not None
    site, n, mean = summarise(table)
    assert (site.kind, n.marked, n.smallest, n.rounding) == ("words", 1, "120", "all divisible by 5")
    assert (mean.total, mean.rounding) == ("-0.4", "at most 1 decimal place, 1 significant figures")


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("id,age\n1,63.728191\n", encoding="utf-8")
    inner = tmp_path / "folder"
    inner.mkdir()
    (inner / "by_site.csv").symlink_to(tmp_path / "secret.csv")
    page = render_page(_report(inner), [inner])
    assert "63.728191" not in page


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser on this machine")
def test_a_browser_shows_it_without_complaint(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text(render_page(_report(folder), [folder]), encoding="utf-8")
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", target.as_uri()],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "Evidence page" in done.stdout
    assert "CONSOLE" not in done.stderr
