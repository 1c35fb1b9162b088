"""Deltas as linear functions of features: what the mean features of a group say once the weights are published.

Deltas are computed with the very weights that are published, noise and all, so the mean of a group's features and ages
gives the mean of its deltas. Whether some columns suffice is seen from the values: they fit exactly or they do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .columns import Matrix
from .numbers import Moment, Trace
from .people import Floats

_EXACT = 1e-6  # of the spread
_MORE = 20  # people more than columns, so that nothing fits by chance


def mapped(output: str, values: Floats, variable: str, traces: Sequence[Trace]) -> Iterator[Moment]:
    """The groups whose sum of a variable follows from the feature summaries over them. `output` tells it."""
    groups: dict[bytes, list[tuple[Trace, int]]] = {}
    for trace in traces:
        for j in range(trace.matrix.shape[1]) if trace.sums else ():
            groups.setdefault(np.isfinite(trace.matrix[:, j]).tobytes(), []).append((trace, j))
    for mask, columns in groups.items():
        people = np.flatnonzero(np.frombuffer(mask, dtype=np.bool_))
        people = people[people < values.size]
        if people.size and np.isfinite(values[people]).all():
            matrix = np.column_stack([trace.matrix[people, j] for trace, j in columns])
            # the SD of an age gives its squares, which the quadratic models need
            if _fits(values[people], matrix) or _fits(values[people], np.column_stack([matrix, matrix**2])):
                yield Moment(output, columns[0][0].labels[columns[0][1]], (variable,), people)


def _fits(values: Floats, matrix: Matrix) -> bool:
    """Whether values are a constant and a weighted sum of the columns, for everybody."""
    n, columns = matrix.shape
    if n < columns + 1 + _MORE or not np.ptp(values):
        return False
    spread = matrix.std(axis=0)
    design = np.column_stack([np.ones(n), (matrix - matrix.mean(axis=0)) / np.where(spread > 0, spread, 1.0)])
    some = np.random.default_rng(n).permutation(n)[: 2 * columns + 50]
    weights = np.linalg.lstsq(design[some], values[some], rcond=None)[0]
    return bool(np.abs(design @ weights - values).max() <= _EXACT * float(values.std()))
