"""Loading a rule set: every error with file, line and column, all of them at once; a broken set judges nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base import resources
from ..base.errors import RuleSetError, UnreadableError
from ..base.opening import read_file
from . import build_rules, build_vocabulary
from .constants import put_in_place, read_constants
from .marked_yaml import MarkedFile, Problem, read_marked
from .model import Constant, Place, RuleSet
from .schema_check import VERBS, check, did_you_mean

_BESIDE = ("requirements.yaml", "readings.yaml")
_SPECIAL = ("ruleset.yaml", "decisions.yaml", "sources.yaml")
_ENTRIES = {  # the line that names an entry of a file, for problems of the text
    "decisions.yaml": re.compile(r"^  (D-\d+):"),
    "sources.yaml": re.compile(r"^      ([A-Z]{2}-[A-Z]+\d+):"),
    "": re.compile(r"^\s*- +\{? *id: *[\"']?([A-Z]{2}-\d{2,})"),
}


@dataclass
class Draft:
    """A rule set while it is being read: marked files, what was built from them, and all problems."""

    folder: Path
    files: dict[str, MarkedFile] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unsound: set[tuple[str, int | None]] = field(default_factory=set)  # (file, rule) that nothing can be built of

    def problem(self, place: Place, what: str, rule: str | None = None) -> None:
        """Note something wrong."""
        self.problems.append(Problem(place, what, rule))


def find_folder(source: str | Path | None) -> Path:
    """Folder of a rule set: None is the packaged one, a text without a `/` the packaged one of that name.

    A folder of the same name in the working directory never stands in for it: a path is written as one, `./mine`.
    """
    if source is None:
        return resources.rules_dir()
    path = Path(source)
    bare = isinstance(source, str) and re.search(r"[/\\]", source) is None
    if bare and (named := resources.rules_dir(str(source))).is_dir():
        return named
    if not bare and path.exists():
        return path if path.is_dir() else path.parent
    step = f" A path starts with ./ or /: ./{source}" if bare and path.exists() else ""
    packaged = sorted(p.name for p in resources.rules_dir().parent.iterdir() if p.is_dir())
    raise RuleSetError(
        f"there is no rule set {str(source)!r}{did_you_mean(str(source), packaged)}",
        next_step=f"Give a folder with ruleset.yaml, or one of: {', '.join(packaged)}.{step}",
    )


def rule_files(folder: Path) -> list[Path]:
    """The files that make up a rule set, in order; what it is proved and tried with, layers and waivers are no part."""
    return sorted(p for p in folder.glob("*.yaml") if p.is_file() and p.name not in _BESIDE)


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the sorted (name, bytes) of a rule set's files; line ends count as they are."""
    h = hashlib.sha256()
    for name in sorted(files):
        for piece in (name.encode(), files[name]):
            h.update(len(piece).to_bytes(8, "big"))
            h.update(piece)
    return h.hexdigest()


class RuleSetProblems(RuleSetError):
    """A rule set, layer or waiver that does not load, with all its problems."""

    def __init__(self, what: str, problems: tuple[Problem, ...]) -> None:
        lines = "\n".join(f"  {problem}{pictured(problem.place)}" for problem in problems)
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        super().__init__(
            f"{what} does not load: {count}\n{lines}\n", next_step="Mend them; nothing is judged by it until then."
        )
        self.problems = problems


def pictured(place: Place) -> str:
    """The line of the file with a caret under the place; nothing where the file cannot be read any more."""
    try:
        line = Path(place.path).read_text(encoding="utf-8").splitlines()[place.line - 1]
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
    start = max(0, place.column - 60)
    shown = "".join(c if c.isprintable() else " " for c in line[start : start + 100])
    number = f"    {place.line} | "
    return f"\n{number}{shown}\n{' ' * (len(number) - 2)}| {' ' * (place.column - 1 - start)}^"


def raise_problems(problems: list[Problem], what: str) -> None:
    """Raise one error with every problem on a line of its own, in file order; nothing if there is none."""
    if problems:
        unique = {str(p): p for p in problems}.values()
        raise RuleSetProblems(what, tuple(sorted(unique, key=lambda p: (p.place.path, p.place.line, p.place.column))))


def load_base(
    source: str | Path | None = None,
    *,
    constants: Mapping[str, float] | None = None,
    added: tuple[tuple[str, bytes], ...] = (),
) -> RuleSet:
    """The rule set without layers, but with the constants and additions of layer files; an error lists all errors."""
    folder = find_folder(source)
    paths = rule_files(folder)
    if not any(p.name == "ruleset.yaml" for p in paths):
        raise RuleSetError("this folder holds no ruleset.yaml", path=folder, next_step="Give the folder of a rule set.")
    try:
        raw = tuple((p.name, read_file(p)) for p in paths)
    except UnreadableError as error:
        raise RuleSetError(f"cannot be read: {error.what}", path=folder) from error
    return _parse(str(folder), raw + _below(raw), tuple(sorted((constants or {}).items())), added)


BELOW = "below/"  # in front of the names of files that a rule set takes from the one it stands on


def _below(raw: tuple[tuple[str, bytes], ...]) -> tuple[tuple[str, bytes], ...]:
    """The vocabulary and the rules about form of the packaged set that `vocabulary: {from: NAME}` names."""
    main = dict(raw).get("ruleset.yaml", b"")
    _, _, words = main.partition(b"\nvocabulary:\n")
    found = re.match(rb"  from: ([a-z][a-z0-9-]*)\s*\n", words)
    if found is None:
        return ()
    folder = find_folder(found[1].decode())
    names = ["ruleset.yaml", *(["forms.yaml"] if "forms.yaml" not in dict(raw) else [])]
    return tuple((BELOW + name, read_file(folder / name)) for name in names if (folder / name).is_file())


@lru_cache(maxsize=16)
def _parse(
    folder: str,
    raw: tuple[tuple[str, bytes], ...],
    overrides: tuple[tuple[str, float], ...] = (),
    added: tuple[tuple[str, bytes], ...] = (),
) -> RuleSet:
    """Three passes, each over what the passes before left sound, so that one run names every mistake once."""
    draft = Draft(Path(folder), raw=dict(raw))
    for name, content in raw:
        draft.files[name] = read_marked(Path(folder) / name, str(Path(folder) / name), raw=content)
    _take_below(draft)
    for path, content in added:
        _add_layer(draft, path, content)
    constants = _constants(draft, dict(overrides))
    for name in _SPECIAL:
        if name not in draft.files:
            draft.problem(Place(str(draft.folder / name), 1, 1), "the file is missing")
    for name, marked in draft.files.items():
        _check_shape(name, marked, draft)
    for stray in sorted(p.name for p in Path(folder).glob("*.yml")):
        draft.problem(Place(str(Path(folder) / stray), 1, 1), "is not read: call it .yaml, or take it out")
    sound = all(name in draft.files and (name, None) not in draft.unsound for name in _SPECIAL)
    ruleset = None
    if sound:
        words = build_vocabulary.build(draft.files, draft.problems, constants)
        ruleset = build_rules.build(draft.files, draft.problems, words, draft.unsound)
    raise_problems(_all_problems(draft), f"the rule set in {folder}")
    assert ruleset is not None
    return replace(ruleset, sha256=digest(draft.raw), folder=folder)


def _take_below(draft: Draft) -> None:
    """Put the words of the set below under those of this one: only the kinds it names, all facts and limits."""
    main, below = draft.files.get("ruleset.yaml"), draft.files.pop(BELOW + "ruleset.yaml", None)
    forms = draft.files.pop(BELOW + "forms.yaml", None)
    if main is None or below is None or not isinstance(main.data, dict):
        return
    if forms is not None:
        draft.files["forms.yaml"] = forms
        # sources of a form are clauses of the other set's documents; here they only guard what was judged
        forms.data = {"forms": {n: {**f, "source": ["form"], "decision": []} for n, f in forms.data["forms"].items()}}
    mine, theirs = main.data["vocabulary"], below.data["vocabulary"]
    only = mine.pop("kinds", None) or list(theirs["outputs"])
    put_in_place(below, read_constants(below, {}))
    theirs = below.data["vocabulary"]
    outputs = {k: v for k, v in theirs["outputs"].items() if k in only} | mine.get("outputs", {})
    classes = {o["class"] for o in outputs.values()}
    groups = {g: [c for c in members if c in classes] for g, members in theirs["groups"].items()}
    merged = {key: {**theirs.get(key, {}), **mine.get(key, {})} for key in ("effects", "facts", "limits")}
    groups = {g: members for g, members in groups.items() if members} | mine.get("groups", {})
    mark = mine.get("suppression_mark", theirs.get("suppression_mark", "*"))
    main.data["vocabulary"] = {**merged, "outputs": outputs, "groups": groups, "suppression_mark": mark}
    standing = {
        name: {k: v for k, v in spec.items() if k != "decision"}
        for name, spec in below.data["parameters"].items()
        if "value" in spec
    }
    main.data["parameters"] = standing | main.data.get("parameters", {})
    for kind in only:
        if kind not in theirs["outputs"]:
            main.problems.append(Problem(main.place("vocabulary", "kinds"), f"the set below knows no kind {kind!r}"))


def _add_layer(draft: Draft, path: str, content: bytes) -> None:
    """What a layer adds: its rules as one more file, its kinds and facts as words, its clauses and decisions."""
    marked = read_marked(Path(path), path, raw=content)
    main, data = draft.files.get("ruleset.yaml"), marked.data
    for key, home in (("kinds", "outputs"), ("facts", "facts")):
        for name, spec in data.get(key, {}).items():
            words = main.data["vocabulary"][home] if main is not None else {}
            if name in words:
                draft.problem(marked.key_place(key, name), f"{name} is known below: a layer adds what is new")
            words[name] = spec
    if main is not None and "suppression_mark" in data:
        main.data["vocabulary"]["suppression_mark"] = data["suppression_mark"]
    for key in ("sources", "decisions"):
        book = draft.files.get(f"{key}.yaml")
        marked.data = {key: data.get(key, {})}
        if book is None or not check(marked, key):
            continue
        for name, spec in marked.data[key].items():
            if name in book.data[key]:
                draft.problem(marked.key_place(key, name), f"{name} is known below: a layer adds what is new")
            book.data[key][name] = spec
    marked.data = {"section": f"Layer {(data.get('layer') or data['profile'])['id']}", "rules": data.get("rules", [])}
    draft.files[f"~{path}"] = marked  # after all files of the set


def _constants(draft: Draft, overrides: dict[str, float]) -> dict[str, Constant]:
    """The constants, put in place in every file; none where their own file cannot be read."""
    main = draft.files.get("ruleset.yaml")
    if main is None or not isinstance(main.data, dict) or not isinstance(main.data.get("constants", {}), dict):
        return {}
    if not check(main, "ruleset", "constants", definition="constants") if "constants" in main.data else False:
        return {}
    found = read_constants(main, overrides)
    for marked in draft.files.values():
        if isinstance(marked.data, dict):
            put_in_place(marked, found)
    return found


def first_at_each_place(problems: Iterable[Problem]) -> list[Problem]:
    """Of several problems at one place the first: what follows from a value that cannot be read is no news."""
    first: dict[Place, Problem] = {}
    for problem in problems:
        first.setdefault(problem.place, problem)
    return list(first.values())


def _all_problems(draft: Draft) -> list[Problem]:
    for name, marked in draft.files.items():
        marked.name_entries(_ENTRIES.get(name, _ENTRIES[""]))
    first = first_at_each_place(p for marked in draft.files.values() for p in marked.problems)
    told = {p.place for p in first}
    return [*first, *(p for p in draft.problems if p.place not in told)]


def _check_shape(name: str, marked: MarkedFile, draft: Draft) -> None:
    if marked.data is None and marked.problems:
        draft.unsound.add((name, None))
    elif not isinstance(marked.data, dict):
        marked.problems.append(Problem(marked.place(), "must be a mapping"))
        draft.unsound.add((name, None))
    elif name in ("decisions.yaml", "sources.yaml", "forms.yaml"):
        if not check(marked, name.removesuffix(".yaml")):
            draft.unsound.add((name, None))
    else:
        _check_rule_file(name, marked, draft)


def _check_rule_file(name: str, marked: MarkedFile, draft: Draft) -> None:
    valid = check(marked, "ruleset", skip="rules")
    wanted = ("ruleset", "vocabulary", "parameters") if name == "ruleset.yaml" else ("section", "rules")
    for key in wanted:
        if key not in marked.data:
            marked.problems.append(Problem(marked.place(), f"misses {key!r}"))
            valid = False
    if name == "ruleset.yaml" and not valid:
        draft.unsound.add((name, None))
    rules = marked.data.get("rules", [])
    if not isinstance(rules, list):
        marked.problems.append(Problem(marked.place("rules"), "'rules' must be a list"))
        draft.unsound.add((name, None))
        return
    for index, rule in enumerate(rules):
        before = len(marked.problems)
        check_rule(marked, index, rule)
        if len(marked.problems) > before:
            draft.unsound.add((name, index))


def check_rule(marked: MarkedFile, index: int, rule: Any) -> None:
    """Choose the schema by the rule's verb, then check against that one alone."""
    if not isinstance(rule, dict):
        marked.problems.append(Problem(marked.place("rules", index), "a rule is a mapping"))
        return
    rule_id = rule.get("id") if isinstance(rule.get("id"), str) else None
    verbs = [verb for verb in VERBS if verb in rule]
    if len(verbs) != 1:
        what = f"has {' and '.join(verbs)}" if verbs else f"has none of {', '.join(VERBS)}"
        if not verbs:
            known = resources.schema("ruleset")["$defs"]["rule"]["properties"]
            what += next((hint for key in rule if key not in known and (hint := did_you_mean(key, VERBS))), "")
        marked.problems.append(
            Problem(marked.place("rules", index), f"a rule has exactly one verb; this one {what}", rule_id)
        )
        return
    check(marked, "ruleset", "rules", index, definition=f"rule_{verbs[0]}", rule=rule_id)
