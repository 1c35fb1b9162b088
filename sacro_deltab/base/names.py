"""File names that mean one thing on every system, and names that are safe to print."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
MAX_NAME = 1_000
# Stems of the files that ACRO, the viewer and the package write themselves: no output is called so.
RESERVED = frozenset({"results", "config", "outputs", "session_summary", "summary", "missing-files", "evidence"})


def name_problem(name: str) -> str | None:
    """Why a plain file name cannot be used, or None."""
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        return "is not a plain file name"
    if len(name) > MAX_NAME or any(unicodedata.category(c) in _HIDDEN for c in name):
        return "has a control or invisible character in its name, or a name that is too long"
    if unicodedata.normalize("NFC", name) != name:
        return "has a name that is not in Unicode NFC, so two names can look the same"
    if name != name.strip() or name.endswith("."):
        return "has a name that begins or ends with a space, or ends with a dot"
    return None


def path_problem(name: str) -> str | None:
    """Why a path stored in a file cannot be used, or None. Paths are compared as written, never resolved."""
    if not name or name in (".", ".."):
        return "it has no name"
    if name.startswith(("/", "\\")) or (len(name) > 1 and name[1] == ":"):
        return "its name is absolute"
    if ".." in name.replace("\\", "/").split("/"):
        return "its name points out of the folder"
    if len(name) > MAX_NAME or any(ord(c) < 32 or ord(c) == 127 for c in name):
        return "its name holds control characters or is too long"
    return None


def fold(name: str) -> str:
    """One text for all names that some system would take for the same file."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


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
        key = fold(name)
        if key in seen and seen[key] != name:
            out.append(f"{shown(name)} and {shown(seen[key])} are one name on a file system that ignores case")
        seen.setdefault(key, name)
    return out


def plain_signs(text: str) -> str:
    """Comparison signs in words: nothing a viewer could take for markup (`< 0.001` → `below 0.001`); one line."""
    for sign, word in (("<=", "at most "), (">=", "at least "), ("<", "below "), (">", "above ")):
        text = text.replace(sign, word)
    return " ".join(text.split())
