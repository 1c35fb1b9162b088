"""Somebody who can write the file, but does not hold the key."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ledger_helpers import GAUSS, LIMITS, small, spend_args

from sacro_deltab.base.digests import sha256_hex
from sacro_deltab.base.errors import LedgerError
from sacro_deltab.base.opening import MIB
from sacro_deltab.ledger import Ledger, ReleaseCell, chain, open_ledger, schema
from sacro_deltab.ledger.chain import Account, sealed, state_digest
from sacro_deltab.ledger.keys import load_or_create_key
from sacro_deltab.ledger.verifying import heads_in

Edit = Callable[[sqlite3.Connection], object]


@pytest.fixture
def lived_in(file_book: Ledger) -> Ledger:
    """A ledger with every kind of entry."""
    book = file_book
    book.register_bounds("c" * 64, "TRE staff")  # 2
    book.register_cohort("site-a", range(30), who="analyst")  # 3
    book.register_cohort("site-b", range(25, 60), who="analyst")  # 4
    first = book.spend(GAUSS, **spend_args())  # 5
    book.close_spend(first.entry, "b" * 64)  # 6
    book.spend(small(0.5), **spend_args(partition="site-b"))  # 7
    later = book.spend(small(0.25), **spend_args(draws="later"))  # 8
    book.draw(later.entry, "d" * 64)  # 9
    cells = [ReleaseCell("all", 30, tuple(range(30)), {"n": 30}), ReleaseCell("few", 25, tuple(range(25)))]
    book.record_release("site-a", "delta_mean", kind="table", cells=cells, who="analyst")  # 10
    book.declare_disjoint("site-a", "site-b", by="Data manager", reason="numbers start at 1")  # 11
    book.spend(small(0.25), **spend_args())  # 12
    assert book.verify().problems == ()
    return book


def edit(book: Ledger, change: str | Edit) -> None:
    """Change the file behind the ledger's back."""
    assert book.store.file is not None
    with closing(sqlite3.connect(book.store.file)) as connection:
        if callable(change):
            change(connection)
        else:
            connection.executescript(change)
        connection.commit()


def findings(book: Ledger) -> str:
    assert book.store.file is not None
    key = book.signing_key().path
    report = open_ledger(book.store.file, create=False, read_only=True, checked=False, key=key).verify()
    return "; ".join(str(problem) for problem in report.problems)


def swapped(connection: sqlite3.Connection) -> None:
    connection.executescript(
        "UPDATE ledger_entries SET seq = 99 WHERE seq = 5; UPDATE ledger_entries SET seq = 5 WHERE seq = 7;"
        "UPDATE ledger_entries SET seq = 7 WHERE seq = 99;"
    )


def renumbered(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM ledger_entries WHERE seq = 7")
    for seq in range(8, 13):
        connection.execute("UPDATE ledger_entries SET seq = ? WHERE seq = ?", (seq - 1, seq))


def forgiven(connection: sqlite3.Connection) -> None:
    """Lower the running sum, with a state digest to match in the newest entry."""
    text = connection.execute("SELECT tally FROM ledger_partitions WHERE partition = 'site-a/person'").fetchone()[0]
    data = json.loads(text)
    data["own"]["epsilon"] = "0"
    connection.execute(
        "UPDATE ledger_partitions SET tally = ? WHERE partition = 'site-a/person'",
        (json.dumps(data, sort_keys=True, separators=(",", ":")),),
    )
    texts = dict(connection.execute("SELECT partition, tally FROM ledger_partitions"))
    connection.execute("UPDATE ledger_entries SET state = ? WHERE seq = 12", (state_digest(texts),))


SET, ADD = "UPDATE ledger_entries SET", "INSERT INTO ledger"
EDITS: dict[str, tuple[str | Edit, str]] = {
    "a cheaper spend": (f"{SET} body = replace(body, '1.0', '0.1') WHERE seq = 5", "entry 5: was changed"),
    "another name": (f"{SET} who = 'somebody' WHERE seq = 7", "entry 7: was changed"),
    "another cohort": (f"{SET} partition = 'site-b/person' WHERE seq = 5", "entry 5: was changed"),
    "another date": (f"{SET} at = '2020-01-01T00:00:00.000000Z' WHERE seq = 7", "entry 7: was changed"),
    "a removed entry": ("DELETE FROM ledger_entries WHERE seq = 7", "entry 7: is missing"),
    "a removed entry, renumbered": (renumbered, "entry 7: does not follow"),
    "swapped entries": (swapped, "entry 5: "),
    "the newest entry removed": ("DELETE FROM ledger_entries WHERE seq = 12", "signed an entry 12 that is not here"),
    "the first entry removed": ("DELETE FROM ledger_entries WHERE seq = 1", "entry 1: is missing"),
    "all entries removed": ("DELETE FROM ledger_entries", "all entries are missing"),
    "a reopened spend": ("DELETE FROM ledger_entries WHERE kind = 'close'", "entry 6: is missing"),
    "other released bytes": (f"{SET} body = replace(body, '{'b' * 64}', '{'d' * 64}')", "was changed"),
    "the stored sums": ("UPDATE ledger_partitions SET tally = replace(tally, '1', '0')", "stored totals are not those"),
    "no stored sums": ("DELETE FROM ledger_partitions", "stored totals are not those"),
    "an extra partition": (f"{ADD}_partitions SELECT 'x/person', tally FROM ledger_partitions LIMIT 1", "stored"),
    "forgiven": (forgiven, "entry 12: was changed"),
    "another ledger id": (f"UPDATE ledger_meta SET id = '{'e' * 32}'", "was changed"),
    "another head key": (f"UPDATE ledger_meta SET head_key = '{'ab' * 32}'", "is not signed"),
    "the people": ("UPDATE ledger_cohorts SET people = zeroblob(480)", "fingerprints of its people were changed"),
    "no people": ("DELETE FROM ledger_cohorts", "fingerprints of its people were changed"),
    "more people": (f"{ADD}_cohorts SELECT 'x/person', 'y', 1, people FROM ledger_cohorts LIMIT 1", "no entry"),
    "a cell's N": ("UPDATE ledger_cells SET n = 29 WHERE number = 0", "entry 10: its cells were changed"),
    "a cell's people": ("UPDATE ledger_cells SET mask = zeroblob(4) WHERE number = 1", "entry 10: its cells"),
    "a removed cell": ("DELETE FROM ledger_cells WHERE number = 1", "entry 10: its cells were changed"),
    "an extra cell": (f"{ADD}_cells SELECT 3, number, key, n, published, people, mask FROM ledger_cells", "no entry"),
    "a body that is no JSON": (f"{SET} body = '{{' WHERE seq = 7", "entry 7: was changed"),
    "a signature": (f"UPDATE ledger_entries SET signature = '{'0' * 128}' WHERE seq = 7", "entry 7: is not signed"),
    "when a set was registered": ("UPDATE ledger_cohorts SET seq = 9 WHERE seq = 4", "entry 4: the fingerprints"),
    "the number of its row": ("UPDATE ledger_meta SET one = 2", "the number of the row about itself"),
    "a trigger": (f"CREATE TRIGGER t AFTER INSERT ON ledger_entries BEGIN {SET} who = 'x'; END", "trigger 't'"),
    "another table": ("CREATE TABLE more (a)", "table 'more'"),
    "another view": ("CREATE VIEW seen AS SELECT 1", "view 'seen'"),
    "another column": ("ALTER TABLE ledger_cells ADD COLUMN note TEXT", "columns of 'ledger_cells'"),
    "another index": ("CREATE INDEX i ON ledger_entries (at)", "index 'i'"),
    "a signature of nonsense": ("UPDATE ledger_entries SET signature = 'zz' WHERE seq = 7", "entry 7: is not signed"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_verify_names_what_was_changed(lived_in: Ledger, name: str) -> None:
    change, words = EDITS[name]
    edit(lived_in, change)
    assert words in findings(lived_in)


@pytest.mark.parametrize(
    "name",
    ["the newest entry removed", "all entries removed", "the stored sums", "no stored sums", "an extra partition",
     "forgiven", "a trigger", "another ledger id", "another head key"],
)  # fmt: skip
def test_a_spend_refuses_at_once_what_it_would_rest_on(lived_in: Ledger, name: str) -> None:
    edit(lived_in, EDITS[name][0])
    before = lived_in.store.file.read_bytes() if lived_in.store.file else b""
    with pytest.raises(LedgerError):
        lived_in.spend(small(0.1), **spend_args())
    assert lived_in.store.file is not None
    assert lived_in.store.file.read_bytes() == before
    with pytest.raises(LedgerError):
        open_ledger(lived_in.store.file, create=False)._checked_head()


@pytest.mark.parametrize("value", ["600000000", "x'00'", "zeroblob(70000000)"])
def test_a_value_of_another_kind_is_said_in_words(lived_in: Ledger, value: str) -> None:
    """SQLite keeps any value anywhere, and bytes(600000000) would be 600 MB."""
    file = lived_in.store.file
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = file.read_bytes()
    tracemalloc.start()
    for column in (c for table in schema.metadata.sorted_tables for c in table.columns):
        if "zeroblob" in value and not isinstance(column.type, schema.Block):
            continue
        file.with_name(f"{file.name}-wal").unlink(missing_ok=True)
        file.write_bytes(whole)
        try:
            edit(lived_in, f"UPDATE {column.table.name} SET {column.name} = {value} WHERE rowid = 1")
            with closing(sqlite3.connect(file)) as connection:
                if not connection.execute(f"SELECT count(*) FROM {column.table.name}").fetchone()[0]:
                    continue  # nobody was registered here
        except sqlite3.Error:
            continue  # a key that SQLite itself holds to its kind
        try:
            assert findings(lived_in), column
        except LedgerError as error:
            assert error.what, column
    assert tracemalloc.get_traced_memory()[1] < 160 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize("name", sorted(schema.metadata.tables))
def test_a_view_that_never_ends_is_no_table(lived_in: Ledger, name: str) -> None:
    forever = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) SELECT i AS one FROM n"
    edit(lived_in, f"DROP TABLE {name}; CREATE VIEW {name} AS {forever}")
    with pytest.raises(LedgerError, match="no stored table"):
        findings(lived_in)


def test_every_field_of_every_entry_is_covered(lived_in: Ledger) -> None:
    assert lived_in.store.file is not None
    with closing(sqlite3.connect(lived_in.store.file)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(ledger_entries)")]
        rows = connection.execute("SELECT seq FROM ledger_entries").fetchall()
    original = lived_in.store.file.read_bytes()
    for (seq,) in (rows[0], rows[4], rows[-1]):
        for column in columns:
            value = "0" if column in ("seq", "ref") else "'x'"
            edit(lived_in, f"UPDATE ledger_entries SET {column} = {value} WHERE seq = {seq}")
            assert findings(lived_in), (seq, column)
            lived_in.store.file.write_bytes(original)
    assert findings(lived_in) == ""


def test_a_forged_entry_needs_the_key(lived_in: Ledger, tmp_path: Path) -> None:
    """A complete, well-formed chain under another key: what a researcher can make."""
    forger = load_or_create_key(tmp_path / "forger.key", create=True)

    def rewrite(connection: sqlite3.Connection) -> None:
        prev = "0" * 64
        entries = lived_in.history()
        for entry in entries:
            fake = sealed(forger, type(entry)(**{**vars(entry), "prev": prev, "digest": "", "signature": ""}))
            connection.execute(
                "UPDATE ledger_entries SET prev = ?, digest = ?, signature = ? WHERE seq = ?",
                (fake.prev, fake.digest, fake.signature, fake.seq),
            )
            prev = fake.digest

    edit(lived_in, rewrite)
    assert "is not signed by the ledger's key" in findings(lived_in)
    with pytest.raises(LedgerError, match="was changed"):
        lived_in.spend(small(0.1), **spend_args())
    pin = lived_in.pin()
    edit(lived_in, f"UPDATE ledger_meta SET head_key = '{forger.public}'")
    assert lived_in.store.file is not None
    forged = open_ledger(lived_in.store.file, create=False, read_only=True, checked=False, pins=[pin])
    assert not forged.pinned


class TestRollback:
    def test_an_older_copy_is_refused_by_the_anchor(self, file_book: Ledger, tmp_path: Path) -> None:
        file = file_book.store.file
        assert file is not None
        file_book.spend(small(1.0), **spend_args())
        shutil.copy(file, tmp_path / "old.db")
        for _ in range(3):
            file_book.spend(small(1.0), **spend_args())
        shutil.copy(tmp_path / "old.db", file)
        with pytest.raises(LedgerError, match="an older or another copy was put back"):
            file_book.spend(small(1.0), **spend_args())
        assert "signed an entry 5 that is not here" in "; ".join(map(str, file_book.verify().problems))

    def test_two_copies_cannot_both_be_spent_from(self, file_book: Ledger, key: Path, tmp_path: Path) -> None:
        assert file_book.store.file is not None
        shutil.copy(file_book.store.file, tmp_path / "copy.db")
        twin = open_ledger(tmp_path / "copy.db", key=key)
        file_book.spend(small(1.0), **spend_args())
        with pytest.raises(LedgerError, match="was changed"):
            twin.spend(small(1.0), **spend_args())

    def test_without_the_anchor_the_certificate_tells(self, file_book: Ledger, key: Path, tmp_path: Path) -> None:
        file = file_book.store.file
        assert file is not None
        shutil.copy(file, tmp_path / "old.db")
        receipt = file_book.spend(small(1.0), **spend_args())
        certificate = {"predicate": {"privacy": {"ledger": {"id": file_book.id, "head": receipt.head}}}}
        shutil.copy(tmp_path / "old.db", file)
        for anchor in key.parent.glob("*.anchor"):
            anchor.unlink()
        restored = open_ledger(file, key=key, create=False)
        assert restored.verify().ok
        assert restored.verify().notes
        heads = heads_in(certificate, restored.id)
        report = restored.verify(heads)
        assert not report.ok
        assert "a certificate names the head" in str(report.problems[0])

    def test_the_anchor_survives_torn_writes(self, file_book: Ledger, key: Path) -> None:
        file_book.spend(small(0.5), **spend_args())
        (anchor,) = key.parent.glob("*.anchor")
        whole = anchor.read_bytes()
        last = file_book.anchor()
        assert last is not None
        for cut in (0, 7, 150, 200, 320):
            anchor.write_bytes(whole[:cut])
            found = file_book.anchor()
            assert found is None or found[0] <= last[0]
            file_book.spend(small(0.01), **spend_args())
            assert file_book.verify().ok

    def test_a_file_that_grew_a_second_life_is_refused(self, file_book: Ledger, key: Path, tmp_path: Path) -> None:
        """Delete the ledger and start again: the new one has another id, so nothing pins it."""
        pin = file_book.pin()
        assert file_book.store.file is not None
        file_book.store.file.unlink()
        fresh = open_ledger(file_book.store.file, key=key, pins=[pin])
        assert fresh.head_key == pin.head_key
        assert not fresh.pinned


def test_a_holder_of_the_key_cannot_vouch_for_other_totals(file_book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry and signature hold; what is signed of the sums before it is not what the entries come to."""
    honest = chain.sums_digest
    known = lambda texts: honest({name: sha256_hex(text) for name, text in texts.items()})  # noqa: E731
    monkeypatch.setattr(chain, "state_digest", known)
    monkeypatch.setattr(chain, "sums_digest", lambda digests: "0" * 64)
    entry = file_book.register_bounds("a" * 64, "Data manager")
    monkeypatch.undo()
    assert f"entry {entry.seq}: the totals it vouches for are not those of the entries before it" in findings(file_book)


def test_the_wrong_key_spends_nothing(file_book: Ledger, tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "other.key", create=True)
    assert file_book.store.file is not None
    wrong = open_ledger(file_book.store.file, key=tmp_path / "other.key")
    with pytest.raises(LedgerError, match="not the one that the ledger was made with"):
        wrong.spend(small(0.1), **spend_args())
    none = open_ledger(file_book.store.file, key=tmp_path / "missing.key", create=False)
    with pytest.raises(LedgerError, match="key was not given"):
        none.spend(small(0.1), **spend_args())
    assert none.totals("site-a").releases == 0


def test_limits_in_the_file_decide_nothing(file_book: Ledger) -> None:
    """The limits stored for display are signed, and a spend still uses those of its argument only."""
    file_book.spend(small(0.5), **spend_args())
    account: Account = file_book.accounts()["site-a/person"]
    assert account.limits == LIMITS
    from dataclasses import replace

    from sacro_deltab.base.errors import BudgetError

    with pytest.raises(BudgetError):
        file_book.spend(small(0.1), **spend_args(limits=replace(LIMITS, epsilon_total=0.5)))
