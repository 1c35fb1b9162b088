"""`sacro-deltab init`: the files that people fill in, made from the rules' own facts; with `--try` a simulated TRE."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError
from ..base.writing import write_file
from ..judging.said import SCHEMA_ID
from ..rules import RuleSet
from ..rules.effective import effective
from ..rules.model import FactSpec

if TYPE_CHECKING:
    import pandas as pd

_PEOPLE = {"researcher": "declared", "tre_staff": "attested"}  # role → whose facts it may say
_SIMULATED = "Nobody said this: `sacro-deltab init --try` made it so that everything can be tried."
_TRIED = {
    "declare.json": ("researcher", {"output.declared": True, "dp.trust_model": "central_at_node"}),
    "attest.json": ("tre_staff", {"egress.route": "tre_airlock", "dp.noise_inside_tre": True}),
}  # fmt: skip


def write_templates(folder: Path, ruleset: RuleSet) -> list[Path]:
    """Write declare.yaml, attest.yaml and profile.yaml with every fact of the rules as a comment.

    Raises
    ------
    InputError
        One of them is there already; nothing is ever overwritten.
    """
    texts = {
        "declare.yaml": said_template(ruleset, "researcher"),
        "attest.yaml": said_template(ruleset, "tre_staff"),
        "profile.yaml": profile_template(ruleset),
    }
    return _written(folder, texts)


def _written(folder: Path, texts: dict[str, str]) -> list[Path]:
    _prepare(folder, texts)
    return [write_file(folder / name, text, new=True) for name, text in texts.items()]


def _prepare(folder: Path, names: Iterable[str]) -> None:
    """Make the folder; refuse where one of these files is there already."""
    taken = next((folder / name for name in names if (folder / name).exists()), None)
    if taken is not None:
        raise InputError(
            "this file is there already", path=taken, next_step="Name another folder; nothing was written."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be made ({error.strerror})", path=folder) from error


def said_template(ruleset: RuleSet, role: str) -> str:
    """The form of what one role says, as YAML: each fact that a rule asks of it, commented out."""
    who = "the researcher declares" if role == "researcher" else "TRE staff attest"
    lines = [
        f"# What {who}: {ruleset.id} {ruleset.version}. Fill in `by`; take the # off a fact that you say,",
        "# with the value that is true, and leave the others. A fact that nobody says never counts as met.",
        f"schema: {SCHEMA_ID}",
        f"role: {role}",
        'by: ""                     # your name or office, without digits',
        "facts:",
    ]
    for spec, rules in _asked_of(ruleset, _PEOPLE[role]):
        lines += [f"  # {spec.means} ({', '.join(rules)}): {_values(spec)}", f"  # {spec.name}: {_example(spec)}"]
    return "\n".join(lines) + "\n"


def profile_template(ruleset: RuleSet) -> str:
    """A TRE's own layer, which pins nothing yet."""
    pin = effective(ruleset)[1]["pin"]
    lines = [
        "# A TRE's own layer on the rules: it may tighten them, and pins what is always so. `rules check` reads it.",
        "layer:",
        "  id: our-tre",
        "  level: tre                # network | tre | project",
        "  title: Our TRE",
        '  version: "1"',
        f'  on: {{id: {pin["id"]}, version: "{pin["version"]}", sha256: "{pin["sha256"]}"}}',
        "# constants:                # any number of the law, only stricter",
        *(f"#   {c.name}: {c.value}            # {c.means}" for c in ruleset.constants.values()),
        "# attest:                   # what is so for every request, so that nobody is asked",
    ]
    for spec, rules in _asked_of(ruleset, "attested"):
        lines.append(f"#   {spec.name}: {_example(spec)}            # {spec.means} ({', '.join(rules)})")
    lines += [
        "# ledgers:                  # whose noise counts: the id and head key that `ledger open` prints",
        '#   - {id: "…", head_key: "…"}',
    ]
    return "\n".join(lines) + "\n"


def _asked_of(ruleset: RuleSet, by: str) -> Iterator[tuple[FactSpec, list[str]]]:
    """Facts of whole outputs that rules in force read and that are this role's to say."""
    for name, spec in ruleset.facts.items():
        rules = [r.id for r in ruleset.rules if r.in_force and any(c.fact == name for c in r.conditions)]
        if spec.by == by and spec.of_part is None and rules:
            yield spec, rules


def _values(spec: FactSpec) -> str:
    return " or ".join(spec.values) if spec.values else "true or false" if spec.type == "boolean" else spec.type


def _example(spec: FactSpec) -> str:
    return spec.values[0] if spec.values else "true" if spec.type == "boolean" else "…"


def write_trial(folder: Path) -> list[str]:
    """A whole simulated TRE: people, public volunteers, basis, ledger, trust file, and both statements.

    Raises
    ------
    InputError
        A file of it is there already.
    """
    from ..ledger import open_ledger  # late: brings sqlalchemy
    from ..ledger.trust import pin_ledger
    from ..privacy.basis import Basis  # late: brings numpy
    from .registering import register_table

    names = ("budget.db", "budget.db.key", "trust.json", "public.csv", "cohort.csv", "other.csv", "basis.json")
    _prepare(folder, (*names, *_TRIED))
    for name, n, seed, prefix in (("public.csv", 400, 1, "V"), ("cohort.csv", 500, 2, "P"), ("other.csv", 500, 3, "Q")):
        frame = _people(n, seed, prefix)
        frame.to_csv(folder / name, index=False)
        if name == "public.csv":
            features = [c for c in frame.columns if c.startswith("idp_")]
            made = "SIMULATED volunteers"
            basis = Basis.from_public(
                frame[features].to_numpy(), frame["age"].to_numpy(), features, n_components=10, made_on=made,
                age_range=(40.0, 90.0),
            )  # fmt: skip
    basis.save(folder / "basis.json")
    book = open_ledger(folder / "budget.db")
    book.register_bounds(basis.digest, "SIMULATED TRE staff")
    for name, cohort in (("cohort.csv", "site-a"), ("other.csv", "site-b")):
        register_table(book, folder / name, cohort, id_column="participant_id", who="SIMULATED TRE staff")
    pin_ledger(folder / "trust.json", book.id, book.head_key, node="local")
    for name, (role, facts) in _TRIED.items():
        who = f"SIMULATED {role.replace('_', ' ')}"
        data = {"schema": SCHEMA_ID, "role": role, "by": who, "simulated": True, "note": _SIMULATED, "facts": facts}
        write_file(folder / name, json.dumps(data, indent=1) + "\n", new=True)
    return [*names, *_TRIED]


def _people(n: int, seed: int, prefix: str) -> pd.DataFrame:
    """Simulated people with twenty features, an age, a sex and a diagnosis."""
    import numpy as np  # late: numpy is heavy
    import pandas as pd

    from ..cohort.simulate import smith_cohort  # late: brings numpy

    made, rng = smith_cohort(n, 20, seed=seed), np.random.default_rng(seed)
    frame = pd.DataFrame(made.X, columns=[f"idp_{j:02d}" for j in range(20)])
    frame.insert(0, "participant_id", [f"{prefix}{i:04d}" for i in range(n)])
    return frame.assign(age=made.age.round(1), sex=rng.choice(["F", "M"], n), diagnosis=rng.choice(["HC", "MCI"], n))
