"""The privacy budget as a session sees it: one partition, the rule set's limits, facts for the rules."""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.strict import parse
from ..ledger import open_ledger
from ..ledger.people import Finding
from ..ledger.register import Registered, find_people, registered
from ..ledger.relations import Spent, epsilons
from ..privacy.spend import BudgetLimits, Receipt, SpendRequest
from ..rules import RuleSet
from ..rules.facts import Fact, FactValue, Provider


def default_who() -> str:
    """The account that runs the session, for the ledger (inside the TRE)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


class Budget:
    """A ledger opened for one cohort.

    Facts from a ledger that the TRE has not pinned are *declared*: anybody can start a fresh file.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        partition: str,
        unit: str,
        ruleset: RuleSet,
        pins: Iterable[Mapping[str, Any]] = (),
        who: str | None = None,
    ) -> None:

        self.url = str(url)
        self.ledger = open_ledger(url, pins=list(pins))
        self.partition = partition
        self.unit = unit
        self.ruleset = ruleset
        self.who = who or default_who()
        self.check: Any = None
        self.people: Registered | None = None  # what the TRE's register says of the people; None: they are told

    @property
    def pinned(self) -> bool:
        """The TRE named this ledger in its trust file or in the profile."""
        return bool(self.ledger.pinned)

    @property
    def capped(self) -> str:
        """The neighbouring relation whose total the rule set caps."""
        return "replace_one" if float(self.ruleset.parameters.get("capped_reach", 1)) >= 2 else "zero_out_N_public"

    def limits(self, n: int | None) -> BudgetLimits:
        """Limits from the rule set; the δ limits follow the public N (D-37, D-61)."""
        p = self.ruleset.parameters
        cap = float(p["delta_dp_cap"])
        per_release = min(cap, 1.0 / n**2) if n else cap
        return BudgetLimits(
            epsilon_per_release=float(p["epsilon_per_release"]),
            epsilon_total=float(p["epsilon_total"]),
            delta_per_release=per_release,
            delta_total=1.0 / n if n else float(p["delta_dp_total_secret_n"]),
        )

    def spend(self, request: SpendRequest, n: int | None, token: str) -> Receipt:
        """Commit the spend of an order, undrawn; the same order again is answered with the same receipt."""
        return self.ledger.spend(
            request,
            partition=self.partition,
            limits=self.limits(n),
            who=self.who,
            ruleset_sha256=self.ruleset.sha256,
            draws="later",
            token=token,
            relation=self.capped,
        )

    def register(self, person_ids: Sequence[object] | None) -> None:
        """Compare the people with the TRE's register, and with those of earlier cohorts by keyed fingerprints."""
        known: dict[str, FactValue] | None = None
        if person_ids is not None:
            self.people = registered(self.ledger, self.partition, person_ids)
        if self.people is not None:
            known = {"version": self.people.version, "part": self.people.part or "all"}
        self.check = self.ledger.register_cohort(self.partition, person_ids, who=self.who, finding=Finding(known=known))

    def look_elsewhere(self, person_ids: Sequence[object], columns: Mapping[str, Any]) -> None:
        """Look for the people behind these columns in other cohorts of the register: those found share one budget."""
        found = find_people(self.ledger, self.partition, person_ids, columns, who=self.who)
        if found is not None:
            self.check = found

    def registered(self, digest: str) -> bool:
        """Whether a public file of this digest was registered before the first entry of these people."""
        return self.ledger.bounds_registered(digest, before=self.partition, unit=self.unit)

    def releases(self) -> int:
        """Releases paid for on these people so far."""
        return self.ledger.totals(self.partition, unit=self.unit).releases

    def n_is_secret(self) -> bool:
        """Whether a release under `add_remove`, which protects N itself, was ever paid for on these data."""
        return "add_remove" in self._relations().values()

    def n_is_public(self) -> bool:
        """Whether a release on these data was paid for under a relation that takes the roster's N as told."""
        return "zero_out_N_public" in self._relations().values()

    def exact_n_used(self) -> str | None:
        """What already rests on the exact N of these data, in words; None where nothing does.

        Releases that a spend paid for follow that spend's relation; all others are without noise.
        """
        relations = self._relations()
        if set(relations.values()) - {"add_remove"}:
            return "a release of these data was paid for under a relation that takes N as public"
        noisy = set()
        for entry in self.ledger.history(self.partition):
            if entry.kind == "close" and entry.ref in relations:
                body = parse(entry.body)
                noisy |= {body.get("sha256"), *body.get("files", {}).values()}
        for release in self.ledger.releases(self.partition):
            if release.sha256 is None or release.sha256 not in noisy:
                return f"an earlier release of these data ({release.output}) rests on it"
        return None

    def by_relation(self) -> dict[str, Spent]:
        """What is spent on these people under each neighbouring relation."""
        return self.ledger.by_relation(self.partition, unit=self.unit)

    def _relations(self) -> dict[int, str]:
        """Number of each spend on these data → its neighbouring relation."""
        spends = (entry for entry in self.ledger.history(self.partition) if entry.kind == "spend")
        return {entry.seq: str(parse(entry.body).get("adjacency")) for entry in spends}

    def facts(self, receipt: Receipt | None = None) -> dict[str, Fact]:
        """Ledger facts for one output: after `receipt` where it was noised, else as the ledger stands."""
        totals = receipt.after if receipt is not None else self.ledger.totals(self.partition, unit=self.unit)
        before = receipt.before if receipt is not None else totals
        most = float(self.ruleset.parameters["epsilon_total"])
        counted = float(totals.epsilon_sum)
        if self.capped == "replace_one":  # at least what the plain sum says: a checker may see more, never less
            counted = max(counted, self.by_relation()["replace_one"].epsilon)
        values: dict[str, FactValue] = {
            "ledger.entry": receipt is not None,
            "ledger.pinned": self.pinned,
            "ledger.accountant": "sum",
            "ledger.epsilon_total": counted,
            "ledger.delta_total": float(totals.delta_sum),
            "ledger.exhausted_before": before.epsilon_sum >= most * (1 - 1e-12),
            "ledger.earlier_model_exports": int(before.model_exports),
            "ledger.n_protected": self.n_is_secret(),
            "cohort.overlap_checked": self.check is not None and self.check.status != "not_checked",
            "cohort.registered": self.people is not None,
            "cohort.overlap_found": self.check is not None and self.check.review and self.check.status != "not_checked",
        }
        return {name: Fact(name, value, Provider.LEDGER) for name, value in values.items()}

    def totals_json(self, own: Collection[int] = ()) -> dict[str, Any]:
        """What the partition has spent, for evidence and reports; `own` are the entries that this session spent."""
        totals = self.ledger.totals(self.partition, unit=self.unit)
        return {
            "ledger": {
                "id": self.ledger.id,
                "head_key": self.ledger.head_key,
                "head_before": self._head_before(own),
                "head": self.ledger.head,
                "pinned": self.pinned,
            },
            "epsilon_sum": totals.epsilon_sum,
            "delta_sum": totals.delta_sum,
            "epsilon_exact": totals.epsilon_exact,
            "epsilon_by_relation": epsilons(self.by_relation()),
            "mu": totals.mu,
            "releases": totals.releases,
            "model_exports": totals.model_exports,
        }

    def _head_before(self, own: Collection[int]) -> str | None:
        """The ledger's head before the first of these entries; None where there are none."""
        first = next((entry for entry in self.ledger.history() if entry.seq == min(own)), None) if own else None
        return None if first is None else first.prev
