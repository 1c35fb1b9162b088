"""What every module of the model needs: array type, error, thread pinning, decimal rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the thread controller looks for libraries)
import threadpoolctl

from ..base.errors import InputError

Array = npt.NDArray[np.float64]


class ModelInputError(InputError, ValueError):
    """Arrays that do not fit the model; also a ValueError, as scikit-learn's callers expect."""


@cache
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Pin BLAS to one thread: results do not depend on the machine's cores, and fits of this size run faster."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def round_significant(values: npt.ArrayLike, figures: int) -> Array:
    """Round half-even in decimal to `figures` significant figures; never gives -0.0."""
    if figures < 1:
        raise ModelInputError("At least one significant figure is needed.")
    context = Context(prec=figures, rounding=ROUND_HALF_EVEN)
    array = np.asarray(values, dtype=np.float64)
    flat = [float(context.create_decimal(Decimal(repr(float(v))))) + 0.0 for v in array.ravel()]
    return np.array(flat).reshape(array.shape)


def round_to_step(values: npt.ArrayLike, step: npt.ArrayLike) -> Array:
    """Round half-even in decimal to the power of ten at or below `step` (one step > 0 per value)."""
    array, steps = np.broadcast_arrays(np.asarray(values, dtype=np.float64), np.asarray(step, dtype=np.float64))
    out = []
    for value, width in zip(array.ravel(), steps.ravel(), strict=True):
        unit = Decimal(1).scaleb(math.floor(math.log10(width)))
        number = Decimal(repr(float(value)))
        fits = number.is_zero() or number.adjusted() - unit.adjusted() < 27  # else nothing below the step is left
        out.append((float(number.quantize(unit, rounding=ROUND_HALF_EVEN)) if fits else float(value)) + 0.0)
    return np.array(out).reshape(array.shape)
