"""The file checks of `verify`: every digest, nothing missing, nothing added, checksums, results.json, inside/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.digests import digest_file
from ..base.errors import SacroDeltabError
from ..base.names import shown
from ..base.opening import read_member
from .decisions import asked
from .inside import inside_digest
from .layout import ENVELOPE, RESULTS, SHOWN, STATEMENT
from .shown import shown_envelope
from .sources import SUMMARY, Source
from .statement import INSIDE_SUBJECT
from .viewer import ResultsReading, read_results

FREE_TEXTS = "free texts"
Line = tuple[str, str, list[str], str]  # name, state, problems, text


def subjects_of(statement: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Name → digests of the files a statement is about (without the digest over inside/)."""
    return {s["name"]: s["digest"] for s in statement["subject"] if s["name"] != INSIDE_SUBJECT}


def held(source: Source, statement: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the files that are here and are as certified."""
    subjects = subjects_of(statement)
    return tuple(n for n in source.names if n in subjects and source.digests(n).to_json() == subjects[n])


def check_files(source: Source, statement: Mapping[str, Any]) -> Iterator[Line]:
    """All file checks, in the order they are printed."""
    subjects = subjects_of(statement)
    predicate = statement["predicate"]
    results, line = _results(source, subjects, predicate)
    yield from _subjects(source, subjects, predicate, results)
    yield line
    if source.released and results is not None and results.free:
        named = ", ".join(shown(uid) for uid in results.free)
        yield FREE_TEXTS, "ok", [f"{named} hold texts that somebody chose: pack with `sacro-deltab release`"], ""
    yield from _checksums(source, predicate)
    yield _inside(source, statement)


def _subjects(
    source: Source,
    subjects: Mapping[str, Mapping[str, str]],
    predicate: Mapping[str, Any],
    results: ResultsReading | None,
) -> Iterator[Line]:
    problems = list(source.problems)
    skip = {ENVELOPE, SHOWN, RESULTS} | ({SUMMARY} if source.released else set())
    unlisted = [n for n in source.names if n not in subjects and n not in skip]
    changed = [n for n in source.names if n in subjects and n != RESULTS and source.digests(n).to_json() != subjects[n]]
    problems += [f"{shown(n)} was changed" for n in changed]
    problems += [f"{shown(n)} is not in the record" for n in unlisted]
    if SHOWN in source.names and source.read(SHOWN) != shown_envelope(source.read(ENVELOPE)):
        problems.append(f"{SHOWN} is not the signed record as a text")
    missing, tolerated = _missing(source, subjects, predicate, results)
    problems += [f"{shown(n)} is missing" for n in missing]
    if source.released:
        problems += _released(source, results)
    here = sum(n in subjects for n in source.names)
    yield "files", "ok", problems, f"{here} of {len(subjects)} files, SHA-256 and SHA-512 of each as certified"
    if tolerated:
        why = "not part of this release" if source.released else "kept inside with inside/"
        yield "absent files", "not checked", [], f"{why}: {', '.join(shown(n) for n in tolerated)}"


def let_out(source: Source, predicate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The outputs of which a release holds a file."""
    return [o for o in asked(predicate) if set(o["files"]) & set(source.names)]


def _released(source: Source, results: ResultsReading | None) -> list[str]:
    """What a release holds besides files: the viewer's summary, and the order in which a zip has its members."""
    if results is None:
        return []  # said of results.json
    problems = []
    summary = [n for n in source.names if n == SUMMARY]
    if summary and (results.summary is None or source.read(SUMMARY) != results.summary.encode("utf-8", "replace")):
        problems.append(f"{SUMMARY} is not the summary in results.json")
    if source.order and list(source.order) != [RESULTS, *results.files, *summary]:
        problems.append("the zip's members are not results.json, the files it lists and the summary, in this order")
    return problems


def _missing(
    source: Source, subjects: Mapping[str, Any], predicate: Mapping[str, Any], results: ResultsReading | None
) -> tuple[list[str], list[str]]:
    """Files that must be here, and files whose absence is told apart (kept inside, or not released)."""
    absent = [n for n in subjects if n not in source.names]
    if source.released:
        listed = (set(results.files) if results else set()) - set(predicate["kept_inside"])
        return [n for n in absent if n in listed or n == RESULTS], [n for n in absent if n not in listed]
    if source.inventory is not None and source.inventory.inside is None:
        kept = set(predicate["kept_inside"])
        return [n for n in absent if n not in kept], [n for n in absent if n in kept]
    return absent, []


def _results(
    source: Source, subjects: Mapping[str, Mapping[str, str]], predicate: Mapping[str, Any]
) -> tuple[ResultsReading | None, Line]:
    name = "results.json"
    if RESULTS not in source.names:
        return None, (name, "ok", ["results.json is missing"], "")
    as_certified = source.digests(RESULTS).to_json() == subjects.get(RESULTS)
    if as_certified and not source.released:
        return None, (name, "ok", [], "as certified")
    known = {n: digest["sha256"] for n, digest in subjects.items() if "sha256" in digest}
    known |= {n: source.digests(n).sha256 for n in (ENVELOPE, SHOWN) if n in source.names}
    try:
        reading = read_results(source.read(RESULTS), predicate, known, released=source.released)
    except SacroDeltabError as error:
        return None, (name, "ok", [f"results.json was changed: {error.what}"], "")
    if as_certified:
        return reading, (name, "ok", [], "as certified")
    if reading.changed:
        return reading, (name, "ok", list(reading.changed), "")
    if reading.absent and not source.released:
        return reading, (name, "ok", [f"record {shown(reading.absent[0])} was removed from results.json"], "")
    return reading, (name, "ok", [], "reviewed, otherwise as certified: " + _reviewed(reading))


def _reviewed(reading: ResultsReading) -> str:
    text = "; ".join(reading.reviewed) or "nothing but what follows from the files"
    return text + (f"; not released: {', '.join(shown(uid) for uid in reading.absent)}" if reading.absent else "")


def _checksums(source: Source, predicate: Mapping[str, Any]) -> Iterator[Line]:
    inventory = source.inventory
    if source.released or inventory is None:
        yield "checksums", "not checked", [], "checksums/ and config.json are not part of a release"
        return
    certified: Mapping[str, str] = predicate["checksums"]
    derived = [n for n in (STATEMENT, ENVELOPE, SHOWN) if n in source.names and n not in certified]
    expected = {*certified, *derived}
    gone = sorted(expected - set(inventory.checksums))
    kept = set(predicate["kept_inside"]) if inventory.inside is None else set()
    problems = [f"checksums/{shown(n)}.txt is missing" for n in gone if n not in kept]
    problems += [f"checksums/{shown(n)}.txt is not in the record" for n in set(inventory.checksums) - expected]
    for name, path in inventory.checksums.items():
        if name in derived:
            right = read_member(path, limit=256) == source.digests(name).sha256.encode()
        else:
            right = name not in certified or digest_file(path).sha256 == certified[name]
        if not right:
            problems.append(f"checksums/{shown(name)}.txt was changed")
    yield "checksums", "ok", sorted(problems), f"{len(inventory.checksums)} checksum files as certified"


def _inside(source: Source, statement: Mapping[str, Any]) -> Line:
    digest = next((s["digest"] for s in statement["subject"] if s["name"] == INSIDE_SUBJECT), None)
    inside = source.inventory.inside if source.inventory is not None else None
    if inside is None:
        return "inside", "not checked", [], "inside/ stayed behind, so the evidence behind the record was not compared"
    if digest is None:
        return "inside", "ok", ["inside/ is not in the record"], ""
    try:
        same = inside_digest(inside) == digest["sacro_deltab_salted"]
    except SacroDeltabError as error:
        return "inside", "ok", [error.what], ""
    return "inside", "ok", [] if same else ["a file in inside/ was changed, added or removed"], "evidence as certified"
