"""From files to a cohort: which column is what, who stands in which row, what had to be repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import InputError
from .aligning import align, cap_rows, person_ids
from .people import Cohort, Repair
from .sources import as_table
from .table import Array, Table, column_label
from .text import Decimal, Header

if TYPE_CHECKING:
    import pandas as pd

ID_NAMES = (
    "participant_id",
    "person_id",
    "subject_id",
    "patient_id",
    "subjectid",
    "participantid",
    "eid",
    "iid",
    "#iid",
    "id",
)
PLAUSIBLE_AGES = (0.0, 120.0)
OutOfRange = Literal["refuse", "clip", "keep"]


def id_column(table: Table) -> int | None:
    """Position of the column that names people by a usual name; None where a table has none."""
    if table.names is None:
        return None
    return next((at for name in ID_NAMES if (at := table.find(name)) is not None), None)


@dataclass(frozen=True)
class _Roles:
    """Columns named by the caller."""

    id_column: str | None
    age_column: str
    feature_columns: Sequence[str] | None
    confound_columns: Sequence[str] | None
    group_columns: Sequence[str] | None
    ignore_columns: Sequence[str]


class _Reading:
    """State while a cohort is put together; each table is read once however many roles it has."""

    def __init__(self, roles: _Roles, **options: Any) -> None:
        self.roles, self.options = roles, options
        self.tables: dict[Any, Table] = {}
        self.used: dict[int, set[str]] = {}
        self.repairs: list[Repair] = []
        self.declared: list[str] = []
        self.notes: list[str] = []

    def table(self, source: Any, role: str) -> Table:
        key = Path(source).resolve() if isinstance(source, (str, Path)) else id(source)
        if key not in self.tables:
            self.tables[key] = as_table(source, role, **self.options)
            if self.tables[key].decimal_commas:
                self.repairs.append(Repair("decimal_comma", f"The {role} file has decimal commas.", 1))
        return self.tables[key]

    def id_at(self, table: Table) -> int | None:
        if table.names is None:
            return None
        if self.roles.id_column is not None:
            return table.find(self.roles.id_column)
        return id_column(table)

    # --- one role each -------------------------------------------------------------------------------------------

    def ages(self, table: Table) -> Array:
        at = self.age_column_at(table)
        values = table.numbers(at, "ages")
        if not np.isfinite(values).all():
            row = table.rows[int(np.argmax(~np.isfinite(values)))]
            raise table.error(
                "An age is missing or infinite.",
                row=row,
                next_step="Complete it, or leave the person out of all files.",
            )
        return values

    def age_column_at(self, table: Table) -> int:
        if table.names is None:
            if len(table.columns) > 1:
                raise table.error(
                    "Ages without a header must be one column.",
                    next_step="Give one age per line (decimal points, not commas), or a header with an age column.",
                )
            return 0
        at = table.find(self.roles.age_column)
        if at is None:
            person = self.id_at(table)
            rest = [j for j in range(len(table.columns)) if j != person]
            if len(rest) == 1:
                return rest[0]
            raise table.error(
                f"There is no column {column_label(self.roles.age_column, 0)} for the ages.",
                next_step="Name the age column (age_column, on the command line --age-column).",
            )
        return at

    def numeric(
        self, table: Table, role: str, wanted: Sequence[str] | None, *, shared: bool
    ) -> tuple[Array, tuple[str, ...]]:
        """Columns of the features or confounds: those named, or every column without another role."""
        if wanted is not None:
            at = [table.need(name, role) for name in wanted]
        else:
            at = self._rest(table, role, shared=shared)
        if not at:
            raise table.error(f"No column is left for the {role}.", next_step="Name the columns of each role.")
        columns = [table.numbers(j, role) for j in at]
        for j, values in zip(at, columns, strict=True):
            if np.isnan(values).all():
                raise table.error(
                    f"The {role} in {table.label_of(j)} are all missing.",
                    next_step="Leave the column out (--ignore, ignore_columns).",
                )
        values = np.column_stack(columns)
        infinite = np.isinf(values)
        if infinite.any():
            values[infinite] = np.nan
            self.repairs.append(Repair("infinite", f"Infinite {role} were taken as missing.", int(infinite.sum())))
        if np.isnan(values).any():
            self.notes.append(f"Some {role} are missing.")
        return values, tuple(self._name(table, j, role) for j in at)

    @staticmethod
    def _name(table: Table, j: int, role: str) -> str:
        stem = "feature" if role == "features" else "confound"
        return f"{stem}_{j + 1}" if table.names is None else table.names[j]

    def _rest(self, table: Table, role: str, *, shared: bool) -> list[int]:
        if table.names is None:
            return list(range(len(table.columns)))
        roles = self.roles
        taken = {roles.age_column.lower(), *(n.lower() for n in roles.ignore_columns)}
        for other in (roles.confound_columns if role == "features" else None, roles.group_columns):
            taken |= {n.lower() for n in other or ()}
        words, out, person = [], [], self.id_at(table)
        for j, column in enumerate(table.columns):
            if j == person or column.name.lower() in taken:
                continue
            if column.values is None and not column.mostly_numbers and shared:
                words.append(column.name)  # sex, site, ... of a combined table
            else:
                out.append(j)
        if words:
            self.notes.append(f"Columns of words, not used as {role}: {', '.join(words)}.")
        return out

    def groups(self, table: Table) -> pd.DataFrame:
        import pandas as pd  # late: pandas is heavy

        roles = self.roles
        if roles.group_columns is not None:
            at = [table.need(name, "groups") for name in roles.group_columns]
        else:
            person = self.id_at(table)
            skip = {n.lower() for n in (roles.age_column, *roles.ignore_columns)}
            at = [
                j for j, c in enumerate(table.columns)
                if j != person and c.name.lower() not in skip
                and (c.values is None or (table.names is not None and self._separate_groups(table)))
            ]  # fmt: skip
        cells = dict(zip(at, table.texts(at), strict=True))
        if roles.group_columns is None:
            for j in list(at):
                kinds = len({v for v in cells[j] if v is not None})
                if kinds > max(20, table.n // 2):
                    self.notes.append(f"Column {table.label_of(j)} has nearly as many values as rows: not a group.")
                    at.remove(j)
        if not at:
            raise table.error("No column of groups was found.", next_step="Name them (group_columns).")
        return pd.DataFrame({self._name(table, j, "groups"): pd.Series(cells[j], dtype=object) for j in at})

    def _separate_groups(self, table: Table) -> bool:
        """A file given for groups alone may code them as numbers; in a combined table numbers are features."""
        return self.roles_of(table) == 1

    def roles_of(self, table: Table) -> int:
        return len(self.used.get(id(table), ()))

    def use(self, table: Table, role: str) -> None:
        self.used.setdefault(id(table), set()).add(role)


def read_cohort(
    ages: Any = None,
    features: Any = None,
    confounds: Any = None,
    groups: Any = None,
    *,
    table: Any = None,
    id_column: str | None = None,
    age_column: str = "age",
    feature_columns: Sequence[str] | None = None,
    confound_columns: Sequence[str] | None = None,
    group_columns: Sequence[str] | None = None,
    ignore_columns: Sequence[str] = (),
    unit: Literal["person", "row"] = "person",
    rows_per_person: int | None = None,
    age_range: tuple[float, float] = PLAUSIBLE_AGES,
    out_of_range: OutOfRange = "refuse",
    delimiter: str | None = None,
    header: Header = "auto",
    decimal: Decimal = "auto",
) -> Cohort:
    """Read a cohort from one combined table or from separate files, checking everything that can be checked.

    Parameters
    ----------
    ages, features, confounds, groups
        Path (CSV, TSV, semicolon or whitespace text, Parquet with pyarrow), DataFrame, Series or array. One path
        given for several roles is a combined table. Text may have a header or, for numbers only, none.
    table
        A combined table for ages and features, and for confounds and groups where their columns are named.
    id_column
        Identifier column. Without it `participant_id`, `subject_id` and the like are looked for; without any, rows
        are people by declaration.
    feature_columns, confound_columns, group_columns, ignore_columns
        Column names of each role. Default features: every column without another role.
    unit, rows_per_person
        Repeated identifiers are refused unless `unit="person"` and `rows_per_person` caps the rows each person
        gives (the first ones in file order). With "row" nothing may repeat.
    age_range, out_of_range
        Years, inclusive. Ages outside are refused, clipped to the range (recorded), or kept (recorded).
    header, decimal, delimiter
        "auto" finds them out and refuses where in doubt.

    Returns
    -------
    Cohort
        Missing features and confounds stay NaN: `Cohort.filled` says what becomes of them.

    Raises
    ------
    InputError, UnreadableError
        With file, line, column and next step, never with anybody's value.
    """
    _check_unit(unit, rows_per_person)
    if table is not None:
        ages = table if ages is None else ages
        features = table if features is None else features
        confounds = table if confounds is None and confound_columns else confounds
        groups = table if groups is None and group_columns else groups
    if ages is None or features is None:
        raise InputError(
            f"No {'ages' if ages is None else 'features'} were given.",
            next_step="Give ages and features, or one table.",
        )
    if confounds is None and confound_columns:
        confounds = features
    if groups is None and group_columns:
        groups = features
    roles = _Roles(id_column, age_column, feature_columns, confound_columns, group_columns, ignore_columns)
    reading = _Reading(roles, delimiter=delimiter, header=header, decimal=decimal)
    sources = {"ages": ages, "features": features, "confounds": confounds, "groups": groups}
    tables = {role: reading.table(source, role) for role, source in sources.items() if source is not None}
    for role, one in tables.items():
        reading.use(one, role)
    return _assemble(reading, tables, unit, rows_per_person, (age_range, out_of_range))


def _check_unit(unit: str, rows_per_person: int | None) -> None:
    if unit not in ("person", "row"):
        raise InputError(f"Unknown unit {unit!r}.", next_step="Use 'person' or 'row'.")
    if rows_per_person is not None and (rows_per_person < 1 or unit == "row"):
        raise InputError(
            "The cap on rows per person must be at least 1, and the person must be the unit.",
            place="rows_per_person",
            next_step="For example rows_per_person=1 (--rows-per-person 1), or leave it out.",
        )


def _assemble(
    reading: _Reading,
    tables: dict[str, Table],
    unit: str,
    rows_per_person: int | None,
    age_rule: tuple[tuple[float, float], OutOfRange],
) -> Cohort:
    base = tables["features"]
    if reading.roles.id_column is not None and all(t.find(reading.roles.id_column) is None for t in tables.values()):
        base.need(reading.roles.id_column, "identifiers")
    ids = {id(t): person_ids(t, reading.id_at(t)) for t in tables.values()}
    ages = reading.ages(tables["ages"])
    x, names = reading.numeric(base, "features", reading.roles.feature_columns, shared=reading.roles_of(base) > 1)
    conf: Array | None = None
    conf_names: tuple[str, ...] = ()
    if "confounds" in tables:
        one = tables["confounds"]
        conf, conf_names = reading.numeric(
            one, "confounds", reading.roles.confound_columns, shared=reading.roles_of(one) > 1
        )
    groups = reading.groups(tables["groups"]) if "groups" in tables else None
    orders, trusted = align(tables, ids)
    if trusted:
        reading.declared.append("The rows of all files are the same people in the same order.")
    known = next(
        (v for t in tables.values() if (v := ids[id(t)]) is not None and (t is base or ids[id(base)] is None)), None
    )
    if known is None:
        reading.declared.append("Every row is another person (there is no identifier column).")
    cohort = Cohort(
        age=ages[orders[id(tables["ages"])]],
        X=x,
        feature_names=names,
        confounds=None if conf is None else conf[orders[id(tables["confounds"])]],
        confound_names=conf_names,
        groups=None if groups is None else groups.iloc[orders[id(tables["groups"])]].reset_index(drop=True),
        person_ids=known,
        unit=unit,
        rows_per_person=rows_per_person or 1,
    )
    cohort = _one_row_per_person(reading, cohort, base, rows_per_person)
    cohort = _age_checks(reading, cohort, tables["ages"], *age_rule)
    return replace(cohort, repairs=tuple(reading.repairs), declared=tuple(reading.declared), notes=tuple(reading.notes))


def _one_row_per_person(reading: _Reading, cohort: Cohort, base: Table, most: int | None) -> Cohort:
    if cohort.person_ids is None:
        return cohort
    keep = cap_rows(cohort.person_ids, most, base)
    if keep.all():
        return cohort
    first = "first" if most == 1 else f"first {most}"
    text = f"Rows beyond the {first} of a person were left out."
    reading.repairs.append(Repair("repeated_rows", text, int((~keep).sum())))
    return cohort.take(keep)


def _age_checks(
    reading: _Reading, cohort: Cohort, table: Table, age_range: tuple[float, float], rule: OutOfRange
) -> Cohort:
    if cohort.n_rows < 2:
        raise table.error("There is only one person.", next_step="Give a cohort; one row cannot be learned from.")
    low, high = float(age_range[0]), float(age_range[1])
    if not low < high:
        raise InputError("The age range must go from a lower to a higher age.", next_step="For example (0, 120).")
    out = (cohort.age < low) | (cohort.age > high)
    if out.any():
        text = f"Ages outside {low:g} to {high:g} years"
        if rule == "refuse":
            values = table.numbers(reading.age_column_at(table), "ages")
            row = table.rows[int(np.argmax((values < low) | (values > high)))]
            raise table.error(
                f"{text} stand in the file.",
                row=row,
                next_step="Check the unit (years) and the first line (a header of numbers?), or widen the range.",
                inside=f"{int(out.sum())} ages",
            )
        word = "were clipped to it" if rule == "clip" else "were kept"
        reading.repairs.append(Repair("outside_age_range", f"{text} {word}.", int(out.sum())))
        if rule == "clip":
            cohort = replace(cohort, age=np.clip(cohort.age, low, high))
    if float(cohort.age.max()) == float(cohort.age.min()):
        raise table.error("All ages are equal: there is nothing to learn.", next_step="Check the age column.")
    return cohort
