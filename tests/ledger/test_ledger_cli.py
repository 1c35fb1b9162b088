"""The ledger's commands, as a TRE's staff would type them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ledger_helpers import GAUSS, small, spend_args
from typer.testing import CliRunner, Result

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.base.resources import schema
from sacro_deltab.cli import app, ledger
from sacro_deltab.ledger import Ledger, open_ledger
from sacro_deltab.ledger.trust import load_trust

if not any(group.name == "ledger" for group in app.registered_groups):
    ledger.register(app)


def run(*args: object, code: int = 0) -> Result:
    """Run a command; errors that `main` would print become their exit code."""
    result = CliRunner().invoke(app, ["ledger", *map(str, args)])
    found = result.exception.exit_code if isinstance(result.exception, SacroDeltabError) else result.exit_code
    assert found == code, (result.output, result.exception)
    return result


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """`budget.db` in the working directory, with two spends, one of them answered."""
    monkeypatch.chdir(tmp_path)
    run("open", "--trust", "trust.json", "--who", "TRE staff")
    book = open_ledger("budget.db", create=False)
    first = book.spend(GAUSS, **spend_args())
    book.close_spend(first.entry, "b" * 64)
    book.spend(GAUSS, **spend_args(who="=cmd()"))
    return book


def test_open_pins_in_one_go(used: Ledger) -> None:
    assert load_trust("trust.json").pins_ledger(used.id, used.head_key)
    again = json.loads(run("open", "--json", "--trust", "trust.json").stdout)
    assert (again["id"], again["head_key"], again["head"]) == (used.id, used.head_key, used.head)
    assert len(load_trust("trust.json").ledgers) == 1
    assert "ledgers:" in run("open").stdout


def test_show(used: Ledger) -> None:
    text = run("show", "--trust", "trust.json").stdout
    assert "pinned in trust.json" in text
    assert "site-a/person: ε 2 of 4, δ 2e-06 of 0.001 (plain sum), exact composition ε 1.454 at δ 1e-06" in text
    assert "spends that nothing answers: 4" in text
    data = json.loads(run("show", "--json").stdout)
    (line,) = data["partitions"]
    assert line["own"]["epsilon_sum"] == 2.0
    assert line["remaining"]["epsilon"] == 2.0
    assert data["pinned"] is False
    assert data["orphans"] == [4]


def test_show_of_shared_people(used: Ledger) -> None:
    used.register_cohort("site-a", range(50), who="a")
    used.register_cohort("site-b", range(49, 90), who="a")
    used.spend(small(0.5), **spend_args(partition="site-b"))
    text = run("show").stdout
    assert "site-b/person: ε 2.5 of 4" in text
    assert "counted together with site-a/person" in text


def test_show_and_plot(used: Ledger) -> None:
    run("show", "--plot", "budget.png")
    content = Path("budget.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000
    run("show", "--plot", "no/such/folder.png", code=2)


def test_history_marks_orphans_and_json_follows_the_schema(used: Ledger) -> None:
    lines = run("history").stdout.splitlines()
    assert len(lines) == 4
    assert [line.endswith("ORPHAN") for line in lines] == [False, False, False, True]
    data = json.loads(run("history", "--json", "--cohort", "site-a").stdout)
    assert data["orphans"] == [4]
    validator = Draft202012Validator(schema("ledger-entry"))
    for entry in json.loads(run("history", "--json").stdout)["entries"]:
        validator.validate(entry)


def test_verify_exit_codes(used: Ledger, tmp_path: Path) -> None:
    assert "sound: 4 entries, 1 unanswered spends" in run("verify", "--trust", "trust.json").stdout
    assert json.loads(run("verify", "--json").stdout)["ok"] is True
    Path("cut.db").write_bytes(Path("budget.db").read_bytes()[:6000])
    run("verify", "--ledger", "cut.db", code=2)
    run("verify", "--ledger", "missing.db", code=2)
    Path("text.db").write_text("not a ledger")
    run("verify", "--ledger", "text.db", code=2)
    from sqlalchemy import text

    with used.store.engine.begin() as connection:
        connection.execute(text("UPDATE ledger_entries SET who = 'somebody else' WHERE seq = 2"))
    result = run("verify", code=1)
    assert "CHANGED  entry 2: was changed" in result.stdout
    assert json.loads(run("verify", "--json", code=1).stdout)["problems"][0]["entry"] == 2


@pytest.mark.parametrize("sealed", [False, True])
def test_verify_against_a_certificate(used: Ledger, sealed: bool) -> None:
    copy = Path("budget.db").read_bytes()
    head = used.spend(small(0.1), **spend_args()).head
    statement = {"predicate": {"privacy": {"ledger": {"id": used.id, "head_key": used.head_key, "head": head}}}}
    if sealed:
        payload = b64encode(json.dumps(statement).encode()).decode()
        statement = {"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []}
    Path("certificate.json").write_text(json.dumps(statement))
    run("verify", "--certificate", "certificate.json")
    run("verify", "--head", head)
    Path("budget.db").write_bytes(copy)
    for anchor in Path().glob("*.anchor"):
        anchor.unlink()
    run("verify")
    assert "a certificate names the head" in run("verify", "--certificate", "certificate.json", code=1).stdout
    Path("other.json").write_text("{}")
    run("verify", "--certificate", "other.json", code=2)
    run("verify", "--certificate", "missing.json", code=2)


def test_export(used: Ledger) -> None:
    used.register_cohort("site-a", range(50), who="analyst")
    rows = list(csv.DictReader(io.StringIO(run("export").stdout)))
    assert [row["kind"] for row in rows] == ["open", "spend", "close", "spend", "cohort"]
    assert rows[1]["epsilon_sum_after"] == "1.0"
    assert rows[3]["who"] == "'=cmd()"  # no spreadsheet runs it
    assert "50" not in rows[4].values()
    run("export", "--out", "budget.csv")
    assert Path("budget.csv").read_text() == used.export_csv()
    assert len(json.loads(run("export", "--json").stdout)["rows"]) == 5


def test_a_bounds_file_is_registered_by_the_digest_that_a_session_asks_for(used: Ledger) -> None:
    from sacro_deltab.privacy import PublicBounds

    bounds = PublicBounds(age=(40, 90), feature_z=4.0, centre=(0.0, 1.0), scale=(1.0, 2.0))
    bounds.save("public.json")
    run("bounds", "public.json")
    assert used.bounds_registered(bounds.digest)


def test_disjoint_and_bounds(used: Ledger) -> None:
    run("disjoint", "site-a", "site-b", "--by", "Dr A. Example", "--reason", "numbers start at 1")
    Path("bounds.json").write_text("{}")
    import hashlib

    run("bounds", "bounds.json", "--who", "TRE staff")
    assert used.bounds_registered(hashlib.sha256(b"{}").hexdigest())
    run("bounds", "missing.json", code=2)
    run("disjoint", "site-a", "site-a", "--by", "x", "--reason", "y", code=2)


@pytest.mark.parametrize("command", ["open", "show", "history", "verify", "export", "disjoint", "bounds"])
def test_help_has_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"Example: sacro-deltab ledger {command}" in " ".join(text.split())


def test_commands_start_without_the_heavy_libraries(used: Ledger) -> None:
    program = (
        "import sys, typer\nfrom sacro_deltab.cli import ledger\n"
        "app = typer.Typer()\nledger.register(app)\n"
        "for command in ('show', 'history', 'verify', 'export', 'open'):\n"
        "    try:\n        app(['ledger', command])\n"
        "    except SystemExit as end:\n        assert not end.code, command\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'acro', 'sklearn', 'opendp', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_errors_are_one_message_on_stderr(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from sacro_deltab.cli import main; main()",
        "ledger",
        "show",
        "--ledger",
        "missing.db",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("sacro-deltab: ")
    assert "Traceback" not in done.stderr
    assert "Next step:" in done.stderr
    for url in ("mysql://x/y", "."):
        run("verify", "--ledger", url, code=2)
