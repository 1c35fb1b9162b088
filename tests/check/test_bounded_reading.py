"""Bounded reading: a file that breaks a check fails alone, and no file takes more than its budget."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sessions import Made, make

from sacro_deltab.base import digests, opening
from sacro_deltab.check import check_paths, session_folder, session_output, single
from sacro_deltab.check.records import parse_results

MEMORY_KB = 512 * 1024


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("session"))


def _breaks(place: Any, name: str, when: Callable[[Any], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    before = getattr(place, name)

    def raising(*args: Any, **kwargs: Any) -> Any:
        if any(when(arg) for arg in args):
            raise IndexError("a value of somebody")
        return before(*args, **kwargs)

    monkeypatch.setattr(place, name, raising)


def test_a_check_that_breaks_off_fails_its_own_output_only(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {output.file: output.verdict for output in made.check().outputs}
    name = next(file for file, verdict in sorted(before.items()) if verdict == "pass" and file.endswith(".csv"))
    _breaks(session_output, "own_facts", lambda arg: getattr(arg, "name", "") == name[:-4], monkeypatch)
    monkeypatch.setattr(session_folder, "repeated_types", lambda *_: 1 // 0)
    report = made.check()
    told = {output.file: output for output in report.outputs}
    assert told[name].findings[0].inside == "not judged: a check of it broke off (IndexError)."
    assert [f.rules for f in report.folder_findings if "ZeroDivisionError" in f.inside] == [("check/not-judged",)]
    others = {file: output.verdict for file, output in told.items() if not file.startswith(name[:-4] + ".")}
    assert others == {file: before[file] for file in others}
    assert report.verdict == "fail"


def test_a_single_file_that_breaks_a_check_does_not_stop_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("g,n\nx,20\n")
    _breaks(single, "screen", lambda arg: str(arg).endswith("a.csv"), monkeypatch)
    report = check_paths([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert [any("broke off" in f.inside for f in output.findings) for output in report.outputs] == [True, False]
    assert {output.verdict for output in report.outputs} == {"fail"}


def test_more_records_than_a_session_writes_are_not_read_one_by_one() -> None:
    records, findings = parse_results({"version": "1.0.2", "results": {str(i): {} for i in range(5_001)}})
    assert not records
    assert "more than 5000 records" in findings[0].inside


HEAVY = {
    "an unclosed quote": ("a.csv", "b'a,b\\n\"' + b'x,1\\n' * (8 * 2**20 - 2)"),
    "more cells than any output": ("a.csv", "b'a,b\\n' + b'1,2\\n' * 7_000_000"),
    "more items than any document": ("a.json", "b'[' + b'{},' * 5_000_000 + b'1]'"),
    "one long line of blanks": ("a.txt", "b'a ' * 15_000_000"),
    "one letter outside ASCII": ("a.txt", "'\\U0001f9e0'.encode() + b'a b\\n' * 7_000_000"),
}
_CHILD = """
import resource, sys
from pathlib import Path
from sacro_deltab.check import check_paths
data = {body}
Path({name!r}).write_bytes(data)
del data
report = check_paths([Path({name!r})])
used = resource.getrusage(resource.RUSAGE_SELF)
print(report.verdict, used.ru_maxrss, used.ru_utime + used.ru_stime)
"""


@pytest.mark.soak
@pytest.mark.parametrize("what", HEAVY)
def test_the_largest_files_stay_within_the_budget(what: str, tmp_path: Path) -> None:
    name, body = HEAVY[what]
    child = _CHILD.format(name=name, body=body)
    ran = subprocess.run([sys.executable, "-c", child], cwd=tmp_path, capture_output=True, text=True, check=True)
    verdict, memory, cpu = ran.stdout.split()
    assert verdict == "fail"
    assert int(memory) < MEMORY_KB
    assert float(cpu) < 25  # 20 seconds a file, and the start
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


def test_each_file_of_a_folder_is_opened_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt, what is judged and what the certificate covers are the same bytes."""
    seen: Counter[str] = Counter()
    before = opening.opened

    def counting(path: Any, **more: Any) -> Any:
        seen[str(path)] += made.folder in Path(path).parents
        return before(path, **more)

    monkeypatch.setattr(opening, "opened", counting)
    monkeypatch.setattr(digests, "opened", counting)
    made.check()
    files = [path for path in made.folder.rglob("*") if path.is_file()]
    assert {name: times for name, times in seen.items() if times > 1} == {}
    assert sum(seen.values()) > len(files) / 2
