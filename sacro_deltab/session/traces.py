"""The columns behind an output without cells, kept while the session lasts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..measure.kin import Matrix


@dataclass(frozen=True)
class Trace:
    """The columns behind an output without cells. NaN where a person is not behind the statistic.

    kind: features (a mean and an SD each) | quantiles (one column) | association (correlations, regressions) |
    p_value (a number of an association that is compared already; kept for the ledger).
    `sets` are the columns of one association; `percents` of quantiles, in percent.
    """

    output: str
    kind: str
    labels: tuple[str, ...]
    matrix: Matrix
    sets: tuple[tuple[int, ...], ...] = ()
    percents: tuple[float, ...] = ()

    def save(self, folder: Path) -> None:
        """Keep the columns in the session's working folder, for `resume`."""
        np.save(folder / f"{self.output}.kin.npy", self.matrix, allow_pickle=False)

    def to_json(self) -> dict[str, Any]:
        """Everything but the columns."""
        return {
            "output": self.output,
            "kind": self.kind,
            "labels": list(self.labels),
            "sets": [list(s) for s in self.sets],
            "percents": list(self.percents),
        }

    @classmethod
    def load(cls, data: dict[str, Any], folder: Path) -> Trace:
        """Back from the working folder."""
        matrix = np.load(folder / f"{data['output']}.kin.npy", allow_pickle=False)
        sets = tuple(tuple(s) for s in data["sets"])
        return cls(data["output"], data["kind"], tuple(data["labels"]), matrix, sets, tuple(data["percents"]))
