"""What `run` was asked for, and the cohort that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError

if TYPE_CHECKING:
    from ..cohort import Cohort

Say = Callable[[str], None]
BY_GROUP = ("group_means", "counts")  # noised statistics that are asked for once a table


@dataclass(frozen=True)
class Plan:
    """Everything `run` was asked for. Paths as given; `by` names columns, `site*sex` crosses two."""

    out: Path
    ages: Path | None = None
    features: Path | None = None
    deltas: Path | None = None  # made elsewhere: a column `delta` a person
    confounds: Path | None = None
    groups: Path | None = None
    by: tuple[str, ...] = ()
    train_where: tuple[str, ...] = ()  # a group column and the labels of those that the model is trained on
    age_bands: tuple[float, ...] = ()
    id_column: str | None = None
    age_column: str = "age"
    ignore: tuple[str, ...] = ()
    rows_per_person: int | None = None
    basis: Path | None = None
    bounds: Path | None = None
    epsilon: float | None = None
    delta_dp: float | None = None
    n_components: int | None = None
    feature_nans: str | None = None
    in_sample: bool = False  # deltas of a model fitted to the very people, where nothing is noised
    components: Mapping[str, Any] = field(default_factory=dict)  # other choices of J, read off the raw data
    adjacency: str = "zero_out_N_public"
    method: str = "auto"
    recipe: str = "private"  # or "documents": the governing documents' own, without a guarantee
    model: str = "unbiased_quadratic"
    epsilon_mean: float | None = None
    noised: tuple[tuple[str, float], ...] = ()  # a statistic and its ε; then nothing exact is asked for
    labels: tuple[tuple[str, ...], ...] = ()  # a group column and its groups, named beforehand
    plots: bool = False
    moments: bool = False
    rules: str | None = None
    profile: str | None = None
    declare: Path | None = None
    attest: Path | None = None
    ledger: str = "budget.db"
    trust: Path | None = None
    cohort: str = "cohort"
    spend_anyway: bool = False
    resume: Path | None = None  # working folder of a run that paid
    overwrite: bool = False  # a session folder of this name is set aside


def check_place(plan: Plan) -> None:
    """Refuse a name that is taken; with `overwrite` only by what is no session folder."""
    out = plan.out
    if not (out.exists() or out.is_symlink()) or (plan.overwrite and _is_session(out)):
        return
    if plan.overwrite:
        raise InputError("this is no session folder", path=out, next_step="Name another; nothing was touched.")
    raise InputError(
        "the output folder exists", path=out, next_step="Name another with --out; --overwrite sets this one aside."
    )


def set_aside(plan: Plan) -> None:
    """Rename the session folder that stands in the way: what was paid for, signed or decided in it is not lost."""
    out = plan.out
    if plan.overwrite and _is_session(out):
        out.rename(next(name for i in count(1) if not (name := out.with_name(f"{out.name}.{i}")).exists()))


def _is_session(path: Path) -> bool:
    return not path.is_symlink() and (path / "results.json").is_file() and (path / "inside").is_dir()


def read(plan: Plan) -> Cohort:
    """The cohort of a plan; group columns are taken from the groups file, else from the features file."""
    from ..cohort import read_cohort  # late: brings numpy

    named = [*(part for name in plan.by for part in parts_of(name)), *plan.train_where[:1]]
    columns = tuple(dict.fromkeys([*named, *(column for column, *_ in plan.labels)]))
    return read_cohort(
        plan.ages,
        plan.features if plan.deltas is None else plan.deltas,
        plan.confounds,
        plan.groups,
        id_column=plan.id_column,
        age_column=plan.age_column,
        group_columns=columns or None,
        ignore_columns=plan.ignore,
        rows_per_person=plan.rows_per_person,
    )


def epsilons(plan: Plan) -> list[float | None]:
    """ε of each release that a plan asks for: a statistic by group costs its own for each table."""
    tables = len(plan.labels) + len(plan.age_bands)
    noised = [e for name, e in plan.noised for _ in range(tables if name in BY_GROUP else 1)]
    return [plan.epsilon, plan.epsilon_mean, *noised]


def parts_of(name: str) -> list[str]:
    return [part.strip() for part in name.split("*") if part.strip()]
