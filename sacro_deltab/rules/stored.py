"""Finding the stored facts of an output: in a session's evidence, or in a facts file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import InputError, UnreadableError
from ..base.findings import Effect, Finding
from ..base.strict import DATA, read_json
from .facts import Facts, facts_from_json
from .schema_check import did_you_mean
from .types import Decision


@dataclass(frozen=True)
class StoredFacts:
    """Facts of one output as they were stored, and the digest of its document where that is beside them."""

    path: Path
    facts: Facts
    sha256: str | None = None
    form: tuple[Finding, ...] = ()  # what the session found about its form and numbers, besides the facts


def facts_in(path: Path) -> list[Facts]:
    """Facts of every output in one JSON file (evidence or facts); empty where it holds none."""
    return [facts for facts, _ in _stored_in(path)]


def _stored_in(path: Path) -> list[tuple[Facts, dict[str, Any]]]:
    """Facts with the evidence entry that they stand in.

    What a session computed counts as recorded. Raises UnreadableError where facts are there but malformed.
    """
    try:
        data = read_json(path, bounds=DATA)
    except UnreadableError:
        return []
    if not isinstance(data, dict):
        return []
    outputs = data.get("outputs")
    entries = [e for e in outputs if isinstance(e, dict)] if isinstance(outputs, list) else [{"facts": data}]
    out = []
    for entry in entries:
        block = entry.get("facts")
        if isinstance(block, dict) and {"output_name", "output_type", "facts"} <= set(block):
            try:
                out.append((facts_from_json(block), entry))
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
        files = [source] if source.is_file() else sorted(path.glob("*.json"))
        found = [one for file in files for one in _stored_in(file)]
    else:
        source = path
        found = _stored_in(path)
        beside = path.parent / "inside" / "evidence.json"
        if not found and beside.is_file():
            source, found, name = beside, _stored_in(beside), name or path.stem
    if not found:
        raise InputError(
            "no stored facts were found",
            path=path,
            next_step="Give a session folder with inside/, its evidence.json, or a facts file.",
        )
    chosen = [(f, entry) for f, entry in found if name is None or f.output_name == name]
    if not chosen:
        known = [f.output_name for f, _ in found]
        raise InputError(
            f"there is no output {name!r}{did_you_mean(str(name), known)}",
            path=source,
            next_step=f"It holds {', '.join(known)}.",
        )
    root = source.parent.parent if source.parent.name == "inside" else source.parent
    return [
        StoredFacts(source, f, _would_leave(entry) or _digest(root / f"{f.output_name}.json"), _form_findings(entry))
        for f, entry in chosen
    ]


def _form_findings(entry: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Findings of rules about form that a session recorded; facts alone do not tell them."""
    decision = entry.get("decision")
    listed = decision.get("findings") if isinstance(decision, dict) else None
    out = []
    for one in listed if isinstance(listed, list) else ():
        rules = one.get("rules") if isinstance(one, dict) else None
        if isinstance(rules, list) and rules and all(isinstance(r, str) and r.startswith("check/") for r in rules):
            text = str(one.get("text", ""))
            asks = tuple(str(a) for a in one.get("asks", ()))
            step = one.get("next_step")
            effect = Effect(one["effect"])
            out.append(
                Finding(tuple(rules), "output", effect, text, text, asks=asks, next_step=str(step) if step else None)
            )
    return tuple(out)


def with_form(decision: Decision, form: tuple[Finding, ...]) -> Decision:
    """The decision as the session reached it: what the facts say and what was found about form, the worst of both."""
    worst = min((decision.effect, *(f.effect for f in form)), key=lambda e: e.rank)
    return replace(decision, effect=worst, findings=(*form, *decision.findings))


def _would_leave(entry: Mapping[str, Any]) -> str | None:
    """Digest of the document as it would leave were nothing blocked, where the session wrote it."""
    digest = entry.get("would_sha256")
    return digest if isinstance(digest, str) else None


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
