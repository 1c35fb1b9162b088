"""Python's cycle collector, paused where thousands of objects are made that all stay.

After `import acro` a full collection walks half a million objects and frees none of them. Loading rules and writing
documents would start several: half a second of work that nobody asked for. Reference counting goes on as always.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No collection inside; also a decorator. Whoever had it off already keeps it off."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
