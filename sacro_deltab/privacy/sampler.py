"""Integer noise from the operating system's randomness. No seed exists here, on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import PrivacyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLER = (
    "exact discrete Gaussian (OpenDP; large blocks by the same algorithm, vectorised), operating-system randomness"
)
LARGE = 1024  # from this many entries the vectorised sampler draws: 126,000 entries in 0.1 s instead of 4 s
_MAX_SCALE = 2.0**60


def discrete_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Gaussian on ℤ with parameter `scale` > 0, exact.

    OpenDP turns `scale` into the rational number it is and samples by Canonne, Kamath & Steinke 2020; `exact` does the
    same for large blocks.
    """
    import numpy as np  # late: numpy is heavy

    from . import exact  # late: brings numpy

    if not 0 < scale < _MAX_SCALE:
        raise PrivacyError("the noise does not fit 64-bit integers", next_step="use a coarser grid or a larger ε")
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    if size >= LARGE and 1 <= scale < exact.LIMIT:
        return exact.discrete_gaussian(float(scale), size)
    return opendp_gaussian(float(scale), size)


def opendp_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """The same draws by OpenDP."""
    import numpy as np  # late: numpy is heavy
    from opendp.domains import atom_domain, vector_domain  # not the prelude: it imports scikit-learn, 60 MB
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance  # late: opendp is heavy
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measure = make_gaussian(*space, scale=scale)
    return np.asarray(measure([0] * size), dtype=np.int64)


def discrete_laplace(scale: float, size: int) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Laplace on ℤ with parameter `scale` > 0, exact, by OpenDP."""
    import numpy as np  # late: numpy is heavy
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace  # late: opendp is heavy
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features  # late: opendp is heavy

    if not 0 < scale < _MAX_SCALE:
        raise PrivacyError("the noise does not fit 64-bit integers", next_step="use a coarser grid or a larger ε")
    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    measure = make_laplace(*space, scale=float(scale))
    return np.asarray(measure([0] * size), dtype=np.int64)
