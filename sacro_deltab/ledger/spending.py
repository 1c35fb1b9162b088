"""Spend, draw, close: the life of one release in the ledger."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

from sqlalchemy import Connection, select

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import BudgetError, InputError, LedgerError, RefusedError
from ..base.strict import parse
from ..base.version import __version__
from ..privacy.spend import BudgetLimits, Receipt, SpendRequest
from . import schema
from .canonical import checked_digest, checked_text, partition_key
from .chain import Account, Writer, entry_of, shared_total, writing
from .handle import Handle
from .relations import Spent, beyond, spent_by_relation, to_json, with_spends
from .tally import Tally, checked_limits, checked_request, refusal, remaining
from .values import Entry

Draws = Literal["now", "later"]
SUMS = ("before", "after", "epsilon_exact_after", "by_relation", "smallest_after")  # what a ledger adds to the terms
_TERMS = ("mechanism", "epsilon", "delta_dp", "mu", "sigma", "adjacency", "unit", "kind", "label", "n_public")


def request_json(request: SpendRequest) -> dict[str, Any]:
    """The request as an entry holds it; every text is checked."""
    given: object = request.outputs
    if isinstance(given, str | bytes):
        raise InputError("the outputs of a spend are a list of names, not one text")
    outputs = tuple(checked_text(name, "an output's name", longest=400) for name in request.outputs)
    if not outputs:
        raise InputError("a spend names at least one output")
    mechanism = checked_text(request.mechanism, "mechanism")
    return {
        **asdict(replace(request, detail={})),
        "mechanism": mechanism,
        "outputs": list(outputs),
        "detail": dict(request.detail),
    }


def spend(
    ledger: Handle,
    request: SpendRequest,
    *,
    partition: str,
    limits: BudgetLimits,
    who: str,
    ruleset_sha256: str,
    draws: Draws,
    token: str | None,
    relation: str,
) -> Receipt:
    """See `Ledger.spend`."""
    name = partition_key(partition, request.unit)
    if not name.endswith(f"/{request.unit}"):
        raise InputError(f"partition {name} does not count in units of {request.unit!r}")
    if draws not in ("now", "later"):
        raise InputError("draws must be 'now' or 'later'")
    request, limits = checked_request(request), checked_limits(limits)
    terms = request_json(request)
    body = {
        **terms,
        "draws": draws,
        "limits": asdict(limits),
        "ruleset_sha256": checked_digest(ruleset_sha256, "the rule set's digest"),
        "versions": {"sacro_deltab": __version__, "python": platform.python_version()},
    }
    who, order = checked_text(who, "who"), token or uuid.uuid4().hex

    def act(again: bool) -> tuple[Entry, Tally, str | None]:
        with writing(ledger.store, ledger.identity, ledger.signing_key()) as writer:
            return _decide(writer, name, request, limits, body, who, order, again or token is not None, relation)

    entry, before, refused = ledger.store.retried(act)
    if refused is not None:
        raise _no_budget(name, before, limits, refused)
    return _receipt(ledger, entry)


def _receipt(ledger: Handle, entry: Entry) -> Receipt:
    """What a spend's own entry proves."""
    body = parse(entry.body)
    at_delta = body["limits"]["delta_per_release"]
    before, after = (Tally.from_json(body[name]).totals(at_delta) for name in ("before", "after"))
    return Receipt(ledger.id, entry.seq, entry.digest, before, after, ledger.pinned)


def ordered(ledger: Handle, token: str) -> Receipt | None:
    """See `Ledger.ordered`."""
    table = schema.entries
    with ledger.store.read() as connection:
        seq = connection.execute(select(table.c.seq).where(table.c.token == token, table.c.kind == "spend")).scalar()
        return None if seq is None else _receipt(ledger, _spend_entry(connection, ledger, seq))


def receipt_of(ledger: Handle, seq: int) -> Receipt:
    """See `Ledger.receipt`."""
    with ledger.store.read() as connection:
        return _receipt(ledger, _spend_entry(connection, ledger, seq))


def _decide(
    writer: Writer,
    name: str,
    request: SpendRequest,
    limits: BudgetLimits,
    body: Mapping[str, Any],
    who: str,
    token: str,
    again: bool,
    relation: str,
) -> tuple[Entry, Tally, str | None]:
    """Grant or refuse in one transaction; both leave an entry."""
    earlier = writer.by_token(token) if again else None  # our first answer was lost, not our first act
    if earlier is not None:
        found = parse(earlier.body)
        other = [term for term in _TERMS if canonical_line(found.get(term)) != canonical_line(body[term])]
        if other or earlier.partition != name:
            raise RefusedError(f"this order was made on other terms ({', '.join(other) or 'another cohort'})")
        return earlier, Tally.from_json(found["before"]), found.get("refused")
    before = shared_total(writer.accounts, name, _account(writer, name))
    after = _by_relation(writer, name, request, before)
    refused = refusal(request, before, limits) or beyond(after, relation, limits)
    if refused is not None:
        entry = writer.append(
            "refused", {**body, "before": before.to_json(), "refused": refused}, who=who, partition=name, token=token
        )
        return entry, before, refused
    return grant(writer, name, request, limits, body, who, token), before, None


def _account(writer: Writer, name: str) -> Account:
    """A partition's account, tied to the same cohort counted in other units: it is still one cohort."""
    account = writer.accounts.get(name, Account())
    return replace(account, links=_with_other_units(writer, name, account))


def grant(
    writer: Writer,
    name: str,
    request: SpendRequest,
    limits: BudgetLimits,
    body: Mapping[str, Any],
    who: str,
    token: str | None = None,
) -> Entry:
    """Append a spend that the limits cover, or that was made in the ledger which this one continues."""
    account = _account(writer, name)
    before = shared_total(writer.accounts, name, account)
    changed = {name: replace(account, own=account.own.plus(request), limits=limits)}
    for other in account.links:
        linked = writer.accounts[other]
        if name not in linked.links:
            changed[other] = replace(linked, links=tuple(sorted({*linked.links, name})))
    after = before.plus(request)
    spent = _by_relation(writer, name, request, before)
    return writer.append(
        "spend",
        {
            **body,
            "before": before.to_json(),
            "after": after.to_json(),
            "epsilon_exact_after": after.totals(limits.delta_per_release).epsilon_exact,
            "by_relation": to_json(spent),
            "smallest_after": {r: one.smallest(limits.delta_per_release) for r, one in spent.items()},
        },
        who=who,
        partition=name,
        token=token,
        accounts=changed,
    )


def _by_relation(writer: Writer, name: str, request: SpendRequest, before: Tally) -> dict[str, Spent]:
    """What would be spent under each relation, with everything that shares people with this partition."""
    names = {name, *_account(writer, name).links}
    return with_spends(spent_by_relation(writer.connection, names, before), request)


def _with_other_units(writer: Writer, name: str, account: Account) -> tuple[str, ...]:
    cohort = name.partition("/")[0]
    twins = {f"{cohort}/{unit}" for unit in ("person", "row")} - {name}
    return tuple(sorted({*account.links, *(twin for twin in twins if twin in writer.accounts)}))


def _no_budget(name: str, before: Tally, limits: BudgetLimits, refused: str) -> BudgetError:
    epsilon, delta_dp = remaining(before, limits)
    left = f"{epsilon:g} of {limits.epsilon_total:g} (δ: {delta_dp:g} of {limits.delta_total:g}) is left"
    if epsilon > 0 and delta_dp > 0:
        most = min(epsilon, limits.epsilon_per_release)
        many = int(epsilon * 10 * (1 + 1e-9) / most)
        advice = (
            f"One release of at most ε {most:g} fits, or {many} of ε {most / 10:g} each; "
            f"`sacro-deltab plan --epsilon {most:g}` says what that buys."
        )
    elif epsilon > 0:
        advice = "δ is used up, ε is not: a release without δ (Laplace noise) still fits."
    else:
        advice = "Nothing further may leave this partition. A new partition needs other people."
    return BudgetError(
        f"the budget of {name} does not cover this: {refused}; ε {left}. Nothing was spent", next_step=advice
    )


def _spend_entry(connection: Connection, ledger: Handle, seq: int) -> Entry:
    table = schema.entries
    row = connection.execute(select(table).where(table.c.seq == seq, table.c.kind == "spend")).first()
    if row is None:
        raise LedgerError(f"entry {seq} is no spend of this ledger", path=ledger.where)
    entry = entry_of(row, ledger.id)
    if entry.computed_digest() != entry.digest:
        raise LedgerError(f"entry {seq} was changed", path=ledger.where, next_step="Run `sacro-deltab ledger verify`.")
    return entry


def _followers(connection: Connection, ledger: Handle, seq: int) -> list[tuple[str, dict[str, Any], Entry]]:
    """Draw, attach and close entries of a spend, oldest first: (kind, body, entry)."""
    table = schema.entries
    query = select(table).where(table.c.ref == seq, table.c.kind.in_(("draw", "attach", "close"))).order_by(table.c.seq)
    return [(row.kind, parse(row.body), entry_of(row, ledger.id)) for row in connection.execute(query)]


def _sealed(after: list[tuple[str, dict[str, Any], Entry]]) -> str | None:
    """Digest of the one statistic that may be opened; None where none was sealed."""
    return next((body["sealed"] for kind, body, _ in after if kind == "draw" and "sealed" in body), None)


def _answered(
    ledger: Handle,
    seq: int,
    kind: str,
    body: dict[str, Any],
    who: str | None,
    known: Callable[[Entry, list[tuple[str, dict[str, Any], Entry]]], Entry | None],
) -> Entry:
    """Append one entry that answers a spend; `known` names the one that stands there already, or refuses."""
    token = uuid.uuid4().hex

    def act(again: bool) -> Entry:
        with writing(ledger.store, ledger.identity, ledger.signing_key()) as writer:
            earlier = writer.by_token(token) if again else None
            if earlier is not None:
                return earlier
            entry = _spend_entry(writer.connection, ledger, seq)
            same = known(entry, _followers(writer.connection, ledger, seq))
            if same is not None:
                return same
            return writer.append(kind, body, who=who or entry.who, partition=entry.partition, ref=seq, token=token)

    return ledger.store.retried(act)


def draw(ledger: Handle, seq: int, sealed: str, who: str | None) -> Entry:
    """See `Ledger.draw`."""
    body = {"sealed": checked_digest(sealed, "the digest of the sealed statistic")}

    def known(entry: Entry, after: list[tuple[str, dict[str, Any], Entry]]) -> Entry | None:
        if _sealed(after) == body["sealed"]:
            return after[0][2]
        if parse(entry.body)["draws"] != "later" or after:
            raise RefusedError(
                f"the noise of entry {seq} was drawn already: no other may be opened",
                next_step="Take up the result that was paid for, or spend again.",
            )
        return None

    return _answered(ledger, seq, "draw", body, who, known)


def sealed_in(ledger: Handle, seq: int) -> str | None:
    """See `Ledger.sealed_in`."""
    with ledger.store.read() as connection:
        return _sealed(_followers(connection, ledger, seq))


def close_spend(ledger: Handle, seq: int, released: str | Mapping[str, str], who: str | None) -> Entry:
    """See `Ledger.close_spend`."""
    if isinstance(released, str):
        body: dict[str, Any] = {"sha256": checked_digest(released, "the digest of the released bytes")}
    else:
        files = {checked_text(n, "a file's name", longest=400): checked_digest(d) for n, d in released.items()}
        if not files:
            raise InputError("closing a spend needs the digest of at least one file")
        body = {"sha256": sha256_hex(canonical_line(files)), "files": files}

    def known(entry: Entry, after: list[tuple[str, dict[str, Any], Entry]]) -> Entry | None:
        closes = [(said, close) for kind, said, close in after if kind == "close"]
        same = next((close for said, close in closes if said == body), None)
        if same is not None:
            return same
        if closes and _sealed(after) is None:
            raise RefusedError(
                f"entry {seq} was closed with other bytes: one spend pays for one release",
                next_step="Spend again for another release.",
            )
        if parse(entry.body)["draws"] == "later" and not after:
            raise RefusedError(f"entry {seq} has drawn no noise, so nothing can have been released on it")
        return None

    return _answered(ledger, seq, "close", body, who, known)
