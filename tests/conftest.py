"""Repeatable tests of a program whose noise must not be repeatable.

The trainer has no seed, on purpose. So that a test of a noisy result says the same thing on every run, the bytes that
reach the exact sampler come from a generator keyed by the test's name, and OpenDP's sampler, which takes no bytes from
outside, is replaced by the exact one. Nothing else is seeded: keys, salts and ids are the operating system's. A test
marked `os_randomness` runs on the real sources; so does everything started in a process of its own.
`SACRO_DELTAB_OS_RANDOMNESS=1` lifts the seeding, to see how often a test would raise a false alarm.
"""

from __future__ import annotations

import os
import zlib
from types import SimpleNamespace
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("exploring", deadline=None)


class _Source:
    """Bytes for the samplers, repeatable per test."""

    generator = np.random.default_rng(0)

    @classmethod
    def reseed(cls, name: str) -> None:
        cls.generator = np.random.default_rng(zlib.crc32(name.encode()))

    @classmethod
    def urandom(cls, size: int) -> bytes:
        return cls.generator.bytes(size)


def _gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """In the place of `sampler.opendp_gaussian`."""
    from sacro_deltab.privacy import exact

    if scale >= exact.LIMIT:
        return np.rint(_Source.generator.normal(0, scale, size)).astype(np.int64)
    if scale >= 1:
        return exact.discrete_gaussian(scale, size)
    reach = np.arange(-40, 41)
    weight = np.exp(-(reach**2) / (2 * scale**2))
    return np.asarray(_Source.generator.choice(reach, size=size, p=weight / weight.sum()), dtype=np.int64)


def _laplace(scale: float, size: int) -> NDArray[np.int64]:
    """In the place of `sampler.discrete_laplace`: the difference of two geometric draws."""
    p = -np.expm1(-1 / scale)
    draws = _Source.generator.geometric(p, size=(2, size))
    return np.asarray(draws[0] - draws[1], dtype=np.int64)


def _is_real(item: pytest.Item) -> bool:
    return "SACRO_DELTAB_OS_RANDOMNESS" in os.environ or item.get_closest_marker("os_randomness") is not None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "os_randomness: draws noise from the operating system, unseeded")
    exploring = "soak" in str(config.getoption("-m")) and "not soak" not in str(config.getoption("-m"))
    hypothesis.settings.load_profile("exploring" if exploring else "repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Seeded from before the fixtures are made, module-wide ones too, until the test has ended."""
    if _is_real(item):
        return (yield)
    from sacro_deltab.privacy import exact, sampler

    _Source.reseed(item.nodeid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "os", SimpleNamespace(urandom=_Source.urandom))
        patch.setattr(sampler, "opendp_gaussian", _gaussian)
        patch.setattr(sampler, "discrete_laplace", _laplace)
        return (yield)
