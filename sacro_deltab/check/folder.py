"""A folder as it lies on disk: every entry, no links followed; what is structure and what is asked to leave."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from ..base.names import fold, path_problem
from ..build.results import CERTIFICATE
from ..inert.limits import Limits

STRUCTURE = frozenset({"results.json", "config.json"})
STRUCTURE_FOLDERS = frozenset({"checksums", "inside"})
VIEWER_NAMES = frozenset({"outputs.json", "summary.txt", "missing-files.txt", "results.json", "config.json"})
SUMMARIES = frozenset({"session_summary.json", "session_summary.csv"})
CERTIFICATES = frozenset({"certificate.json", "certificate.dsse.json", CERTIFICATE})


@dataclass(frozen=True)
class Entry:
    """One directory entry. kind: file, folder, link or special."""

    name: str  # path below the root, with forward slashes
    kind: str
    size: int = 0

    @property
    def top(self) -> str:
        """First component."""
        return self.name.split("/", 1)[0]


def list_folder(root: Path, limits: Limits) -> list[Entry]:
    """Every entry below `root`, sorted; links are listed and never followed.

    Raises
    ------
    UnreadableError
        Too many entries or levels, or a folder that cannot be listed.
    """
    found: list[Entry] = []
    pending = [("", 0)]
    while pending:
        below, depth = pending.pop()
        if depth > limits.folder_depth:
            raise UnreadableError("its folders are nested deeper than any session writes", path=root.name)
        try:
            with os.scandir(root / below if below else root) as scan:
                for item in scan:
                    name = f"{below}/{item.name}" if below else item.name
                    status = item.stat(follow_symlinks=False)
                    kind = _kind(status.st_mode)
                    found.append(Entry(name, kind, status.st_size))
                    if kind == "folder":
                        pending.append((name, depth + 1))
                    if len(found) > limits.folder_entries:
                        raise UnreadableError("it has more files than any session writes", path=root.name)
        except OSError as error:
            raise UnreadableError(f"it cannot be listed ({error.strerror})", path=below or root.name) from None
    return sorted(found, key=lambda entry: entry.name)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "special"


def listing_findings(entries: list[Entry]) -> Iterator[Finding]:
    """Links, devices, names that collide or that the viewer takes for its own."""
    seen: dict[str, str] = {}
    for entry in entries:
        if entry.kind == "link":
            yield note(
                "symlink",
                Effect.BLOCK,
                f"{entry.name} is a symbolic link; what it points to can change after the check.",
                next_step="Put the file itself in its place.",
            )
        elif entry.kind == "special":
            yield note("special-file", Effect.BLOCK, f"{entry.name} is not an ordinary file.")
        other = seen.setdefault(fold(entry.name), entry.name)
        if other != entry.name:
            yield note("name-collision", Effect.BLOCK, f"{entry.name} and {other} are one name on some systems.")
        if entry.top in STRUCTURE_FOLDERS:
            continue
        if fold(entry.name) in {"outputs.json", "summary.txt", "missing-files.txt"}:
            yield note("viewer-name", Effect.BLOCK, f"{entry.name} is a name the viewer uses itself.")
        reason = path_problem(entry.name)
        if reason:
            yield note("bad-name", Effect.BLOCK, f"{entry.name!r}: {reason}.")


def bad_file_name(name: object) -> str | None:
    """Why a name in `files` cannot be an output of this folder, or None."""
    if not isinstance(name, str):
        return "it is not text"
    reason = path_problem(name)
    if reason:
        return reason
    first = fold(name.replace("\\", "/").split("/", 1)[0])
    if first in STRUCTURE_FOLDERS:
        return f"it lies in {first}/, which never leaves"
    if "/" in name or "\\" in name:
        return "it lies in a folder; outputs are flat"
    if fold(name) in {fold(other) for other in VIEWER_NAMES}:
        return "it is a name ACRO or the viewer owns"
    if name.startswith("."):
        return "it is hidden"
    return None
