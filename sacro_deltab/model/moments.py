"""Moments: everything a brain-age model needs of a cohort, in one pass, in memory that does not grow with people.

    z = (1, c_1..c_K, x_1..x_F, u, u^2)      M = sum over people of z z'

with features, confounds and age centred and scaled by public constants, u = (age - age_centre) / age_scale. M of two
cohorts of different people is the sum of their Ms, exactly; every parameter of `Weights` is a function of M.
M is not a release: it holds N, means and covariances of the people and stays inside until noise is added.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from ..base.errors import InputError, UnreadableError
from ..base.schemas import faults
from ..base.strict import parse_object
from ..base.writing import write_file
from .algebra import Components
from .base import Array, ModelInputError, one_blas_thread
from .moments_fit import MomentsFit, fit_moments
from .weights import Weights

SCHEMA_ID = "sacro_deltab/moments/1"
_MEMBERS = ("header.npy", "matrix.npy", "x_centre.npy", "x_scale.npy", "conf_centre.npy", "conf_scale.npy")
_HEADER_LIMIT = 16 * 2**20  # bytes: names of a few hundred thousand features
_NPY = 128  # bytes before the numbers in an .npy member
_CACHE = 2**16  # numbers copied at once (512 KiB): the centred copy is still near the CPU when BLAS reads it


@dataclass
class Moments:
    """Running second-moment matrix (mutable: `update` and `merge` add to it).

    Parameters
    ----------
    feature_names
        F names in order; every block must follow it.
    conf_names
        K confound names in order.
    x_centre, x_scale, conf_centre, conf_scale, age_centre, age_scale
        Public constants in raw units (defaults 0 and 1; age 60 and 15 years). They do not change the model, only the
        digits kept: features whose offset is 1e3 SDs lose 5 digits without a centre, none with one right to 10%.
    """

    feature_names: tuple[str, ...]
    conf_names: tuple[str, ...] = ()
    x_centre: Array = None  # type: ignore[assignment]
    x_scale: Array = None  # type: ignore[assignment]
    conf_centre: Array = None  # type: ignore[assignment]
    conf_scale: Array = None  # type: ignore[assignment]
    age_centre: float = 60.0
    age_scale: float = 15.0

    def __post_init__(self) -> None:
        self.feature_names, self.conf_names = tuple(self.feature_names), tuple(self.conf_names)
        f, k = len(self.feature_names), len(self.conf_names)
        if f == 0 or len(set(self.feature_names)) != f or len(set(self.conf_names)) != k:
            raise ModelInputError("Features (at least one) and confounds need names of their own.")
        self.x_centre = _constant(self.x_centre, f, 0.0, "x_centre")
        self.x_scale = _constant(self.x_scale, f, 1.0, "x_scale")
        self.conf_centre = _constant(self.conf_centre, k, 0.0, "conf_centre")
        self.conf_scale = _constant(self.conf_scale, k, 1.0, "conf_scale")
        self.age_centre, self.age_scale = float(self.age_centre), float(self.age_scale)
        scales = np.concatenate([self.x_scale, self.conf_scale, [self.age_scale]])
        if not (scales > 0).all() or not np.isfinite(self.age_centre):
            raise ModelInputError("Public scales must be positive and finite, the age centre finite.")
        # centred but unscaled sums; scales enter on reading, which saves a pass over every block
        self._sums: Array = np.zeros((k + f + 3, k + f + 3))
        self._buffer: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        """State for other processes (Dask, Spark): without the work buffer."""
        return {**self.__dict__, "_buffer": None}

    # --- adding people -------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of people added so far (inside only)."""
        return round(float(self._sums[0, 0]))

    @property
    def size(self) -> int:
        """Length of z: 1 + K + F + 2."""
        return int(self._sums.shape[0])

    @property
    def matrix(self) -> Array:
        """M as in the module docstring, centred and scaled (a copy)."""
        scale = self._scales()
        return np.asarray(self._sums / scale[:, None] / scale[None, :])

    def _scales(self) -> Array:
        return np.concatenate([[1.0], self.conf_scale, self.x_scale, [self.age_scale, self.age_scale**2]])

    def update(self, X: npt.ArrayLike, age: npt.ArrayLike, confounds: npt.ArrayLike | None = None) -> Moments:
        """Add a block of people: X (m x F, raw units), ages in years, confounds (m x K). Returns self.

        Any way of cutting a cohort into blocks gives the same M up to rounding in the last digits.
        """
        x, ages = np.asarray(X), np.asarray(age, dtype=np.float64).ravel()
        f, k = len(self.feature_names), len(self.conf_names)
        if x.ndim != 2 or x.shape[1] != f:
            raise ModelInputError(f"A block needs {f} feature column(s), in the order of feature_names.")
        if ages.shape[0] != x.shape[0]:
            raise ModelInputError("A block has different numbers of ages and feature rows.")
        c = _conf_block(confounds, x.shape[0], k)
        with one_blas_thread():
            block = self._products(x, ages, c)
        if not np.isfinite(block.diagonal()).all():  # NaN and infinity anywhere in a column reach its diagonal
            raise ModelInputError(
                "A block holds NaN, infinity or values too large to square.",
                next_step="Impute or drop missing values before adding the block.",
            )
        self._sums += block  # all of a block or none of it
        return self

    def _products(self, x: Array, ages: Array, c: Array | None) -> Array:
        """Sum of z z' over a block, added up in one triangle by a BLAS update (no copy per product)."""
        f, k, size = len(self.feature_names), len(self.conf_names), self.size
        width = -(-size // 8) * 8  # padded with zeros: rows stay aligned
        if self._buffer is None:
            self._buffer = np.zeros((_block_rows(width), width))
        step = self._buffer.shape[0]
        triangle = np.zeros((width, width), order="F")
        for start in range(0, x.shape[0], step):
            rows = slice(start, min(start + step, x.shape[0]))
            z = self._buffer[: rows.stop - start]
            z[:, 0] = 1.0
            if c is not None:
                np.subtract(c[rows], self.conf_centre, out=z[:, 1 : 1 + k])
            np.subtract(x[rows], self.x_centre, out=z[:, 1 + k : 1 + k + f], casting="unsafe")
            np.subtract(ages[rows], self.age_centre, out=z[:, size - 2])
            np.square(z[:, size - 2], out=z[:, size - 1])
            triangle = dsyrk(1.0, z.T, beta=1.0, c=triangle, overwrite_c=1, lower=1)
        lower = triangle[:size, :size]
        full = lower + lower.T  # the other triangle is zero: exact, but for the diagonal counted twice
        np.fill_diagonal(full, lower.diagonal())
        return np.asarray(full)

    def _same_layout(self, other: Moments) -> None:
        if self.feature_names != other.feature_names or self.conf_names != other.conf_names:
            raise ModelInputError(
                "The two moments are of different features or confounds, or in another order.",
                next_step="Use one list of names at every node.",
            )
        for name in ("x_centre", "x_scale", "conf_centre", "conf_scale", "age_centre", "age_scale"):
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                raise ModelInputError(
                    f"The two moments have another public constant {name}.",
                    next_step="Make both with the same public bounds.",
                )

    def merge(self, other: Moments) -> Moments:
        """Add the people of `other` (same names, order and public constants). Returns self."""
        self._same_layout(other)
        self._sums = self._sums + other._sums
        return self

    def __add__(self, other: Moments) -> Moments:
        return self.copy().merge(other)

    def __sub__(self, other: Moments) -> Moments:
        """Moments of the people in self but not in `other` (a subset of them): what k-fold validation trains on."""
        self._same_layout(other)
        out = self.copy()
        out._sums = out._sums - other._sums
        return out

    def copy(self) -> Moments:
        """An independent copy."""
        out = self.empty()
        out._sums = self._sums.copy()
        return out

    def empty(self) -> Moments:
        """Zero people, same names and constants: the start of a parallel reduction."""
        return Moments(
            self.feature_names, self.conf_names, self.x_centre, self.x_scale, self.conf_centre, self.conf_scale,
            self.age_centre, self.age_scale,
        )  # fmt: skip

    # --- the model -----------------------------------------------------------------------------------------------

    def fit(self, n_components: Components = None) -> Weights:
        """Weights as `BrainAgeDelta` would fit them on the same people (to 1e-9 relative for condition < 1e3).

        Raises
        ------
        ModelInputError
            Fewer than two people, all ages equal, condition number above 1e6 without components (the matrix cannot
            tell dependent from nearly dependent columns), F > N without a reduction.
        """
        return self.fit_full(n_components).weights

    def fit_full(self, n_components: Components = None) -> MomentsFit:
        """As `fit`, with the repairs made and the condition number (both inside only)."""

        with one_blas_thread():
            return fit_moments(self, n_components)

    # --- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one `.npz` (zip of arrays, no pickle) with a JSON header (`schemas/moments.schema.json`)."""
        header = {
            "schema": SCHEMA_ID,
            "layout": "1,confounds,features,u,u2",
            "feature_names": list(self.feature_names),
            "conf_names": list(self.conf_names),
            "age_centre": self.age_centre,
            "age_scale": self.age_scale,
        }
        raw = np.frombuffer(json.dumps(header, ensure_ascii=True).encode("ascii"), dtype=np.uint8)
        target = Path(path)
        buffer = io.BytesIO()
        np.savez(
            buffer, allow_pickle=False, header=raw, matrix=self._sums, x_centre=self.x_centre, x_scale=self.x_scale,
            conf_centre=self.conf_centre, conf_scale=self.conf_scale,
        )  # fmt: skip
        write_file(target, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Read what `save` wrote. Nothing in the file is executed; sizes are checked before anything is unpacked.

        Raises
        ------
        UnreadableError
            Not a moments file, damaged, or of another version.
        """
        arrays = _read_arrays(Path(path))
        header = _read_header(arrays.pop("header"), Path(path))
        matrix = arrays.pop("matrix")
        try:
            out = cls(
                tuple(header["feature_names"]), tuple(header["conf_names"]),
                age_centre=header["age_centre"], age_scale=header["age_scale"], **arrays,
            )  # fmt: skip
        except InputError as error:
            raise UnreadableError(f"The moments file contradicts itself: {error.what}", path=path) from error
        if matrix.shape != out._sums.shape or not np.isfinite(matrix).all() or not np.array_equal(matrix, matrix.T):
            raise UnreadableError(
                "The matrix in the moments file has a wrong size, holds NaN or is not symmetric.",
                path=path,
                next_step="Make the file again with Moments.save.",
            )
        out._sums = matrix
        return out


def _block_rows(width: int) -> int:
    """Rows per BLAS update: what the cache holds, but enough that a large triangle is not fetched too often."""
    return max(_CACHE // width, min(width // 4, 512), 8) // 8 * 8


def _constant(value: npt.ArrayLike | None, length: int, default: float, name: str) -> Array:
    if value is None:
        return np.full(length, default)
    array = np.array(value, dtype=np.float64).ravel()
    array = np.full(length, float(array[0])) if array.size == 1 else array
    if array.shape != (length,) or not np.isfinite(array).all():
        raise ModelInputError(f"The public constant {name} needs {length} finite number(s).")
    return array


def _conf_block(confounds: npt.ArrayLike | None, rows: int, k: int) -> Array | None:
    if k == 0:
        if confounds is not None:
            raise ModelInputError("Confounds were given to moments without any.", next_step="Name them first.")
        return None
    if confounds is None:
        raise ModelInputError("These moments need confounds with every block.")
    c = np.asarray(confounds, dtype=np.float64)
    c = c.reshape(-1, 1) if c.ndim == 1 and k == 1 else c
    if c.shape != (rows, k):
        raise ModelInputError(f"A block needs {k} confound column(s) and as many rows as features.")
    return c


def _read_arrays(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            if len(archive.infolist()) != len(_MEMBERS) or set(sizes) != set(_MEMBERS):
                raise UnreadableError("This is not a moments file: other members inside.", path=path)
            columns = sum(max(sizes[m] - _NPY, 0) for m in ("x_centre.npy", "conf_centre.npy")) // 8 + 3
            if sizes["header.npy"] > _HEADER_LIMIT or sizes["matrix.npy"] > 8 * columns**2 + _NPY:
                raise UnreadableError("A member of the moments file is larger than its layout allows.", path=path)
        with np.load(path, allow_pickle=False) as data:
            return {name.removesuffix(".npy"): np.asarray(data[name.removesuffix(".npy")]) for name in _MEMBERS}
    except OSError as error:
        raise UnreadableError("The moments file cannot be read.", path=path, next_step="Check the path.") from error
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise UnreadableError("This is not a moments file.", path=path) from error
    except zipfile.zlib.error as error:  # type: ignore[attr-defined]
        raise UnreadableError("The moments file is damaged.", path=path) from error


def _read_header(raw: npt.NDArray[Any], path: Path) -> dict[str, Any]:
    header = parse_object(raw.astype(np.uint8, copy=False).tobytes(), path=path)
    if wrong := faults(header, "moments"):
        raise UnreadableError(
            "The header of the moments file does not fit schemas/moments.schema.json.", path=path, place=wrong[0].place
        )
    return header
