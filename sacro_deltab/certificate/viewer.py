"""What SACRO-Viewer itself adds to results.json, told apart from every other change: made again, or bounded.

The viewer writes with two-space indent and adds to each listed file, in this order, its url, whether its checksum
holds, the checksum and the cells that its checks marked: all four follow from the files. A review adds three entries at
the end; in the release zip the records that were not approved are gone, and the others have the status "approved" and
at most one more comment. What a person wrote there is held to a length (`viewer_words`). Anything else is no work of
the viewer, the order of records and of their entries included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..base.canonical import canonical_json
from ..base.digests import sha256_hex
from ..base.names import shown
from ..base.strict import DATA, parse
from ..build.others import blanked, free_texts
from ..build.results import CERTIFICATE_RECORD, dumped, natural
from .viewer_words import Summary, read_summary, reviewer_faults, word_faults

_ADDED = ("url", "checksum_valid", "checksum", "cell_index")
_REVIEW = ("reviewer_summary", "review_timestamp", "reviewer")
_HEAD = ("version", "tool")
_FREE = frozenset({"status", "comments"})
_APPROVED = "approved"
_PATH = re.compile(r"[^\x00-\x1f?&=]{0,300}results\.json")
_MOST_PATH_DIGITS = 40
CHECKER = "Output Checker: "  # what the viewer writes before a comment


@dataclass(frozen=True)
class ResultsReading:
    """How results.json compares with the one that was certified.

    changed: what no viewer does; reviewed: what a viewer did; absent: records that are not here (a release zip); files:
    those that the records list, in their order; summary: what was written in the viewer; free: records of others with
    texts that somebody chose.
    """

    changed: tuple[str, ...]
    reviewed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    summary: str | None = None
    free: tuple[str, ...] = ()

    @property
    def words(self) -> bool:
        """Whether somebody wrote something in the viewer."""
        found = read_summary(self.summary or "")
        return self.summary is not None and (found is None or any(found.words))


def _ordered(value: Any) -> str:
    """Digest of a value with the order of its entries and the spelling of its numbers."""
    return sha256_hex(json.dumps(value, separators=(",", ":")).encode("ascii"))


def _normalise(value: Any) -> Any:
    """Same value, integral floats as integers: the digests of older statements are of this, without an order."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _normalise(item) for key, item in value.items()}
    return [_normalise(item) for item in value] if isinstance(value, list) else value


def _same(value: Any, digest: object) -> bool:
    """Whether a signed digest is of this value; statements of before hold the digest of a value without its order."""
    return digest in (_ordered(value), sha256_hex(canonical_json(_normalise(_without_places(value)))))


def _without_places(value: Any) -> Any:
    return {k: v for k, v in value.items() if k not in _FREE} if isinstance(value, dict) else value


def _fixed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what the viewer may add; status and comments keep their places."""
    fixed = {key: None if key in _FREE else value for key, value in record.items()}
    files = fixed.get("files")
    if isinstance(files, list):
        fixed["files"] = [{k: v for k, v in f.items() if k not in _ADDED} if isinstance(f, dict) else f for f in files]
    return fixed


def _comment_digest(comment: object) -> str:
    return sha256_hex(canonical_json(comment))


def _packed_digest(record: Mapping[str, Any], own: Set[str]) -> str | None:
    """Digest of what is packed of a record of others in which somebody chose a text; None where it is packed whole."""
    try:
        if {str(f["name"]) for f in record["files"]} <= own or not set(free_texts(record)) - {"uid"}:
            return None
        return _ordered(_fixed(blanked(record)))
    except (KeyError, TypeError):  # not of ACRO's form: the check has failed it, and nothing of it is packed
        return None


def record_digests(results: Mapping[str, Any], own: Set[str]) -> dict[str, Any]:
    """What a statement keeps of results.json, so that a rewritten one can still be checked record by record.

    A record with files that are not `own` was made by others: where somebody chose a text in it, `blanked` has the
    digest of what is packed of it.
    """
    records = results.get("results")
    out: dict[str, Any] = {}
    blank: dict[str, str] = {}
    for uid, record in records.items() if isinstance(records, dict) else ():
        if isinstance(record, dict):
            comments = record.get("comments")
            out[str(uid)] = {
                "sha256": _ordered(_fixed(record)),
                "status": str(record.get("status")),
                "comments": [_comment_digest(c) for c in comments] if isinstance(comments, list) else [],
            }
            packed = _packed_digest(record, own)
            if packed is not None:
                blank[str(uid)] = packed
    more = {"blanked": blank} if blank else {}
    return {"head_sha256": _ordered({key: results.get(key) for key in _HEAD}), "records": out, **more}


def listed_files(results: Mapping[str, Any]) -> list[str]:
    """Names of the files that records list."""
    return list(file_statuses(results))


def file_statuses(results: Mapping[str, Any]) -> dict[str, str]:
    """File → status of the record that lists it."""
    out: dict[str, str] = {}
    records = results.get("results")
    for record in records.values() if isinstance(records, dict) else ():
        files = record.get("files") if isinstance(record, dict) else None
        for item in files if isinstance(files, list) else ():
            if isinstance(item, dict):
                out[str(item.get("name"))] = str(record.get("status"))
    return out


def as_packed(results: Mapping[str, Any], blank: Container[str]) -> dict[str, Any]:
    """results.json of a certified folder without what the viewer added, and without free texts of these records."""
    records = {
        uid: (blanked(record) if uid in blank else record) | {"files": _fixed(record)["files"]}
        for uid, record in results["results"].items()
    }
    return {key: value for key, value in {**results, "results": records}.items() if key not in _REVIEW}


def own_order(uids: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The one order of records: ours by name, ACRO's by number, the certificate's last."""
    own = frozenset(outputs)
    return sorted(
        uids, key=lambda uid: (uid == CERTIFICATE_RECORD, uid not in own, uid if uid in own else "", natural(uid))
    )


def read_results(
    data: bytes, predicate: Mapping[str, Any], sha256_of: Mapping[str, str], *, released: bool = False
) -> ResultsReading:
    """Compare a rewritten results.json with the digests of the certified one.

    Parameters
    ----------
    data
        Bytes of results.json as found.
    predicate
        The predicate of the statement, in full.
    sha256_of
        SHA-256 of each file as it is here.
    released
        It is what was let out: a part of the records, all of them approved.
    """
    value = parse(data, path="results.json", bounds=DATA)
    records = value.get("results") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(records, dict):
        return ResultsReading(("results.json is no longer a record of a session",))
    reader = _Reader(predicate, sha256_of, released)
    reader.form(data, value)
    reader.head(value)
    for uid, record in records.items():
        reader.record(uid, record)
    reader.order(list(records))
    if reader.summary is not None:
        reader.words(reader.summary, records)
    absent = tuple(uid for uid in reader.known if uid not in records)
    return ResultsReading(
        tuple(reader.changed), tuple(reader.reviewed), absent, tuple(listed_files(value)), reader.text,
        tuple(reader.free),
    )  # fmt: skip


class _Reader:
    """One comparison: what it found so far, and what all records share."""

    def __init__(self, predicate: Mapping[str, Any], sha256_of: Mapping[str, str], released: bool) -> None:
        self.certified: Mapping[str, Any] = predicate["results"]
        self.known: Mapping[str, Any] = self.certified["records"]
        self.blanked: Mapping[str, str] = self.certified.get("blanked", {})
        self.free: list[str] = []
        self.outputs = [str(o["name"]) for o in predicate["outputs"]]
        self.sha256_of, self.released = sha256_of, released
        self.changed: list[str] = []
        self.reviewed: list[str] = []
        self.comments: dict[str, str] = {}
        self.paths: dict[str, None] = {}
        self.summary: Summary | None = None
        self.text: str | None = None
        self.by_viewer = False

    def form(self, data: bytes, value: Mapping[str, Any]) -> None:
        """The viewer's spelling, or the one in which the package itself writes what it releases."""
        data = data.replace(b"\r\n", b"\n")
        self.by_viewer = data == json.dumps(value, indent=2).encode("ascii")
        if not self.by_viewer and not (self.released and data == dumped(value)):
            self.changed.append("results.json was rewritten, and not by the viewer")

    def head(self, value: Mapping[str, Any]) -> None:
        """Version and tool as certified; what a review adds, in its places and forms."""
        first = [key for key in (*_HEAD, "results") if key in value]
        extra = [key for key in value if key not in first]
        self.changed.extend(f"results.json has a new entry {shown(key)}" for key in extra if key not in _REVIEW)
        if not _same({key: value.get(key) for key in _HEAD}, self.certified["head_sha256"]):
            self.changed.append("the version or tool entry of results.json was changed")
        if not extra:
            return
        if list(value) != [*first, *_REVIEW]:
            self.changed.append("a review left other entries in results.json than the viewer writes")
            return
        self.changed += reviewer_faults(value["reviewer"], value["review_timestamp"])
        self.text = value["reviewer_summary"] if isinstance(value["reviewer_summary"], str) else ""
        self.summary = read_summary(self.text)
        if self.summary is None:
            self.changed.append("the review's summary is not one that the viewer writes")
        who, when = shown(str(value["reviewer"])), shown(str(value["review_timestamp"]))
        self.reviewed.append(f"reviewed in the viewer by {who} at {when}")

    def record(self, uid: str, record: Any) -> None:
        """One record: as certified, with what the viewer adds to it."""
        if uid not in self.known:
            self.changed.append(f"record {shown(uid)} was added")
            return
        known = self.known[uid]
        blank = isinstance(record, dict) and self.released and _ordered(_fixed(record)) == self.blanked.get(uid)
        if not blank and (not isinstance(record, dict) or not _same(_fixed(record), known["sha256"])):
            self.changed.append(f"record {shown(uid)} was changed")
            return
        if uid in self.blanked and not blank:
            self.free.append(uid)
        for item in record["files"]:
            if self.by_viewer or any(key in item for key in _ADDED):
                self._file(uid, item)
        status, before = record.get("status"), known["status"]
        if status != before:
            if not self.released or status != _APPROVED:
                self.changed.append(f"the status of {shown(uid)} was changed from {before} to {shown(str(status))}")
            self.reviewed.append(f"{shown(uid)}: status {before} became {shown(str(status))}")
        self._comments(uid, record.get("comments"), [] if blank else known["comments"])

    def _file(self, uid: str, item: Mapping[str, Any]) -> None:
        name = str(item.get("name"))
        added = {key: item[key] for key in item if key in _ADDED}
        path = dict(parse_qsl(str(item.get("url")).partition("?")[2])).get("path", "")
        self.paths.setdefault(path)
        url = "/contents/?" + urlencode({"path": path, "output": uid, "filename": name})
        digest = self.sha256_of.get(name)
        forms = [
            {"url": url, "checksum_valid": True, "checksum": digest, "cell_index": _cell_index(item)},
            {"url": url, "checksum_valid": False, "checksum": None},  # no checksum file was beside it
        ]
        if not any(list(item)[-len(form) :] == list(form) and added == form for form in forms):
            self.changed.append(f"record {shown(uid)}: what stands beside {shown(name)} is not what the viewer adds")
        elif len(self.paths) > 1 or not _PATH.fullmatch(path) or sum(map(str.isdigit, path)) > _MOST_PATH_DIGITS:
            self.changed.append(f"record {shown(uid)}: the path beside {shown(name)} is not that of one results.json")

    def _comments(self, uid: str, comments: Any, known: Sequence[str]) -> None:
        if not isinstance(comments, list) or not all(isinstance(c, str) for c in comments):
            self.changed.append(f"the comments of {shown(uid)} are not a list of texts")
            return
        added = comments[len(known) :]
        if [_comment_digest(c) for c in comments[: len(known)]] != list(known):
            self.changed.append(f"a comment of {shown(uid)} was changed or removed")
        elif len(added) > int(self.released) or not all(c.startswith(CHECKER) for c in added):
            self.changed.append(f"a comment was added to {shown(uid)} that the viewer does not write")
        elif added:
            self.comments[uid] = added[0].removeprefix(CHECKER)
            self.reviewed.append(f"{shown(uid)}: 1 comment(s) added")
            if self.summary is None:
                self.changed += word_faults(list(self.comments.values()))

    def order(self, uids: Sequence[str]) -> None:
        """Records stand in one order (those of older statements in ACRO's)."""
        known = [uid for uid in own_order(uids, self.outputs) if uid in self.known]
        if [uid for uid in uids if uid in self.known] != known:
            self.changed.append("the records of results.json stand in another order")

    def words(self, summary: Summary, records: Mapping[str, Any]) -> None:
        """The summary is about these records, says of each what the record says, and is no longer than remarks are."""
        uids = own_order(list(self.known), self.outputs)
        if list(summary.decisions) != uids:
            self.changed.append("the review's summary is not about these records, in their order")
            return
        for uid, told in summary.decisions.items():
            if told.status != self.known[uid]["status"]:
                self.changed.append(f"the review's summary gives another status of {shown(uid)}")
            if self.released and (
                told.approved != (uid in records) or told.comment != self.comments.get(uid, told.comment)
            ):
                self.changed.append(f"the review's summary says otherwise of {shown(uid)} than its record")
        self.changed += word_faults(summary.words)
        said = [word for word in summary.words if word]
        self.reviewed.append(
            f"{len(said)} remark(s) of {sum(map(len, said))} characters were written in the viewer, signed by nobody"
        )


def _cell_index(item: Mapping[str, Any]) -> dict[str, list[str]]:
    """Flags by cell, as the viewer turns `sdc.cells` round."""
    sdc = item.get("sdc")
    cells = sdc.get("cells") if isinstance(sdc, dict) else None
    out: dict[str, list[str]] = {}
    for flag, places in cells.items() if isinstance(cells, dict) else ():
        for place in places if isinstance(places, list) else ():
            if isinstance(place, list) and len(place) == 2:
                out.setdefault(f"{place[0]},{place[1]}", []).append(flag)
    return out
