"""What goes wrong around a ledger: a clear error each, and the ledger as it was."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sqlite3
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from ledger_helpers import GAUSS, small, spend_args
from sqlalchemy import event

from sacro_deltab.base.errors import LedgerError
from sacro_deltab.ledger import Ledger, chain, open_ledger, probes, store

NOBODY = 65534


def in_child(act: Callable[[], None]) -> None:
    """Run `act` in a forked process and fail when it does not come through."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


class Tomorrow(datetime):
    """A clock that is a day ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=1)


def test_a_clock_set_back_is_refused(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(chain, "datetime", Tomorrow)
        book.spend(small(0.1), **spend_args())
    with pytest.raises(LedgerError, match="clock is behind") as caught:
        book.spend(small(0.1), **spend_args())
    assert caught.value.next_step == "Set the clock right."
    assert book.totals("site-a").releases == 1
    assert book.verify().ok


def test_small_skew_between_machines_keeps_the_order(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(Tomorrow):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(minutes=4)

    with monkeypatch.context() as patch:
        patch.setattr(chain, "datetime", Ahead)
        book.spend(small(0.1), **spend_args())
    book.spend(small(0.1), **spend_args())
    first, second = (entry.at for entry in book.history()[-2:])
    assert first == second
    assert book.verify().ok


def test_a_full_disk_by_sqlite_itself(file_book: Ledger) -> None:
    @event.listens_for(file_book.store.engine, "connect")
    def _small(connection: sqlite3.Connection, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    with pytest.raises(LedgerError, match="the disk is full; nothing was written"):
        for _ in range(200):
            file_book.spend(small(0.001, detail={"pad": "x" * 3000}), **spend_args())
    event.remove(file_book.store.engine, "connect", _small)
    spent = file_book.totals("site-a").releases
    assert file_book.verify().ok
    file_book.spend(small(0.001), **spend_args())
    assert file_book.totals("site-a").releases == spent + 1


def test_a_full_disk_by_the_operating_system(file_book: Ledger) -> None:
    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        with pytest.raises(LedgerError, match="full"):
            for _ in range(500):
                file_book.spend(small(0.001, detail={"pad": "x" * 3000}), **spend_args())

    in_child(act)
    assert file_book.verify().ok
    file_book.spend(small(0.001), **spend_args())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody with fewer rights")
class TestReadOnly:
    def as_nobody(self, folder: Path, act: Callable[[], None]) -> None:
        for place in (folder, *folder.rglob("*")):
            place.chmod(0o555 if place.is_dir() else 0o444)

        def dropped() -> None:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()

        in_child(dropped)

    def test_a_file_that_cannot_be_written(self, file_book: Ledger, tmp_path: Path) -> None:
        file_book.spend(GAUSS, **spend_args())
        file = tmp_path / "budget.db"
        before = file.read_bytes()

        def act() -> None:
            with pytest.raises(LedgerError, match=r"cannot be (written|opened)"):
                open_ledger(file).spend(GAUSS, **spend_args())
            frozen = open_ledger(file, create=False, read_only=True)
            assert frozen.totals("site-a").releases == 1
            assert frozen.verify().ok
            with pytest.raises(LedgerError):
                frozen.spend(GAUSS, **spend_args())

        self.as_nobody(tmp_path, act)
        assert file.read_bytes() == before

    def test_an_anchor_that_cannot_be_written(self, file_book: Ledger, tmp_path: Path) -> None:
        file_book.spend(GAUSS, **spend_args())
        key = file_book.signing_key().path

        def act() -> None:
            with pytest.raises(LedgerError, match="anchor beside the ledger's key cannot be written"):
                open_ledger(tmp_path / "open" / "budget.db", key=key).spend(GAUSS, **spend_args())

        folder = tmp_path / "open"
        folder.mkdir()
        (tmp_path / "budget.db").rename(folder / "budget.db")
        for place in (key.parent, *key.parent.iterdir(), tmp_path):
            place.chmod(0o555)
        for place in (folder, folder / "budget.db"):
            place.chmod(0o777)

        def dropped() -> None:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()

        in_child(dropped)
        assert len(open_ledger(folder / "budget.db", key=key).history()) == 2


def test_a_locked_file(file_book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.2)
    assert file_book.store.file is not None
    with closing(sqlite3.connect(file_book.store.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process holds the ledger"):
            file_book.spend(small(0.1), **spend_args())
        assert file_book.totals("site-a").releases == 0  # reading goes on
        other.execute("ROLLBACK")
    file_book.spend(small(0.1), **spend_args())
    assert file_book.verify().ok


@pytest.mark.parametrize("keep", [0, 1, 99, 100, 4096, 5000, 20480, 0.5, 0.9])
def test_a_truncated_file(file_book: Ledger, keep: float) -> None:
    for _ in range(20):
        file_book.spend(small(0.1, detail={"pad": "x" * 2000}), **spend_args())
    file = file_book.store.file
    assert file is not None
    whole = file.read_bytes()
    cut = whole[: int(keep * len(whole)) if isinstance(keep, float) else keep]
    file.write_bytes(cut)
    with pytest.raises(LedgerError) as caught:
        file_book.spend(small(0.1), **spend_args())
    assert caught.value.next_step
    for name in ("-wal", "-shm"):
        file.with_name(file.name + name).unlink(missing_ok=True)
    with pytest.raises(LedgerError):
        report = open_ledger(file, create=False, read_only=True, checked=False).verify()
        raise LedgerError("changed") if report.problems else AssertionError(report)
    file.write_bytes(whole)
    assert file_book.verify().ok


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"{}", b"\x80\x04", b"PK\x03\x04"])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "budget.db"
    file.write_bytes(content)
    for create in (True, False):
        with pytest.raises(LedgerError, match=r"not a ledger|holds no ledger"):
            open_ledger(file, create=create)
    assert file.read_bytes() == content


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE subjects (id)")
        connection.commit()
    with pytest.raises(LedgerError, match="holds other tables"):
        open_ledger(file)
    with closing(sqlite3.connect(file)) as connection:
        assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["subjects"]


@pytest.mark.parametrize(
    "bad",
    ["", "sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=memory", "sqlite:///file:x.db", "mysql://host/db", "://",
     "postgresql+psycopg:", "no/such/folder/budget.db", "."],
)  # fmt: skip
def test_places_that_can_hold_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError):
        open_ledger(bad)
    assert not [p for p in tmp_path.rglob("*") if p.name != "tre"]


def test_a_server_that_is_not_there_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        open_ledger("postgresql://someone:secret@127.0.0.1:1/none?connect_timeout=2", key=tmp_path / "k")
    assert "secret" not in str(caught.value)
    assert "cannot be reached" in caught.value.what


class TestNetworkFileSystems:
    MOUNTS = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        "30 22 0:40 / /srv/share rw - nfs4 server:/export rw\n"
        "31 22 0:41 / /srv/share/local rw - ext4 /dev/sdb rw\n"
        "32 22 0:42 / /mnt/a\\040b rw - cifs //server/b rw\n"
        "33 22 0:43 / /mnt/late rw - ext4 /dev/sdc rw\n"
        "34 33 0:44 / /mnt/late rw - fuse.sshfs host: rw\n"
        "rubbish\n"
    )

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/home/x.db", "ext4"),
            ("/srv/share/x.db", "nfs4"),
            ("/srv/sharex/x.db", "ext4"),
            ("/srv/share/local/x.db", "ext4"),
            ("/mnt/a b/x.db", "cifs"),
            ("/mnt/late/x.db", "fuse.sshfs"),
        ],
    )
    def test_the_mount_table_is_read(self, tmp_path: Path, path: str, kind: str) -> None:
        table = tmp_path / "mountinfo"
        table.write_text(self.MOUNTS)
        assert probes.file_system_of(Path(path), table) == kind
        assert probes.file_system_of(Path(path), tmp_path / "missing") is None

    @pytest.mark.parametrize("kind", ["nfs4", "CIFS", "fuse.sshfs", "9p", "lustre"])
    def test_a_network_file_system_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        monkeypatch.setattr(probes, "file_system_of", lambda path: kind)
        with pytest.raises(LedgerError, match="network file system") as caught:
            open_ledger(tmp_path / "budget.db")
        assert "PostgreSQL" in str(caught.value.next_step)
        assert not (tmp_path / "budget.db").exists()

    def test_locks_that_do_not_lock_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert probes.locks_work(tmp_path) is True
        monkeypatch.setattr(fcntl, "fcntl", lambda *args: b"")
        assert probes.locks_work(tmp_path) is False
        with pytest.raises(LedgerError, match="file locks do not work"):
            open_ledger(tmp_path / "budget.db")
        assert list(tmp_path.iterdir()) == []

    def test_locks_that_are_not_there_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unsupported(*args: object) -> bytes:
            raise OSError(37, "No locks available")

        monkeypatch.setattr(fcntl, "fcntl", unsupported)
        with pytest.raises(LedgerError, match="file locks do not work"):
            open_ledger(tmp_path / "budget.db")


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_key_that_is_none(file_book: Ledger, tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.key"
    bad.write_bytes(content)
    assert file_book.store.file is not None
    with pytest.raises(LedgerError, match="no readable Ed25519"):
        open_ledger(file_book.store.file, key=bad).spend(GAUSS, **spend_args())


def test_a_key_of_another_kind(file_book: Ledger, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as ser
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    bad = tmp_path / "bad.key"
    bad.write_bytes(
        X25519PrivateKey.generate().private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.NoEncryption())
    )
    assert file_book.store.file is not None
    with pytest.raises(LedgerError, match="must be an Ed25519"):
        open_ledger(file_book.store.file, key=bad).spend(GAUSS, **spend_args())


def test_a_key_with_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse\n")
    monkeypatch.setenv("SACRO_DELTAB_LEDGER_PASSPHRASE_FILE", str(secret))
    monkeypatch.setenv("SACRO_DELTAB_LEDGER_KEY", str(tmp_path / "tre.key"))
    open_ledger(tmp_path / "budget.db").spend(GAUSS, **spend_args())
    assert b"ENCRYPTED" in (tmp_path / "tre.key").read_bytes()
    assert (tmp_path / "tre.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "budget.db").stat().st_mode & 0o777 == 0o600
    secret.write_text("wrong\n")
    with pytest.raises(LedgerError, match="passphrase is wrong"):
        open_ledger(tmp_path / "budget.db").spend(GAUSS, **spend_args())
