"""How much a reader may take: bytes, seconds, cells, depth. Every reader stops at these and says so."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..base.errors import UnreadableError
from ..base.opening import MIB
from ..base.strict import Bounds

_JSON = Bounds(size=16 * MIB, depth=24)


@dataclass(frozen=True)
class Limits:
    """Bounds of the inert readers.

    Chosen so that one process stays under 512 MB whatever arrives; the largest honest output known (PCA components
    of 10,000 features × 50) is 5 MB of text.
    """

    file_bytes: int = 64 * MIB
    text_bytes: int = 32 * MIB
    json: Bounds = _JSON
    columns: int = 20_000
    cells: int = 2_000_000
    line_bytes: int = 4 * MIB
    pickle_ops: int = 400_000
    archive_members: int = 2_000
    archive_bytes: int = 64 * MIB
    archive_ratio: int = 200
    records: int = 5_000  # of one results.json
    folder_entries: int = 20_000
    folder_depth: int = 4
    seconds: float = 20.0


@dataclass
class Deadline:
    """A wall-clock bound shared by the steps of reading one file."""

    seconds: float
    path: str = ""
    started: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise `UnreadableError` once the time is used up."""
        if time.monotonic() - self.started > self.seconds:
            raise UnreadableError(
                f"reading it took longer than {self.seconds:g} seconds",
                path=self.path or None,
                next_step="Send a smaller file.",
            )


DEFAULT = Limits()
