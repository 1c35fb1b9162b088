"""A node's noised moments as it sent them: read back, and checked against what any cohort could have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2

from ..base.errors import PrivacyError, RefusedError
from ..outputs.document import OutputDocument
from ..outputs.parameters import MOMENTS
from ..privacy.blocks import Layout
from ..privacy.mechanisms import mu_of
from ..privacy.moments import NoisyMoments, Scaling
from .bundle import Node

_LABEL = re.compile(r"([a-z]{1,2})(?:\[([0-9]{1,6}(?:,[0-9]{1,6})?)\])?\Z")
_SPREAD = 8.0  # noise SDs allowed beyond what N people can sum to: one honest file in 10¹⁵ is refused
_LEAST_SQUARE = 0.01  # mean of q² over people: 0.5 for uniform ages; below this the N cannot be the moments' own
_EXACT = 2.0**52  # above this many grid steps a double cannot show whether it is a whole number
_CHANCE = 1e-12  # of refusing an honest file because noise made a square negative


def moments_of(node: Node) -> NoisyMoments | None:
    """The noised moments of a node, or None where it sent none.

    Raises
    ------
    RefusedError
        Entries are missing, repeated or out of place; the numbers left their grid; or no N people have such sums.
    """
    document = node.of_type(MOMENTS)
    if document is None:
        return None
    about = document.about
    try:
        layout = _layout(about["layout"])
        scaling = _scaling(about["scaling"])
        sd = {name: float(about["sd"][name]) for name in layout.names}
        count = None if about["n_public"] is None else _whole(about["n_public"])
        releases = _whole(about["releases"])
    except (KeyError, TypeError, ValueError, PrivacyError) as error:
        raise _refuse(
            node, f"the public settings of the noised moments are incomplete ({type(error).__name__})"
        ) from error
    if not all(math.isfinite(value) and value > 0 for value in sd.values()):
        raise _refuse(node, "the noised moments state no noise")
    if (count is None) != layout.count or (count is not None and count < 1):
        raise _refuse(node, "the noised moments say in two ways whether N is public")
    if releases != 1:
        raise _refuse(node, "the noised moments say they are a sum of several releases, and one certificate covers one")
    if sum(math.prod(layout.shape(name)) for name in layout.names) != len(
        document.rows
    ):  # before anything is allocated
        raise _refuse(node, "the noised moments are incomplete, or hold an entry that has no place")
    moments = NoisyMoments(layout, scaling, _values(node, document, layout), sd, count, releases)
    _check_stated(node, moments, node.release(document.name))
    _check_grid(node, moments)
    _check_possible(node, moments)
    _check_squares(node, moments)
    return moments


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no whole number")
    return value


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


def _check_squares(node: Node, moments: NoisyMoments) -> None:
    """A matrix of sums of squares and products has no negative direction but what noise makes.

    If the exact matrix has none, w'Mw ≥ w'Ew ≥ −‖E/sd‖·‖coefficients of w·sd‖ for every w (Cauchy-Schwarz), and
    ‖E/sd‖² is χ² on the number of noisy entries: any w that goes lower shows moments that no people have.
    """

    matrix, sd = _second_moments(moments)
    for size in (3, matrix.shape[0]):  # ages alone have fewer entries, so less noise to allow for
        part, spread = matrix[:size, :size], sd[:size, :size]
        entries = int((np.triu(spread) > 0).sum())
        allowed = math.sqrt(float(chi2.isf(_CHANCE, entries)))
        root = np.sqrt(np.maximum(np.diag(spread), spread.max(axis=1)))
        for scale in (np.ones(size), 1 / np.sqrt(np.maximum(root, 1e-12))):
            w = np.linalg.eigh(part * scale[:, None] * scale[None, :])[1][:, 0] * scale
            noise = math.sqrt(float(((np.outer(w, w) * spread * np.sqrt(2 - np.eye(size))) ** 2).sum()) * 2)
            slack = 1e-5 * moments.n * float(np.abs(w).sum()) ** 2  # rounding of each person to the grid
            if float(w @ part @ w) < -allowed * noise - slack:
                raise _refuse(node, "its noised moments are no sums of squares and products of any people")


def _second_moments(moments: NoisyMoments) -> tuple[Any, Any]:
    """Σzz' of z = (1, t, q, u, c) with u and c in units of their clip, and the SD of each entry's noise.

    t² is (q + 1)/2. A Gram that was not released is at most N on the diagonal, which is put in its place.
    """
    layout, scaling, n = moments.layout, moments.scaling, moments.n
    value = {k: v / scaling.factor(k) for k, v in moments.values.items()}
    sd = {k: v / scaling.factor(k) for k, v in moments.sd.items()}
    value["tt"], sd["tt"] = (n + value["q"]) / 2, math.hypot(sd["q"], sd.get("n", 0.0)) / 2
    value.setdefault("n", np.asarray(n))
    letters = "tq" + ("" if layout.tau < 1 else "u" + ("c" if layout.confounds else ""))  # clipped products are none
    sizes = {"t": 1, "q": 1, "u": layout.width, "c": layout.confounds}
    starts, total = {}, 1
    for letter in letters:
        starts[letter] = total
        total += sizes[letter]
    matrix, spread = np.zeros((total, total)), np.zeros((total, total))
    matrix[0, 0], spread[0, 0] = n, sd.get("n", 0.0)
    for first in letters:
        rows = slice(starts[first], starts[first] + sizes[first])
        _place(matrix, spread, slice(0, 1), rows, value[first], sd[first])
        for second in letters:
            name = first + second if first + second in value else second + first
            columns = slice(starts[second], starts[second] + sizes[second])
            if name in value:
                block = value[name] if name == first + second else np.transpose(value[name])
                _place(matrix, spread, rows, columns, block, sd[name])
            elif first == second:
                matrix[rows, columns] = n * np.eye(sizes[first])
    return matrix, spread


def _place(matrix: Any, spread: Any, rows: slice, columns: slice, block: Any, sd: float) -> None:
    shape = matrix[rows, columns].shape
    filled = np.asarray(block, dtype=float).reshape(shape)
    matrix[rows, columns], matrix[columns, rows] = filled, filled.T
    spread[rows, columns], spread[columns, rows] = sd, sd


def _refuse(node: Node, what: str) -> RefusedError:
    return RefusedError(f"node {node.name}: {what}", path=node.path, next_step="ask the node for its release again.")
