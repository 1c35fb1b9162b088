"""One small tree of errors; each says what is wrong, where, and what to do next.

SacroDeltabError            everything this package raises on purpose
├── InputError              a file, value or option cannot be used            (command line: exit 2)
│   ├── RuleSetError        a rule set, layer or waiver does not load
│   └── UnreadableError     a file that arrived cannot be read as what it claims to be
├── RefusedError            policy forbids the act, nothing was done          (exit 1)
│   ├── BudgetError         the privacy budget does not cover it
│   └── PrivacyError        the claim would not be true
├── LedgerError             the ledger cannot be trusted or reached           (exit 2)
└── CertificateError        a signature, digest or statement does not hold    (exit 1)

No message carries a per-subject value or a count under a threshold: callers put such numbers into `inside`,
which only reports that stay in the TRE print.
"""

from __future__ import annotations


class SacroDeltabError(Exception):
    """Base of all errors.

    Parameters
    ----------
    what
        One sentence: what is wrong. May leave the TRE.
    path
        The file it is about, as the user named it.
    place
        Where in the file: line, column, row, key.
    next_step
        What the reader can do about it.
    inside
        Detail that must stay in the TRE (counts, values); never part of `str()`.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        path: object | None = None,
        place: str | None = None,
        next_step: str | None = None,
        inside: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = None if path is None else str(path)
        self.place = place
        self.next_step = next_step
        self.inside = inside

    def __str__(self) -> str:
        where = ":".join(part for part in (self.path, self.place) if part)
        text = f"{where}: {self.what}" if where else self.what
        if not self.next_step:
            return text
        stop = "" if text.endswith((".", "!", "?", ":", "\n")) else "."
        return f"{text}{stop} Next step: {self.next_step}"


class InputError(SacroDeltabError):
    """A file, value or option cannot be used."""


class RuleSetError(InputError):
    """A rule set, layer or waiver does not load; it never judges anything."""


class UnreadableError(InputError):
    """A file that arrived cannot be read as what it claims to be."""


class RefusedError(SacroDeltabError):
    """Policy forbids the act; nothing was done."""

    exit_code = 1


class BudgetError(RefusedError):
    """The privacy budget of the partition does not cover the spend."""


class PrivacyError(RefusedError):
    """The privacy claim asked for would not be true."""


class LedgerError(SacroDeltabError):
    """The ledger cannot be trusted, read or written."""


class CertificateError(SacroDeltabError):
    """A signature, digest or statement does not hold."""

    exit_code = 1
