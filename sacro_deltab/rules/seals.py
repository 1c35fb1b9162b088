"""What the data access committee signed, as the rules see it: whoever holds the keys answers, and nobody by default.

The rules verify no signature (they know no keys): `certificate.law` does, and is handed in where a set is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

FOLDER = "signatures"  # of a rule set; a layer's or a waiver's envelope lies beside its file
ENDING = ".dsse.json"


@dataclass(frozen=True)
class Seal:
    """A signature of the committee that holds: when, by which keys, and from and until when it counts."""

    on: date
    keys: tuple[str, ...]
    starts: date | None = None
    ends: date | None = None

    def state_on(self, day: date) -> str:
        """`draft` before its first day, `retired` after its last, else `approved`."""
        if self.starts is not None and day < self.starts:
            return "draft"
        return "retired" if self.ends is not None and day > self.ends else "approved"

    def to_json(self) -> Mapping[str, str]:
        """As books print it."""
        return {"name": ", ".join(key[:16] for key in self.keys), "role": "dac", "date": self.on.isoformat()}


class Seals(Protocol):
    """Who can say whether the committee signed a text of this digest; `committee` is whether it has any key at all."""

    @property
    def committee(self) -> bool: ...

    def find(self, envelope: Path, kind: str, name: str, sha256: str) -> Seal | None: ...


@dataclass(frozen=True)
class _Always:
    """Whoever is asked, the answer is the same."""

    seal: Seal | None

    @property
    def committee(self) -> bool:
        return self.seal is not None

    def find(self, envelope: Path, kind: str, name: str, sha256: str) -> Seal | None:
        del envelope, kind, name, sha256
        return self.seal


NOBODY: Seals = _Always(None)
EVERYBODY: Seals = _Always(Seal(date.min, ()))  # for trying out what a layer would do were it signed


def beside(file: Path) -> Path:
    """Where the envelope of a layer or a waiver lies."""
    return file.with_name(file.name + ENDING)


def within(folder: str | Path, name: str) -> Path:
    """Where the envelope of a decision or of the approval of a rule set lies."""
    return Path(folder) / FOLDER / f"{name}{ENDING}"
