"""One node's files, verified first and read afterwards.

A node sends what left its TRE: the session folder without `inside/`, or the zip SACRO-Viewer made of it. The files are
copied to a place of their own, the copy is verified, and only that copy is read: nobody can swap a file in between.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, RefusedError, SacroDeltabError
from ..base.strict import DATA, parse
from ..certificate.layout import ENVELOPE
from ..kinds.papers import CERTIFICATE
from ..outputs.document import OutputDocument

if TYPE_CHECKING:
    from ..ledger.trust import Trust

_KEEP_OUT = "inside"
_LARGEST = 1e100  # beyond this nothing measured in years or sums of people can be; 1e999 reads as infinity
_DECIDERS = ("checker1", "checker2", "dac")


@dataclass(frozen=True)
class Node:
    """What one node sent, after its certificate held.

    documents: by file stem, only those that passed or went to a person; withheld: stems that stayed inside there.
    envelope_sha256: digest of the signed certificate, the material of the pooled certificate.
    """

    path: Path
    name: str
    predicate: Mapping[str, Any]
    documents: Mapping[str, OutputDocument]
    withheld: tuple[str, ...]
    envelope_sha256: str
    signers: tuple[tuple[str, str], ...]
    undecided: tuple[str, ...] = field(default=())

    @property
    def certificate_id(self) -> str:
        """Id of the node's certificate."""
        return str(self.predicate["certificate_id"])

    @property
    def policy(self) -> Mapping[str, Any]:
        """Rule set of the node: id, version, sha256, parameters."""
        value: Mapping[str, Any] = self.predicate["policy"]
        return value

    @property
    def ledger(self) -> Mapping[str, Any] | None:
        """Ledger block of the certificate."""
        value: Mapping[str, Any] | None = self.predicate["privacy"]["ledger"]
        return value

    def of_type(self, kind: str) -> OutputDocument | None:
        """The document of an output type, or None. Two of one type: the first by name."""
        return next((d for _, d in sorted(self.documents.items()) if d.type == kind), None)

    def release(self, output: str) -> Mapping[str, Any] | None:
        """Privacy statement, as certified, of the noisy release an output belongs to."""
        releases: list[Mapping[str, Any]] = self.predicate["privacy"]["releases"]
        return next((r for r in releases if output in r["outputs"]), None)

    def rules_met(self, output: str) -> frozenset[str]:
        """Rules that the certificate says an output met."""
        found = next((o for o in self.predicate["outputs"] if o["name"] == output), None)
        return frozenset() if found is None else frozenset(found["rules"].get("met", ()))


def read_node(path: Path, trust: Trust, scratch: Path, *, at: datetime | None = None) -> Node:
    """Verify one node's folder or zip and read its documents.

    Parameters
    ----------
    path
        Folder or zip as it arrived.
    trust
        The aggregator's trust file: keys of every node.
    scratch
        A private folder for the copy.
    at
        Moment at which keys must count; default now.

    Raises
    ------
    RefusedError
        The certificate does not hold, or its verdict is fail.
    InputError, UnreadableError
        There is no such folder, or it holds no certificate.
    """
    from ..certificate.sources import open_source  # late: brings numpy, scipy …
    from ..certificate.verify import verify_path

    copy = _snapshot(path, scratch)
    try:
        result = verify_path(copy, trust, at=at)
    except SacroDeltabError as error:
        raise type(error)(error.what, path=path, place=error.place, next_step=error.next_step) from error
    failed = result.first_failure
    if failed is not None or result.statement is None:
        name = "certificate" if failed is None else failed.name
        text = "it does not hold" if failed is None else failed.text
        raise RefusedError(
            f"the node's certificate does not hold ({name}): {text}",
            path=path,
            next_step="ask the node for the files as they were certified, or the TREs for an up-to-date trust file.",
        )
    predicate = result.statement["predicate"]
    name = str(predicate["made"]["node"])
    if predicate["verdict"] == "fail":
        raise RefusedError(
            f"node {name} certified these files as fail, so none of them may be pooled",
            path=path,
            next_step="ask the node to release them again without what failed.",
        )
    source = open_source(copy)
    documents, withheld = _documents(path, source, predicate, frozenset(result.files))
    return Node(
        path=path,
        name=name,
        predicate=predicate,
        documents=documents,
        withheld=withheld,
        envelope_sha256=source.digests(ENVELOPE).sha256,
        signers=result.signers,
        undecided=_undecided(predicate, result.signers),
    )


def _snapshot(path: Path, scratch: Path) -> Path:
    """A private copy: what is verified is what is read. `inside/` has no business here and is not copied."""
    target = scratch / f"node-{len(list(scratch.iterdir()))}"
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.copytree(path, target, symlinks=True, ignore=_skip_inside(path))
        except (OSError, shutil.Error) as error:
            raise InputError("the node's folder cannot be read", path=path) from error
        return target
    if path.is_file() and not path.is_symlink():
        target = target.with_suffix(".zip")
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise InputError("the node's zip cannot be read", path=path) from error
        return target
    raise InputError("there is no such folder or zip.", path=path, next_step="Name what the node released.")


def _skip_inside(top: Path) -> Any:
    def skip(folder: str, names: list[str]) -> set[str]:
        return {_KEEP_OUT} & set(names) if Path(folder) == top else set()

    return skip


def _documents(
    path: Path, source: Any, predicate: Mapping[str, Any], held: frozenset[str]
) -> tuple[dict[str, OutputDocument], tuple[str, ...]]:
    """Documents whose digests hold and whose certified verdict is pass or review, and the stems that were withheld."""
    from ..judging.schema import document_errors  # late: brings numpy, scipy …

    types = {str(o["name"]): str(o["type"]) for o in predicate["outputs"]}
    documents: dict[str, OutputDocument] = {}
    withheld: set[str] = set()
    votes = _votes(predicate)  # a decision holds for an output with all its files
    down = {str(f["output"]) for f in predicate["files"] if any(v != "accept" for v in votes.get(str(f["file"]), ()))}
    for entry in predicate["files"]:
        name, output = str(entry["file"]), str(entry["output"])
        if entry["kept_inside"] or entry["verdict"] == "fail" or output in down:
            withheld.add(output)
            continue
        known = types.get(output)
        if not name.endswith(".json") or name not in held or known in (None, CERTIFICATE, "unknown"):
            continue
        data = parse(source.read(name), path=path / name, bounds=DATA)
        errors = document_errors(data) if isinstance(data, dict) else ["it is no document"]
        if errors:
            raise RefusedError(f"a document does not match its schema: {errors[0]}", path=path / name)
        if data["type"] != known or data["name"] != output:
            raise RefusedError("a document is not of the type that was certified", path=path / name)
        if any(isinstance(c, int | float) and not abs(c) < _LARGEST for row in data["rows"] for c in row):
            raise RefusedError("a document holds a number that is none", path=path / name)
        documents[output] = OutputDocument.from_json(data)
    return documents, tuple(sorted(withheld))


def _undecided(predicate: Mapping[str, Any], signers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Outputs certified for review that no person has decided: no acceptance in the record, no checker's signature."""
    if any(role in _DECIDERS for _, role in signers):
        return ()
    votes = _votes(predicate)
    waiting = {
        str(f["output"])
        for f in predicate["files"]
        if f["verdict"] == "review" and not f["kept_inside"] and not votes.get(str(f["file"]))
    }
    return tuple(sorted(waiting))


def _votes(predicate: Mapping[str, Any]) -> dict[str, list[str]]:
    votes: dict[str, list[str]] = {}
    for answer in predicate["people"]["answers"]:
        votes.setdefault(str(answer["file"]), []).append(str(answer["decision"]))
    return votes
