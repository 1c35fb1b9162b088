"""The rule set as frozen values: what a loader produces and the engine reads. No behaviour beyond look-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..base.digests import sha256_hex
from ..base.findings import Effect
from .facts import FactValue, Provider

Limit = FactValue | tuple[FactValue, ...]
ParameterValue = int | float | str

# First word of a fact's name → the kind of part it describes. Such a fact never stands for a whole output.
PART_FACTS = {"cell": "cell", "band": "cell", "quantile": "quantile", "row": "row"}


@dataclass(frozen=True)
class Place:
    """Where something stands in a rule file; `line` and `column` count from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Condition:
    """`fact comparator limit`; `limit` is a value, a list of values, or the name of a limit (`named`)."""

    fact: str
    comparator: str
    limit: Limit
    named: bool
    place: Place
    constant: str | None = None  # the name that the limit was written with

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two conditions the same one."""
        return (self.fact, self.comparator, repr(self.limit))


@dataclass(frozen=True)
class Example:
    """One test beside a rule: facts `given`, then an effect word (`expect`) or a result (`becomes`)."""

    given: Mapping[str, Any]
    expect: str | None
    becomes: Any
    place: Place


@dataclass(frozen=True)
class Rule:
    """One sentence of the policy. `verb` is require, forbid, do or flag; `deed` is the act of a `do` rule."""

    id: str
    title: str
    verb: str
    outputs: frozenset[str]
    place: Place
    section: str
    applies_to: tuple[str, ...] = ()
    for_each: str | None = None
    when: tuple[Condition, ...] = ()
    require: tuple[Condition, ...] = ()
    any_when: tuple[tuple[Condition, ...], ...] = ()  # alternatives, of which one must hold besides `when`
    any_require: tuple[tuple[Condition, ...], ...] = ()  # … besides `require`
    otherwise: Effect | None = None
    deed: str | None = None
    deed_args: Mapping[str, Any] = field(default_factory=dict)
    deed_constants: Mapping[str, str] = field(default_factory=dict)  # arguments written as a constant's name
    ask: str | None = None
    source: tuple[str, ...] = ()
    decision: tuple[str, ...] = ()
    waivable: str = "by_dac"
    status: str = "active"
    direction: str | None = None
    since: str = ""
    replaced_by: str | None = None
    note: str | None = None
    remedy: str | None = None
    examples: tuple[Example, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything that `when` and `require` say, alternatives among it."""
        return self.when + self.require + tuple(c for one in (*self.any_when, *self.any_require) for c in one)

    @property
    def in_force(self) -> bool:
        """A deprecated rule stays readable but judges nothing."""
        return self.status != "deprecated"

    @property
    def provisional(self) -> bool:
        """Rests on a starting value that a committee has still to confirm (D-09)."""
        return self.status == "provisional"


@dataclass(frozen=True)
class FactSpec:
    """What a fact is, who may say it and in which range; `after` facts are known only after transforms."""

    name: str
    type: str
    by: str
    means: str
    reads: str
    accept: frozenset[Provider]
    unit: str = ""
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    after: bool = False
    raw: bool = False
    optional: bool = False
    part_value: bool = False
    ask: str = ""  # the question put to the checker where nobody said it; "": missing, it blocks

    @property
    def of_part(self) -> str | None:
        """Kind of part that alone may carry this fact (`cell.n`, `quantile.percent`, …), else None."""
        head = self.name.split(".")[0]
        return PART_FACTS.get(head)


@dataclass(frozen=True)
class OutputSpec:
    """One output type: its class (`applies_to` may name it), reading label, nearest ACRO statbarn, possible numbers."""

    name: str
    cls: str
    label: str
    statbarn: str
    range: tuple[float | None, float | None] = (None, None)
    columns: int | None = None


@dataclass(frozen=True)
class Form:
    """A rule about the form of what is handed in; its id is `check/NAME`, its source clauses or `form`."""

    name: str
    title: str
    why: str
    source: tuple[str, ...]
    decision: tuple[str, ...]
    effects: tuple[str, ...]
    remedy: str
    page: str
    place: Place

    @property
    def id(self) -> str:
        """The id as a report prints it."""
        return f"check/{self.name}"


@dataclass(frozen=True)
class ParameterSpec:
    """A number other layers need: standing alone (`value`) or read off a rule's limit (`rule`)."""

    name: str
    means: str
    value: ParameterValue | None
    rule: str | None
    fact: str | None
    rounding: str | None
    form: str | None
    stricter: str
    place: Place
    constant: str | None = None


@dataclass(frozen=True)
class Constant:
    """A named number of the law; a limit on one of its `facts` must use the name. stricter: higher, lower or none."""

    name: str
    value: int | float
    unit: str
    clause: str
    means: str
    stricter: str
    facts: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Clause:
    """One clause of a document: where it stands, the digest of its normalised words, and our gist of it."""

    id: str
    document: str
    line: int
    kind: str
    sha256: str
    gist: str
    reason: str | None
    place: Place


@dataclass(frozen=True)
class Document:
    """One governing document; its words are not kept here."""

    id: str
    title: str
    file: str
    sha256: str
    authority: str


@dataclass(frozen=True)
class PolicyDecision:
    """Where the documents are silent or disagree: question, choice, reading not taken, clauses, and who signed it."""

    id: str
    ask: str
    choose: str
    instead: str
    clauses: tuple[str, ...]
    direction: str | None
    place: Place
    reason: str | None = None
    signed: Mapping[str, str] | None = None  # where a signature of the committee over this very text holds


@dataclass(frozen=True)
class Loosened:
    """What a layer that the committee signed lets through and the law below does not, and for which kinds."""

    layer: str
    what: str
    outputs: frozenset[str]


@dataclass(frozen=True)
class Layer:
    """One layer as it was laid: `network`, `tre` or `project`, its digest, and what it changes in words."""

    id: str
    level: str
    version: str
    title: str
    sha256: str
    pinned: bool
    changes: tuple[str, ...] = ()
    loosened: tuple[Loosened, ...] = ()


@dataclass(frozen=True)
class Stack:
    """The layers on a rule set, lowest first, with what they pin. Its id is that of the top one."""

    layers: tuple[Layer, ...]
    attest: Mapping[str, FactValue]
    ledgers: tuple[Mapping[str, str], ...]

    @property
    def id(self) -> str:
        """Id of the top layer, by which records name the stack."""
        return self.layers[-1].id

    @property
    def title(self) -> str:
        """Title of the top layer."""
        return self.layers[-1].title

    @property
    def sha256(self) -> str:
        """Digest of the one layer's file, or of the digests of all."""
        digests = [layer.sha256 for layer in self.layers]
        return digests[0] if len(digests) == 1 else sha256_hex("".join(digests).encode())

    @property
    def changes(self) -> tuple[str, ...]:
        """What all the layers change, lowest first."""
        return tuple(change for layer in self.layers for change in layer.changes)

    @property
    def loosened(self) -> tuple[Loosened, ...]:
        """What layers signed by the committee let through."""
        return tuple(one for layer in self.layers for one in layer.loosened)


@dataclass(frozen=True)
class RuleSet:
    """A loaded, checked rule set. Equal files give an equal `sha256`; its layers have digests of their own.

    `state` is draft until a signature of the committee over this very text holds, then approved; retired after its end.
    """

    id: str
    version: str
    title: str
    status: str
    language: str
    sha256: str
    rules: tuple[Rule, ...]
    outputs: Mapping[str, OutputSpec]
    groups: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, FactSpec]
    limits: Mapping[str, str]
    decisions: Mapping[str, PolicyDecision]
    clauses: Mapping[str, Clause]
    documents: Mapping[str, Document]
    parameters: Mapping[str, ParameterValue]
    parameter_specs: Mapping[str, ParameterSpec]
    mark: str
    folder: str
    constants: Mapping[str, Constant] = field(default_factory=dict)
    forms: Mapping[str, Form] = field(default_factory=dict)
    changes: tuple[Mapping[str, str], ...] = ()
    state: str = "draft"
    gone: tuple[str, ...] = ()
    profile: Stack | None = None
    _by_id: Mapping[str, Rule] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", MappingProxyType({rule.id: rule for rule in self.rules}))

    @property
    def name(self) -> str:
        """Id and version as every record prints them; DRAFT until the committee has approved the set."""
        return f"{self.id} {self.version}" + ("" if self.state == "approved" else f" {self.state.upper()}")

    def loosened_for(self, kind: str) -> tuple[Loosened, ...]:
        """What signed layers let through for one kind of output."""
        return () if self.profile is None else tuple(one for one in self.profile.loosened if kind in one.outputs)

    @property
    def output_types(self) -> frozenset[str]:
        """Every output type the rule set knows."""
        return frozenset(self.outputs)

    def cls(self, output_type: str) -> str:
        """Class of an output type (`model_weight`, `subgroup_table`, …); KeyError for an unknown type."""
        return self.outputs[output_type].cls

    def rule(self, rule_id: str) -> Rule:
        """The rule with this id; KeyError for an unknown one."""
        return self._by_id[rule_id]

    def ids_about(self, *facts: str) -> frozenset[str]:
        """Rules in force with a condition on one of these facts: how other rooms find a rule without knowing its id."""
        return frozenset(r.id for r in self.rules if r.in_force and any(c.fact in facts for c in r.conditions))

    def titles(self, ids: tuple[str, ...]) -> str:
        """What these rules ask, by their titles; ids that the law does not know stand as they are."""
        found = [getattr(self._by_id.get(i) or self.form(i), "title", i) for i in ids]
        return "; ".join(dict.fromkeys(found))

    def form(self, form_id: str) -> Form | None:
        """The rule about form with this id (`check/NAME`); None for an unknown one."""
        head, _, name = form_id.partition("/")
        if head != "check":
            return None
        starred = next((f for f in self.forms.values() if f.name.endswith("*") and name.startswith(f.name[:-1])), None)
        return self.forms.get(name, starred)

    def rules_for(self, output_type: str) -> tuple[Rule, ...]:
        """Rules in force for one output type, in the order of the files (which means nothing to the verdict)."""
        return tuple(rule for rule in self.rules if rule.in_force and output_type in rule.outputs)

    def statement(self) -> dict[str, str]:
        """Id, version, digest and state, as every record carries them."""
        return {"id": self.id, "version": self.version, "sha256": self.sha256, "state": self.state}
