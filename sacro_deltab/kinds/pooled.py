"""What an aggregator makes of several nodes' released outputs."""

from __future__ import annotations

from ..outputs.parameters import POOLED_MODEL
from .kind import Kind

MINUS, TABLE = "pooled_minus_node", "pooled_table"
_SAYS = ("nodes", "weighting", "way")

KINDS = (
    Kind(POOLED_MODEL, "A model pooled over nodes, as one weight a feature.", "feature_rows", says=_SAYS),
    Kind(MINUS, "The same without one node: what its release would tell of that node.", "feature_rows", says=_SAYS),
    Kind(
        TABLE, "Mean deltas pooled over nodes, with standard errors and heterogeneity.",
        "group_table", rounded=False, says=(*_SAYS, "statistic", "se", "i_squared_percent", "missing_nodes"),
    ),
)  # fmt: skip
