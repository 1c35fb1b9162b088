"""Drafts of one checker: kept at every step, apart from anybody else's, until the review is sealed."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..base.canonical import canonical_json
from ..base.errors import InputError, UnreadableError
from ..base.strict import read_object
from ..base.writing import write_file
from .items import Said

FOLDER = ".sacro_deltab_desk"


class Drafts:
    """Decisions not yet sealed, one file a request, in a folder of the checker's key that only the account may read.

    Raises
    ------
    InputError
        Another desk of the same key is open on this queue.
    """

    def __init__(self, queue: Path, keyid: str) -> None:
        self._folder = queue / FOLDER / keyid
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.is_symlink():
                raise InputError("the folder of drafts is a link", path=folder, next_step="Remove it.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else writes these drafts meanwhile."""
        with (self._folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    "a desk with this key is open on this queue already", next_step="Use that one, or end it."
                ) from None
            yield

    def read(self, request: str, shown: str) -> dict[str, Said]:
        """What was said so far of these files and questions; nothing where they are others by now."""
        path = self._path(request)
        if not path.is_file():
            return {}
        try:
            data = read_object(path)
        except UnreadableError:
            return {}
        if data.get("shown") != shown:
            return {}
        return {str(key): Said(str(one["decision"]), str(one["reason"])) for key, one in data["said"].items()}

    def write(self, request: str, shown: str, said: Mapping[str, Said]) -> None:
        """Keep a draft."""
        body = {"shown": shown, "said": {key: {"decision": s.decision, "reason": s.reason} for key, s in said.items()}}
        write_file(self._path(request), canonical_json(body))

    def _path(self, request: str) -> Path:
        return self._folder / f"{request}.json"
