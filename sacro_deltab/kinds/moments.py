"""Noised second moments for pooling: one row an entry, on the public grid that the noise was drawn on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..outputs import OutputDocument
from ..outputs.parameters import MOMENTS
from .documents import vector
from .kind import Kind
from .weights import again


def document(moments: Any, title: str, about: Mapping[str, Any]) -> OutputDocument:
    """The noisy moments as a flat table; their public layout stands in `about`."""
    data = moments.to_json()
    labels, values = [], []
    for block, value in moments.values.items():
        array = np.asarray(value, dtype=np.float64)
        for index in np.ndindex(array.shape):
            labels.append(f"{block}[{','.join(str(i + 1) for i in index)}]" if index else block)
            values.append(float(array[index]))
    context = {
        **about, "layout": _flat(data["layout"]), "scaling": _flat(data["scaling"]), "sd": _flat(data["sd"]),
        "n_public": data["n_public"], "releases": data["releases"],
    }  # fmt: skip
    return vector(MOMENTS, MOMENTS, title, labels, values, label_column="entry", about=context)


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Nested public settings as one level, for `about`."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            out |= {f"{key}.{k}": v for k, v in value.items()}
        elif isinstance(value, list | tuple):
            out[key] = " ".join(str(v) for v in value)
        else:
            out[key] = value
    return out


KINDS = (
    # on their public grid: not rounded again (D-90); the ledger is closed by the digest of these very bytes
    Kind(
        MOMENTS, "Noised sums of products of a private training, for exact pooling over nodes.",
        "feature_rows", again=again, rounded=False, long_about=True,
        says=("layout", "scaling", "sd", "n_public", "releases"),
    ),
)  # fmt: skip
