"""The public files of a pooling, basis and bounds: as named, or found by the digest in the nodes' certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..base.errors import InputError
from ..base.opening import read_text
from ..base.strict import DATA, parse
from ..privacy import PublicBounds
from ..privacy.basis import Basis
from .bundle import Node
from .compare import about
from .order import Order
from .pooling import Public

_LARGEST = 512 * 2**20  # bytes; a basis of 20,000 features and 1,000 components
_MOST = 200  # JSON files looked at in a folder


def find_public(order: Order, nodes: Sequence[Node], say: Callable[[str], None]) -> Public:
    """Basis and bounds for a pooled fit.

    A file named on the command line is taken and compared later. One that is not named is looked for beside the job,
    the trust file and the nodes, and in the working directory: the digest says whether it is the one, so where it lies
    does not matter.
    """
    wanted = about(nodes[0])
    basis, bounds = order.basis, order.bounds
    folders = _folders(order)
    if basis is None and wanted.get("basis") is not None:
        basis = _search(folders, str(wanted["basis"]), '"sacro_deltab/basis/1"', say)
    if bounds is None and wanted.get("basis") is None and wanted.get("bounds") is not None:
        bounds = _search(folders, str(wanted["bounds"]), '"sacro_deltab/bounds/1"', say)
    return Public(
        None if basis is None else Basis.load(basis),
        None if bounds is None else PublicBounds.load(bounds),
    )


def _folders(order: Order) -> list[Path]:
    places = [Path.cwd(), order.trust.absolute().parent, *(p.absolute().parent for p in order.paths)]
    if order.job is not None:
        places.insert(0, order.job.absolute().parent)
    return list(dict.fromkeys(places))


def _search(folders: Sequence[Path], digest: str, schema: str, say: Callable[[str], None]) -> Path | None:
    for path in _candidates(folders):
        try:
            text = read_text(path, limit=_LARGEST)
            if schema in text and digest in text and parse(text, bounds=DATA).get("digest") == digest:
                say(f"{path.name}: the public file the nodes name, by its digest")
                return path
        except (InputError, AttributeError):
            continue
    return None


def _candidates(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            yield from sorted(p for p in folder.glob("*.json") if p.is_file())[:_MOST]
        except OSError:
            continue
