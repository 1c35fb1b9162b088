"""Sessions on simulated people with everything declared, attested and pinned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from declarations import ATTEST, DECLARE
from people_register import register_people

from sacro_deltab.ledger.register import Registered


def write_profile(folder: Path) -> Path:
    """A profile that pins the ledger in `folder` and attests what TRE staff would."""
    from sacro_deltab.ledger import open_ledger

    pin = open_ledger(folder / "budget.db").pin()
    path = folder / "profile.yaml"
    path.write_text(
        "profile: {id: test-site, title: Test site, ruleset: deltab-disclosure, decided_by: null}\n"
        "attest: {egress.route: tre_airlock, dp.noise_inside_tre: true}\n"
        f'ledgers:\n  - {{id: "{pin.id}", head_key: "{pin.head_key}"}}\n',
        encoding="utf-8",
    )
    return path


def register(ledger: Path | str, *public: Any) -> None:
    """Enter public files (a basis, bounds) in a ledger, as TRE staff do before a cohort is opened."""
    from sacro_deltab.ledger import open_ledger

    for file in public:
        open_ledger(ledger).register_bounds(file.digest, "TRE staff")


def new_session(folder: Path, *, public: Any = (), **kwargs: Any) -> Any:
    """A session on 400 people with everything declared, attested and pinned, in `folder`.

    public: basis or bounds that the TRE registered before the cohort.
    """
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    kwargs.setdefault("cohort", "test-cohort")
    kwargs.setdefault("people", [f"P{i:04d}" for i in range(400)])
    kwargs.setdefault("ledger", folder / "budget.db")
    kwargs.setdefault("journal", folder / ".sacro_deltab")
    kwargs.setdefault("profile", folder / "profile.yaml")
    register(kwargs["ledger"], *public)
    registered = kwargs.pop("registered", kwargs["people"] is not None)
    if registered:
        register_people(kwargs["ledger"], kwargs["cohort"], kwargs["people"])
    acro = kwargs.pop("acro", None) or quiet_acro()
    session = DeltabSession(acro, declare=DECLARE, attest=ATTEST, **kwargs)
    return every_column_known(session) if registered else session


def every_column_known(session: Any) -> Any:
    """The session as if each column that a test makes were a registered one: sources are the subject of
    test_column_sources.py alone."""
    people = session.budget.people
    if people is not None:
        session.budget.people = _Everything(people.version, people.part, people.columns, people.groups, people.weights)
    return session


class _Everything(Registered):
    def is_column(self, name: str, values: Any) -> bool:
        return True
