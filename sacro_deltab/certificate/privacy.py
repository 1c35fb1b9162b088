"""The privacy block of a predicate: one word, what stands behind it, and everything outside the budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.canonical import canonical_json
from ..kinds.papers import CERTIFICATE
from .findings import PreparedOutput
from .said import HEX, like

LABELS = ("formal", "heuristic", "none")
# Fields of a privacy statement that may leave. The exact N of the cohort is not among them: the output that
# publishes N says it, rounded where the policy says so.
_KEYS = (
    "label",
    "reason",
    "mechanism",
    "epsilon",
    "delta_dp",
    "mu",
    "sigma_unit",
    "adjacency",
    "unit",
    "epsilon_by_adjacency",
    "bounds",
    "basis",
    "sampler",
    "blocks",
    "proof",
    "outside_budget",
    "not_covered",
)
_PARTS: dict[str, tuple[str, ...] | None] = {  # fields that are objects, and the entries that are kept (None: all)
    "epsilon_by_adjacency": ("zero_out_N_public", "add_remove", "replace_one"),
    "bounds": ("digest", "provenance", "bound_years"),
    "basis": ("digest", "origin", "made_on"),
    "blocks": None,
}
_LEDGER_KEYS = ("id", "entry", "head", "pinned")
_TOTALS = ("epsilon_sum", "delta_sum", "mu", "epsilon_exact", "releases", "model_exports")
CAPPED = "the ledger is not one the TRE pinned, so clipping, randomness and spend rest on the session's word"


def privacy_block(
    outputs: Sequence[PreparedOutput],
    evidence: Mapping[str, Any] | None,
    ledger: Mapping[str, Any] | None,
    *,
    capped: bool,
) -> dict[str, Any]:
    """What is stated about noise.

    label: the weakest of the noised outputs, "none" where nothing was noised. end_to_end: whether ε and δ hold for
    the package, which needs `formal` and nothing outside the budget. Outputs of one noisy release share one entry.
    """
    releases: list[dict[str, Any]] = []
    for output in outputs:
        if output.privacy is None:
            continue
        entry = _release(output.privacy, capped)
        same = next((r for r in releases if canonical_json(_apart(r)) == canonical_json(entry)), None)
        if same is None:
            releases.append({**entry, "outputs": [output.name]})
        else:
            same["outputs"].append(output.name)
    label = LABELS[max((LABELS.index(r["label"]) for r in releases), default=2)]
    outside = outside_budget(outputs, releases)
    return {
        "label": label,
        "releases": releases,
        "outside_budget": outside,
        "end_to_end": label == "formal" and not outside,
        "ledger": _ledger(ledger, evidence, releases),
    }


def outside_budget(outputs: Sequence[PreparedOutput], releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of what was asked for without noise beside a noised release; empty where nothing is noised.

    An output that stays inside counts too: that it stays, and why, is an answer about the people that no noise covers.
    N of everybody does not where every release takes it as a public constant (D-23).
    """
    if not releases:
        return []
    n_is_public = all(r.get("adjacency") not in ("add_remove", None) for r in releases)
    named = {str(n) for r in releases for n in r.get("outside_budget", ())}
    named |= {o.name for o in outputs if _unnoised(o) and not (o.public_n and n_is_public)}
    return sorted(named)


def _unnoised(output: PreparedOutput) -> bool:
    return output.type not in ("unknown", CERTIFICATE) and (
        output.privacy is None or output.privacy.get("label") not in ("formal", "heuristic")
    )


def _apart(release: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in release.items() if k != "outputs"}


def _release(statement: Mapping[str, Any], capped: bool) -> dict[str, Any]:
    entry = {key: _allowed(key, statement.get(key)) for key in _KEYS}
    label = str(statement.get("label"))
    entry["label"] = label if label in LABELS else "none"
    if capped and entry["label"] == "formal":
        entry["label"], entry["reason"] = "heuristic", CAPPED
    raw = statement.get("ledger")
    entry["ledger"] = {k: raw.get(k) for k in _LEDGER_KEYS} if isinstance(raw, Mapping) else None
    return entry


def _allowed(key: str, value: Any) -> Any:
    """A field as it may leave: the form it should have, no longer than it need be, else nothing.

    The statement comes from evidence that a session wrote; a signed certificate is no place for other text.
    """
    if key in ("epsilon", "delta_dp", "mu", "sigma_unit"):
        return value if _number(value) else None
    if key in ("outside_budget", "not_covered"):
        return [_words(v) for v in value[:50]] if isinstance(value, (list, tuple)) else None
    if key in _PARTS:
        if not isinstance(value, Mapping):
            return None
        known = _PARTS[key]
        kept = {k: v for k, v in sorted(value.items()) if known is None or k in known}
        return {str(k)[:40]: v if _number(v) else _words(v) for k, v in list(kept.items())[:40]}
    return None if value is None else _words(value)


def _words(value: Any) -> str:
    return str(value)[:400]


def _ledger(
    ledger: Mapping[str, Any] | None, evidence: Mapping[str, Any] | None, releases: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Id, head and totals before and after, from the ledger itself if it was read, else as the session recorded."""
    source = ledger if ledger is not None else _recorded((evidence or {}).get("privacy"))
    if source is None:
        return None
    after = _totals(source.get("after"))
    return {
        **{key: like(source.get(key), HEX) for key in ("id", "head_key", "head_before", "head")},
        "entries": source.get("entries") if type(source.get("entries")) is int else None,
        "pinned": bool(source.get("pinned", False)),
        "read": ledger is not None,
        "before": None if after is None else _before(after, releases),
        "after": after,
    }


def _recorded(privacy: object) -> Mapping[str, Any] | None:
    if isinstance(privacy, Mapping) and isinstance(privacy.get("ledger"), Mapping):
        return {**privacy["ledger"], "after": privacy}
    return None


def _before(after: Mapping[str, Any], releases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Plain sums without the spends of this release; exact compositions have no such difference and are left out."""
    spends = {(r["ledger"] or {}).get("entry"): r for r in releases if r["ledger"]}
    epsilon, delta_dp = spent(spends.values())
    return {
        "epsilon_sum": _less(after.get("epsilon_sum"), epsilon),
        "delta_sum": _less(after.get("delta_sum"), delta_dp),
        "releases": _less(after.get("releases"), len(spends)),
    }


def _less(total: Any, part: float) -> Any:
    if not isinstance(total, (int, float)):
        return None
    rest = total - part
    return rest if abs(rest) > 1e-12 else type(total)(0)


def _totals(value: object) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {key: value.get(key) for key in _TOTALS if _number(value.get(key))}


def _number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def spent(releases: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Plain sums of ε and δ over releases."""
    items = list(releases)
    return sum(float(r["epsilon"] or 0) for r in items), sum(float(r["delta_dp"] or 0) for r in items)
