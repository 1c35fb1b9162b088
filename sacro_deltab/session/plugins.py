"""Facts that a TRE's own package measures: a layer names them (`facts:`), an entry point supplies each.

An entry point of the group `sacro_deltab.facts` is called as its fact. It is given the raw document and the facts, and
returns the fact's value, or for a fact of cells a value for each row. What the package measures itself cannot be
supplied. A fact that nobody supplies is missing, and a rule that needs it blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points

from ..base.errors import InputError
from ..outputs.document import OutputDocument
from ..rules import RuleSet, load_base
from ..rules.checking import PLUGINS
from ..rules.facts import Fact, Facts, FactValue, Provider


def with_plugins(ruleset: RuleSet, document: OutputDocument, facts: Facts) -> Facts:
    """The facts with those of plug-ins; unchanged where the rules know none but the package's own.

    Raises
    ------
    InputError
        A plug-in raises, or gives another kind of value than its fact has.
    """
    wanted = set(ruleset.facts) - set(load_base().facts)
    for point in entry_points(group=PLUGINS) if wanted else ():
        if point.name in wanted:
            try:
                facts = _with(facts, point.name, ruleset.facts[point.name].of_part, point.load()(document, facts))
            except Exception as error:
                raise InputError(
                    f"the plug-in of the fact {point.name} failed ({type(error).__name__})",
                    next_step="Ask whoever keeps the plug-in; without it rules on the fact block.",
                ) from error
    return facts


def _with(facts: Facts, name: str, kind: str | None, said: FactValue | Mapping[str, FactValue]) -> Facts:
    if kind is None:
        assert not isinstance(said, Mapping)
        return facts.with_facts(Fact(name, said, Provider.COMPUTED))
    assert isinstance(said, Mapping)
    parts = tuple(
        replace(part, facts={**part.facts, name: Fact(name, said[part.key], Provider.COMPUTED)})
        if part.kind == kind and part.key in said
        else part
        for part in facts.parts
    )
    return replace(facts, parts=parts)
