"""The session's working folder: staged files and one line a step, so that a killed session can be finished.

It holds numbers that stay inside the TRE and is readable by its owner only.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.strict import DATA, parse

FILE = "journal.jsonl"


class Journal:
    """An append-only file of steps, each flushed to disk before the next begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE

    @classmethod
    def create(cls, folder: Path) -> Journal:
        """A new, private working folder.

        Raises
        ------
        InputError
            When it exists or cannot be made.
        """
        try:
            folder.mkdir(parents=True, mode=0o700)
            (folder / "files").mkdir(mode=0o700)
        except OSError as error:
            raise InputError(
                f"the session's working folder cannot be made ({error.strerror})",
                path=folder,
                next_step="Give a writable place with journal=.",
            ) from error
        return cls(folder)

    @property
    def files(self) -> Path:
        """Where staged output files lie until the session is finalised."""
        return self.folder / "files"

    def write(self, step: str, data: Mapping[str, Any]) -> None:
        """Append one step and force it to disk.

        Raises
        ------
        InputError
            When the disk is full or gone: the step then does not count.
        """
        line = json.dumps({"step": step, **data}, ensure_ascii=False, allow_nan=False)
        try:
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(line + "\n")
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise InputError(
                f"the journal cannot be written ({error.strerror})",
                path=self.path,
                next_step="Free some space, then repeat the last step.",
            ) from error

    def stage(self, name: str, body: bytes) -> Path:
        """Write one output file; a file that could not be written whole is removed again."""
        path = self.files / name
        try:
            path.write_bytes(body)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise InputError(
                f"the file cannot be written ({error.strerror})",
                path=path,
                next_step="Free some space, then repeat the last step.",
            ) from error
        return path

    def repair(self) -> None:
        """Cut off a last line that a crash left half written, so that the next step stands on a line of its own."""
        try:
            body = self.path.read_bytes()
        except OSError as error:
            raise InputError("there is no readable journal", path=self.path) from error
        if body and not body.endswith(b"\n"):
            self.path.write_bytes(body[: body.rfind(b"\n") + 1])

    def steps(self) -> Iterator[dict[str, Any]]:
        """All whole steps; a last line cut off by a crash is left out.

        Raises
        ------
        InputError
            When there is no journal, or a line before the last one is damaged.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("there is no readable journal", path=self.path) from error
        for number, line in enumerate(lines, start=1):
            try:
                yield parse(line, bounds=DATA)
            except InputError:
                if number == len(lines):
                    return
                raise InputError("the journal is damaged", path=self.path, place=f"line {number}") from None

    def remove(self) -> None:
        """Delete the working folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
