"""What must be the same at every node before anything is added up; each difference has its own refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base.errors import RefusedError
from ..outputs.parameters import (
    AVERAGED,
    BETA1,
    FOLDED,
    MOMENTS,
    N_SUBJECTS,
    Y_MEAN,
)
from ..tables.rounding import round_value
from .bundle import Node

WEIGHT_TYPES = (MOMENTS, FOLDED, BETA1, Y_MEAN)
_MOST_YEARS = 1e6  # of a weight or another parameter; a slope on a score, a mean square of ages


def check_set(nodes: Sequence[Node], expect: int | None) -> None:
    """The set itself: enough nodes, none twice, one ledger each.

    Raises
    ------
    RefusedError
    """
    if not nodes or (expect is not None and len(nodes) < expect):
        raise RefusedError(
            f"{len(nodes)} node(s) came and {expect} were expected",
            next_step="wait for the missing node; its absence would show in every number.",
        )
    if expect is not None and len(nodes) > expect:
        raise RefusedError(f"{len(nodes)} nodes came and {expect} were expected", next_step="correct --expect.")
    _distinct(nodes, lambda n: n.certificate_id, "one certificate came twice (a replay): {0}")
    _distinct(nodes, lambda n: n.envelope_sha256, "one certificate came twice (a replay): {0}")
    _distinct(nodes, lambda n: n.name, "node {0} came twice: its people would count twice")
    _distinct(
        [n for n in nodes if n.ledger is not None],
        lambda n: str((n.ledger or {})["id"]),
        "two nodes spent from one privacy ledger ({0}): they are one TRE under two names",
    )


def _distinct(nodes: Sequence[Node], key: Callable[[Node], str], text: str) -> None:
    seen: dict[str, Node] = {}
    for node in nodes:
        value = key(node)
        if value in seen:
            raise RefusedError(
                text.format(value[:36]),
                path=f"{seen[value].path} and {node.path}",
                next_step="give every node's newest release once.",
            )
        seen[value] = node


def check_policy(nodes: Sequence[Node]) -> None:
    """One rule set, one privacy unit, one neighbouring relation, one rounding."""
    _same(nodes, lambda n: (n.policy["id"], n.policy["version"], n.policy["sha256"]), "policy",
          lambda v: f"{v[0]} {v[1]} ({v[2][:12]})")  # fmt: skip
    _same(nodes, lambda n: n.predicate["made"]["unit"], "cohort unit (units)", str)
    _same(nodes, lambda n: n.policy["parameters"].get("coefficient_figures"), "rounding",
          lambda v: f"{v} significant figures")  # fmt: skip
    _same(nodes, _series, "schema version", str)


def _series(node: Node) -> str:
    """The versions that fix what a number means: series of the package and of each document."""
    return ".".join(str(node.predicate["versions"].get("sacro_deltab", "?")).split(".")[:2])


def check_model(nodes: Sequence[Node], *, mixed_basis: bool = False) -> None:
    """Basis, bounds, features, their order, units, centre and scale, model variant, rounding of what was sent.

    mixed_basis: nodes may have different bases (folded weights live in feature space); the centre must agree all the
    same.
    """
    if not mixed_basis:
        _same(nodes, lambda n: about(n).get("basis"), "basis digest",
              lambda v: "a basis of its own" if v is None else f"{str(v)[:12]}…")  # fmt: skip
    _features(nodes)
    _units(nodes)
    _same(nodes, _centres, "centre or scale of the features", None)
    if not mixed_basis:
        _same(nodes, lambda n: about(n).get("bounds"), "public bounds", lambda v: f"{str(v)[:12]}…")
        if about(nodes[0]).get("basis") is not None:  # a node basis keeps the axes above its own noise; sums do not
            _same(nodes, lambda n: about(n).get("n_components"), "model variant", lambda v: f"{v} components")
    _same(nodes, _confounds, "model variant (confounds)", lambda v: ", ".join(v) or "none")
    _same(nodes, _adjacency, "neighbouring relation", str)
    for node in nodes:
        _plausible(node)
        _rounded(node)
        _consistent_n(node)


def about(node: Node) -> Mapping[str, Any]:
    """Public context of a node's weights: the same in every document of one release."""
    found = [node.of_type(kind) for kind in WEIGHT_TYPES]
    documents = [d for d in found if d is not None]
    if not documents:
        raise RefusedError(
            f"node {node.name} sent nothing that can be pooled: neither noised moments nor weights",
            path=node.path,
            next_step="run the node with --moments, or release its folded weights.",
        )
    for key in ("basis", "bounds", "n_components"):
        if len({str(d.about.get(key)) for d in documents}) > 1:
            raise RefusedError(f"the files of node {node.name} disagree about their {key}", path=node.path)
    return documents[0].about


def feature_rows(node: Node) -> list[tuple[str, float, float, float]]:
    """(feature, centre, scale, weight) of the folded weights, in the node's order; empty where they were not sent."""
    document = node.of_type(FOLDED)
    if document is None:
        return []
    return [(str(r[0]), *numbers) for r in document.rows if (numbers := _row_numbers(node, r)) is not None]


def _row_numbers(node: Node, row: Sequence[Any]) -> tuple[float, float, float] | None:
    """Centre, scale and weight of a feature's row; None for the intercept and confounds, which have a weight alone."""
    cells: list[Any] = [*row[1:], None, None, None]
    centre, scale, weight = cells[:3]
    alone = centre is None and scale is None
    if not _number(weight) or not (alone or (_number(centre) and _number(scale) and float(scale) > 0)):
        raise RefusedError(f"row {str(row[0])[:60]!r} of the folded weights of node {node.name} is no weight",
                           path=node.path, next_step="pool the certified files as they are.")  # fmt: skip
    return None if alone else (float(centre), float(scale), float(weight))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def released_n(node: Node) -> int | None:
    """N as the node released it (a multiple of 5 below 100); None where it released none."""
    document = node.of_type(N_SUBJECTS)
    if document is not None and isinstance(document.rows[0][1], int | float):
        return int(document.rows[0][1])
    moments = node.of_type(MOMENTS)
    count = None if moments is None else moments.about.get("n_public")
    return None if count is None else int(count)


def _same(nodes: Sequence[Node], key: Callable[[Node], Any], what: str, show: Callable[[Any], str] | None) -> None:
    first = key(nodes[0])
    for node in nodes[1:]:
        value = key(node)
        if value == first:
            continue
        detail = "" if show is None else f": {show(first)} at {nodes[0].name}, {show(value)} at {node.name}"
        raise RefusedError(
            f"the nodes differ in {what}{detail}",
            path=node.path,
            next_step="send one job file, one basis and one rule set to every node; run the one that differs again.",
        )


def _features(nodes: Sequence[Node]) -> None:
    lists = {n.name: [r[0] for r in feature_rows(n)] for n in nodes}
    known = {name: rows for name, rows in lists.items() if rows}
    if not known:
        return
    if len(known) < len(nodes):
        lost = next(n for n in nodes if n.name not in known)
        raise RefusedError(
            f"node {lost.name} did not send its folded weights, which name the features, and others did", path=lost.path
        )
    (first_name, first), *rest = known.items()
    for name, rows in rest:
        if sorted(rows) != sorted(first):
            extra = sorted(set(rows) ^ set(first))
            raise RefusedError(f"nodes {first_name} and {name} have different features (first: {extra[0]!r})")
        if rows != first:
            place = next(i for i, (a, b) in enumerate(zip(first, rows, strict=True)) if a != b)
            raise RefusedError(
                f"nodes {first_name} and {name} have the same features in another order (from place {place + 1})"
            )


def _units(nodes: Sequence[Node]) -> None:
    def units(node: Node) -> dict[str, tuple[str, ...]]:
        return {k: tuple(c.unit for c in d.columns) for k in WEIGHT_TYPES if (d := node.of_type(k)) is not None}

    first = units(nodes[0])
    for node in nodes[1:]:
        other = units(node)
        for kind in first.keys() & other.keys():
            if first[kind] != other[kind]:
                raise RefusedError(
                    f"the nodes differ in units: {kind} of {nodes[0].name} and of {node.name}", path=node.path
                )


def _centres(node: Node) -> tuple[tuple[float, float], ...]:
    return tuple((centre, scale) for _, centre, scale, _ in feature_rows(node))


def _confounds(node: Node) -> tuple[str, ...]:
    document = node.of_type(FOLDED)
    rows = () if document is None else document.rows
    return tuple(
        str(r[0]).removeprefix("confound ") for r in rows if str(r[0]).startswith("confound ") and r[1] is None
    )


def _adjacency(node: Node) -> str:
    for kind in WEIGHT_TYPES:
        document = node.of_type(kind)
        release = None if document is None else node.release(document.name)
        if release is not None:
            return str(release["adjacency"])
    return "none"


def _plausible(node: Node) -> None:
    """Every weight is a number, and none moves a predicted age by more years than any noise the rules allow."""
    for kind in AVERAGED:
        document = node.of_type(kind)
        for row in () if document is None else document.rows:
            values: Sequence[Any] = row[-1:] if kind == FOLDED else row[1:]
            if not all(_number(v) and abs(v) <= _MOST_YEARS for v in values):
                raise RefusedError(f"{kind} of node {node.name} holds a value that no model of ages can have",
                                   path=node.path, next_step="ask the node for its release again.")  # fmt: skip


def _rounded(node: Node) -> None:
    """Weights are at the precision the node's own rules name; more digits are a copy that was never rounded."""
    figures = node.policy["parameters"].get("coefficient_figures")
    if not isinstance(figures, int):
        return
    for kind in (BETA1, FOLDED):
        document = node.of_type(kind)
        for row in () if document is None else document.rows:
            value = row[-1]
            if isinstance(value, int | float) and round_value(value, significant_figures=figures) != value:
                raise RefusedError(
                    f"{kind} of node {node.name} is not rounded to {figures} significant figures",
                    path=node.path,
                    next_step="pool the certified files as they are.",
                )


def _consistent_n(node: Node) -> None:
    """N is said once: in `n_subjects` (rounded below the rule set's limit) and in the noised moments."""
    document, moments = node.of_type(N_SUBJECTS), node.of_type(MOMENTS)
    if document is None or moments is None or moments.about.get("n_public") is None:
        return
    exact, shown = int(moments.about["n_public"]), document.rows[0][1]
    base = int(node.policy["parameters"].get("round_n_base", 5))
    if isinstance(shown, int | float) and abs(float(shown) - exact) > (0 if exact >= 100 else base / 2):
        raise RefusedError(f"node {node.name} gives two different numbers of people", path=node.path)


def check_noise(nodes: Sequence[Node]) -> None:
    """Noise drawn twice from one generator state. Independent draws agree in an entry with probability below 10⁻⁷."""
    seen: dict[tuple[str, str, float], Node] = {}
    for node in nodes:
        document = node.of_type(MOMENTS)
        rows = () if document is None else document.rows
        for row in rows:
            if not isinstance(row[1], int | float) or row[1] == 0:
                continue
            key = (MOMENTS, str(row[0]), float(row[1]))
            if key in seen:
                raise _identical(seen[key], node)
            seen[key] = node
    for kind in (BETA1, FOLDED):
        weights: dict[tuple[Any, ...], Node] = {}
        for node in nodes:
            document = node.of_type(kind)
            if document is None:
                continue
            values = tuple(row[-1] for row in document.rows)
            if len(values) > 2 and values in weights:  # three figures of two numbers can agree by chance
                raise _identical(weights[values], node)
            weights[values] = node


def _identical(first: Node, second: Node) -> RefusedError:
    return RefusedError(
        f"nodes {first.name} and {second.name} carry identical noise: one generator state, or one release twice",
        path=second.path,
        next_step="both TREs must draw again from their operating system's randomness; that costs budget again.",
    )
