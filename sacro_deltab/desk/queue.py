"""The requests of a queue, looked at in the background: one line each, worst first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ..base.canonical import canonical_json
from ..base.digests import digest_file, sha256_hex
from ..base.errors import InputError, SacroDeltabError
from ..base.strict import read_object
from ..base.verdicts import badness
from ..base.writing import write_file
from ..certificate.layout import scan
from ..certificate.review import load_record
from ..check import check_paths
from ..judging.report import Report
from .drafts import FOLDER
from .items import items_of
from .view import load_evidence

SEEN = "seen.json"


@dataclass(frozen=True)
class Line:
    """What the queue says of one request. `who` and `when` are the session's own words; `questions` are distinct."""

    name: str
    who: str = ""
    when: str = ""
    verdict: str = ""
    outputs: int = 0
    questions: int = 0
    digest: str = ""
    problem: str = ""

    @property
    def looked_at(self) -> bool:
        """Whether it has been judged, or could not be."""
        return bool(self.verdict or self.problem)


def judged(folder: Path, options: Mapping[str, Any]) -> Report:
    """What `check` finds in one request."""
    return check_paths([folder], **options)


def line_of(folder: Path, options: Mapping[str, Any]) -> Line:
    """Judge one request and say it in a line; what cannot be read says why."""
    try:
        report = judged(folder, options)
        session = load_evidence(folder).get("session", {})
        asked = {output.output or output.file for output in report.outputs if not output.kept_inside}
        digest = _digest(folder)
        declared = session.get("declared", {}) or {}
        try:
            questions = len([item for item in items_of(load_record(folder).questions) if item.question])
        except SacroDeltabError:
            questions = len({ask for o in report.outputs if not o.kept_inside for f in o.findings for ask in f.asks})
        who, when = str(declared.get("by") or ""), str(session.get("finished") or "")
        return Line(folder.name, who, when[:16].replace("T", " "), report.verdict, len(asked), questions, digest)
    except SacroDeltabError as error:
        return Line(folder.name, problem=error.what)
    except Exception as error:  # one broken request may not keep the others from being seen
        return Line(folder.name, problem=f"it could not be judged ({type(error).__name__})")


def _digest(folder: Path) -> str:
    """Of every file at the top: whether a request changed since it was last seen."""
    root = scan(folder).root
    return sha256_hex(canonical_json({name: digest_file(path).sha256 for name, path in sorted(root.items())}))


class Queue:
    """The requests in a folder. Judging goes on in other processes while pages are served."""

    def __init__(self, folder: Path, options: Mapping[str, Any], say: Callable[[str], None]) -> None:
        self.folder, self.options = folder, options
        self.names = sorted(
            path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name != FOLDER
        )
        if not self.names:
            raise InputError("there is no request in this folder", path=folder, next_step="One folder a request.")
        self._say = say
        self._lines = {name: Line(name) for name in self.names}
        self._lock = threading.Lock()
        self._seen = self._read_seen()
        self._pool: ProcessPoolExecutor | None = None

    def start(self, workers: int = 2) -> None:
        """Begin to judge."""
        self._pool = ProcessPoolExecutor(min(workers, len(self.names)), mp_context=get_context("spawn"))
        for name in self.names:
            self._pool.submit(line_of, self.folder / name, self.options).add_done_callback(self._done)

    def stop(self) -> None:
        """End what is still going on."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, future: Future[Line]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        line = future.result()
        with self._lock:
            self._lines[line.name] = line
            ready = sum(each.looked_at for each in self._lines.values())
        self._say(f"{ready} of {len(self.names)} looked at")

    @property
    def lines(self) -> list[Line]:
        """Those looked at first, the worst of them first."""
        with self._lock:
            return sorted(self._lines.values(), key=lambda line: (not line.looked_at, -_worst(line), line.name))

    def again(self, name: str) -> Line:
        """Judge one request anew, for instance after it was reviewed."""
        line = line_of(self.folder / name, self.options)
        with self._lock:
            self._lines[name] = line
        return line

    def changed(self, line: Line) -> str:
        """new, changed, or nothing, against what this queue held when it was last opened."""
        if not line.digest:
            return ""
        before = self._seen.get(line.name)
        return "new" if before is None else "" if before == line.digest else "changed"

    def opened(self, line: Line) -> None:
        """Remember that this state of a request has been seen."""
        if line.digest:
            self._seen[line.name] = line.digest
            (self.folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
            write_file(self.folder / FOLDER / SEEN, canonical_json(self._seen))

    def _read_seen(self) -> dict[str, str]:
        try:
            return {str(k): str(v) for k, v in read_object(self.folder / FOLDER / SEEN).items()}
        except SacroDeltabError:
            return {}


def _worst(line: Line) -> int:
    return badness("fail") if line.problem else badness(line.verdict or "pass")
