"""The governing documents' own recipe, to the letter, for those who must follow it. Never a guarantee.

Gaussian noise is added to each fitted parameter with the classical formula, from a sensitivity that is declared or read
from the data (‖X_r⁺‖₂ · age range). Neither bounds what one person can change: the pseudo-inverse and the
standardisation move with them, and the true sensitivity of least squares is unbounded. diffprivlib's PCA is offered as
the documents' drop-in; its eigenvector sampler draws from another density than the one its proof is about, and its
bounds come from the data. Everything here is labelled `heuristic`. The recipe is priced and paid as one: its parameters
share the ε that was asked.
"""

from __future__ import annotations

import io
import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base.errors import InputError, PrivacyError
from ..model.algebra import age_terms, fix_signs, least_squares
from ..model.weights import Weights
from ..outputs.parameters import BETA1, BETA2, BETA2SQ, COMPONENTS, FOLDED, X_MEAN, X_STD, Y_MEAN, YSQ_MEAN, YSQ_SLOPE
from . import sampler
from .blocks import Array
from .job import check_delta
from .mechanisms import gaussian_sigma
from .spend import Receipt, SpendRequest, just_drawn
from .statement import PrivacyStatement
from .training import PrivateModel

PARAMETERS = ("b1", "b2", "b2sq", "gamma", "gammasq")
_OUTPUT = {"b1": BETA1, "b2": BETA2, "b2sq": BETA2SQ, "gamma": "gamma", "gammasq": "gammasq"}
_STEPS = 1 << 20  # noise grid: σ/2²⁰
REASON_DATA = (
    "the noise scale was read from the data (‖X_r⁺‖₂ · age range): one person can change it and the parameters by far "
    "more than it says, so no ε holds"
)
REASON_DECLARED = "the sensitivity is somebody's word: nothing in the fit bounds what one person can change"
REASON_PCA = (
    "diffprivlib's PCA took its bounds from the data, and its eigenvector sampler draws from another density than the "
    "one its proof covers"
)


def _shares(parameters: Sequence[str], epsilon: float, delta: float, pca: str) -> tuple[float, float]:
    """(ε, δ) of each parameter, where the documents' formula delivers them."""
    unknown = [name for name in parameters if name not in PARAMETERS]
    if unknown or not parameters:
        raise InputError(f"unknown parameter {(unknown or ['none'])[0]!r}", next_step="use " + ", ".join(PARAMETERS))
    each, part = epsilon / (len(parameters) + (pca == "diffprivlib")), delta / len(parameters)
    if not gaussian_sigma(1.0, each, part, method="classical").valid:
        raise PrivacyError(
            f"the documents' formula does not deliver δ = {part:g} at ε = {each:g}",
            next_step="use a smaller ε, or private training, whose noise is calibrated exactly",
        )
    return each, part


def documents_recipe(
    X: ArrayLike,
    age: ArrayLike,
    *,
    feature_names: Sequence[str],
    n_components: int,
    epsilon: float,
    delta_dp: float | None = None,
    sensitivity: float | None = None,
    age_range: float | None = None,
    parameters: Sequence[str] = PARAMETERS,
    pca: Literal["exact", "diffprivlib"] = "exact",
    feature_bound: float | None = None,
    time_limit: float = 60.0,
    spend: Callable[[SpendRequest], Receipt | None],
    keep: Callable[[Callable[[], PrivateModel]], PrivateModel] = just_drawn,
) -> PrivateModel:
    """Fit without privacy and add Gaussian noise to each parameter, as the governing documents describe.

    Parameters
    ----------
    epsilon, delta_dp
        Of the whole recipe, in equal shares for each parameter (and the components, where diffprivlib makes them), by
        the classical formula; refused where that formula does not deliver its δ. One spend, before any noise is drawn.
    sensitivity
        Declared L2 sensitivity, years; None reads ‖X_r⁺‖₂ · `age_range` from the data.
    age_range
        Largest age difference in years; None takes the data's own.
    pca
        `diffprivlib` uses its `models.PCA`, stopped after `time_limit` seconds.
    keep
        See `training.train_private`.
    feature_bound
        Largest size of a standardised feature (the documents name 1.0); None: none.

    Raises
    ------
    PrivacyError
        ε or δ out of range, the classical formula invalid there, or diffprivlib's sampler not done in time.
    """
    z, y, mean, scale = _standardised(X, age, feature_names)
    if feature_bound is not None:
        z = np.clip(z, -feature_bound, feature_bound)
    small = check_delta(delta_dp, y.size)
    each, part = _shares(parameters, epsilon, small, pca)
    components = _exact_components(z, n_components)
    reason, reach = REASON_DECLARED, sensitivity
    if reach is None:
        reason = REASON_DATA
        reach = _data_sensitivity(z @ components.T, float(np.ptp(y)) if age_range is None else age_range)
    sigma = float(gaussian_sigma(reach, each, part, method="classical"))
    outputs = tuple(_OUTPUT[name] for name in parameters)
    if pca == "diffprivlib":
        outputs, reason = (*outputs, COMPONENTS), f"{reason}; {REASON_PCA}"
    told = {"sigma": sigma, "sensitivity": reach, "epsilon_each": each}
    request = SpendRequest(
        mechanism="gaussian", epsilon=float(epsilon), delta_dp=small, mu=None, sigma=None, adjacency="replace_one",
        unit="person", outputs=outputs, kind="model", label="heuristic", detail={"reason": reason, **told},
    )  # fmt: skip
    receipt = spend(request)

    def drawn() -> PrivateModel:
        noisy = pca == "diffprivlib"
        axes = diffprivlib_components(z, n_components, each, time_limit) if noisy else components
        weights = _fit(z, y, axes, tuple(map(str, feature_names)), mean, scale)
        noised = {n: getattr(weights, n) + _noise(sigma, np.shape(getattr(weights, n))) for n in parameters}
        statement = _statement(request, reason, told, feature_bound, noisy, parameters)
        return PrivateModel(
            weights=replace(weights, **noised),
            statement=statement if receipt is None else statement.with_ledger(receipt),
            noisy_moments=None,
            public={"method": "documents", "n_components": n_components, "noise_sd": dict.fromkeys(parameters, sigma)},
            warnings=(f"not formal: {reason}",),
        )

    return keep(drawn)


_DIFFPRIVLIB = """
import io, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import diffprivlib.models
z = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
norm, bounds = float(np.sqrt((z * z).sum(axis=1)).max()), (z.min(axis=0), z.max(axis=0))
n, epsilon = int(sys.argv[1]), float(sys.argv[2])
model = diffprivlib.models.PCA(n_components=n, epsilon=epsilon, data_norm=norm, bounds=bounds)
out = io.BytesIO()
np.save(out, model.fit(z).components_)
sys.stdout.buffer.write(out.getvalue())
"""


def diffprivlib_components(z: Array, n_components: int, epsilon: float, time_limit: float) -> Array:
    """Components by diffprivlib's `models.PCA` with bounds and `data_norm` from the data, as the documents use it.

    Its sampler takes from ten seconds to forever, so it runs in a process that can be stopped.
    """
    data = io.BytesIO()
    np.save(data, z)
    command = [sys.executable, "-c", _DIFFPRIVLIB, str(n_components), repr(float(epsilon))]
    try:
        done = subprocess.run(command, input=data.getvalue(), capture_output=True, timeout=time_limit, check=True)
        found = np.load(io.BytesIO(done.stdout), allow_pickle=False)
    except (subprocess.SubprocessError, ValueError, EOFError) as error:
        raise PrivacyError(
            "diffprivlib's PCA did not finish; the ε asked for it is spent",
            next_step="use a shared basis, fewer features, or exact components",
        ) from error
    return fix_signs(np.asarray(found, dtype=np.float64))


def _standardised(X: ArrayLike, age: ArrayLike, names: Sequence[str]) -> tuple[Array, Array, Array, Array]:
    try:
        values, y = np.asarray(X, dtype=np.float64), np.asarray(age, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InputError("features and ages must be numbers", next_step="leave text columns out") from error
    if values.ndim != 2 or values.shape[0] != y.size or values.shape[1] != len(names) or y.size < 3:
        raise InputError("features, names and ages do not fit together", next_step="one row per person, one name each")
    if not np.isfinite(values).all() or not np.isfinite(y).all():
        raise InputError("the documents' recipe has no rule for missing values", next_step="impute or drop first")
    mean, scale = values.mean(axis=0), values.std(axis=0)
    if (scale <= 0).any() or float(y.std()) == 0:
        raise InputError("a feature or the age is constant", next_step="leave it out")
    return (values - mean) / scale, y, mean, scale


def _exact_components(z: Array, n_components: int) -> Array:
    if not 1 <= n_components <= min(z.shape):
        raise InputError("n_components is out of range", next_step=f"use 1 to {min(z.shape)}")
    return fix_signs(np.linalg.svd(z, full_matrices=False)[2][:n_components])


def _fit(z: Array, y: Array, components: Array, names: tuple[str, ...], mean: Array, scale: Array) -> Weights:
    scores, terms = z @ components.T, age_terms(y)
    b1 = least_squares(scores, terms.u).coef
    gap = scores @ b1 - terms.u
    design = np.column_stack([terms.u, terms.q])
    b2sq, gammasq = least_squares(design, gap).coef, least_squares(design, scores).coef
    return Weights(
        feature_names=names, x_mean=mean, x_std=scale, components=components, b1=b1, y_mean=terms.y_mean, b2=b2sq[:1],
        b2sq=b2sq, gamma=gammasq[:1], gammasq=gammasq, ysq_mean=terms.ysq_mean, ysq_slope=terms.ysq_slope,
    )  # fmt: skip


def _data_sensitivity(scores: Array, age_range: float) -> float:
    """‖X_r⁺‖₂ · age range, the documents' number: one over the smallest singular value of the scores."""
    smallest = float(np.linalg.svd(scores, compute_uv=False)[-1])
    if smallest <= 0 or not age_range > 0:
        raise InputError("the documents' sensitivity is infinite here: the scores are dependent",
                         next_step="use fewer components")  # fmt: skip
    return age_range / smallest


def _noise(sigma: float, shape: tuple[int, ...]) -> Array:
    draws = sampler.discrete_gaussian(float(_STEPS), math.prod(shape))
    return np.asarray(draws.reshape(shape).astype(np.float64) * (sigma / _STEPS))


def _statement(
    request: SpendRequest,
    reason: str,
    told: Mapping[str, float],
    bound: float | None,
    noised_axes: bool,
    parameters: Sequence[str],
) -> PrivacyStatement:
    """No μ: the scale has no proof, so only the plain sum may count it. What is exact is named as outside."""
    exact = [] if noised_axes else [COMPONENTS]
    exact += [_OUTPUT[name] for name in PARAMETERS if name not in parameters]
    return PrivacyStatement(
        label="heuristic", reason=reason, mechanism=request.mechanism, epsilon=request.epsilon,
        delta_dp=request.delta_dp, mu=None, sigma_unit=told["sigma"] / told["sensitivity"],
        adjacency=request.adjacency, unit=request.unit,
        epsilon_by_adjacency={"zero_out_N_public": None, "add_remove": None, "replace_one": None},
        bounds={"digest": None, "provenance": "unregistered", "feature_bound": bound}, basis=None,
        sampler=sampler.SAMPLER, blocks=dict(told), method="documents",
        outside_budget=(X_MEAN, X_STD, Y_MEAN, YSQ_MEAN, YSQ_SLOPE, FOLDED, *exact),
    )  # fmt: skip
