"""What lies in a session folder, read without trusting it: regular files only, exact names, no links."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ..base.errors import InputError, UnreadableError
from ..base.names import name_problem, name_problems, shown

STATEMENT = "certificate.json"
ENVELOPE = "certificate.dsse.json"
SHOWN = "certificate.dsse.txt"  # the envelope as the viewer shows and releases it
ENVELOPES = frozenset({ENVELOPE, SHOWN})
RESULTS = "results.json"
CONFIG = "config.json"
CHECKSUMS = "checksums"
INSIDE = "inside"
ATTACK = "attack.json"  # inside/attack.json: the one attack report that a session writes
SALT = "salt"  # inside/salt: 32 random bytes, hex
REVIEW = "review"  # inside/review: signed reviews, made after the certificate, so outside its digest
CERTIFIED = "certified"  # inside/certified: what `certify` adds, outside the session statement's digest
STRUCTURE = frozenset({RESULTS, CONFIG})


@dataclass(frozen=True)
class Inventory:
    """Every file of a folder, and what should not be there.

    root: name → path of the files at the top; checksums: name without `.txt` → path; inside: path relative to
    `inside/` (with `/`) → path, None where there is no `inside/`. problems: sentences that name a file, never content.
    """

    folder: Path
    root: Mapping[str, Path]
    checksums: Mapping[str, Path]
    inside: Mapping[str, Path] | None
    problems: tuple[str, ...] = field(default=())


def scan(folder: Path) -> Inventory:
    """List a session folder.

    Raises
    ------
    InputError
        When `folder` is not a folder.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise InputError("this is not a session folder.", path=folder, next_step="name the folder `finalise` wrote.")
    problems: list[str] = []
    root, dirs = _split(folder, "", problems)
    checks: dict[str, Path] = {}
    inside: dict[str, Path] | None = None
    for name in dirs:
        if name == CHECKSUMS:
            files, below = _split(dirs[name], f"{CHECKSUMS}/", problems)
            problems += [f"{CHECKSUMS}/{shown(d)} is a folder" for d in below]
            problems += [f"{CHECKSUMS}/{shown(f)} is no checksum" for f in files if not f.endswith(".txt")]
            checks = {f.removesuffix(".txt"): p for f, p in files.items() if f.endswith(".txt")}
        elif name == INSIDE:
            inside = {}
            _walk(dirs[name], "", inside, problems)
        else:
            problems.append(f"{shown(name)}/ is a folder that does not belong here")
    problems += name_problems(root)
    parts = dict.fromkeys(part for n in inside or () for part in n.split("/"))  # folders too: their names are digested
    problems += [f"{INSIDE}/…/{shown(part)} {why}" for part in parts if (why := name_problem(part))]
    return Inventory(folder, MappingProxyType(root), MappingProxyType(checks), inside, tuple(problems))


def _split(folder: Path, prefix: str, problems: list[str]) -> tuple[dict[str, Path], dict[str, Path]]:
    files: dict[str, Path] = {}
    dirs: dict[str, Path] = {}
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        raise UnreadableError(f"the folder cannot be listed ({error.strerror}).", path=folder) from None
    for entry in entries:
        if entry.is_symlink():
            problems.append(f"{prefix}{shown(entry.name)} is a link, not a file")
        elif entry.is_dir(follow_symlinks=False):
            dirs[entry.name] = Path(entry.path)
        elif entry.is_file(follow_symlinks=False):
            files[entry.name] = Path(entry.path)
        else:
            problems.append(f"{prefix}{shown(entry.name)} is neither file nor folder")
    return files, dirs


def _walk(folder: Path, prefix: str, out: dict[str, Path], problems: list[str]) -> None:
    files, dirs = _split(folder, f"{INSIDE}/{prefix}", problems)
    out.update({prefix + name: path for name, path in files.items()})
    for name, path in dirs.items():
        _walk(path, f"{prefix}{name}/", out, problems)
