"""What a session knows, whatever it is wrapped around: rules, people, budget, journal, entries. It imports no ACRO.

The functions of this room take the core; `acro_session.DeltabSession` is its thin face.
"""

from __future__ import annotations

import contextlib
import secrets
import uuid
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from ..base.collector import paused
from ..base.errors import InputError, RefusedError, SacroDeltabError
from ..certificate.law import committee
from ..cohort import Cohort
from ..cohort.order import RowOrder
from ..judging.said import NO_COLUMNS, Said, read_said
from ..ledger import partition_key
from ..ledger.people import same_person
from ..ledger.trust import load_trust
from ..measure.measure import computed
from ..measure.people import Floats, Roster, numbers, rows_of
from ..rules import RuleSet, load_waivers
from ..rules.checking import unsupplied
from ..rules.facts import Fact
from ..rules.judging import judging_ruleset
from .budget import Budget
from .entries import Entry
from .guard import measured
from .journal import Journal
from .paid import Orders
from .plausible import refuse_other_than_deltas
from .sources import own
from .state import State, config_digest
from .trained import TrainedHere
from .visits import ONCE, visits_of

OWN_KEY = "deltab"  # our entry in the live session's configuration: the viewer shows it under "ACRO risk profile"


class LiveRecords(Protocol):
    """What is used of the live session that keeps the records (`acro.ACRO`)."""

    config: MutableMapping[str, Any]
    results: Any

    def finalise(self, path: str, ext: str) -> Any:
        """Write the records into a folder."""


class SessionCore:
    """Rules, people, budget, journal and entries of one session.

    Parameters are those of `DeltabSession`; `live` is the session that keeps the records. Everything that a session is
    opened with is listed here once: a face says what it accepts, and what it does once all is known.
    """

    @paused()
    @measured
    def __init__(
        self,
        live: Any,
        *,
        cohort: str | Cohort,
        rules: str | Path | None = None,
        profile: str | Path | None = None,
        ledger: str | Path = "budget.db",
        trust: str | Path | None = None,
        declare: str | Path | Mapping[str, Any] | None = None,
        attest: str | Path | Mapping[str, Any] | None = None,
        people: Any | None = None,
        ages: Any | None = None,
        visit: Any | None = None,
        cohort_id: str | None = None,
        who: str | None = None,
        journal: str | Path = ".sacro_deltab",
        waivers: str | Path | None = None,
        draft: bool = False,
        _resumed: Path | None = None,
    ) -> None:
        self.live = self._accepted(live)
        given = cohort
        seals = committee(trust)
        self.ruleset = judging_ruleset(rules, profile=profile, draft=draft, seals=seals)
        if not isinstance(cohort, str):
            if not hasattr(cohort, "person_ids"):
                raise InputError(
                    "cohort= is the TRE's id of these people, or a Cohort", next_step="Give its id as text."
                )
            people = cohort.person_ids if people is None else people
            ages = cohort.age if ages is None else ages
            cohort = cohort_id or "cohort"
        self.cohort = _cohort_name(cohort)
        self.declared: Said = read_said(declare, "researcher", self.ruleset)
        self.attested: Said = _with_profile(read_said(attest, "tre_staff", self.ruleset), self.ruleset)
        self.waivers = () if waivers is None else load_waivers(waivers, seals=seals)
        self.id = str(uuid.uuid4())
        self.salt = secrets.token_hex(32)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.budget = Budget(
            ledger,
            partition=self.cohort,
            unit="person",
            ruleset=self.ruleset,
            pins=pins_of(trust, self.ruleset),
            who=who,
        )
        self.rows = RowOrder(people, ids=people)
        self.state = State(self.ruleset, people=people, ages=self.rows.placed(ages))
        self.visits = visits_of(self.rows.placed(visit), self.state)
        self.entries: list[Entry] = []
        self._origins: dict[bytes, str] = {}
        self._own_deltas: set[bytes] = set()
        self._made_as: dict[bytes, Mapping[str, Any]] = {}
        self.models: dict[int, TrainedHere] = {}
        self.attack_report: Path | None = None
        self.package_report: Path | None = None
        self.config_changes: list[str] = []
        self.not_checked: list[str] = []
        self.repairs: list[dict[str, Any]] = []  # of the input, counted: inside only
        self.remembered: set[str] = set()
        self.config = config_digest(self.live.config, OWN_KEY)
        self.live.config[OWN_KEY] = {
            "rule_set": f"{self.ruleset.id} {self.ruleset.version}",
            "sha256": self.ruleset.sha256,
            "session": self.id,
        }
        self.went_along: set[str] = set()  # outputs that were dropped with what they were made of
        self.finalised: Path | None = None
        if _resumed is None:
            self.journal = Journal.create(Path(journal) / self.id)
            self.journal.write("start", self._start_json())
        else:
            self.journal = Journal(_resumed)
        self.orders = Orders(self.journal, self.budget)
        self._register()
        self._begun(given)

    def _register(self) -> None:
        """Enter the people into the ledger, and say what cannot be known of them."""
        for fact in unsupplied(self.ruleset):
            self.not_checked.append(f"{fact}: neither the package nor a plug-in supplies it; rules on it block")
        ids = self.state.ids
        _refuse_same_person(ids, self.state)
        self.budget.register(ids)
        if ids is None:
            self.not_checked.append("whether these people are in another cohort: there are no person ids")
            self.not_checked.append("whether a person has several rows: rows were taken as people")
        if self.budget.people is not None and not self.budget.people.described:
            self.not_checked.append(NO_COLUMNS)

    def _accepted(self, live: Any) -> LiveRecords:
        """The session that keeps the records, where it can be used."""
        accepted: LiveRecords = live
        return accepted

    def _begun(self, cohort: str | Cohort) -> None:
        """What a face does once rules, people and budget are known."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The rule set's numbers."""
        return self.ruleset.parameters

    @property
    def n_is_secret(self) -> bool:
        """Whether N itself is protected by a release on these people."""
        return self.budget.n_is_secret()

    def roster(self, rows: int | None = None) -> Roster:
        """The people; the first column fixes how many rows there are.

        Raises
        ------
        InputError
            When nobody is known yet, or a column has another number of rows.
        """
        if rows is not None:
            return self.state.roster(rows)
        if self.state.people is None:
            raise InputError(
                "the session does not know its people yet", next_step="Pass people= or train a model first."
            )
        return self.state.people

    def ages(self) -> Floats | None:
        """(people,) ages in years where the session was told them."""
        return self.state.ages()

    def variable(self, people: Floats) -> str:
        """See `State.variable`."""
        return self.state.variable(people)

    def deltas_of(self, values: Any) -> Floats:
        """(people,) deltas in years; those that a model trained here gave its own people may be large."""
        people = self.state.roster(rows_of(values)).mean_by_person(values)
        own = _content_digest(values) in self._own_deltas
        refuse_other_than_deltas(people, self.parameters, self.ages(), own=own)
        return people

    def noised_beside(self, kind: str) -> bool:
        """Whether a noised output of this kind was recorded."""
        return any(entry.type == kind and entry.privacy is not None for entry in self.entries)

    def own(self, **behind: Any) -> dict[str, Fact]:
        """Whether something behind an output is of the researcher's own making: see `sources.own`."""
        return own(self.state, self.budget.people, self.parameters, **behind)

    def about(self, of: Any | None = None, **more: Any) -> dict[str, Any]:
        """Public context of one document, with how the values it is about were made: never a count, a path or a
        per-subject value."""
        made = {} if of is None else self._made_as.get(_content_digest(of), {})
        visits = {} if self.visits is None else {"visits": ONCE}
        return {"rule_set": f"{self.ruleset.id} {self.ruleset.version}", **visits, **made, **more}

    def model_origin(self, values: Any) -> dict[str, Fact]:
        """Where the model that gave these deltas comes from, as far as the session knows."""
        return computed(model__origin=self._origins.get(_content_digest(values), "unprotected"))

    def remember_origin(
        self, values: Any, origin: str, *, own: bool = False, made_as: Mapping[str, Any] | None = None
    ) -> None:
        """Note where an array of deltas comes from, by its content: an array changed afterwards is another one.

        `made_as` is printed with what is asked of them: on whom their model was validated.
        """
        self._origins[_content_digest(values)] = origin
        self._made_as[_content_digest(values)] = {} if made_as is None else made_as
        roster = self.state.people
        if roster is not None and roster.codes.size == len(values):
            self.state.known.append(roster.mean_by_person(values))
        if own:
            self._own_deltas.add(_content_digest(values))

    def same_origin(self, values: Any, some: Any) -> None:
        """Some of these values, with all others missing, come from where they come from."""
        whole, part = _content_digest(values), _content_digest(some)
        if whole in self._origins:
            self._origins[part] = self._origins[whole]
            self._made_as[part] = self._made_as[whole]
        if whole in self._own_deltas:
            self._own_deltas.add(part)

    def require_open(self) -> None:
        """Refuse where the folder was written already."""
        if self.finalised is not None:
            raise RefusedError("the session is finalised", next_step="Start a new session for more outputs.")

    def find(self, name: str) -> Entry:
        """The output of that name."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        called = f" called {name!r}" if isinstance(name, str) else ""
        raise InputError(f"the session has no such output{called}", next_step="See session.entries for their names.")

    def _start_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "cohort": self.cohort,
            "rule_set": {"id": self.ruleset.id, "version": self.ruleset.version, "sha256": self.ruleset.sha256},
            "started": self.started,
            "salt": self.salt,
        }


def _refuse_same_person(ids: list[object] | None, state: State) -> None:
    """Two ids that differ in case, blanks, `.0` or characters that do not show are one person's."""
    pair, roster = None if ids is None else same_person(ids), state.people
    if pair is not None and roster is not None:
        rows = [int((roster.codes == code).argmax()) + 1 for code in pair]
        raise InputError(
            "two ids of people= are the same once case, blanks, '.0' and characters that do not show are left aside",
            place=f"rows {rows[0]} and {rows[1]}",
            next_step="Give each person one id, written in one way.",
        )


def _content_digest(values: Any) -> bytes:
    """SHA-256 of a column of numbers; stays in memory."""
    return sha256(numbers(values).tobytes()).digest()


def _cohort_name(cohort: str) -> str:
    with contextlib.suppress(SacroDeltabError):
        partition_key(cohort)
        return cohort
    raise InputError(
        f"{cohort!r} cannot name a cohort", next_step="Use the TRE's id for these people: letters, digits, - and _."
    )


def pins_of(trust: str | Path | None, ruleset: RuleSet) -> list[Mapping[str, Any]]:
    pins: list[Mapping[str, Any]] = []
    if ruleset.profile is not None:
        pins += [dict(pin) for pin in ruleset.profile.ledgers]
    if trust is not None:
        pins += [{"id": ledger.id, "head_key": ledger.head_key} for ledger in load_trust(trust).ledgers]
    return pins


def _with_profile(said: Said, ruleset: RuleSet) -> Said:
    """A layer may pin attested values; a file cannot overrule them."""
    if ruleset.profile is None or not ruleset.profile.attest:
        return said
    by = said.by or f"layer {ruleset.profile.id}"
    return replace(said, by=by, facts={**said.facts, **ruleset.profile.attest})
