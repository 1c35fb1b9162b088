"""What the cohort says about one output: its facts, its numbers, and who stands behind each row. Inside only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...base.errors import InputError
from ...measure.people import MISSING
from ...measure.terms import level_of
from ...outputs import OutputDocument
from ...rules.facts import Facts
from .cohort_deltas import DeltaSources
from .cohort_file import CohortFile
from .cohort_tables import tables
from .measured import Measured, is_noised

WHOLE = {"delta_mean": "mean", "delta_sd": "sd", "delta_quantiles": ""}
TRAINED = frozenset(
    {
        *("beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "x_mean", "x_std", "y_mean"),
        *("ysq_mean", "ysq_slope", "conf_beta", "folded_weights", "noised_moments"),
    }
)
_GROUPED = ("delta_mean_by_", "delta_sd_by_")
_ASSOCIATIONS = ("correlation", "p_value", "regression_table", "correlation_table")


def needs_deltas(kind: str) -> bool:
    """Whether an output of this type is about deltas."""
    return kind in WHOLE or kind.startswith(_GROUPED) or kind in _ASSOCIATIONS


def needs_groups(kind: str) -> bool:
    """Whether an output of this type is a table of groups."""
    return kind == "count_table" or kind.startswith(_GROUPED)


def measurements(
    cohort: CohortFile,
    raw: OutputDocument,
    facts: Facts | None,
    deltas: Any,
    sources: DeltaSources,
    parameters: Mapping[str, Any],
) -> Iterator[Measured]:
    """Every way the cohort can be read as this output: one, or one for each column that its groups could be.

    Parameters
    ----------
    raw
        The document: its type, its rows' names. Its numbers are not looked at.
    facts
        What was recorded, for what the document does not say (noise, where N comes from); None for nothing.
    deltas
        (people,) deltas, or None.
    sources
        The recorded weights, for facts about training.
    """
    if needs_deltas(raw.type) and deltas is None:
        return
    maker = _Maker(cohort, raw, facts, deltas, sources, parameters)
    if needs_groups(raw.type):
        for table in tables(cohort, raw, facts, deltas, parameters):
            table.facts |= maker.about_the_cohort()
            yield table
        return
    one = maker.make()
    if one is not None:
        one.facts |= maker.about_the_cohort()
        yield one


@dataclass(frozen=True)
class _Maker:
    cohort: CohortFile
    raw: OutputDocument
    said: Facts | None
    deltas: Any
    sources: DeltaSources
    numbers: Mapping[str, Any]

    def make(self) -> Measured | None:
        kind = self.raw.type
        if kind in WHOLE:
            return self._whole()
        if kind == "n_subjects":
            n = self.people("n")
            everybody = dict.fromkeys((str(row[0]) for row in self.raw.rows), _all(self.cohort.n))
            rows: dict[str, tuple[float | None, ...]] = dict.fromkeys(everybody, (n,))
            return Measured({"n": n, "value": n}, {}, rows, everybody if n == self.cohort.n else {})
        if kind == "idp_summary":
            return self._features()
        if kind in ("correlation", "p_value"):
            return self._correlations()
        if kind == "correlation_table":
            return self._correlation_table()
        if kind == "regression_table":
            return self._regression()
        return self._trained() if kind in TRAINED else None

    def about_the_cohort(self) -> dict[str, Any]:
        """What holds for every output of these people."""
        noisy = self.value("n.origin") == "noisy"
        facts: dict[str, Any] = {} if noisy else {"n_node": self.people("n_node")}
        if not is_noised(self.said):
            facts["n.origin"] = "exact"
        if self.cohort.has_ids:
            facts["cohort.unit"] = "person"
        return facts

    def value(self, name: str) -> Any:
        """A recorded fact's value."""
        fact = None if self.said is None else self.said.get(name)
        return None if fact is None else fact.value

    def people(self, name: str) -> int:
        """N: everybody, or everybody with an age where the session's reader left the others out."""
        import numpy as np

        ages = self.cohort.ages
        known = self.cohort.n if ages is None else int(np.isfinite(ages).sum())
        return known if self.value(name) == known else self.cohort.n

    def _whole(self) -> Measured:
        import numpy as np

        from ...measure.measure import statistic_of, summary_facts

        finite = self.deltas[np.isfinite(self.deltas)]
        statistic = "sd" if self.raw.type == "delta_sd" else "mean"
        facts = {fact.name: fact.value for fact in summary_facts(self.deltas, self.numbers, statistic).values()}
        keys = [str(row[0]) for row in self.raw.rows]
        rows: dict[str, tuple[float | None, ...]] = {}
        parts: dict[str, dict[str, Any]] = {}
        if is_noised(self.said):  # the mean is over the roster, and its value is not the data's
            facts["n"] = self.people("n")
            return Measured(facts)
        if self.raw.type == "delta_quantiles":
            for key in keys:
                percent = _percent(key)
                if percent is not None and len(finite):
                    parts[key] = {"quantile.percent": percent}
                    rows[key] = (float(np.percentile(finite, percent)),)
            return Measured(facts, parts, rows)
        statistic = WHOLE[self.raw.type]
        value = statistic_of(finite, statistic)
        if value is not None and len(keys) == 1:
            facts["value"] = value
            rows[keys[0]] = (value,)
        return Measured(facts, {}, rows, {keys[0]: np.isfinite(self.deltas)} if keys else {}, statistic)

    def _features(self) -> Measured | None:
        import numpy as np

        from ...measure.measure import feature_facts, statistic_of

        names = [str(row[0]) for row in self.raw.rows]
        matrix = self.cohort.matrix(names)
        if matrix is None or is_noised(self.said):
            return None
        rows: dict[str, tuple[float | None, ...]] = {}
        if [column.name for column in self.raw.columns[1:]] == ["mean", "sd"]:
            for name, column in zip(names, matrix.T, strict=True):
                finite = column[np.isfinite(column)]
                rows[name] = (statistic_of(finite, "mean"), statistic_of(finite, "sd"))
        return Measured({fact.name: fact.value for fact in feature_facts(matrix).values()}, {}, rows)

    def _correlations(self) -> Measured | None:
        import numpy as np
        from scipy import stats

        from ...measure.measure import carriers, dof_check

        rows: dict[str, tuple[float | None, ...]] = {}
        sizes, behind = [], []
        for row in self.raw.rows:
            column = self.cohort.column(str(row[0]))
            if column is None:
                return None
            both = np.isfinite(self.deltas) & np.isfinite(column)
            if int(both.sum()) < 3 or self.deltas[both].std() == 0 or column[both].std() == 0:
                return None
            found = stats.pearsonr(self.deltas[both], column[both])
            rows[str(row[0])] = (float(found.statistic if self.raw.type == "correlation" else found.pvalue),)
            sizes.append(int(both.sum()))
            behind.append(min(sizes[-1], carriers(self.deltas[both]), carriers(column[both])))
        if not rows:
            return None
        dof = min(sizes) - 2
        facts: dict[str, Any] = {"n": min(behind), "residual_dof": dof}
        facts["acro.regression_check"] = dof_check(dof, int(self.numbers["min_residual_dof"]))
        if self.raw.type == "p_value" and len(rows) == 1:
            facts["value"] = next(iter(rows.values()))[0]
        return Measured(facts, {}, rows)

    def _regression(self) -> Measured | None:
        """Least squares by a QR decomposition: other code than the session's."""
        import numpy as np
        from scipy import stats

        from ...measure.measure import carriers, dof_check

        names = [str(row[0]) for row in self.raw.rows if row[0] not in ("(intercept)", "R squared")]
        columns = [self._term(name) for name in names]
        if any(column is None for column in columns):
            return None
        matrix = np.column_stack(columns)
        whole = np.isfinite(self.deltas) & np.isfinite(matrix).all(axis=1)
        y, x = self.deltas[whole], matrix[whole]
        n, dof = len(y), len(y) - len(names) - 1
        if dof <= 0:
            return None
        q, r = np.linalg.qr(np.column_stack([np.ones(n), x]))
        if float(np.abs(np.diag(r)).min()) == 0:
            return None
        b = np.linalg.solve(r, q.T @ y)
        facts: dict[str, Any] = {"n": min([n, carriers(y), *(carriers(column) for column in x.T)])}
        facts |= {
            "residual_dof": dof,
            "acro.regression_check": dof_check(dof, int(self.numbers["min_residual_dof"])),
        }
        residual = y - np.column_stack([np.ones(n), x]) @ b
        errors = np.sqrt(np.square(np.linalg.inv(r)).sum(axis=1) * float(residual @ residual) / dof)
        tails = 2 * stats.t.sf(np.abs(b / errors), dof)
        half = stats.t.ppf(0.975, dof) * errors
        rows: dict[str, tuple[float | None, ...]] = {}
        for name, value, around, tail in zip(["(intercept)", *names], b, half, tails, strict=True):
            rows[name] = (n, dof, float(value), float(value - around), float(value + around), float(tail))
        spread = float(np.square(y - y.mean()).sum())
        rows["R squared"] = (n, dof, 1 - float(residual @ residual) / spread, None, None, None)
        keys = {str(row[0]) for row in self.raw.rows}
        return Measured(facts, {}, {key: value for key, value in rows.items() if key in keys})

    def _term(self, name: str) -> Any:
        """A column of numbers, or the indicator that a term such as `sex[M]` names; None where the file has neither."""
        import numpy as np

        column = self.cohort.column(name)
        level = level_of(name)
        if column is not None or level is None:
            return column
        try:
            labels = self.cohort.labels(level[0].strip().lower())
        except (InputError, KeyError, ValueError):
            return None
        known = [label != MISSING for label in labels]
        return np.where(known, [float(label == level[1]) for label in labels], np.nan)

    def _correlation_table(self) -> Measured | None:
        """By numpy's own correlation and the same tests in other words."""
        import numpy as np
        from scipy import stats

        from ...measure.measure import carriers, dof_check

        names = [str(row[0]) for row in self.raw.rows]
        matrix = self.cohort.matrix(names)
        if matrix is None:
            return None
        found: list[list[float]] = []
        behind = []
        for column in matrix.T:
            both = np.isfinite(self.deltas) & np.isfinite(column)
            a, b = self.deltas[both], column[both]
            n = int(both.sum())
            if n < 4 or a.std() == 0 or b.std() == 0:
                return None
            r = float(np.corrcoef(a, b)[0, 1])
            tail = float(2 * stats.t.sf(abs(r) * np.sqrt((n - 2) / max(1 - r * r, 1e-300)), n - 2))
            z, half = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)), stats.norm.ppf(0.975) / np.sqrt(n - 3)
            found.append([n, r, float(np.tanh(z - half)), float(np.tanh(z + half)), tail])
            behind.append(min(n, carriers(a), carriers(b)))
        adjusted = stats.false_discovery_control([row[-1] for row in found])
        rows: dict[str, tuple[float | None, ...]] = {
            name: (*row, float(q)) for name, row, q in zip(names, found, adjusted, strict=True)
        }
        dof = int(min(row[0] for row in found)) - 2
        check = dof_check(dof, int(self.numbers["min_residual_dof"]))
        return Measured({"n": min(behind), "residual_dof": dof, "acro.regression_check": check}, {}, rows)

    def _trained(self) -> Measured | None:
        """Facts about the people a model was trained on; the weights themselves were noised."""
        import numpy as np

        from ...measure.measure import dof_check, max_abs_z, training_facts

        facts: dict[str, Any] = {}
        public, noisy_n = self.value("n.origin") == "public_bound", self.value("n.origin") == "noisy"
        if not public and not noisy_n:
            facts["n"] = self.people("n")
        components = self.raw.about.get("n_components")
        if not noisy_n and type(components) is int:
            n = facts.get("n", self.people("n_node"))
            facts["residual_dof"] = max(n - components, 0)
            least = int(self.numbers["min_residual_dof"])
            facts["acro.regression_check"] = dof_check(n - components, least)
        ages = self.cohort.ages
        if ages is None or not np.isfinite(ages).any():
            return Measured(facts) if facts else None
        facts["y.range_years"] = float(np.nanmax(ages) - np.nanmin(ages))
        if self.raw.type == "y_mean" and not is_noised(self.said) and len(self.raw.rows) == 1:
            facts["value"] = float(np.nanmean(ages))
            return Measured(facts, {}, {str(self.raw.rows[0][0]): (facts["value"],)})
        matrix = None if public else self.cohort.matrix(self.sources.trained_on())
        if matrix is not None:
            again = training_facts(matrix, ages, origin="", max_z=None)
            facts |= {name: again[name].value for name in ("largest_share", "idp.largest_share")}
        predicted = self.sources.prediction() if is_noised(self.said) else None
        if predicted is not None:
            facts["outlier.max_abs_z"] = max_abs_z((predicted - ages)[np.isfinite(ages)])
        return Measured(facts)


def _percent(key: str) -> float | None:
    try:
        percent = float(key)
    except ValueError:
        return None
    return percent if 0 <= percent <= 100 else None


def _all(n: int) -> Any:
    import numpy as np

    return np.ones(n, dtype=bool)
