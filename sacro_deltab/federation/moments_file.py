"""A node's noised moments as it sent them: read back, and checked against what any cohort could have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import RefusedError
from ..outputs.document import OutputDocument
from ..privacy.blocks import Layout
from ..privacy.moments import NoisyMoments, Scaling
from .bundle import Node

_LABEL = re.compile(r"([a-z]{1,2})(?:\[([0-9]{1,6}(?:,[0-9]{1,6})?)\])?\Z")
_SPREAD = 8.0  # noise SDs allowed beyond what N people can sum to: one honest file in 10¹⁵ is refused
_LEAST_SQUARE = 0.01  # mean of q² over people: 0.5 for uniform ages; below this the N cannot be the moments' own
_EXACT = 2.0**52  # above this many grid steps a double cannot show whether it is a whole number


def moments_of(node: Node) -> NoisyMoments | None:
    """The noised moments of a node, or None where it sent none.

    Raises
    ------
    RefusedError
        Entries are missing, repeated or out of place; the numbers left their grid; or no N people have such sums.
    """
    document = node.of_type("noised_moments")
    if document is None:
        return None
    about = document.about
    try:
        layout = _layout(about["layout"])
        scaling = _scaling(about["scaling"])
        sd = {name: float(about["sd"][name]) for name in layout.names}
        count = None if about["n_public"] is None else int(about["n_public"])
        releases = int(about["releases"])
    except (KeyError, TypeError, ValueError) as error:
        raise _refuse(
            node, f"the public settings of the noised moments are incomplete ({type(error).__name__})"
        ) from error
    if not all(math.isfinite(value) and value > 0 for value in sd.values()):
        raise _refuse(node, "the noised moments state no noise")
    if (count is None) != layout.count or (count is not None and count < 1):
        raise _refuse(node, "the noised moments say in two ways whether N is public")
    if sum(math.prod(layout.shape(name)) for name in layout.names) != len(
        document.rows
    ):  # before anything is allocated
        raise _refuse(node, "the noised moments are incomplete, or hold an entry that has no place")
    moments = NoisyMoments(layout, scaling, _values(node, document, layout), sd, count, releases)
    _check_stated(node, moments, node.release(document.name))
    _check_grid(node, moments)
    _check_possible(node, moments)
    return moments


def _layout(data: Mapping[str, Any]) -> Layout:
    fractions = {
        str(k).removeprefix("fractions."): float(v) for k, v in data.items() if str(k).startswith("fractions.")
    }
    if any(not 0 < share < 1 for share in fractions.values()):
        raise ValueError("a share is out of range")
    width, confounds = int(data["width"]), int(data["confounds"])
    if not (0 < width <= 100_000 and 0 <= confounds <= 10_000):
        raise ValueError("a size is out of range")
    return Layout(width, confounds, bool(data["gram"]), bool(data["count"]), float(data["tau"]), fractions)


def _scaling(data: Mapping[str, Any]) -> Scaling:
    radius, middle, half = (float(data[key]) for key in ("radius", "age_mid", "age_half"))
    if not (math.isfinite(middle) and 0 < radius < math.inf and 0 < half < math.inf):
        raise ValueError("a scale is out of range")
    return Scaling(radius, middle, half, int(data["confounds"]), str(data["digest"]))


def _values(node: Node, document: OutputDocument, layout: Layout) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    values = {name: np.full(layout.shape(name), np.nan) for name in layout.names}
    for row in document.rows:
        found = _LABEL.match(str(row[0]))
        if found is None or found[1] not in values or not isinstance(row[1], int | float):
            raise _refuse(node, f"the noised moments hold an entry that is none: {str(row[0])[:40]!r}")
        place = tuple(int(i) - 1 for i in found[2].split(",")) if found[2] else ()
        block = values[found[1]]
        if len(place) != block.ndim or any(not 0 <= i < size for i, size in zip(place, block.shape, strict=True)):
            raise _refuse(node, f"entry {row[0]!r} of the noised moments has no place")
        block[place] = float(row[1])
    if missing := next((name for name, block in values.items() if not np.isfinite(block).all()), None):
        raise _refuse(node, f"block {missing} of the noised moments is incomplete")
    for name in ("uu", "cc"):
        if name in values and not np.array_equal(values[name], values[name].T):
            raise _refuse(node, f"block {name} of the noised moments is not symmetric")
    return values


def _check_stated(node: Node, moments: NoisyMoments, release: Mapping[str, Any] | None) -> None:
    """The noise named in the file is that of the certificate, and as large as its ε asks in this layout."""
    from ..privacy.mechanisms import mu_of

    if release is None or release.get("label") == "none":
        return
    blocks, mu = release.get("blocks") or {}, release.get("mu")
    for name, sd in moments.sd.items():
        if not math.isclose(sd, float(blocks.get(name, 0.0)), rel_tol=1e-9):
            raise _refuse(node, f"the noise named in its file is not that of its certificate (block {name})")
    if not isinstance(mu, int | float) or not 0 < mu < math.inf:
        raise _refuse(node, "its certificate names no strength of the noise")
    epsilon, small = float(release["epsilon"] or 0.0), float(release["delta_dp"] or 0.0)
    if not (epsilon > 0 and 0 < small < 1) or mu > mu_of(epsilon, small) * (1 + 1e-6):
        raise _refuse(node, f"its noise is smaller than ε {epsilon:g} asks")
    reach = 2 if release.get("adjacency") == "replace_one" else 1
    layout, scaling = moments.layout, moments.scaling
    for name, sd in moments.sd.items():
        needed = layout.sigma_int(name, float(mu), reach) * layout.unit(name) * scaling.factor(name)
        if sd < needed * (1 - 1e-9):
            raise _refuse(node, f"the noise of block {name} is smaller than its certificate's ε asks")


def _check_grid(node: Node, moments: NoisyMoments) -> None:
    """Values stand on the public integer grid: rounding them afterwards adds an error nobody has accounted for."""
    for name, block in moments.values.items():
        steps = np.abs(block) / (moments.layout.unit(name) * moments.scaling.factor(name))
        small = steps < _EXACT / 64  # dividing costs the last bits
        off = np.abs(steps - np.rint(steps))[small]
        if off.size and float(off.max()) > 1 / 16:
            raise RefusedError(
                f"the noised moments of node {node.name} are off their public grid: rounded (block {name})",
                path=node.path,
                next_step="send the moments as they were drawn; three significant figures are for parameters.",
            )


def _check_possible(node: Node, moments: NoisyMoments) -> None:
    """What N people can sum to, with the stated noise around it: a claimed N that is too small or too large."""
    n = moments.n
    lies = False
    for name, block in moments.values.items():
        most = n * moments.scaling.factor(name)
        size = float(np.linalg.norm(block)) if block.ndim else abs(float(block))
        lies = lies or (name != "n" and size > most + moments.sd[name] * (_SPREAD + math.sqrt(block.size)))
    square = float(moments.values["qq"]) + _SPREAD * moments.sd["qq"]
    if lies or square < _LEAST_SQUARE * n:
        raise _refuse(node, "its noised moments and its N do not fit together: no N people have such sums")


def _refuse(node: Node, what: str) -> RefusedError:
    return RefusedError(f"node {node.name}: {what}", path=node.path, next_step="ask the node for its release again.")
