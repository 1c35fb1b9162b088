"""The ledger as the rest of the package uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import exists, select

from ..base.strict import parse
from ..privacy.spend import BudgetLimits, Receipt, SpendRequest, Totals
from . import export, people, releases, schema, spending, verifying
from .canonical import checked_digest, checked_text, partition_key
from .chain import (
    Account,
    Accounts,
    entry_of,
    read_accounts,
    read_head,
    shared_total,
    writing,
)
from .handle import Handle
from .relations import Spent, spent_by_relation
from .tally import checked_limits, remaining
from .values import CohortCheck, EarlierCells, Entry, Gap, Release, ReleaseCell, VerifyReport


class Ledger(Handle):
    """A privacy budget on disk or on a server. Make one with `open_ledger`; safe to share between processes."""

    # -- spending -------------------------------------------------------------------------------------------------

    def spend(
        self,
        request: SpendRequest,
        *,
        partition: str,
        limits: BudgetLimits,
        who: str,
        ruleset_sha256: str,
        draws: spending.Draws = "now",
        token: str | None = None,
        relation: str = "zero_out_N_public",
    ) -> Receipt:
        """Commit the price of one release before its noise is drawn.

        Parameters
        ----------
        request
            The price. ε > 0, 0 ≤ δ < 1; with `mu`, (ε, δ) must cover a Gaussian release of that parameter.
        partition
            Cohort id as the TRE assigned it (see `partition_key`); the unit is the request's.
        limits
            From the rule set, never from the ledger or the request. Inclusive; the plain sum decides (D-60).
        who, ruleset_sha256
            Name of the account or person; digest of the rule set in force.
        draws
            `now` (default): the noise counts as drawn when this returns. `later`: the caller draws, seals what it drew
            and calls `draw` with the digest before it opens it; until then a run that crashed may draw again.
        token
            32 hex digits that the caller has written down before: asked again with them, the same order is answered,
            never a second one.
        relation
            The neighbouring relation whose total ε is capped (`ledger.relations`).

        Returns
        -------
        Receipt
            Totals before and after, over all partitions that share people with this one.

        Raises
        ------
        BudgetError
            The limits do not cover it; the refusal is an entry too. Names what is left and what it would buy.
        PrivacyError
            ε and δ understate the noise.
        LedgerError
            The ledger cannot be written, was changed, or was replaced by an older copy. Draw nothing.
        """
        return spending.spend(
            self, request, partition=partition, limits=limits, who=who, ruleset_sha256=ruleset_sha256, draws=draws,
            token=token, relation=relation,
        )  # fmt: skip

    def ordered(self, token: str) -> Receipt | None:
        """The receipt of the spend made under a caller's own number; None where none was granted."""
        return spending.ordered(self, token)

    def receipt(self, entry: int) -> Receipt:
        """The receipt of a spend, as it was given."""
        return spending.receipt_of(self, entry)

    def draw(self, entry: int, sealed: str, *, who: str | None = None) -> Entry:
        """Write down which sealed statistic was drawn on a spend made with `draws="later"`: it alone may be opened.

        Parameters
        ----------
        sealed
            SHA-256 (hex) of the sealed bytes, which are on the disk by now. The same again changes nothing.

        Raises
        ------
        RefusedError
            Another one was drawn before: then this one is never to be opened.
        """
        return spending.draw(self, entry, sealed, who)

    def sealed_in(self, entry: int) -> str | None:
        """Digest of the sealed statistic that was drawn on a spend; None where nothing was opened yet."""
        return spending.sealed_in(self, entry)

    def close_spend(self, entry: int, released: str | Mapping[str, str], *, who: str | None = None) -> Entry:
        """Close a spend with the digest of the released bytes (SHA-256 hex), or one digest per file name.

        Closing again with the same digest changes nothing. With another one it is refused, unless the statistic was
        sealed (`draw`): whatever else is made of that one is post-processing, and is listed too. With a mapping, the
        entry's `sha256` is that of the mapping's canonical JSON, and each file's digest is found by `released_in`.
        """
        return spending.close_spend(self, entry, released, who)

    def totals(self, partition: str, limits: BudgetLimits | None = None, *, unit: str = "person") -> Totals:
        """Spent so far by this partition and all that share people with it; exact ε at the limits' δ per release.

        Without `limits`, those of the last spend are used for that δ (for display; never for a decision).
        """
        name = partition_key(partition, unit)
        with self.store.read() as connection:
            head = read_head(connection, self.identity, self.where)
            accounts = read_accounts(connection, head, self.where)
        known = limits or accounts.get(name, Account()).limits
        return shared_total(accounts, name).totals(None if known is None else known.delta_per_release)

    def by_relation(self, partition: str, *, unit: str = "person") -> dict[str, Spent]:
        """Spent so far under each neighbouring relation, by this partition and all that share people with it."""
        name = partition_key(partition, unit)
        with self.store.read() as connection:
            accounts = read_accounts(connection, read_head(connection, self.identity, self.where), self.where)
            names = {name, *accounts.get(name, Account()).links}
            return spent_by_relation(connection, names, shared_total(accounts, name))

    def remaining(self, partition: str, limits: BudgetLimits, *, unit: str = "person") -> tuple[float, float]:
        """(ε, δ) that the limits leave; asking for exactly this much is granted."""
        with self.store.read() as connection:
            head = read_head(connection, self.identity, self.where)
            accounts = read_accounts(connection, head, self.where)
        return remaining(shared_total(accounts, partition_key(partition, unit)), checked_limits(limits))

    def accounts(self) -> Accounts:
        """Running sums of every partition, checked against the newest entry."""
        with self.store.read() as connection:
            head = read_head(connection, self.identity, self.where)
            return read_accounts(connection, head, self.where)

    # -- registers ------------------------------------------------------------------------------------------------

    def register_cohort(
        self,
        partition: str,
        person_ids: Iterable[object] | None,
        *,
        who: str,
        unit: str = "person",
        finding: people.Finding = people.NOTHING,
    ) -> CohortCheck:
        """Fingerprint the people of a cohort; see `people.register_cohort`."""
        return people.register_cohort(self, partition, person_ids, who=who, unit=unit, finding=finding)

    def declare_disjoint(self, one: str, other: str, *, by: str, reason: str, unit: str = "person") -> Entry:
        """Write down that a named person says two cohorts share nobody; see `people.declare_disjoint`."""
        return people.declare_disjoint(self, one, other, by=by, reason=reason, unit=unit)

    def fingerprints(self, person_ids: Iterable[object]) -> list[bytes]:
        """One HMAC (16 bytes) per id, in order, under the TRE's key. Inside only."""
        return people.fingerprints(self.signing_key(), person_ids)

    def register_bounds(self, digest: str, who: str, *, note: str | None = None) -> Entry:
        """Write down that public bounds with this digest (SHA-256 hex) were fixed now."""
        body = {"sha256": checked_digest(digest, "the bounds' digest"), "note": note and checked_text(note, "note")}
        with writing(self.store, self.identity, self.signing_key()) as writer:
            return writer.append("bounds", body, who=checked_text(who, "who"))

    def bounds_registered(self, digest: str, *, before: str | None = None, unit: str = "person") -> bool:
        """True when bounds with this digest were registered; with `before`, ahead of the first entry of that partition
        and of every one that shares people with it: the same people under another id are data already opened."""
        table = schema.entries
        wanted = checked_digest(digest, "the bounds' digest")
        with self.store.read() as connection:
            rows = connection.execute(select(table).where(table.c.kind == "bounds").order_by(table.c.seq)).all()
            found = [r.seq for r in rows if parse(r.body)["sha256"] == wanted]
            if before is None or not found:
                return bool(found)
            name = partition_key(before, unit)
            accounts = read_accounts(connection, read_head(connection, self.identity, self.where), self.where)
            names = {name, *accounts.get(name, Account()).links}
            first = select(table.c.seq).where(table.c.partition.in_(names)).order_by(table.c.seq).limit(1)
            opened = connection.execute(first).scalar()
        return opened is None or found[0] < opened

    def record_release(
        self,
        partition: str,
        output: str,
        *,
        kind: str,
        cells: Iterable[ReleaseCell],
        who: str,
        sha256: str | None = None,
        unit: str = "person",
    ) -> Entry:
        """Remember an output that leaves: its cells, their true N, their people (as registered) and published values.

        Cells with `members` need the cohort registered with ids first; `n` must be the number of members.
        """
        one = releases.Leaving(output, kind, tuple(cells), sha256)
        return self.record_releases(partition, [one], who=who, unit=unit)[0]

    def record_releases(
        self, partition: str, leaving: Sequence[releases.Leaving], *, who: str, unit: str = "person"
    ) -> list[Entry]:
        """Remember outputs that leave together, all of them or none."""
        return releases.record_releases(self, partition, leaving, who=who, unit=unit)

    def releases(self, partition: str | None = None, *, unit: str = "person") -> list[Release]:
        """Outputs that left, in order. Counts in them stay inside."""
        return releases.releases(self, partition, unit)

    def gaps(
        self, partition: str, cells: Iterable[ReleaseCell], *, unit: str = "person", before: int | None = None
    ) -> list[Gap]:
        """Each present cell against each earlier one on overlapping people (inside only).

        Earlier cells of every partition count, except those declared disjoint; with `before`, only entries under that
        number, so that a session can leave its own releases out. Where ids are missing, cells of the same cohort are
        compared by N alone.
        """
        return releases.gaps(self, partition, cells, unit=unit, before=before)

    def smallest_gap(
        self, partition: str, cells: Iterable[ReleaseCell], *, unit: str = "person", before: int | None = None
    ) -> int | None:
        """Fact `linked_release.smallest_gap`: fewest people that the difference of two overlapping cells is about.

        None when no earlier cell overlaps. Cells on exactly the same people differ by nobody and do not count.
        """
        found = self.gaps(partition, cells, unit=unit, before=before)
        return min((g.gap for g in found if g.gap or not g.people_known), default=None)

    def earlier_cells(
        self, partition: str, person_ids: Iterable[object], *, unit: str = "person", before: int | None = None
    ) -> EarlierCells:
        """Earlier releases laid over the people of now, for the attacker's model (inside only).

        `person_ids` in the order of the caller's rows, one per person; masks follow that order (see `EarlierCells`).
        """
        return releases.earlier_cells(self, partition, person_ids, unit=unit, before=before)

    # -- reading --------------------------------------------------------------------------------------------------

    def orphans(self) -> list[Entry]:
        """Spends that no close entry answers: a run that crashed, or that has not finished yet."""
        table, answer = schema.entries, schema.entries.alias()
        closed = exists().where(answer.c.ref == table.c.seq, answer.c.kind == "close")
        query = select(table).where(table.c.kind == "spend", ~closed).order_by(table.c.seq)
        with self.store.read() as connection:
            return [entry_of(row, self.id) for row in connection.execute(query)]

    def released_in(self, digest: str) -> Entry | None:
        """The spend whose closing entry names these released bytes (whole or one file), or None."""
        wanted, table = checked_digest(digest), schema.entries
        query = select(table).where(table.c.kind == "close", table.c.body.contains(wanted))
        with self.store.read() as connection:
            for row in connection.execute(query):
                body = parse(row.body)
                if wanted in (body["sha256"], *body.get("files", {}).values()):
                    found = connection.execute(select(table).where(table.c.seq == row.ref)).first()
                    return None if found is None else entry_of(found, self.id)
        return None

    def verify(
        self, expected_heads: Iterable[str] = (), *, progress: Callable[[int], None] | None = None
    ) -> VerifyReport:
        """Re-read the whole chain; see `verifying.verify`. Each expected head (from certificates) must be in it."""
        return verifying.verify(self, tuple(expected_heads), progress)

    def export_csv(self) -> str:
        """One CSV line per entry for governance; no counts of people, no fingerprints."""
        return export.export_csv(self)
