"""What was paid for is never lost: order, spend, draw, seal, write down, open.

An order's number goes into the journal, and the spend into the ledger under that number. What is drawn is sealed under
the ledger's key, forced to the disk, and its digest goes into the ledger; only then is it opened. Wherever a run dies,
either nothing was spent; or nobody has seen anything yet, and the same order may draw again; or the sealed result is
there, and it alone is opened.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import BudgetError, InputError, LedgerError
from ..base.strict import DATA, parse
from ..base.writing import write_file
from ..privacy.spend import Receipt, SpendRequest
from .journal import Journal

if TYPE_CHECKING:
    from .budget import Budget

T = TypeVar("T")
_ROOM = 4 * 1024 * 1024  # bytes that must be free beside the journal before anything is paid for


@dataclass(frozen=True)
class Order:
    """An order written down: its number, and a digest of its terms and people."""

    token: str
    terms: str


class Orders:
    """The orders of one session that are not answered yet."""

    def __init__(
        self, journal: Journal, budget: Budget, waiting: Sequence[Order] = (), before: Sequence[Order] = ()
    ) -> None:
        self._journal = journal
        self._budget = budget
        self._waiting = list(waiting)
        self._before = list(before)  # answered in a process that is gone: asked again, they give what they gave

    @property
    def entries(self) -> list[int]:
        """Ledger entries of what was paid for and not taken up."""
        found = (self._budget.ledger.ordered(order.token) for order in self._waiting)
        return [receipt.entry for receipt in found if receipt is not None]

    def place(self, n: int | None, people: bytes, receipts: list[Receipt]) -> Callable[[SpendRequest], Receipt]:
        """A callback that pays for one release before any noise is drawn, and keeps the receipt.

        An order on the same terms and people that was not answered is asked again: it is paid for once.
        """

        def spend(request: SpendRequest) -> Receipt:
            self.check_room()
            order = self._order(request, people)
            try:
                receipt = self._budget.spend(replace(request), n, order.token)
            except BudgetError:
                self._done(order, "refused")
                raise
            self._journal.write("spend", {"entry": receipt.entry, "epsilon": float(request.epsilon)})
            receipts.append(receipt)
            return receipt

        return spend

    def _order(self, request: SpendRequest, people: bytes) -> Order:
        terms = sha256_hex(canonical_line({**asdict(request), "people": people.hex()}))
        found = next((order for order in (*self._waiting, *self._before) if order.terms == terms), None)
        if found is not None:
            self._before = [order for order in self._before if order != found]
            return found
        if self.entries:
            raise InputError(
                "something that was paid for waits to be taken up, and this asks for something else",
                next_step="Ask for it first, with the same people and arguments as before: nothing is spent for it. "
                "A new session spends anew.",
            )
        order = Order(uuid.uuid4().hex, terms)
        self._journal.write("order", asdict(order))
        self._waiting.append(order)
        return order

    def keep(
        self,
        receipts: Sequence[Receipt],
        dump: Callable[[T], Mapping[str, Any]],
        load: Callable[[Mapping[str, Any]], T],
    ) -> Callable[[Callable[[], T]], T]:
        """A callback that draws, seals, writes down and opens; or opens what was sealed before."""

        def kept(draw: Callable[[], T]) -> T:
            entry = receipts[-1].entry
            ledger, path = self._budget.ledger, self.sealed(entry)
            key, about = ledger.signing_key(), f"{ledger.id}/{entry}"
            if ledger.sealed_in(entry) is None:
                if not path.is_file():
                    body = canonical_line(dump(draw())).encode("ascii")
                    write_file(path, key.seal(body, about), mode=0o600)
                    _force(path.parent)
                key.unseal(path.read_bytes(), about)
                ledger.draw(entry, sha256_hex(path.read_bytes()), who=self._budget.who)
            return load(self.opened(entry))

        return kept

    def sealed(self, entry: int) -> Path:
        """Where the sealed statistic of a spend lies."""
        return self._journal.folder / f"paid-{entry}.sealed"

    def opened(self, entry: int) -> Mapping[str, Any]:
        """The statistic that was drawn on a spend: the one whose digest the ledger has, and no other.

        Raises
        ------
        LedgerError
            Nothing was sealed on it, or the file is not that one.
        """
        ledger, path = self._budget.ledger, self.sealed(entry)
        try:
            sealed = path.read_bytes()
        except OSError as error:
            raise LedgerError(
                f"the sealed result of entry {entry} cannot be read ({error.strerror})",
                path=path,
                next_step="Put the session's working folder back as it was.",
            ) from error
        if sha256_hex(sealed) != ledger.sealed_in(entry):
            raise LedgerError(f"this is not the result that was drawn on entry {entry}", path=path)
        opened: Mapping[str, Any] = parse(ledger.signing_key().unseal(sealed, f"{ledger.id}/{entry}"), bounds=DATA)
        return opened

    def answered(self, entry: int) -> None:
        """The session has recorded what it was paid for."""
        for order in list(self._waiting):
            receipt = self._budget.ledger.ordered(order.token)
            if receipt is not None and receipt.entry == entry:
                self._done(order, "answered")

    def _done(self, order: Order, how: str) -> None:
        self._waiting = [other for other in self._waiting if other != order]
        self._journal.write("order_done", {"token": order.token, "how": how})

    def check_room(self) -> None:
        """Write what a result may take beside the journal and take it away again, before anything is paid for."""
        path = self._journal.folder / "room"
        try:
            with path.open("wb") as handle:
                handle.write(bytes(_ROOM))
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise InputError(
                f"there is no room for the result ({error.strerror}). Nothing was spent",
                path=self._journal.folder,
                next_step="Free some space, then ask again.",
            ) from error
        finally:
            path.unlink(missing_ok=True)


def orders_of(journal: Journal, budget: Budget, steps: Sequence[Mapping[str, Any]]) -> Orders:
    """The orders of a session that is taken up again; what the ledger never granted is forgotten."""
    done = {step["token"] for step in steps if step["step"] == "order_done"}
    made = [Order(step["token"], step["terms"]) for step in steps if step["step"] == "order"]
    paid = [order for order in made if budget.ledger.ordered(order.token) is not None]
    waiting = [order for order in paid if order.token not in done]
    return Orders(journal, budget, waiting, [order for order in paid if order.token in done])


def _force(folder: Path) -> None:
    """Names of files on the disk too, where a folder can be opened for that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
