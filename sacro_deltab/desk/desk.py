"""What one checker sees and does: the queue, a request by question, drafts, and the seal."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from ..base.errors import InputError, SacroDeltabError
from ..certificate.review import Question, Record, load_record, reviewer_role, submit, to_decide
from ..certificate.votes import DECISIONS, read_submissions
from .drafts import Drafts
from .items import Said, Voting, decided, items_of, shown_digest
from .page import render_page, templates
from .queue import Queue, judged

if TYPE_CHECKING:
    from ..certificate.keys import SigningKey
    from ..ledger.trust import Trust

Form = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    html: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Desk:
    """The desk of one key on one queue."""

    def __init__(self, queue: Queue, key: SigningKey, trust: Trust) -> None:
        self._queue, self._key, self._trust = queue, key, trust
        self.drafts = Drafts(queue.folder, key.keyid)
        self._lock = threading.Lock()  # one form at a time: a draft is read, changed and written

    # -- pages ------------------------------------------------------------------------------------------------------

    def page(self, path: str) -> Answer:
        """The page at a path."""
        if path == "/":
            lines = self._queue.lines
            waiting = sum(not line.looked_at for line in lines)
            body = templates().get_template("queue.html").render(
                folder=self._queue.folder.name, lines=lines, waiting=waiting, changed=self._queue.changed, quote=quote
            )  # fmt: skip
            return Answer(body, html=True)
        return Answer(self._request(self._named(path)), html=True)

    def trouble(self, error: SacroDeltabError) -> str:
        """A page that says what went wrong and what to do."""
        return templates().get_template("trouble.html").render(what=error.what, step=error.next_step)

    def form(self, path: str, form: Form) -> Answer:
        """Keep a draft, or seal."""
        *_, last = path.rsplit("/", 1)
        name = self._named(path.removesuffix(f"/{last}"))
        with self._lock:
            if last == "draft":
                self._keep(name, form)
                at = f"/request/{quote(name)}#{quote(form.get('at', [''])[0])}"
                return Answer("", HTTPStatus.SEE_OTHER, headers={"Location": at})
            if last == "seal":
                done = self._seal(name, form)
                self._queue.again(name)
                return Answer(self._request(name, tuple(done)), html=True)
        return Answer("There is no such page.", HTTPStatus.NOT_FOUND)

    # -- one request ------------------------------------------------------------------------------------------------

    def _named(self, path: str) -> str:
        name = unquote(path.removeprefix("/request/")) if path.startswith("/request/") else ""
        if name not in self._queue.names:
            raise InputError("there is no such request in this queue", next_step="Go back to the queue.")
        return name

    def _request(self, name: str, done: tuple[str, ...] = ()) -> str:
        folder = self._queue.folder / name
        before = self._voting(name, done)
        report = judged(folder, self._queue.options)
        for line in self._queue.lines:
            if line.name == name:
                self._queue.opened(line)
        page = render_page(report, [folder], voting=before)
        judged_as = {file.file: file.sha256 for file in report.outputs}
        same = all(judged_as.get(file) == sha256 for file, sha256 in before.files.items())
        if not same or self._voting(name, done).shown != before.shown:  # a seal is bound to what was shown
            raise InputError("the request changed while it was read", next_step="Open it again.")
        return page

    def _voting(self, name: str, done: tuple[str, ...]) -> Voting:
        try:
            record, open_ones, role = self._open(name)
        except SacroDeltabError as error:
            return Voting(name, (), {}, "", "", problem=f"{error.what} {error.next_step or ''}".strip())
        shown = shown_digest(open_ones)
        items = items_of(open_ones)
        problem = "" if items or done or not record.questions else f"{role} has decided on every file."
        files = {question.file: question.sha256 for question in open_ones}
        return Voting(name, items, self.drafts.read(name, shown), shown, role, problem, done, files)

    def _open(self, name: str) -> tuple[Record, list[Question], str]:
        """What this key has not decided on yet."""
        now = datetime.now(UTC)
        record = load_record(self._queue.folder / name)
        role = reviewer_role(self._key, self._trust, record, now)
        submissions, _ = read_submissions(record.inventory, record.predicate["certificate_id"], self._trust, now)
        return record, to_decide(record, submissions, role), role

    def _as_shown(self, name: str, form: Form) -> tuple[list[Question], str]:
        """What is not decided yet, and its digest: the one that the form's page showed."""
        _, open_ones, _ = self._open(name)
        shown = shown_digest(open_ones)
        if form.get("shown", [""])[0] != shown:
            raise InputError("the request changed since this page was shown", next_step="Open it again and read it.")
        return open_ones, shown

    def _keep(self, name: str, form: Form) -> None:
        open_ones, shown = self._as_shown(name, form)
        known = {item.key for item in items_of(open_ones)} | {question.file for question in open_ones}
        said = self.drafts.read(name, shown)
        given = Said(form.get("decision", [""])[0], form.get("reason", [""])[0].strip())
        for key in form.get("key", ()):
            if key not in known or given.decision not in ("", *DECISIONS):
                raise InputError("this form is not of this page", next_step="Open the request again.")
            said[key] = given
        self.drafts.write(name, shown, said)

    def _seal(self, name: str, form: Form) -> list[str]:
        open_ones, shown = self._as_shown(name, form)
        items, said = items_of(open_ones), self.drafts.read(name, shown)
        return submit(
            self._queue.folder / name, self._key, self._trust, lambda question: decided(question, items, said),
            expected=tuple(question.target for question in open_ones),
        )  # fmt: skip
