"""The trust file: which keys may sign for which node and role, and which ledgers count.

A TRE keeps this file where researchers cannot write. Nothing that is checked is ever allowed to name its own key.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..base import schemas
from ..base.canonical import canonical_json
from ..base.digests import sha256_hex
from ..base.errors import InputError, UnreadableError
from ..base.strict import read_json
from ..base.writing import write_file

SCHEMA = "sacro_deltab/trust/1"
ROLES = ("tool", "checker1", "checker2", "dac")


@dataclass(frozen=True)
class TrustedKey:
    """One public key, the role it signs in, its node, and when it counts (both ends inclusive, UTC).

    A key that was lost is `revoked`: nothing that it ever signed counts, since whoever has it may write any date.
    """

    keyid: str
    public_pem: str
    role: str
    node: str
    valid_from: datetime
    valid_to: datetime
    revoked: datetime | None = None

    def valid_at(self, moment: datetime) -> bool:
        """True when the key counts at `moment`."""
        return self.revoked is None and self.valid_from <= moment <= self.valid_to


@dataclass(frozen=True)
class PinnedLedger:
    """A ledger that counts for a node."""

    id: str
    head_key: str
    node: str = "local"


@dataclass(frozen=True)
class Trust:
    """A trust file as read. Make one with `load_trust`."""

    keys: Mapping[str, TrustedKey] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ledgers: tuple[PinnedLedger, ...] = ()
    path: Path | None = None

    def key(self, keyid: str) -> TrustedKey | None:
        """The key with this id, or None."""
        return self.keys.get(keyid)

    def pins_ledger(self, ledger_id: str, head_key: str, node: str | None = None) -> bool:
        """True when a ledger with this id and head key counts (for `node`, when given)."""
        return any(
            pin.id == ledger_id and pin.head_key == head_key and node in (None, pin.node) for pin in self.ledgers
        )

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "schema": SCHEMA,
            "keys": {
                keyid: {
                    "public_pem": key.public_pem,
                    "role": key.role,
                    "node": key.node,
                    "valid_from": _text(key.valid_from),
                    "valid_to": _text(key.valid_to),
                    **({} if key.revoked is None else {"revoked": _text(key.revoked)}),
                }
                for keyid, key in sorted(self.keys.items())
            },
            "nodes": {node: {"thresholds": dict(roles)} for node, roles in sorted(self.thresholds.items())},
            "ledgers": [vars(pin) for pin in self.ledgers],
        }


def load_trust(path: str | Path) -> Trust:
    """Read a trust file.

    Raises
    ------
    UnreadableError
        It is missing, larger than 4 MiB, no JSON, or not of schema `sacro_deltab/trust/1`; all faults in one message.
    """
    path = Path(path)
    document = read_json(path)
    faults = _faults(document)
    if faults:
        raise UnreadableError(
            f"the trust file does not follow its schema: {'; '.join(faults)}",
            path=path,
            next_step="Write it with `keygen --trust` and `ledger open --trust`.",
        )
    return _from_json(document, path)


def _faults(document: Any) -> list[str]:
    if wrong := schemas.faults(document, "trust"):
        return [str(fault) for fault in wrong]
    faults = []
    for keyid, entry in document["keys"].items():
        try:
            start, end = _moment(entry["valid_from"]), _moment(entry["valid_to"])
            _moment(entry.get("revoked", entry["valid_to"]))
        except ValueError:
            faults.append(f"$.keys.{keyid}: a date that does not exist")
            continue
        if end < start:
            faults.append(f"$.keys.{keyid}: valid_to is before valid_from")
    return faults


def _from_json(document: Mapping[str, Any], path: Path | None) -> Trust:
    keys = {keyid: _key(keyid, entry) for keyid, entry in document["keys"].items()}
    thresholds = {node: dict(entry["thresholds"]) for node, entry in document["nodes"].items()}
    ledgers = tuple(PinnedLedger(e["id"], e["head_key"], e["node"]) for e in document["ledgers"])
    return Trust(keys, thresholds, ledgers, path)


def _key(keyid: str, e: Mapping[str, Any]) -> TrustedKey:
    gone = _moment(e["revoked"]) if "revoked" in e else None
    return TrustedKey(
        keyid, e["public_pem"], e["role"], e["node"], _moment(e["valid_from"]), _moment(e["valid_to"]), gone
    )


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- writing ----------------------------------------------------------------------------------------------------------


def key_id(public_pem: str) -> str:
    """Id of a key: SHA-256 (hex) of its PEM text's DER part, so that line ends and comments do not matter."""
    body = re.sub(r"-----[A-Z ]+-----|\s", "", public_pem)
    try:
        return sha256_hex(base64.b64decode(body, validate=True))
    except ValueError as error:
        raise InputError("this is no public key in PEM form") from error


def add_key(
    path: str | Path,
    *,
    public_pem: str,
    role: str,
    node: str = "local",
    keyid: str | None = None,
    valid_from: datetime | None = None,
    valid_for: timedelta = timedelta(days=731),
    threshold: int | None = 1,
) -> Trust:
    """Add a key to a trust file, making the file when it is missing; an existing threshold stays.

    The key counts from now (whole seconds, rounded down) for two years. An id that is there with another key, role or
    node is refused, so that a role cannot be changed by adding.
    """
    if role not in ROLES:
        raise InputError(f"a role is one of {', '.join(ROLES)}")
    start = (valid_from or datetime.now(UTC)).replace(microsecond=0)
    entry = TrustedKey(keyid or key_id(public_pem), public_pem, role, node, start, start + valid_for)
    trust = _existing(path)
    known = trust.key(entry.keyid)
    if known is not None and known.revoked is not None:
        raise InputError("this key was revoked", path=path, next_step="Make another with `sacro-deltab keygen`.")
    if known is not None and (known.public_pem, known.role, known.node) != (public_pem, role, node):
        raise InputError("the trust file has this key already, in another role or node", path=path)
    thresholds = {name: dict(roles) for name, roles in trust.thresholds.items()}
    roles = thresholds.setdefault(node, {})
    if threshold is not None:  # None: keys of this role may sign, and need not
        roles.setdefault(role, threshold)
    return write_trust(Trust({**trust.keys, entry.keyid: entry}, thresholds, trust.ledgers), path)


def revoke_key(path: str | Path, keyid: str, *, now: datetime | None = None) -> TrustedKey:
    """Say that a key was lost or taken: nothing that it signed counts any more, whatever date it bears.

    Raises
    ------
    InputError
        No key, or more than one, begins so.
    """
    trust = load_trust(path)
    found = [key for key in trust.keys.values() if key.keyid.startswith(keyid)] if len(keyid) >= 8 else []
    if len(found) != 1:
        raise InputError(
            "no single key of the trust file begins so", path=path, next_step="Give at least 8 characters of its id."
        )
    gone = replace(found[0], revoked=(now or datetime.now(UTC)).replace(microsecond=0))
    write_trust(replace(trust, keys={**trust.keys, gone.keyid: gone}), path)
    return gone


def exported(trust: Trust, node: str) -> Trust:
    """What another TRE must know of this one: its keys that count, and its ledgers, under the name of its node."""
    keys = {k: replace(key, node=node) for k, key in trust.keys.items() if key.revoked is None and key.role == "tool"}
    ledgers = tuple(replace(pin, node=node) for pin in trust.ledgers)
    if not keys:
        raise InputError("this trust file has no key that signs certificates", next_step="keygen --role tool makes one")
    return Trust(keys, {node: {"tool": 1}}, ledgers)


def fingerprint(trust: Trust) -> str:
    """Eight groups of five digits, to be read over the telephone: of everything that a trust file says."""
    number = int(sha256_hex(canonical_json(trust.to_json())), 16)
    digits = f"{number % 10**40:040d}"
    return " ".join(digits[i : i + 5] for i in range(0, 40, 5))


def add_node(path: str | Path, other: Trust) -> Trust:
    """Enter another TRE's keys and ledgers.

    Raises
    ------
    InputError
        A key or ledger is known under another node or role, a node of that name has other keys, or a ledger another
        head key: two names for one node, or one name for two.
    """
    trust = _existing(path)
    if len(other.thresholds) != 1 or any(key.role != "tool" for key in other.keys.values()):
        raise InputError(
            "this is no other TRE's export: it has keys of checkers or of a committee, or of several nodes", path=path,
            next_step="Ask the other TRE for what `sacro-deltab trust export` writes.",
        )  # fmt: skip
    for key in other.keys.values():
        known = trust.key(key.keyid)
        if known is not None and known != key:
            raise InputError(f"the key {key.keyid[:12]} is known already, as {known.role} of {known.node}", path=path)
    for pin in other.ledgers:
        if any(old.id == pin.id and old != pin for old in trust.ledgers):
            raise InputError(
                f"the ledger {pin.id[:12]} is known already, of another node or with another key", path=path
            )
    for node in other.thresholds:
        theirs = {k for k, key in trust.keys.items() if key.node == node}
        if theirs and theirs != {k for k, key in other.keys.items() if key.node == node}:
            raise InputError(f"the trust file has a node {node} with other keys", path=path,
                             next_step="One node has one name: ask it which keys are its own.")  # fmt: skip
    ledgers = (*trust.ledgers, *(pin for pin in other.ledgers if pin not in trust.ledgers))
    return write_trust(Trust({**trust.keys, **other.keys}, {**trust.thresholds, **other.thresholds}, ledgers), path)


def pin_ledger(path: str | Path, ledger_id: str, head_key: str, *, node: str = "local") -> Trust:
    """Add a ledger to a trust file, making the file when it is missing.

    An id that is pinned with another head key is refused: that would be a replaced ledger.
    """
    trust = _existing(path)
    for pin in trust.ledgers:
        if pin.id == ledger_id and pin.head_key != head_key:
            raise InputError("the trust file pins this ledger with another head key", path=path)
    pin = PinnedLedger(ledger_id, head_key, node)
    ledgers = trust.ledgers if pin in trust.ledgers else (*trust.ledgers, pin)
    return write_trust(Trust(trust.keys, trust.thresholds or {node: {}}, ledgers), path)


def _existing(path: str | Path) -> Trust:
    return load_trust(path) if Path(path).exists() else Trust()


def write_trust(trust: Trust, path: str | Path) -> Trust:
    """Check and write a trust file in one step: a reader sees the old one or the new one."""
    path = Path(path)
    document = trust.to_json()
    faults: Iterable[str] = _faults(document)
    if faults:
        raise InputError(f"this would be no valid trust file: {'; '.join(faults)}", path=path)
    write_file(path, json.dumps(document, indent=2, sort_keys=True) + "\n")
    return Trust(trust.keys, trust.thresholds, trust.ledgers, path)
