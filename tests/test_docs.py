"""No page has a dead link; every tutorial's code runs as written and ends as the tutorial says."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools" / "site"))

import executed  # noqa: E402
import links  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))
EXECUTED = [page for page in PAGES if page.read_text(encoding="utf-8").startswith(executed.MARK)]


def test_no_link_is_dead() -> None:
    outside = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    assert links.dead([*PAGES, *outside]) == []


@pytest.mark.parametrize(
    "wrong", ["gone.md", "session.md#no-such-heading", "pictures/gone.png", links.SITE + "gone.html"]
)
def test_a_dead_link_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setattr(links, "ROOT", tmp_path)
    monkeypatch.setattr(links, "DOCS", tmp_path)
    (tmp_path / "session.md").write_text("# Session\n\n[itself](#session) `[code](not.md)`\n")
    page = tmp_path / "page.md"
    page.write_text(f"[good](session.md#session) [site]({links.SITE}session.html) [wrong]({wrong})\n")
    assert links.dead([page, tmp_path / "session.md"]) == [f"page.md: {wrong}"]


def test_every_page_stands_in_the_navigation() -> None:
    named = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M))
    assert named == {page.relative_to(DOCS).as_posix() for page in PAGES} | links.MADE


def test_the_site_is_asked_for_by_its_documented_address() -> None:
    assert f"site_url: {links.SITE}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def carried_out(page: str) -> tuple[dict[str, Any], list[executed.Shown]]:
        names: dict[str, Any] = {}
        return names, executed.run_page((DOCS / page).read_text(encoding="utf-8"), tmp_path, names)

    return carried_out


def test_from_idps_to_an_approved_release(run: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    names, blocks = run("tutorials/first-release.md")
    assert time.monotonic() - began < 120
    entries = names["session"].entries
    status = [entry.status for entry in entries]
    assert len(entries) >= 25 and status.count("pass") >= 20, status
    assert names["refused"].status == "fail" and "next step: Use wider bands." in names["refused"].explain()
    for entry in (*entries, names["refused"]):
        assert entry.status == "pass" or ("question:" in entry.explain() or "next step:" in entry.explain()), entry
    checked = next(block for block in blocks if "$ sacro-deltab check" in block.code)
    assert checked.codes == [3] and "check/cohort-differs" not in checked.text
    lacks = checked.text.partition("check/cohort-lacks")[2].partition("\n\n")[0]
    assert "calibration" not in lacks and "prediction_error" not in lacks, "both were measured again"
    assert "opened as checker1" in "".join(block.text for block in blocks)
    assert (tmp_path / "release.zip").is_file() and (tmp_path / "deltas.csv").is_file()
    html = executed.with_results((DOCS / "tutorials/first-release.md").read_text(encoding="utf-8"), blocks, tmp_path)
    assert html.count('class="viewer"') >= 25 and "data:image/png" in html and str(tmp_path) not in html
    assert json.dumps(executed.as_notebook(html)).count("code") > 10


def test_change_a_limit(run: Any) -> None:
    names, blocks = run("tutorials/change-a-limit.md")
    assert [entry.status for entry in names["session"].entries] == ["pass"] * 4
    said = [block.text for block in blocks if block.language == "console"]
    assert "minimum: 20 → 50" in said[3] and "mean_delta_by_age_band_sex  suppress → withhold" in said[4]
    assert "loosens the constant minimum: 20 → 5" in said[5] and "SC-03" in said[6]


def test_a_checkers_first_morning(run: Any) -> None:
    _, blocks = run("tutorials/first-morning.md")
    said = {block.code: block for block in blocks}
    assert [b.codes for b in blocks if b.language == "console"][1:] == [[3], [3], [3], [0], [3], [1], [1]]
    changed = next(b for code, b in said.items() if b.codes == [1] and "outputs-b" in code)
    assert "mean_delta_by_sex.csv" in changed.text.partition("FAIL ")[2]


def test_two_tres_one_model(run: Any, tmp_path: Path) -> None:
    _, blocks = run("tutorials/two-tres.md")
    assert "\nPooled by " in "".join(block.text for block in blocks)
    assert len((tmp_path / "deltas.csv").read_text().splitlines()) == 501


def test_the_gallery_and_the_pictures(run: Any, tmp_path: Path) -> None:
    names, blocks = run("gallery.md")
    assert [entry.name for entry in names["session"].entries if entry.status == "fail"] == ["people_by_year"]
    shown = "".join(executed.as_html(block, tmp_path) for block in blocks)
    assert shown.count("data:image/png") == 3
    _, blocks = run("tutorials/delta-and-epsilon.md")
    assert "".join(executed.as_html(block, tmp_path) for block in blocks).count("data:image/png") == 3


def test_from_stata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab.run.starting import write_trial

    write_trial(tmp_path)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "stata.md").read_text(encoding="utf-8"), re.S)
    exec(compile(code, "docs/stata.md", "exec"), {})
    assert (tmp_path / "outputs" / "mean_delta_by_diagnosis.csv").is_file()


def test_what_r_types_is_understood() -> None:
    import typer

    from sacro_deltab.cli import _register, app

    _register()
    tree: Any = typer.main.get_command(app)
    text = "\n".join(re.findall(r"```r\n(.*?)```", (DOCS / "r.md").read_text(encoding="utf-8"), re.S))
    calls = re.findall(r'deltab\("([a-z]+)", (.*)\)\n', text)
    assert {command for command, _ in calls} == {"run", "predict"}
    options = {o for c in ("run", "predict") for p in tree.commands[c].params for o in p.opts}
    assert set(re.findall(r'"(--[a-z-]+)"', text)) <= options


def test_the_pages_that_are_made_know_every_rule_and_command() -> None:
    import made

    from sacro_deltab.rules import load_base

    why, commands = made.why(), made.commands()
    assert all(f"\n## {rule.id}\n" in why for rule in load_base().rules if rule.in_force)
    assert all(f"\n## {form.id} {{ #" in why for form in load_base().forms.values())
    for name in ("run", "check", "ledger register-cohort", "rules diff"):
        assert f"\n### {name}\n" in commands
    assert "sacro_deltab.session.acro_session.DeltabSession" in made.api()
    assert links.SITE not in made.front().replace("](" + links.SITE + ")", "")
