"""Problem files: round trip, bad input, the command line."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import tables_brute as brute
from typer.testing import CliRunner

from sacro_deltab.base.errors import InputError, SacroDeltabError
from sacro_deltab.cli import _register, app
from sacro_deltab.tables import problem_from_json, problem_to_json
from sacro_deltab.tables.answers import audit_answer
from sacro_deltab.tables.table import load_case

CASES = Path(__file__).parents[2] / "fixtures" / "cases" / "suppression"
GOOD: dict[str, Any] = {
    "atoms": {"F": {"n": 412}, "M": {"n": 12}},
    "cells": {
        "F": {"table": "t", "atoms": ["F"], "n": 412},
        "M": {"table": "t", "atoms": ["M"], "n": 12},
        "All": {"table": "t", "role": "grand", "atoms": ["F", "M"], "n": 424},
    },
    "published_sets": [{"name": "p", "suppressed": ["M"]}],
}


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    if not any(group.name == "tables" for group in app.registered_groups):
        _register()


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["tables", *arguments])


def test_round_trip() -> None:
    for seed in range(20):
        problem = problem_from_json(brute.random_problem(random.Random(seed), means=seed % 2 == 0))
        again = problem_from_json(json.loads(json.dumps(problem_to_json(problem))))
        assert problem_to_json(again) == problem_to_json(problem)
        assert again.cells == problem.cells


def bad(**change: Any) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    for path, value in change.items():
        *heads, last = path.split("__")
        block: Any = data
        for head in heads:
            block = block[head]
        block[last] = value
    return data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (bad(cells__All__n=425), "does not add up"),
        (bad(atoms__F__n=-1), "negative"),
        (bad(atoms__F__n=41.5), "whole number"),
        (bad(cells__M__atoms=["M", "X"]), "no atom is called 'X'"),
        (bad(cells__M__atoms=["M", "M"]), "twice"),
        (bad(cells__M__atoms=[]), "schema"),
        (bad(cells__M__role="corner"), "schema"),
        (bad(structural_zero=["M"]), "somebody is in it"),
        (bad(published_sets=[{"name": "p", "suppressed": ["X"]}]), "no cell is called 'X'"),
        (bad(must_publish=["X"]), "no cell is called 'X'"),
        (bad(policy={"withhold_share": "1/0"}), "share"),
        (bad(policy={"min_n": 0}), "schema"),
        (bad(policy={"withhold_share": "1e999999999"}), "policy.withhold_share: withhold_share is not a share"),
        (bad(policy={"withhold_share": 1.5}), "policy.withhold_share: withhold_share must lie between"),
        (bad(policy={"min_N": 5}), "policy: the key 'min_N' is not known here. Next step: was 'min_n' meant?"),
        (bad(policy={"threshold": 5}), "policy: the key 'threshold' is not known"),
        (bad(attacker={"knows_totals": True}), "attacker: the key 'knows_totals' is not known"),
        (bad(cells__M__median=3.5), "cells.M: the key 'median' is not known"),
        (bad(atoms__M__sums=1.0), "atoms.M: the key 'sums' is not known"),
        (bad(must_publsh=["M"]), "was 'must_publish' meant?"),
        (bad(cells__M__n=12.5), "cells.M.n: N must be a whole number"),
        (bad(cells__M__n_published=13), "cells.M.n_published: the published N is not N"),
        (bad(cells__M__percent={"of": "All", "value": 50}), "cells.M.percent: the table does not add up"),
        (bad(atoms__M__n=2 * 10**9), "atoms.M: N is larger"),
        (bad(attacker={"value_bounds": [None, 3]}), "attacker.value_bounds: does not fit the schema"),
        (bad(attacker={"value_bounds": [-1, 1]}, atoms__M__sum=13.0), "outside what value_bounds allow"),
        (bad(attacker={"extra_n": [[["F"], 0, 3]]}), "attacker.extra_n[0]: a fact that contradicts the atoms"),
        (bad(attacker={"extra_n": [[["F"], 5, 4]]}), "below its lower bound"),
        (bad(attacker={"value_bounds": [1, 1]}), "value_bounds"),
        (bad(cells__M__n_published=13, attacker={"n_published": "rounded"}), "rounding rule can print"),
        (bad(cells__M__mean=1.0, cells__M__sum=1.0, kind="means"), "does not add up"),
        ({"atoms": {}, "cells": {}}, "schema"),
        ({}, "schema"),
        (bad(kind="poem"), "schema"),
        (bad(identities=[{"name": "sum", "atoms": ["F"], "slack": [-1.0]}]), "slack"),
    ],
)
def test_bad_input_is_refused(data: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        problem_from_json(data)
    assert says in str(caught.value)


def test_notes_are_no_unknown_keys() -> None:
    data = bad(policy={"symbol": "single"}, cells__M__label="men", why="a question")
    assert problem_from_json(data).cells["M"].n == 12


def test_contradictions_are_refused(tmp_path: Path) -> None:
    """Means that no values within the bounds have: the refusal names the file and the pattern."""
    data = {
        "kind": "means",
        "attacker": {"value_bounds": [-1, 1]},
        "atoms": {"A": {"n": 30}, "B": {"n": 30}},
        "cells": {
            "A": {"atoms": ["A"], "mean": 5.0},
            "B": {"atoms": ["B"]},
            "All": {"atoms": ["A", "B"], "role": "grand"},
        },
        "published_sets": [{"name": "p", "suppressed": []}, {"name": "q", "suppressed": ["B"]}],
    }
    file = tmp_path / "t.json"
    file.write_text(json.dumps(data))
    with pytest.raises(SacroDeltabError, match=r"t\.json:published_sets\[1\]: no table fits.*Next step"):
        audit_answer(load_case(file), path=file)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"atoms": {"a": {"n": NaN}}, "cells": {"a": {"atoms": ["a"]}}}',
        '{"atoms": {"a": {"n": 1e999}}, "cells": {"a": {"atoms": ["a"]}}}',
        '{"atoms": {"a": {"n": 30}, "a": {"n": 31}}, "cells": {"a": {"atoms": ["a"]}}}',
        '{"atoms": {"a": {"n": 30}}, "cells": {"a": {"atoms": ["a"]}, "a": {"atoms": ["a"]}}}',
        '{"atoms": {"a": {"n": 1000000000000}}, "cells": {"a": {"atoms": ["a"]}}}',
        '{"atoms": {"a": {"n": ' + "9" * 5000 + '}}, "cells": {"a": {"atoms": ["a"]}}}',
        "[" * 100_000,
        '{"kind": "dominance"}',
        '{"kind": "dominance", "values": ["x"]}',
        '{"kind": "percentages", "published": {"percent": 33.3, "n_published": 31}}',
        '{"kind": "median", "values": [1]}',
        '{"kind": "mean_sd", "published": {"a": {"n": 3, "mean": 1, "sd": 1}}}',
        '{"kind": "mean_sd", "published": {"a": {"n": 5, "mean": 1, "sd": -1}, "b": {"n": 3, "mean": 1, "sd": 1}}}',
        '{"kind": "mean_sd", "published": {"a": {"n": 5, "mean": 1, "sd": 1}, "b": {"n": 4, "mean": 1, "sd": 50}}}',
        '{"kind": "mean_sd", "published": {"a": {"n": 5, "mean": 1e300, "sd": 1}, "b": {"n": 3, "mean": 1, "sd": 1}}}',
        '{"kind": "percentages", "published": {"percent": 133.3, "n_published": 30}}',
        '{"kind": "percentages", "published": {"N": 100000000, "percents": {"a": 50}}}',
        '{"kind": "dominance", "values": [1, 2], "policy": 3}',
        '{"kind": "dominance", "values": [1, 2], "policy": {"min_n": "x"}}',
        '{"kind": 7}',
    ],
)
def test_unreadable_files_exit_2(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.json"
    file.write_text(text)
    for command in ("audit", "protect"):
        result = run(command, str(file))
        assert result.exit_code == 2 or isinstance(result.exception, SacroDeltabError), result.output
        if isinstance(result.exception, SacroDeltabError):
            assert result.exception.exit_code == 2
        assert not result.stdout


def test_not_utf8_and_missing(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(b'{"atoms": "\xff\xfe"}')
    with pytest.raises(SacroDeltabError, match="UTF-8"):
        load_case(file)
    with pytest.raises(SacroDeltabError, match="no such file"):
        load_case(tmp_path / "none.json")
    with pytest.raises(SacroDeltabError, match="a folder, not a file"):
        load_case(tmp_path)


def test_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert load_case(file) == GOOD


@pytest.mark.parametrize(
    ("name", "code"), [("C01_two_groups", 1), ("C05_union_exactly_20", 0), ("X03_dominance_exactly_10_percent", 0)]
)
def test_exit_codes(name: str, code: int) -> None:
    result = run("audit", str(CASES / f"{name}.json"))
    assert result.exit_code == code
    assert json.loads(result.stdout)["id"] == name


def test_protect_prints_one_object(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(GOOD))
    result = run("protect", str(file), "--policy", "interval")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["protection"]["complementary"] == ["F"] and answer["protection"]["audit"]["safe_policy"]
    assert answer["published_sets"][0]["exactly_disclosed"] == ["M"]
    assert run("protect", str(file), "--policy", "none").exit_code != 0


def test_everything_suppressed_and_no_set(tmp_path: Path) -> None:
    data = {**GOOD, "published_sets": [{"name": "all", "suppressed": ["F", "M", "All"]}]}
    file = tmp_path / "t.json"
    file.write_text(json.dumps(data))
    result = run("audit", str(file))
    entry = json.loads(result.stdout)["published_sets"][0]
    assert result.exit_code == 0 and entry["n_interval"] == {"F": [0, None], "M": [0, None], "All": [0, None]}
    assert entry["smallest_derivable_union"] is None
    file.write_text(json.dumps({k: v for k, v in GOOD.items() if k != "published_sets"}))
    assert run("audit", str(file)).exit_code == 1


def test_a_large_table_in_bounded_time() -> None:
    n = 3_000
    atoms = {f"a{i}": {"n": 25 + i % 40} for i in range(n)}
    atoms["a7"]["n"] = 3
    cells = {a: {"atoms": [a]} for a in atoms} | {"All": {"role": "grand", "atoms": list(atoms)}}
    from sacro_deltab.tables import protect

    result = protect(problem_from_json({"atoms": atoms, "cells": cells}))
    assert result.safe and len(result.complementary) == 1
