"""What only somebody who knows deltab knows: sums that are zero by construction on the training cohort.

With S the centred component scores, u = age − mean age and q = u² made orthogonal to u and 1, every delta is
S·v + a·u + b·q with Σ S = Σ u = Σ q = 0, so Σ delta = 0 for every model. The bias corrections are regressions on age,
so their residuals are orthogonal to what they were regressed on:

=====================  =========  ==============  ===============
model                  Σ delta    Σ delta·age     Σ delta·age²
=====================  =========  ==============  ===============
simple                 0          −Σ delta²       not fixed
unbiased               0          0               not fixed
unbiased_quadratic     0          0               0
alternate              0          0               not fixed
alternate_quadratic    0          0               0
=====================  =========  ==============  ===============

These are margins that nobody publishes and everybody has. A confound column c that is centred is orthogonal to S, so
Σ c·delta = a·Σ c·u + b·Σ c·q: fixed by the ages alone, and 0 when c is uncorrelated with age. None of this holds
for people the model was not fitted to, nor for private weights, whose noise breaks the normal equations; the numbers
decide (`holding`), the table above only explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import InputError

TOLERANCE = 1e-8


@dataclass(frozen=True)
class Identity:
    """Σ coefficient·(sum of values) over atoms lies within ± Σ slack·(people).

    Without slack and with equal coefficients it is a margin: the sum of values of a group is 0. With slack it is
    what a reader can make of Σ delta·age = 0 who knows ages only by band.
    """

    name: str
    atoms: tuple[int, ...]
    coefficients: tuple[float, ...]
    slack: tuple[float, ...]

    @property
    def is_margin(self) -> bool:
        """Whether it fixes the plain sum of a group."""
        return not any(self.slack) and len(set(self.coefficients)) == 1


def _columns(age: NDArray[np.float64], confounds: NDArray[np.float64] | None) -> list[tuple[str, NDArray[np.float64]]]:
    u = age - age.mean()
    columns = [("sum", np.ones_like(age)), ("age", u), ("age_squared", u**2)]
    if confounds is not None:
        columns += [(f"confound_{j + 1}", c - c.mean()) for j, c in enumerate(confounds.T)]
    return columns


def holding(
    delta: ArrayLike,
    age: ArrayLike,
    confounds: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
) -> tuple[str, ...]:
    """Names of the identities that hold on these deltas: "sum", "age", "age_squared", "confound_1", ….

    Σ k·delta counts as zero when it is below `tolerance` × ‖k‖·‖delta‖. Deltas of other people, or by private weights,
    hold none. All deltas zero hold all.

    Raises
    ------
    InputError
        Lengths differ, or a value is not finite.
    """
    d = np.asarray(delta, dtype=np.float64)
    a = np.asarray(age, dtype=np.float64)
    c = None if confounds is None else np.asarray(confounds, dtype=np.float64).reshape(len(d), -1)
    if d.ndim != 1 or a.shape != d.shape:
        raise InputError("delta and age must be two lists of one length")
    if not (np.isfinite(d).all() and np.isfinite(a).all() and (c is None or np.isfinite(c).all())):
        raise InputError("identities need finite numbers", next_step="drop people without a value first")
    if not len(d):
        return ()
    size = float(np.linalg.norm(d))
    return tuple(name for name, k in _columns(a, c) if abs(float(k @ d)) <= tolerance * float(np.linalg.norm(k)) * size)


def banded_identity(
    name: str,
    atoms: Sequence[int],
    bands: Sequence[tuple[float, float]],
    *,
    mean_age: float,
    largest_value: float,
) -> Identity:
    """Σ values·age = 0 ("age") or Σ values·age² = 0 ("age_squared") for a reader who knows ages by band.

    Parameters
    ----------
    bands
        Per atom, the lowest and highest age it can hold, as published (years).
    mean_age
        As published with the weights (y_mean).
    largest_value
        Bound on |value| of one person, years.
    """
    if name not in ("age", "age_squared"):
        raise InputError(f"no identity is called {name!r}")
    coefficients, slack = [], []
    for low, high in bands:
        ends = [low - mean_age, high - mean_age]
        if name == "age_squared":
            squares = [e * e for e in ends] + ([0.0] if ends[0] < 0 < ends[1] else [])
            ends = [min(squares), max(squares)]
        coefficients.append((ends[0] + ends[1]) / 2)
        slack.append((ends[1] - ends[0]) / 2 * largest_value)
    return Identity(name, tuple(atoms), tuple(coefficients), tuple(slack))


def identity_from_json(
    entry: Mapping[str, Any], where: Mapping[str, int], place: str, path: object | None = None
) -> Identity:
    """One entry of a problem file's `identities`."""

    def refuse(what: str, next_step: str) -> InputError:
        return InputError(what, path=path, place=place, next_step=next_step)

    names = entry.get("atoms")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise refuse("an identity names its atoms", "give a list of names of atoms")
    unknown = next((n for n in names if n not in where), None)
    if unknown is not None:
        raise refuse(f"no atom is called {unknown!r}", "declare it under atoms")
    if len(set(names)) != len(names):
        raise refuse("an atom stands twice in one identity", "name every atom once")
    k = len(names)
    coefficients, slack = entry.get("coefficients", [1.0] * k), entry.get("slack", [0.0] * k)
    for block in (coefficients, slack):
        if not isinstance(block, list) or len(block) != k or not all(_finite(v) for v in block):
            raise refuse("an identity has one finite number per atom", "give coefficients and slack as such lists")
    if any(v < 0 for v in slack):
        raise refuse("slack cannot be negative", "write how far each person may be off, or 0")
    order = sorted(range(k), key=lambda i: where[names[i]])
    return Identity(
        str(entry.get("name", "sum")),
        tuple(where[names[i]] for i in order),
        tuple(float(coefficients[i]) for i in order),
        tuple(float(slack[i]) for i in order),
    )


def _finite(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and bool(np.isfinite(value))


def identity_to_json(identity: Identity, names: Sequence[str]) -> dict[str, Any]:
    """The entry of a problem file."""
    out: dict[str, Any] = {"name": identity.name, "atoms": [names[a] for a in identity.atoms]}
    if not identity.is_margin:
        out["coefficients"] = list(identity.coefficients)
        out["slack"] = list(identity.slack)
    return out
