"""What lies in a session folder, read without trusting it: regular files only, exact names, no links."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ..base.errors import InputError, UnreadableError

STATEMENT = "certificate.json"
ENVELOPE = "certificate.dsse.json"
RESULTS = "results.json"
CONFIG = "config.json"
CHECKSUMS = "checksums"
INSIDE = "inside"
SALT = "salt"  # inside/salt: 32 random bytes, hex
REVIEW = "review"  # inside/review: signed reviews, made after the certificate, so outside its digest
CERTIFIED = "certified"  # inside/certified: what `certify` adds, outside the session statement's digest
STRUCTURE = frozenset({RESULTS, CONFIG})

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Digests:
    """SHA-256 and SHA-512 of one file, lower-case hex."""

    sha256: str
    sha512: str

    def to_json(self) -> dict[str, str]:
        """The in-toto digest set."""
        return {"sha256": self.sha256, "sha512": self.sha512}


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


def digest_bytes(data: bytes) -> Digests:
    """Both digests of `data`."""
    return Digests(hashlib.sha256(data).hexdigest(), hashlib.sha512(data).hexdigest())


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """Read a regular file without following a link.

    Raises
    ------
    UnreadableError
        When it is a link, not a file, not readable, or larger than `limit` bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as handle:
            data = handle.read() if limit is None else handle.read(limit + 1)
    except OSError as error:
        raise UnreadableError(f"the file cannot be read ({error.strerror}).", path=path.name) from None
    if limit is not None and len(data) > limit:
        raise UnreadableError(f"the file is larger than {limit} bytes.", path=path.name)
    return data


def digest_file(path: Path) -> Digests:
    """Both digests of a file, in one pass, without following a link."""
    one, two = hashlib.sha256(), hashlib.sha512()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb", buffering=0) as handle:
            while chunk := handle.read(_CHUNK):
                one.update(chunk)
                two.update(chunk)
    except OSError as error:
        raise UnreadableError(f"the file cannot be read ({error.strerror}).", path=path.name) from None
    return Digests(one.hexdigest(), two.hexdigest())


def name_problem(name: str) -> str | None:
    """Why a file name cannot be certified, or None."""
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        return "is not a plain file name"
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for c in name):
        return "has a control or invisible character in its name"
    if unicodedata.normalize("NFC", name) != name:
        return "has a name that is not in Unicode NFC, so two names can look the same"
    if name != name.strip() or name.endswith("."):
        return "has a name that begins or ends with a space, or ends with a dot"
    return None


def shown(name: str) -> str:
    """A name that is safe to print: control and invisible characters as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def name_problems(names: Iterable[str]) -> list[str]:
    """Problems of names and of pairs of names that differ only in case or form."""
    out: list[str] = []
    seen: dict[str, str] = {}
    for name in names:
        if why := name_problem(name):
            out.append(f"{shown(name)} {why}")
        key = unicodedata.normalize("NFKC", name).casefold()
        if key in seen and seen[key] != name:
            out.append(f"{shown(name)} and {shown(seen[key])} are one name on a file system that ignores case")
        seen.setdefault(key, name)
    return out


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
