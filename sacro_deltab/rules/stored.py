"""Finding the stored facts of an output: in a session's evidence, or in a facts file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.digests import sha256_hex
from ..base.errors import InputError, UnreadableError
from ..base.strict import DATA, read_json
from .facts import Facts, facts_from_json
from .schema_check import did_you_mean


@dataclass(frozen=True)
class StoredFacts:
    """Facts of one output as they were stored, and the digest of its document where that is beside them."""

    path: Path
    facts: Facts
    sha256: str | None = None


def facts_in(path: Path) -> list[Facts]:
    """Facts of every output in one JSON file (evidence or facts); empty where it holds none.

    What a session computed counts as recorded. Raises UnreadableError where facts are there but malformed.
    """
    try:
        data = read_json(path, bounds=DATA)
    except UnreadableError:
        return []
    if not isinstance(data, dict):
        return []
    outputs = data.get("outputs")
    blocks = [e.get("facts") for e in outputs if isinstance(e, dict)] if isinstance(outputs, list) else [data]
    out = []
    for block in blocks:
        if isinstance(block, dict) and {"output_name", "output_type", "facts"} <= set(block):
            try:
                out.append(facts_from_json(block))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UnreadableError("holds facts that cannot be read", path=path) from error
    return out


def find_outputs(path: Path, name: str | None = None) -> list[StoredFacts]:
    """Stored facts below `path`: a session folder, its evidence.json, one of its outputs, or a facts file.

    Raises InputError where there are none, or none of that name.
    """
    if not path.exists():
        raise InputError("there is no such file or folder", path=path)
    if path.is_dir():
        source = path / "inside" / "evidence.json"
        found = facts_in(source) if source.is_file() else [f for p in sorted(path.glob("*.json")) for f in facts_in(p)]
    else:
        source = path
        found = facts_in(path)
        beside = path.parent / "inside" / "evidence.json"
        if not found and beside.is_file():
            source, found, name = beside, facts_in(beside), name or path.stem
    if not found:
        raise InputError(
            "no stored facts were found",
            path=path,
            next_step="Give a session folder with inside/, its evidence.json, or a facts file.",
        )
    chosen = [f for f in found if name is None or f.output_name == name]
    if not chosen:
        known = [f.output_name for f in found]
        raise InputError(
            f"there is no output {name!r}{did_you_mean(str(name), known)}",
            path=source,
            next_step=f"It holds {', '.join(known)}.",
        )
    root = source.parent.parent if source.parent.name == "inside" else source.parent
    return [StoredFacts(source, f, _digest(root / f"{f.output_name}.json")) for f in chosen]


def _digest(document: Path) -> str | None:
    return sha256_hex(document.read_bytes()) if document.is_file() else None


def below(folders: list[Path]) -> Iterator[tuple[Path, Facts]]:
    """Stored facts in every JSON file below the folders; InputError for a folder without any."""
    for where in folders:
        if not where.exists():
            raise InputError("there is no such file or folder", path=where)
        found = False
        for file in [where] if where.is_file() else sorted(where.rglob("*.json")):
            for facts in facts_in(file):
                found = True
                yield file, facts
        if not found:
            raise InputError(
                "no stored facts were found",
                path=where,
                next_step="Give session folders (with inside/) or facts files.",
            )
