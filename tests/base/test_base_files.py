"""Opening what somebody named, writing whole files, names and digests."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from sacro_deltab.base import opening, writing
from sacro_deltab.base.digests import digest_file, is_sha256, sha256_hex
from sacro_deltab.base.errors import InputError, UnreadableError
from sacro_deltab.base.names import name_problem, name_problems, path_problem
from sacro_deltab.base.opening import ordinary, read_file, read_text
from sacro_deltab.base.writing import write_file


def test_only_ordinary_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/stdin", tmp_path):
        for act in (read_file, ordinary, digest_file):
            with pytest.raises(UnreadableError):
                act(path)
    with pytest.raises(UnreadableError, match="no such file"):
        read_file(tmp_path / "nothing")
    with pytest.raises(UnreadableError, match="cannot be opened"):
        read_file("a\0b")


def test_links(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "pipe_link").symlink_to("pipe")
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "link") == b"x"
    with pytest.raises(UnreadableError, match="symbolic link"):
        read_file(tmp_path / "link", links=False)
    with pytest.raises(UnreadableError, match="not an ordinary"):
        read_file(tmp_path / "pipe_link")


def test_size_time_and_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    with pytest.raises(UnreadableError, match="larger than 4 bytes"):
        read_file(path, limit=4)
    assert read_file(path, limit=5) == b"12345"
    with pytest.raises(UnreadableError, match="longer than"):
        read_file(path, seconds=-1)
    real = os.read

    def growing(handle: int, n: int) -> bytes:
        block = real(handle, n)
        with path.open("ab") as file:
            file.write(b"more")
        return block

    monkeypatch.setattr(opening.os, "read", growing)
    with pytest.raises(UnreadableError, match="changed while"):
        read_file(path)


def test_text(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbfa")
    assert read_text(tmp_path / "t") == "a"
    (tmp_path / "t").write_bytes(b"a\xff")
    with pytest.raises(UnreadableError, match="UTF-8"):
        read_text(tmp_path / "t")


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_file(path, "old", mode=0o600)
    write_file(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="never overwritten"):
        write_file(path, "other", new=True)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", full)
    for name, new in (("x", False), ("y", True)):
        with pytest.raises(InputError, match="No space left"):
            write_file(tmp_path / name, "half", new=new)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"x": b"new"}


def test_digests(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert digest_file(tmp_path / "x").sha256 == sha256_hex("abc") == hashlib.sha256(b"abc").hexdigest()
    assert is_sha256(sha256_hex("")) and not is_sha256("A" * 64) and not is_sha256(sha256_hex("") + "\n")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a\u200bb", "a\x1b[31m", "e\u0301", " a", "a.", "x" * 1001]
)
def test_names_that_are_refused(name: str) -> None:
    assert name_problem(name) is not None


def test_names() -> None:
    assert name_problem("mean_delta_by_é.csv") is None
    assert name_problems(["A.csv", "a.csv"]) and not name_problems(["a.csv", "b.csv"])
    for bad in ("/etc/x", "a/../b", "C:x", "..\\x", "a\nb", ""):
        assert path_problem(bad)
    assert path_problem("a/b c.csv") is None
