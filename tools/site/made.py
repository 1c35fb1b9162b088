"""Pages that the site makes while it is built, so that no change of a rule or a command leaves one behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from links import DOCS, ROOT, SITE

API = {
    "Sessions": ("DeltabSession", "Cohort", "read_cohort", "AgeBands"),
    "Models": ("BrainAgeDelta", "Moments", "Weights"),
    "Private training": ("Basis", "PublicBounds"),
    "Rules, ledger, checks": ("load_ruleset", "open_ledger", "check_paths", "SacroDeltabError"),
}


def pages() -> dict[str, str]:
    """Markdown of every page that is made, by its name."""
    return {"index.md": front(), "why.md": why(), "commands.md": commands(), "api.md": api()}


def front() -> str:
    """README, with its links to the published site turned into links to the pages beside it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(re.escape(SITE) + r"([\w/.-]+?)(\.html)?(?=[)#])", lambda m: m[1] + (".md" if m[2] else ""), text)


def why() -> str:
    """Each rule and each rule about form by its id: what it asks, what it rests on, examples on both sides."""
    from sacro_deltab.rules import load_base
    from sacro_deltab.rules.describe import effect_word, rule_sentence

    rules = load_base()
    live = [rule for rule in rules.rules if rule.in_force]
    lines = [
        "# Why did this fail?",
        "",
        "Every finding names its rule. Look the id up here, or type `sacro-deltab rules show ID`. An entry in your "
        "hand says more: `print(entry.explain())` names the numbers and the next step, and stays inside.",
        "",
        "| id | at worst | what it asks |",
        "|---|---|---|",
        *(f"| [{r.id}](#{r.id.lower()}) | {effect_word(r)} | {_plain(r.title)} |" for r in live),
        *(f"| [{f.id}](#{_anchor(f.id)}) | {f.effects[0]} | {_plain(f.title)} |" for f in rules.forms.values()),
        "",
    ]
    for rule in live:
        lines += [f"## {rule.id}", "", f"**{_plain(rule.title)}.** {_plain(rule_sentence(rules, rule))}", ""]
        lines += [f"To get it out: {_plain(rule.remedy)}", ""] if rule.remedy else []
        lines += [f"Note: {_plain(rule.note)}", ""] if rule.note else []
        lines += [f"* {c}: {_plain(rules.clauses[c].gist)}" for c in rule.source]
        lines += [
            f"* {d}: {_plain(rules.decisions[d].ask)} Chosen: {_plain(rules.decisions[d].choose)}"
            for d in rule.decision
        ]
        lines += ["", "| given | it ends as |", "|---|---|"]
        for example in rule.examples:
            given = ", ".join(f"{k} {v}" for k, v in example.given.items()) or "nothing"
            ends = example.expect if example.expect is not None else f"becomes {example.becomes}"
            lines.append(f"| {_plain(given)} | {_plain(str(ends))} |")
        lines.append("")
    for form in rules.forms.values():
        page = f" More: [{form.page}]({form.page})." if (DOCS / form.page.partition("#")[0]).is_file() else ""
        lines += [f"## {form.id} {{ #{_anchor(form.id)} }}", "", f"**{_plain(form.title)}.** {_plain(form.why)}", ""]
        lines += [f"Otherwise: {' or '.join(form.effects)}. To get it out: {_plain(form.remedy)}{page}", ""]
    return "\n".join(lines) + "\n"


def _anchor(name: str) -> str:
    return name.replace("/", "-").lower()


def _plain(text: str) -> str:
    """Text that Markdown and tables of it print as it is."""
    return re.sub(r"([|*_<>\[\]])", r"\\\1", " ".join(str(text).split())).removesuffix(".") if text else ""


def commands() -> str:
    """Every command with its options, from the command line itself, by who uses it."""
    lines = [
        "# Commands",
        "",
        "Made of the command line's own help; `sacro-deltab COMMAND --help` prints the same.",
        "",
    ]
    for role, names in _by_role():
        lines += [f"## {role}", ""]
        for name, command in names:
            lines += [f"### {name}", "", f"```text\n{_help(name, command)}\n```", ""]
    return "\n".join(lines)


def _by_role() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    import typer

    from sacro_deltab.cli import _register, app
    from sacro_deltab.cli.roles import OTHERS, ROLES

    _register()
    tree: Any = typer.main.get_command(app)
    tree = tree.commands
    known = {name for names in ROLES.values() for name in names}
    for role, names in {**ROLES, OTHERS: tuple(n for n in tree if n not in known)}.items():
        found: list[tuple[str, Any]] = []
        for name in names:
            if name not in tree or tree[name].hidden:
                continue
            inner = getattr(tree[name], "commands", None)
            found += [(name, tree[name])] if inner is None else [(f"{name} {n}", c) for n, c in inner.items()]
        if found:
            yield role, found


def _help(name: str, command: Any) -> str:
    import typer

    context = typer.Context(command, info_name=f"sacro-deltab {name}", max_content_width=100, terminal_width=100)
    return str(command.get_help(context)).rstrip()


def api() -> str:
    """What `from sacro_deltab import …` gives."""
    import sacro_deltab

    missing = set(sacro_deltab.__all__) - {n for names in API.values() for n in names} - {"__version__"}
    if missing:
        raise RuntimeError(f"the page of the API says nothing of {sorted(missing)}: name it in tools/site/made.py")
    lines = [
        "# Python",
        "",
        "What `from sacro_deltab import …` gives. Everything else is the package's own and may change.",
        "",
    ]
    for title, names in API.items():
        lines += [f"## {title}", ""]
        lines += [f"::: sacro_deltab.{sacro_deltab._LAZY[name]}.{name}\n" for name in names]
    return "\n".join(lines)
