"""The short form in which a statement is written: every rule and every fact is named once, with the outputs it is of.

Thirty outputs share most of their rules and facts, and naming them under each output made two thirds of a record.
`pack` loses nothing and has one result for one statement; `full` gives the form that programs read, and refuses a
packed one that would not be packed again to the same bytes, so nothing can hide between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import CertificateError

FACTS_BY = ("measured", "recorded", "declared", "attested", "ledger")
_MOST_NAMES = 2_000_000
_USUAL: dict[str, Any] = {"kept_inside": False, "cells_marked": False, "says": {}, "questions": []}


def pack(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The form that is written, of a statement in full.

    Raises
    ------
    CertificateError
        A name that the short form cannot carry (a blank in it), or a file that is in two outputs.
    """
    predicate = dict(statement["predicate"])
    outputs: Sequence[Mapping[str, Any]] = predicate["outputs"]
    files = {entry["file"]: entry["verdict"] for entry in predicate["files"]}
    if len(files) != len(predicate["files"]):
        raise CertificateError("a file is part of two outputs.")
    predicate["outputs"] = [
        {k: v for k, v in o.items() if k not in ("rules", "facts") and not (k in _USUAL and v == _USUAL[k])}
        for o in outputs
    ]
    predicate["rules"] = [
        {"result": result, "of": of, "rules": names} for result, of, names in _groups([o["rules"] for o in outputs])
    ]
    predicate["facts"] = [
        {"by": by, "of": of, "facts": names} for by, of, names in _groups([o["facts"] for o in outputs])
    ]
    predicate["files"] = files
    predicate["checksums"] = _short_checksums(predicate["checksums"], _acro_checksums(statement))
    predicate["results"] = {
        **predicate["results"],
        "records": {
            uid: [r["status"], r["sha256"], *r["comments"]] for uid, r in predicate["results"]["records"].items()
        },
    }
    return {**statement, "predicate": predicate}


def full(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The full form of a packed statement that follows its schema.

    Raises
    ------
    CertificateError
        It is not what `pack` writes: a number without an output, a file without one, another order or spelling.
    """
    predicate = dict(statement["predicate"])
    try:
        outputs = [{**_USUAL, **o, "rules": {}, "facts": {by: [] for by in FACTS_BY}} for o in predicate["outputs"]]
        _spread(predicate.pop("rules"), "result", "rules", outputs)
        _spread(predicate.pop("facts"), "by", "facts", outputs)
        for output in outputs:
            for what in ("rules", "facts"):
                output[what] = {kind: _each_once(names) for kind, names in output[what].items()}
        verdicts = predicate["files"]
        predicate["files"] = [
            {"file": name, "verdict": verdicts[name], "output": o["name"], "kept_inside": o["kept_inside"]}
            for o in outputs
            for name in o["files"]
        ]
        short = predicate["checksums"]
        acro = _acro_checksums(statement)
        predicate["checksums"] = {n: acro[n] for n in acro if n not in short["without"]} | short["other"]
        predicate["results"] = {
            **predicate["results"],
            "records": {
                uid: {"status": r[0], "sha256": r[1], "comments": r[2:]}
                for uid, r in predicate["results"]["records"].items()
            },
        }
        made = {**statement, "predicate": {**predicate, "outputs": outputs}}
        same = pack(made) == statement
    except (KeyError, IndexError, ValueError) as error:
        raise CertificateError(f"the statement's short form does not hold ({type(error).__name__}).") from None
    if not same:
        raise CertificateError("the statement's short form is not the one that is written.")
    return made


def _groups(of_outputs: Sequence[Mapping[str, Iterable[str]]]) -> list[tuple[str, str, str]]:
    """(kind, numbers of outputs, names), sorted: names of one kind that the same outputs have stand together."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, kinds in enumerate(of_outputs):
        for kind, names in kinds.items():
            for name in names:
                if not name or any(c.isspace() for c in name):
                    raise CertificateError("a rule or fact has a name with a blank in it.")
                found.setdefault((kind, name), []).append(index)
    together: dict[tuple[str, str], list[str]] = {}
    for (kind, name), indices in sorted(found.items()):
        together.setdefault((kind, _ranges(indices)), []).append(name)
    return [(kind, of, " ".join(names)) for (kind, of), names in sorted(together.items())]


def _ranges(indices: Sequence[int]) -> str:
    """`0-3 7` of [0, 1, 2, 3, 7]."""
    parts: list[list[int]] = []
    for index in indices:
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def _spread(groups: Sequence[Mapping[str, str]], kind: str, what: str, outputs: Sequence[Mapping[str, Any]]) -> None:
    """Put the names of each group back under its outputs. Nobody has signed what is read here yet: no bombs."""
    written = 0
    for group in groups:
        names = group[what].split(" ")
        for index in _numbers(group["of"], len(outputs)):
            written += len(names)
            if written > _MOST_NAMES:
                raise ValueError("more names than any release has")
            outputs[index][what].setdefault(group[kind], []).extend(names)


def _each_once(names: Sequence[str]) -> list[str]:
    if len(set(names)) != len(names):
        raise ValueError("a name stands twice")
    return sorted(names)


def _numbers(text: str, count: int) -> list[int]:
    out: list[int] = []
    for part in text.split(" "):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if high >= count or len(out) > count:
            raise ValueError("a number without an output")
        out += range(low, high + 1)
    return out


def _acro_checksums(statement: Mapping[str, Any]) -> dict[str, str]:
    """Digest of the checksum file that ACRO writes for each subject: SHA-256 in hex and nothing else."""
    return {s["name"]: sha256_hex(s["digest"]["sha256"]) for s in statement["subject"] if "sha256" in s["digest"]}


def _short_checksums(real: Mapping[str, str], acro: Mapping[str, str]) -> dict[str, Any]:
    return {
        "without": sorted(n for n in acro if real.get(n) != acro[n]),
        "other": {n: digest for n, digest in real.items() if acro.get(n) != digest},
    }
