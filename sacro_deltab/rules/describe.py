"""One rule, decision, clause, output type or fact in plain lines and as JSON: for `show`, `list` and the book."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..base.errors import InputError
from ..base.findings import Effect
from .comparators import COMPARATORS
from .constants import users
from .limits import named_limit
from .model import Condition, Constant, Form, Rule, RuleSet
from .readings import others
from .schema_check import did_you_mean
from .strictness import condition_words


def value_words(value: Any) -> str:
    """A value, list or mapping as a sentence says it: no brackets, no capital True."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {value_words(v)}" for k, v in value.items()) or "nothing"
    if isinstance(value, list | tuple):
        return ", ".join(value_words(v) for v in value) or "nothing"
    return str(value)


def condition_reading(ruleset: RuleSet, c: Condition) -> str:
    """A condition in reading form: `the number of subjects is at least 100`."""
    reads = ruleset.facts[c.fact].reads
    if c.limit is True:
        return reads
    if c.limit is False:
        return f"it is not so that {reads}"
    comparator = COMPARATORS[c.comparator]
    if c.named:
        limit = named_limit(str(c.limit)).symbol
    elif c.comparator == "outside" and isinstance(c.limit, tuple):
        limit = f"{c.limit[0]} to {c.limit[1]}"
    else:
        limit = " or ".join(value_words(v) for v in c.limit) if isinstance(c.limit, tuple) else value_words(c.limit)
    word = "" if c.comparator in ("is", "is_one_of") else f"{comparator.reads} "
    return f"{reads} is {word}{limit}"


def _about(ruleset: RuleSet, rule: Rule) -> str:
    names = [
        ruleset.outputs[name].label if name in ruleset.outputs else name.replace("_", " ") for name in rule.applies_to
    ]
    return ", ".join(names)


def rule_sentence(ruleset: RuleSet, rule: Rule) -> str:
    """The rule in words: for these outputs, when these facts hold, this is required; otherwise that."""
    about = f"{_about(ruleset, rule)}{f', for each {rule.for_each}' if rule.for_each else ''}"
    when = _all_and_any(ruleset, rule.when, rule.any_when)
    about = about[:1].upper() + about[1:]
    opening = f"{about}: when {when}, " if when else f"{about}: "
    if rule.verb == "require":
        wanted = _all_and_any(ruleset, rule.require, rule.any_require)
        outcome = "it goes to a person" if rule.otherwise is Effect.REVIEW else "it cannot leave"
        return f"{opening}it is required that {wanted}; otherwise {outcome}."
    if rule.verb == "forbid":
        return f"{opening}never leaves."
    if rule.verb == "flag":
        return f"{opening}a person is asked: {rule.ask}"
    return f"{opening}{deed_words(rule)}."


def _all_and_any(
    ruleset: RuleSet, every: tuple[Condition, ...], alternatives: tuple[tuple[Condition, ...], ...]
) -> str:
    """Conditions that must all hold, then those of which one must."""
    said = [condition_reading(ruleset, c) for c in every]
    ways = [" and ".join(condition_reading(ruleset, c) for c in one) for one in alternatives]
    return " and ".join([*said, *([f"({'; or '.join(ways)})"] if ways else [])])


def rule_form(rule: Rule) -> str:
    """The rule with the names of the rule language, for those who edit the files."""
    parts = [f"applies to {', '.join(rule.applies_to)}"]
    if rule.for_each:
        parts.append(f"for each {rule.for_each}")
    for word, every, some in (("when", rule.when, rule.any_when), ("require", rule.require, rule.any_require)):
        said = [condition_words(c) for c in every]
        said += [f"any of ({'; '.join(' and '.join(condition_words(c) for c in one) for one in some)})"] if some else []
        if said:
            parts.append(f"{word} " + " and ".join(said))
    if rule.verb == "require":
        parts.append(f"otherwise {rule.otherwise.value if rule.otherwise else ''}")
    return "; ".join(parts)


def deed_words(rule: Rule) -> str:
    """What a `do` rule does."""
    args = dict(rule.deed_args)
    if rule.deed == "suppress":
        return f"replace the {args['part']} by the mark"
    if rule.deed == "suppress_complement":
        return "suppress the fewest further cells until nothing suppressed can be worked out"
    if rule.deed == "withhold":
        return "withhold the whole table"
    if rule.deed == "label":
        return f"say “{args['text']}”"
    if rule.deed == "label_band":
        bands = [_band(band) for band in args["bands"]]
        return f"name the band of {args['fact']}: {'; '.join(bands)}"
    what = {"every_n": "every N", "every_p": "every p-value"}.get(args["part"], "the value")
    how = {"decimal_places": "decimal places", "significant_figures": "significant figures"}
    for key, words in how.items():
        if key in args:
            return f"round {what} to {args[key]} {words if args[key] != 1 else words.removesuffix('s')}"
    return f"round {what} to the nearest {args['to_nearest']}"


def _band(band: Mapping[str, Any]) -> str:
    if "below" in band:
        return f"below {band['below']} “{band['text']}”"
    if "up_to" in band:
        return f"up to {band['up_to']} “{band['text']}”"
    return f"above “{band['text']}”"


def effect_word(rule: Rule) -> str:
    """The worst effect a rule can have."""
    if rule.verb == "require":
        return rule.otherwise.value if rule.otherwise else ""
    if rule.verb == "forbid":
        return "block"
    if rule.verb == "flag":
        return "review"
    words = {"suppress_complement": "suppress", "label_band": "label"}
    return words.get(str(rule.deed), str(rule.deed))


def rule_json(ruleset: RuleSet, rule: Rule) -> dict[str, Any]:
    """A rule as `--json` prints it."""
    return {
        "id": rule.id,
        "title": rule.title,
        "section": rule.section,
        "verb": rule.verb,
        "effect": effect_word(rule),
        "sentence": rule_sentence(ruleset, rule),
        "form": rule_form(rule),
        "applies_to": list(rule.applies_to),
        "outputs": sorted(rule.outputs),
        "source": list(rule.source),
        "decision": list(rule.decision),
        "status": rule.status,
        "waivable": rule.waivable,
        "direction": rule.direction,
        "note": rule.note,
        "remedy": rule.remedy,
        "file": rule.place.path,
        "line": rule.place.line,
        "examples": [
            {"given": dict(e.given), **({"expect": e.expect} if e.expect is not None else {"becomes": e.becomes})}
            for e in rule.examples
        ],
    }


def show(ruleset: RuleSet, name: str, words: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """Lines and JSON for a rule, decision, clause, output type, fact or parameter; InputError for anything else."""
    if any(rule.id == name for rule in ruleset.rules):
        rule = ruleset.rule(name)
        return _show_rule(ruleset, rule, words), {
            **rule_json(ruleset, rule),
            "clauses": [clause_json(ruleset, c, words) for c in rule.source],
        }
    if (form := ruleset.form(name)) is not None:
        return _show_form(ruleset, form, words)
    if name in ruleset.constants:
        return _show_constant(ruleset, ruleset.constants[name])
    if name in ruleset.decisions:
        return _show_decision(ruleset, name)
    if name in ruleset.clauses:
        return _show_clause(ruleset, name, words)
    if name in ruleset.outputs:
        output = ruleset.outputs[name]
        rules = ruleset.rules_for(name)
        lines = [
            f"{name}: {output.label} (class {output.cls}, statbarn {output.statbarn})",
            f"Judged by {len(rules)} rules:",
        ]
        return [*lines, *(f"  {r.id}  {r.title}" for r in rules)], {"output": name, "rules": [r.id for r in rules]}
    if name in ruleset.facts:
        spec = ruleset.facts[name]
        used = [r for r in ruleset.rules if any(c.fact == name for c in r.conditions)]
        lines = [f"{name}: {spec.means}", f"Type {spec.type}, by: {spec.by}.", "Used by:"]
        return [*lines, *(f"  {r.id}  {r.title}" for r in used)], {"fact": name, "rules": [r.id for r in used]}
    known = [
        *(r.id for r in ruleset.rules),
        *(f.id for f in ruleset.forms.values()),
        *ruleset.constants,
        *ruleset.decisions,
        *ruleset.clauses,
        *ruleset.outputs,
        *ruleset.facts,
    ]
    raise InputError(
        f"there is no rule, constant, decision, clause, output or fact {name!r}{did_you_mean(name, known)}",
        next_step="`sacro-deltab rules list` names the rules.",
    )


def explain_type(ruleset: RuleSet, name: str, words: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """What the rules ask of an output of this type, in sentences with their clauses."""
    rules = ruleset.rules_for(name)
    lines = [f"{name} · {ruleset.outputs[name].label}: {len(rules)} rules judge an output of this type"]
    for rule in rules:
        lines += ["", f"  {rule.id}: {rule_sentence(ruleset, rule)}"]
        lines += [f"     {line}" for c in rule.source for line in clause_lines(ruleset, c, words)]
    return lines, {"output": name, "rules": [rule_json(ruleset, rule) for rule in rules]}


def clause_json(ruleset: RuleSet, clause_id: str, words: Mapping[str, str]) -> dict[str, Any]:
    """A clause as pages and `--json` print it: place, gist, own words where the documents are at hand, and rules."""
    clause = ruleset.clauses[clause_id]
    return {
        "id": clause.id,
        "document": ruleset.documents[clause.document].title,
        "line": clause.line,
        "gist": clause.gist,
        "words": words.get(clause_id),
        "kind": clause.kind,
        "reason": clause.reason,
        "rules": [r.id for r in ruleset.rules if clause_id in r.source],
    }


def decision_json(ruleset: RuleSet, decision_id: str) -> dict[str, Any]:
    """A decision as pages and `--json` print it."""
    d = ruleset.decisions[decision_id]
    return {
        "id": d.id,
        "ask": d.ask,
        "choose": d.choose,
        "instead": d.instead,
        "reason": d.reason,
        "direction": d.direction,
        "clauses": list(d.clauses),
        "rules": [r.id for r in ruleset.rules if decision_id in r.decision],
        "signed": None if d.signed is None else dict(d.signed),
    }


def clause_lines(ruleset: RuleSet, clause_id: str, words: Mapping[str, str]) -> list[str]:
    """The clause with its place and gist, and its own words where the documents are at hand."""
    clause = ruleset.clauses[clause_id]
    title = ruleset.documents[clause.document].title
    lines = [f"{clause.id}  {title}, line {clause.line}: {clause.gist}"]
    if clause_id in words:
        lines.append(f"    “{words[clause_id]}”")
    return lines


def _show_rule(ruleset: RuleSet, rule: Rule, words: Mapping[str, str]) -> list[str]:
    lines = [f"{rule.id}  {rule.title}", rule_sentence(ruleset, rule), f"({rule_form(rule)})", ""]
    lines += [line for c in rule.source for line in clause_lines(ruleset, c, words)]
    for did in rule.decision:
        d = ruleset.decisions[did]
        lines += ["", f"{did}  {d.ask}", f"    chosen: {d.choose}", f"    not taken: {d.instead}"]
        if d.direction:
            lines.append(f"    {d.direction} than the documents' words. {d.reason or ''}".rstrip())
        lines.append(f"    signed: {d.signed['name'] if d.signed else 'nobody yet'}")
    lines += ["", f"Status {rule.status}; waivable: {rule.waivable}; {rule.place}"]
    if rule.direction:
        lines.append(f"{rule.direction} than the documents' words.")
    lines += [f"Note: {rule.note}"] if rule.note else []
    lines += [f"Remedy: {rule.remedy}"] if rule.remedy else []
    lines.append("Examples:")
    for e in rule.examples:
        given = ", ".join(f"{k}: {value_words(v)}" for k, v in e.given.items()) or "nothing"
        result = e.expect if e.expect is not None else f"becomes {value_words(e.becomes)}"
        lines.append(f"  given {given} → {result}")
    return lines


def _show_form(ruleset: RuleSet, form: Form, words: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """A rule about the form of what is handed in."""
    lines = [f"{form.id}  {form.title}", form.why, f"Otherwise: {' or '.join(form.effects)}.", ""]
    lines += [line for c in form.source if c != "form" for line in clause_lines(ruleset, c, words)]
    lines += ["Source: form; it guards that what was judged is what leaves."] if "form" in form.source else []
    lines += [f"Remedy: {form.remedy}", f"Page: docs/{form.page}; {form.place}"]
    return lines, form_json(form)


def form_json(form: Form) -> dict[str, Any]:
    """A rule about form as `--json` prints it."""
    return {
        "id": form.id,
        "title": form.title,
        "why": form.why,
        "source": list(form.source),
        "decision": list(form.decision),
        "effects": list(form.effects),
        "remedy": form.remedy,
        "page": form.page,
    }


def _show_constant(ruleset: RuleSet, constant: Constant) -> tuple[list[str], dict[str, Any]]:
    """A named number and the rules that use it."""
    unit = "" if constant.unit == "number" else f" {constant.unit}"
    lines = [f"{constant.name}: {constant.value}{unit} ({constant.clause})", constant.means, "Used by:"]
    data = {
        "constant": constant.name,
        "value": constant.value,
        "clause": constant.clause,
        "rules": [r.id for r in users(ruleset, constant.name)],
    }
    return [*lines, *(f"  {r.id}  {r.title}" for r in users(ruleset, constant.name))], data


def _show_decision(ruleset: RuleSet, name: str) -> tuple[list[str], dict[str, Any]]:
    d, data = ruleset.decisions[name], decision_json(ruleset, name)
    lines = [f"{name}  {d.ask}", f"chosen: {d.choose}", f"not taken: {d.instead}"]
    lines += [f"reason: {d.reason}"] if d.reason else []
    lines += [f"{d.direction} than the documents' words."] if d.direction else []
    if (other := others(ruleset).get(name)) is not None:
        body = other if isinstance(other, str) else json.dumps(other, ensure_ascii=False)
        lines.append(f"the reading not taken, {'not replayed' if other is body else 'as a layer'}: {body}")
    lines += [f"clauses: {', '.join(d.clauses)}", f"rules: {', '.join(data['rules']) or 'none'}"]
    return [*lines, f"signed: {d.signed['name'] if d.signed else 'nobody yet'}"], data


def _show_clause(ruleset: RuleSet, name: str, words: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    clause, data = ruleset.clauses[name], clause_json(ruleset, name, words)
    lines = clause_lines(ruleset, name, words)
    if data["rules"]:
        lines += ["Rules:", *(f"  {r}  {ruleset.rule(r).title}" for r in data["rules"])]
    else:
        lines.append(f"No rule: {clause.kind}; {clause.reason}")
    return lines, data
