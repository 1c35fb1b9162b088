"""The certificate for people: one printable page that answers low counts, masking and explanation, in that order.

These are the three commonest reasons why an output is sent back. Everything on the page is in the statement; there is
no script, no image and no link, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ..base.verdicts import NOTHING
from ..kinds.papers import CERTIFICATE
from .policy import draft_mark
from .statement import in_full

_STYLE = """
@page { size: A4; margin: 12mm }
body { font: 8pt/1.25 "DejaVu Sans", Arial, sans-serif; color: #000; max-width: 186mm; margin: 0 auto }
h1 { font-size: 13pt; margin: 0 0 1mm } h2 { font-size: 9.5pt; margin: 2mm 0 .6mm; border-bottom: .3mm solid #000 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .6mm 1.5mm;
border-bottom: .1mm solid #888 } p { margin: .6mm 0 }
.verdict { font-weight: bold; border: .4mm solid #000; padding: .3mm 2mm } .small { font-size: 7pt }
@media print { body { max-width: none } }
"""
_MEANING = {
    "pass": "Meets the policy",
    "review": "A person must decide under",
    "fail": "Does not meet the policy",
    NOTHING: "Nothing to release was judged under the policy",
}
_LABEL = {
    "formal": "formal: clipped to public bounds, proved mechanism, spend in the ledger",
    "heuristic": "heuristic: noise was added, but its scale rests on the data or on somebody's word",
    "none": "none: no noise stands behind these numbers",
}


def render_page(statement: Mapping[str, Any], *, inner: Mapping[str, Any] | None = None) -> str:
    """HTML of one certificate.

    Parameters
    ----------
    statement
        The parsed statement (the signed one, when there is one), as written or in full.
    inner
        The statement that stays inside, for a page that stays inside: it adds the questions on raw data.
    """
    p = in_full(statement)["predicate"]
    policy = p["policy"]
    profile = f", layer {policy['profile']['id']}" if policy["profile"] else ""
    state = "unsigned statement of a session" if p["stage"] == "session" else "certified"
    parts = [
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>Certificate</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>Certificate of a release <span class='verdict'>{_e(p['verdict'])}</span></h1>",
        _p(
            f"{_MEANING[p['verdict']]} {policy['id']} {policy['version']}{draft_mark(policy)}{profile} ({state}, "
            f"{p['made']['time']}, node {p['made']['node']}). It is not a permission: a person releases."
        ),
        _p(f"Certificate {p['certificate_id']}; policy sha256 {policy['sha256']}", small=True),
        *(_p(f"Neither pass nor formal could be stated: {why}.") for why in p["capped"]),
        "<h2>1. Low counts</h2>",
        *_low_counts(p),
        "<h2>2. Masking</h2>",
        *_masking(p),
        "<h2>3. Explanation</h2>",
        *_explanation(p, inner),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _low_counts(p: Mapping[str, Any]) -> Iterable[str]:
    least = p["policy"]["parameters"].get("min_n")
    outputs = [o for o in p["outputs"] if not o["kept_inside"]]
    tested = [o["name"] for o in outputs if {"n", "cell.n"} & set(o["facts"]["measured"])]
    yield _p(
        f"Smallest count this policy lets out: {least} people. Counts are of people, tested before rounding."
        if least is not None
        else "The policy names no smallest count."
    )
    untested = [o["name"] for o in outputs if o["name"] not in tested and o["type"] != CERTIFICATE]
    yield _p(f"Counts tested for {len(tested)} outputs; not for: {_names(untested)}.")
    yield _p(
        f"Cells marked so that no small count shows, in: {_names(o['name'] for o in outputs if o['cells_marked'])}."
    )
    stopped = [o["name"] for o in outputs if o["rules"].get("block") or o["rules"].get("withhold")]
    yield _p(f"Blocked or withheld as a whole: {_names(stopped)}.")


def _masking(p: Mapping[str, Any]) -> Iterable[str]:
    mark = p["policy"]["parameters"].get("suppression_mark", "*")
    yield _p(
        f"Every suppressed cell is marked {mark}, the same for a small cell and for one suppressed to protect it; "
        "0 is never used as a mark."
    )
    block = p["recoverability"]
    if block is None:
        yield _p("No table with counts leaves, so nothing was masked.")
        return
    yield _p(
        f"Can a marked cell be worked out? Attacked {block['attacked']}: {block['result']} ({_names(block['tables'])})."
    )
    yield _p(f"Considered: {'; '.join(block['considered'])}.")
    yield _p(f"Not considered: {'; '.join(block['not_considered'])}.")


def _explanation(p: Mapping[str, Any], inner: Mapping[str, Any] | None) -> Iterable[str]:
    yield "<table><tr><th width='38%'>outputs (csv and json each)</th><th width='9%'>verdict</th>"
    yield "<th>what the rules asked for</th></tr>"
    for (verdict, wants), names in _grouped(p, inner).items():
        yield f"<tr><td>{_e(', '.join(names))}</td><td>{_e(verdict)}</td><td class='small'>{wants}</td></tr>"
    yield "</table>"
    yield from _privacy(p["privacy"])
    if bounds := p["rounding"]["bounds_years"]:
        figures = ", ".join(f"{form} {years:g}" for form, years in bounds.items())
        yield _p(f"Most years that rounding moves a predicted age: {figures} ({p['rounding']['bound_how']}).")
    recorded = p["recorded_not_recomputed"]
    if recorded:
        kinds = sorted({name.split(".", 1)[0] for name in recorded})
        yield _p(f"Recorded by the session, not recomputed: {len(recorded)} facts ({', '.join(kinds)}).", small=True)
    yield from _people(p)
    yield _p("Not checked: " + "; ".join(p["not_checked"]) + ".", small=True)
    versions = ", ".join(f"{k} {v}" for k, v in p["versions"].items() if k != "session")
    yield _p(f"Made with {versions}.", small=True)


def _grouped(p: Mapping[str, Any], inner: Mapping[str, Any] | None) -> dict[tuple[str, str], list[str]]:
    """Outputs that were treated alike share a row, worst first: one page has room for many outputs."""
    asked = {o["name"]: o for o in (inner or {}).get("predicate", {}).get("outputs", ())}
    rows: dict[tuple[str, str], list[str]] = {}
    order = sorted(p["outputs"], key=lambda o: (o["kept_inside"], ("fail", "review", "pass").index(o["verdict"])))
    for output in order:
        verdict = "kept inside" if output["kept_inside"] else output["verdict"]
        usual = {f"{output['name']}.csv", f"{output['name']}.json"}
        name = output["name"] if set(output["files"]) == usual else ", ".join(output["files"])
        rows.setdefault((verdict, _wants(output, asked.get(output["name"]))), []).append(name)
    return rows


def _wants(output: Mapping[str, Any], inner: Mapping[str, Any] | None) -> str:
    """One line a rule that asked for something: its question where there is one, else what it says."""
    asked: dict[str, str] = {}
    lines: list[str] = []
    for item in (inner or output)["questions"]:
        for rule in item["rules"]:
            asked.setdefault(rule, item["question"])
        if not set(item["rules"]) & set(output["rules"].get("review", ())):
            lines.append(f"review (checked inside): {item['question']}")
    for effect in ("block", "withhold", "review", "suppress", "label"):
        for rule in output["rules"].get(effect, ()):
            text = asked.get(rule) or output["says"].get(rule)
            lines.append(f"{effect} {rule}" + (f": {text}" if text else ""))
    return "<br>".join(_e(line) for line in dict.fromkeys(lines)) or "nothing"


def _people(p: Mapping[str, Any]) -> Iterable[str]:
    for who in ("declared", "attested"):
        if said := p["people"][who]["facts"]:
            by = p["people"][who]["by"] or "somebody unnamed"
            yield _p(f"{who.capitalize()} by {by}: {', '.join(f'{k} = {v}' for k, v in said.items())}.", small=True)
    for waiver in p["policy"]["waivers"]:
        yield _p(f"Waiver {waiver['id']} of rule {waiver['rule']} until {waiver['ends']}.")
    decided: dict[str, list[str]] = {}
    for answer in p["people"]["answers"]:
        decided.setdefault(f"{answer['decision']} by {answer['role']}, {answer['time']}", []).append(answer["file"])
    for decision, files in decided.items():
        yield _p(f"Decided: {decision}: {', '.join(files)}.", small=True)


def _privacy(privacy: Mapping[str, Any]) -> Iterable[str]:
    yield _p(f"Noise: {_LABEL[privacy['label']]}.")
    for release in privacy["releases"]:
        names = _names(release["outputs"])
        if release["label"] == "formal":
            yield _p(
                f"{names}: ε = {release['epsilon']:g}, δ = {release['delta_dp']:g} ({release['adjacency']}, per "
                f"{release['unit']}), {release['mechanism']}."
            )
        else:
            yield _p(f"{names}: {release['label']}; {release['reason']}. No ε is guaranteed.")
    if privacy["releases"] and not privacy["end_to_end"]:
        outside = _names(privacy["outside_budget"])
        yield _p(f"No end-to-end guarantee for this package. Outside the budget: {outside}.")


def _names(values: Iterable[str]) -> str:
    return ", ".join(values) or "none"


def _p(text: str, *, small: bool = False) -> str:
    return f"<p{' class=' + chr(39) + 'small' + chr(39) if small else ''}>{_e(text)}</p>"


def _e(value: object) -> str:
    return escape(str(value), quote=True)
