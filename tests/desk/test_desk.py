"""The checker's desk: who is let in, what is kept, what is sealed; and a checker played in a browser."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.certificate.keys import keygen, load_key
from sacro_deltab.certificate.review import load_record
from sacro_deltab.certificate.votes import Question
from sacro_deltab.cli import main
from sacro_deltab.desk.desk import Desk
from sacro_deltab.desk.drafts import Drafts
from sacro_deltab.desk.items import Said, decided, items_of, shown_digest
from sacro_deltab.desk.queue import Queue
from sacro_deltab.desk.server import DeskServer
from sacro_deltab.ledger.trust import load_trust

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's folder, and keys of an author and two checkers."""
    place = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as here, pytest.raises(SystemExit) as stopped:
        here.chdir(place)
        main(["-q", "demo", "--out", "outputs"])
    assert not stopped.value.code
    for role in ("checker1", "checker2"):
        keygen(place / f"{role}.pem", role, place / "trust.json", b"correct horse")
    return place


@pytest.fixture
def queue(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "queue"
    shutil.copytree(made / "outputs", folder / "request-1")
    return folder


def served(made: Path, queue: Path, role: str = "checker1") -> DeskServer:
    options = {"trust": made / "trust.json", "ledger": str(made / "budget.db"),
               "profile": str(made / "outputs-inputs" / "profile.yaml")}  # fmt: skip
    key = load_key(made / f"{role}.pem", b"correct horse")
    return DeskServer(Desk(Queue(queue, options, lambda _: None), key, load_trust(made / "trust.json")))


@pytest.fixture
def server(made: Path, queue: Path) -> Iterator[DeskServer]:
    with served(made, queue) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


class Browser:
    """A checker's browser, as far as HTTP goes."""

    def __init__(self, server: DeskServer, *, inside: bool = True) -> None:
        self.at, self.port, self.cookie = server, server.server_address[1], ""
        if inside:
            status, headers, _ = self.ask("GET", f"/?token={server.token}")
            assert status == 303 and "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
            self.cookie = headers["Set-Cookie"].split(";")[0]

    def ask(self, how: str, path: str, form: object = None, **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Cookie": self.cookie, **headers}
        if how == "POST":
            sent = {"Origin": f"http://127.0.0.1:{self.port}", **FORM, **sent}
        connection.request(how, path, None if form is None else urlencode(form, doseq=True), sent)  # type: ignore[arg-type]
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


def shown_of(page: str) -> str:
    found = re.search(r'name="shown" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


def test_only_whoever_has_the_address_gets_in_and_once(server: DeskServer) -> None:
    token = server.token
    stranger = Browser(server, inside=False)
    assert stranger.ask("GET", "/")[0] == stranger.ask("GET", "/static/desk.js")[0] == 403
    checker = Browser(server)
    assert checker.ask("GET", "/")[0] == 200
    assert stranger.ask("GET", f"/?token={token}")[0] == 403  # used up
    assert stranger.ask("GET", "/", Cookie="desk=guess")[0] == 403
    assert checker.ask("GET", "/", Host="evil.example")[0] == 421
    for origin in ("http://evil.example", "null", ""):
        assert checker.ask("POST", "/request/request-1/seal", {"shown": "0" * 64}, Origin=origin)[0] == 403


def test_a_wrong_token_uses_the_address_up(server: DeskServer) -> None:
    stranger, token = Browser(server, inside=False), server.token
    assert stranger.ask("GET", "/?token=guess")[0] == 403
    assert stranger.ask("GET", f"/?token={token}")[0] == 403


def test_nothing_is_stored_and_nothing_comes_from_elsewhere(server: DeskServer) -> None:
    checker = Browser(server)
    for path in ("/", "/request/request-1", "/static/desk.css", "/static/desk.js", "/static/../desk.py", "/nowhere"):
        _, headers, body = checker.ask("GET", path)
        assert headers["Cache-Control"] == "no-store"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert "<style" not in body and " onclick" not in body and "<script>" not in body
        assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
    assert checker.ask("GET", "/static/../desk.py")[0] in (400, 404)


def test_by_question_and_not_by_file(server: DeskServer, queue: Path) -> None:
    page = Browser(server).ask("GET", "/request/request-1")[2]
    record = load_record(queue / "request-1")
    items = items_of(record.questions)
    assert page.count('data-item="1"') == len(items) <= 12 < len(record.questions)
    assert {file.file for file in record.questions} == {file for item in items for file in item.files}
    assert all(item.heading.split("(")[0].split("γ")[0] in page for item in items)


def keep(browser: Browser, page: str, key: object, decision: str, reason: str) -> int:
    form = {"shown": shown_of(page), "key": key, "decision": decision, "reason": reason, "at": "x"}
    return browser.ask("POST", "/request/request-1/draft", form)[0]


def test_drafts_are_kept_apart_and_sealed_for_what_was_shown(made: Path, queue: Path, server: DeskServer) -> None:
    checker = Browser(server)
    page = checker.ask("GET", "/request/request-1")[2]
    items = items_of(load_record(queue / "request-1").questions)
    assert keep(checker, page, items[0].key, "refuse", "looked at: a person could be known") == 303
    status, _, said = checker.ask("POST", "/request/request-1/seal", {"shown": shown_of(page)})
    assert status == 400 and "not decided yet" in said and not (queue / "request-1" / "inside" / "review").exists()
    for item in items[1:]:
        assert keep(checker, page, item.key, "accept", "read") == 303
    alone = next(f.file for f in load_record(queue / "request-1").questions if not f.questions)
    assert keep(checker, page, alone, "return", "name the sites") == 303
    assert "name the sites" in checker.ask("GET", "/request/request-1")[2]
    with served(made, queue, "checker2") as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        theirs = Browser(other).ask("GET", "/request/request-1")[2]
        assert "could be known" not in theirs and "name the sites" not in theirs
        other.shutdown()
    assert keep(checker, page.replace(shown_of(page), "0" * 64), items[0].key, "accept", "x") == 400
    assert checker.ask("POST", "/request/request-1/seal", {"shown": "0" * 64})[0] == 400
    status, _, said = checker.ask("POST", "/request/request-1/seal", {"shown": shown_of(page)})
    assert status == 200 and "sealed as checker1" in said and "has decided on every file" not in said
    with served(made, queue, "checker2") as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        second = Browser(other)
        page = second.ask("GET", "/request/request-1")[2]
        for item in items:
            assert keep(second, page, item.key, "accept", "read") == 303
        assert "opened as checker2" in second.ask("POST", "/request/request-1/seal", {"shown": shown_of(page)})[2]
        other.shutdown()
    votes = queue / "request-1" / "inside" / "review"
    assert len([json.loads(path.read_bytes()) for path in votes.glob("*.dsse.json")]) == 3
    page = checker.ask("GET", "/request/request-1")[2]  # the first comes back and opens theirs
    assert "Open your sealed review" in page
    assert "opened as checker1" in checker.ask("POST", "/request/request-1/seal", {"shown": shown_of(page)})[2]
    assert len(list(votes.glob("*.dsse.json"))) == 4
    with pytest.raises(SystemExit) as stopped:
        main(["review", "status", str(queue / "request-1"), "--trust", str(made / "trust.json")])
    assert stopped.value.code == 1  # one file was refused, one returned


def test_a_request_that_changed_is_not_sealed(server: DeskServer, queue: Path) -> None:
    checker = Browser(server)
    page = checker.ask("GET", "/request/request-1")[2]
    item = items_of(load_record(queue / "request-1").questions)[0]
    changed = next(iter((queue / "request-1").glob("mean_delta*.csv")))
    changed.write_text(changed.read_text() + "x,1,2\n")
    assert keep(checker, page, item.key, "accept", "read") == 400
    assert checker.ask("POST", "/request/request-1/seal", {"shown": shown_of(page)})[0] == 400
    assert not (queue / "request-1" / "inside" / "review").exists()


def test_what_is_swapped_while_it_is_judged_is_not_shown_for_a_seal(
    server: DeskServer, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal would else be bound to files that nobody saw."""
    from sacro_deltab.desk import desk as module

    def swapping(folder: Path, options: object) -> object:
        for path in folder.glob("mean_delta*.csv"):
            path.write_text(path.read_text() + "x,1,2\n")
        found = judged(folder, options)
        for path in folder.glob("mean_delta*.csv"):
            path.write_text(path.read_text().removesuffix("x,1,2\n"))
        return found

    judged = module.judged
    checker = Browser(server)
    monkeypatch.setattr(module, "judged", swapping)
    status, _, said = checker.ask("GET", "/request/request-1")
    assert status == 400 and "changed while it was read" in said
    monkeypatch.setattr(module, "judged", judged)
    assert checker.ask("GET", "/request/request-1")[0] == 200


def test_one_desk_a_key_and_nobody_elses_drafts(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path, "k1")
    with drafts.held(), pytest.raises(InputError, match="open on this queue"), Drafts(tmp_path, "k1").held():
        pass
    drafts.write("r", "a" * 64, {"x": Said("accept", "fine")})
    assert Drafts(tmp_path, "k2").read("r", "a" * 64) == {}
    assert drafts.read("r", "b" * 64) == {} and drafts.read("r", "a" * 64)["x"].reason == "fine"
    assert (tmp_path / ".sacro_deltab_desk" / "k1").stat().st_mode & 0o077 == 0


def test_the_strictest_of_the_items_decides_a_file() -> None:
    both = Question("a.csv", "0" * 64, "review", ("Is it known?", "Is it wanted?"))
    one = Question("b.csv", "1" * 64, "review", ("Is it known?",))
    items = items_of([both, one])
    said = {items[0].key: Said("accept", "yes"), items[1].key: Said("refuse", "no")}
    assert decided(both, items, said).decision == "refuse" and decided(one, items, said).decision == "accept"
    assert decided(both, items, said).answers == {"Is it known?": "yes", "Is it wanted?": "no"}
    assert decided(both, items, {**said, "a.csv": Said("return", "mend")}).decision == "return"
    with pytest.raises(InputError, match="not decided"):
        decided(both, items, {items[0].key: Said("accept", "yes")})
    with pytest.raises(InputError, match="reason"):
        decided(one, items, {items[0].key: Said("accept", " ")})
    assert shown_digest([both, one]) == shown_digest([one, both]) != shown_digest([both])


def test_a_queue_says_each_request_in_a_line(made: Path, queue: Path) -> None:
    (queue / "broken").mkdir()
    told: list[str] = []
    requests = Queue(queue, {"ledger": str(made / "budget.db")}, told.append)
    ready = threading.Event()
    requests._say = lambda line: (told.append(line), ready.set() if line.startswith("2 of 2") else None)  # type: ignore[assignment]
    requests.start()
    assert ready.wait(60)
    requests.stop()
    lines = {line.name: line for line in requests.lines}
    assert lines["request-1"].questions <= 12 and lines["request-1"].outputs >= 20 and lines["request-1"].who
    assert lines["broken"].verdict in ("fail", "nothing to release") or lines["broken"].problem
    assert requests.changed(lines["request-1"]) == "new"
    requests.opened(lines["request-1"])
    again = Queue(queue, {"ledger": str(made / "budget.db")}, told.append)
    assert again.changed(lines["request-1"]) == ""
    with pytest.raises(InputError, match="no request"):
        Queue(made / "outputs-inputs", {}, told.append)
