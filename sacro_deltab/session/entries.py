"""One output of a session: everything that was decided about it, and where its files are."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ..build.free import free_bits
from ..build.picture import picture
from ..build.record import Outside
from ..kinds.plots import PLOT
from ..measure.numbers import Moment, Trace
from ..measure.people import Grouping
from ..outputs.document import OutputDocument
from ..rules.facts import Facts, facts_from_json, facts_to_json

if TYPE_CHECKING:
    import pandas as pd


WORDS = {"pass": "meets the rules", "review": "a person must decide", "fail": "stays inside"}
_COLOURS = {"pass": "#155724", "review": "#5a4a00", "fail": "#842029"}
_GROUND = {"pass": "#d9efe0", "review": "#fbf3d0", "fail": "#f8dcdf"}


@dataclass(frozen=True, repr=False)
class Entry:
    """A recorded output.

    `document` is what would leave, None where it stays inside. `raw`, `facts`, `complementary`, `merges` and
    `notes_inside` never leave the TRE. `spends` are ledger entries that paid for its noise. `made_of` names the output
    that a plot or a p-value says the numbers of again: it does not outlive that output.
    """

    name: str
    type: str
    title: str
    status: str
    summary: str
    kept_inside: bool
    facts: Facts
    decision: Mapping[str, Any]  # decision_to_json(inside)
    told: tuple[Mapping[str, Any], ...]  # the findings as they may leave: what the record says
    document: OutputDocument | None
    raw: OutputDocument | None
    privacy: Mapping[str, Any] | None
    files: tuple[str, ...]
    suppressed: tuple[str, ...] = ()
    complementary: tuple[str, ...] = ()
    spends: tuple[int, ...] = ()
    merges: tuple[str, ...] = ()
    notes_inside: tuple[str, ...] = ()
    n: int | None = None
    made_of: str | None = None
    weights_sha256: str | None = None  # of the weights before rounding, where a report is about them
    would_sha256: str | None = None  # digest of the document were nothing blocked: what a waiver names

    @property
    def rests_on_exact_n(self) -> bool:
        """Whether it leaves and prints or rests on an exact N (D-49); an unknown origin counts as exact."""
        origin = self.facts.get("n.origin")
        return not self.kept_inside and (origin is None or origin.value == "exact")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in words that may leave."""
        return tuple(dict.fromkeys(str(one["text"]) for one in self.told))

    @property
    def outside(self) -> Outside:
        """What may be told of it."""
        return Outside.of(self.to_evidence())

    def to_evidence(self) -> dict[str, Any]:
        """One entry of `outputs` in the evidence file."""
        return {
            "name": self.name,
            "type": self.type,
            "title": self.title,
            "files": list(self.files),
            "status": self.status,
            "kept_inside": self.kept_inside,
            "facts": facts_to_json(self.facts),
            "decision": dict(self.decision),
            "told": [dict(one) for one in self.told],
            "privacy": None if self.privacy is None else dict(self.privacy),
            "raw": None if self.raw is None else self.raw.to_data(),
            "suppressed": list(self.suppressed),
            "complementary": list(self.complementary),
            "merges": list(self.merges),
            "findings_inside": list(self.notes_inside),
            "would_sha256": self.would_sha256,
            "weights_sha256": self.weights_sha256,
            "free_bits": free_bits(self.name, self.title, None if self.type == PLOT else self.document),
        }

    def to_journal(self) -> dict[str, Any]:
        """Everything needed to take the output up again after the process died."""
        return {
            **self.to_evidence(),
            "summary": self.summary,
            "document": None if self.document is None else self.document.to_data(),
            "spends": list(self.spends),
            "n": self.n,
            "made_of": self.made_of,
        }

    @classmethod
    def from_journal(cls, data: Mapping[str, Any]) -> Entry:
        """Back from the journal; facts keep who said them."""
        return cls(
            name=data["name"],
            type=data["type"],
            title=data["title"],
            status=data["status"],
            summary=data["summary"],
            kept_inside=data["kept_inside"],
            facts=facts_from_json(data["facts"], recorded=False),
            decision=data["decision"],
            told=tuple(data["told"]),
            document=None if data["document"] is None else OutputDocument.from_json(data["document"]),
            raw=None if data["raw"] is None else OutputDocument.from_json(data["raw"]),
            privacy=data["privacy"],
            files=tuple(data["files"]),
            suppressed=tuple(data["suppressed"]),
            complementary=tuple(data["complementary"]),
            spends=tuple(data["spends"]),
            merges=tuple(data["merges"]),
            notes_inside=tuple(data["findings_inside"]),
            would_sha256=data.get("would_sha256"),
            weights_sha256=data.get("weights_sha256"),
            n=data["n"],
            made_of=data.get("made_of"),
        )

    @property
    def table(self) -> pd.DataFrame | None:
        """What would leave, as a DataFrame; None where the output stays inside."""
        if self.document is None:
            return None
        import pandas as pd  # late: pandas is heavy

        return pd.DataFrame(
            [list(row[1:]) for row in self.document.rows],
            index=pd.Index([row[0] for row in self.document.rows], name=self.document.columns[0].name),
            columns=[column.name for column in self.document.columns[1:]],
        )

    def explain(self) -> str:
        """Why it was judged so, for whoever sits inside: each finding with its rule, its numbers and the next step.

        What stands here stays inside; `reasons` are the same in words that may leave.
        """
        lines = [f"{self.name} ({self.type}): {WORDS[self.status]}"]
        for found in self.decision.get("findings", ()):
            rules = ", ".join(found.get("rules", ()))
            said = [f"  {found.get('effect')} by {rules}: {found.get('text')}"]
            said += [f"    question: {ask}" for ask in found.get("asks", ())]
            said += [f"    next step: {found['next_step']}"] if found.get("next_step") else []
            lines.append("\n".join(said))
        if self.decision.get("missing"):
            lines.append(f"  nobody supplied: {', '.join(self.decision['missing'])}")
        lines += [f"  linked: {note}" for note in self.notes_inside]
        lines += [f"  to get it out: {merge}" for merge in self.merges]
        return "\n".join(dict.fromkeys(lines))  # what holds of many rows is said once

    def __repr__(self) -> str:
        """Name and verdict only: a notebook shows lists of these, and is often mailed."""
        return f"Entry({self.name}: {self.status})"

    def __str__(self) -> str:
        lines = [f"{self.title} ({self.name}): {self.summary}"]
        if self.table is not None:
            lines.append(self.table.head(30).to_string())
        lines += [f"  to get it out: {merge}" for merge in self.merges]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return entry_html(self)


class Entries(list[Entry]):
    """Several outputs, shown in a notebook as a table of verdicts."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{badge(e.status)}</td><td>{escape(e.title)}<br><code>{escape(e.name)}</code></td>"
            f"<td>{bullets(e.reasons)}</td></tr>"
            for e in self
        )
        return f"<table><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Candidate:
    """An output before it is judged: raw document, facts, and the cells it would print."""

    document: OutputDocument
    facts: Facts
    cells: tuple[Any, ...] = ()
    privacy: Mapping[str, Any] | None = None
    receipt: Any = None
    picture: bytes | None = None
    format: str = "csv"
    n: int | None = None
    grouping: Grouping | None = None
    trace: Trace | None = None
    moments: tuple[Moment, ...] = ()  # what the trace says, once it is judged
    made_of: str | None = None
    weights_sha256: str | None = None
    advice: tuple[str, ...] = ()  # what would let it out, where it stays inside
    notes: tuple[str, ...] = ()  # what a person who decides should know; inside only


def entry_html(entry: Entry) -> str:
    """One output as it would leave."""
    table = entry.table
    shown = "" if table is None else table.head(50).to_html(escape=True, border=0)
    if entry.document is not None and entry.type == PLOT:
        drawn = b64encode(picture(entry.document)).decode("ascii")
        shown = f'<img alt="{escape(entry.title)}" src="data:image/png;base64,{drawn}">'
    return (
        f"<div><p>{badge(entry.status)} <b>{escape(entry.title)}</b> <code>{escape(entry.name)}</code></p>"
        f"{bullets(entry.reasons)}{bullets([f'To get it out: {m}' for m in entry.merges])}{shown}</div>"
    )


def badge(status: str) -> str:
    """A verdict as a coloured word."""
    style = f"background:{_GROUND[status]};color:{_COLOURS[status]};padding:1px 8px;border-radius:4px"
    return f'<span style="{style}">{status}</span>'


def bullets(items: object) -> str:
    """A list of texts in HTML; nothing for none."""
    texts = [str(item) for item in items] if isinstance(items, list | tuple) else []
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>" if texts else ""
