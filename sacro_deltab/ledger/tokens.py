"""Keyed tokens of what was measured on a person, to find the same people under other ids. Inside the TRE only.

A hash of a whole row finds no near-copy: one value changed, or one column dropped, and it is another hash. A token
stands for six rounded columns of a person; each person has 48 of them, over column sets that the TRE's key picks.
A set is picked by the columns' names (the six that come first in an order of the key's), so that two tables which share
most of their columns share most of their sets. Two people are taken for one where four tokens agree.

Power. A column is rounded to a step between 0.18 and 0.35 of its SD, so that 3.4 to 4.4 bits of collision entropy
remain of a column, about 23 of a token, and 92 of four (of independent columns; correlated ones have less, and tables
of fewer than 12 usable columns get no tokens at all). Where a tenth of the columns is dropped, 0.9⁶ = 53 % of the
tokens stay, 25 of 48; where 5 % of the values are moved by less than a step, each of them stays with at least
0.975⁶ = 86 %: fewer than four agree for less than one person in a million. What tokens do not find: renamed columns,
another unit, values computed anew. Then people are not known, and no label is better than `heuristic`.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

COUNT = 48  # tokens of a person
COLUMNS = 6  # columns of a token
PEOPLE = 250_000  # of a stored block: 48 MB
NEEDED = 4  # tokens that agree between two rows of one person
FEWEST = 12  # usable columns of a table
MOST_ALIKE = 8  # a token that so many people share tells nobody apart
_BITS = np.uint64(0xFFFFFFFF)
_LEVELS = 8  # rounded values that a usable column has at least

Tokens = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


def column_key(name: str) -> str:
    """A column's name without case, blanks and marks."""
    return "".join(c for c in name.casefold() if c.isalnum())


def steps_of(columns: Mapping[str, Floats]) -> dict[str, float]:
    """Rounding step of each usable column: the power of two nearest to a quarter of its SD."""
    steps = {}
    for name, values in columns.items():
        finite = values[np.isfinite(values)]
        spread = float(finite.std()) if finite.size else 0.0
        if not 1e-100 < spread < 1e100:
            continue
        step = 2.0 ** round(math.log2(spread / 4))
        if np.unique(np.rint(finite / step)).size >= _LEVELS:
            steps[column_key(name)] = step
    return steps


class Tokeniser:
    """Makes the tokens of one TRE: the same rows give the same tokens, and nobody without the key can make one."""

    def __init__(self, secret: bytes, steps: Mapping[str, float]) -> None:
        self._secret = secret
        self._steps = steps

    def tokens(self, columns: Mapping[str, Floats]) -> Tokens:
        """(COUNT, people); 0 where a person has too few of the columns. None at all from too few usable columns."""
        usable = {key: values for name, values in columns.items() if (key := column_key(name)) in self._steps}
        people = len(next(iter(columns.values()), ()))
        out = np.zeros((COUNT, people), dtype=np.uint32)
        if len(usable) < FEWEST or not people:
            return out
        names = sorted(usable)
        drawn = np.frombuffer(b"".join(self._stream(name) for name in names), dtype="<u8").reshape(-1, COUNT, 3)
        seen: set[frozenset[int]] = set()
        for k in range(COUNT):
            order = np.argsort(drawn[:, k, 0])
            first = frozenset(order[:COLUMNS].tolist())
            if first not in seen:  # few columns: the same set twice is no second witness
                seen.add(first)
                picked = [names[j] for j in order[: 3 * COLUMNS]]
                rounded = np.column_stack([np.rint(usable[n] / self._steps[n]) for n in picked])
                out[k] = self._sealed(k, *_mixed(rounded, drawn[order[: 3 * COLUMNS], k, 1:]))
        return out

    def _stream(self, name: str) -> bytes:
        """Per token of a column: its place in the order of columns, a factor and a term."""
        seed = hmac.digest(self._secret, name.encode(), "sha256")
        return hashlib.shake_256(seed).digest(COUNT * 24)

    def _sealed(self, k: int, mixed: Words, enough: npt.NDArray[np.bool_]) -> Tokens:
        """AES of (sum, k), each block once: a keyed function of the sum that cannot be turned round."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # late: an OpenSSL library

        blocks = np.column_stack([mixed, np.full(mixed.size, k, dtype=np.uint64)])
        cipher = Cipher(algorithms.AES(hmac.digest(self._secret, b"tokens", "sha256")), modes.ECB()).encryptor()
        out = np.frombuffer(cipher.update(blocks.astype("<u8").tobytes()), dtype="<u8").reshape(-1, 2)[:, 0]
        return np.where(enough, out & _BITS, 0).astype(np.uint32)


def _mixed(rounded: Floats, drawn: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
    """One sum per row over the first COLUMNS present values, with secret factors; and where there were so many."""
    present = np.isfinite(rounded)
    place = np.cumsum(present, axis=1)
    used = present & (place <= COLUMNS)
    whole = np.where(used, np.clip(rounded, -(2.0**52), 2.0**52), 0).astype(np.int64).view(np.uint64)
    terms = np.where(used, whole * (drawn[:, 0] | np.uint64(1)) + drawn[:, 1], np.uint64(0))
    return terms.sum(axis=1, dtype=np.uint64), place[:, -1] >= COLUMNS


def _pairs(mine: Tokens, theirs: Tokens) -> Iterable[npt.NDArray[np.int64]]:
    """Codes `i * people + j` of rows that agree in one token, token by token."""
    for one, other in zip(mine, theirs, strict=True):
        order = np.argsort(other, kind="stable")
        ranked = other[order]
        left, right = np.searchsorted(ranked, one, "left"), np.searchsorted(ranked, one, "right")
        count = np.where(one == 0, 0, right - left)
        rows = np.flatnonzero((count > 0) & (count <= MOST_ALIKE))
        for extra in range(int(count[rows].max(initial=0))):
            some = rows[count[rows] > extra]
            yield some * other.size + order[left[some] + extra]


def agreeing(mine: Tokens, theirs: Tokens) -> npt.NDArray[np.int64]:
    """(pairs, 3): row of mine, row of theirs, tokens that agree; pairs of NEEDED tokens or more."""
    found = [codes for codes in _pairs(mine, theirs) if codes.size]
    if not found:
        return np.empty((0, 3), dtype=np.int64)
    codes, count = np.unique(np.concatenate(found), return_counts=True)
    codes, count = codes[count >= NEEDED], count[count >= NEEDED]
    return np.column_stack([codes // theirs.shape[1], codes % theirs.shape[1], count])


def twice(tokens: Tokens) -> tuple[int, int] | None:
    """Positions of two rows that are the same person's, as far as nearly all their tokens tell; None without any."""
    have = (tokens != 0).sum(axis=0)
    first: dict[bytes, int] = {}
    for at in np.flatnonzero(have):  # also more copies than MOST_ALIKE, which `agreeing` leaves aside
        other = first.setdefault(tokens[:, at].tobytes(), int(at))
        if other != at:
            return other, int(at)
    pairs = agreeing(tokens, tokens)
    same = pairs[(pairs[:, 0] < pairs[:, 1]) & (pairs[:, 2] >= 0.9 * have[pairs[:, 0]])]
    return None if not same.size else (int(same[0, 0]), int(same[0, 1]))


def packed(tokens: Tokens) -> list[bytes]:
    """As stored: PEOPLE a block."""
    starts = range(0, max(tokens.shape[1], 1), PEOPLE)
    return [tokens[:, start : start + PEOPLE].astype("<u4").tobytes() for start in starts]


def unpacked(block: bytes) -> Tokens:
    """One block as tokens."""
    return np.frombuffer(block, dtype="<u4").reshape(COUNT, -1)


def joined(parts: Sequence[Tokens]) -> Tokens:
    """Tokens of blocks of rows as those of one table."""
    return np.concatenate(parts, axis=1) if parts else np.zeros((COUNT, 0), dtype=np.uint32)
