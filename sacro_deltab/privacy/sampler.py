"""Integer Gaussian noise from the operating system's randomness. No seed exists here, on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PrivacyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLER = "OpenDP discrete Gaussian (exact, int64), operating-system randomness"
_MAX_SCALE = 2.0**60


def discrete_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Gaussian on ℤ with parameter `scale` > 0, exact.

    OpenDP turns `scale` into the rational number it is and samples by Canonne, Kamath & Steinke 2020.
    """
    import numpy as np
    import opendp.prelude as dp

    if not 0 < scale < _MAX_SCALE:
        raise PrivacyError("the noise does not fit 64-bit integers", next_step="use a coarser grid or a larger ε")
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measure = dp.m.make_gaussian(*space, scale=float(scale))
    return np.asarray(measure([0] * size), dtype=np.int64)


def discrete_laplace(scale: float, size: int) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Laplace on ℤ with parameter `scale` > 0, exact."""
    import numpy as np
    import opendp.prelude as dp

    if not 0 < scale < _MAX_SCALE:
        raise PrivacyError("the noise does not fit 64-bit integers", next_step="use a coarser grid or a larger ε")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measure = dp.m.make_laplace(*space, scale=float(scale))
    return np.asarray(measure([0] * size), dtype=np.int64)
