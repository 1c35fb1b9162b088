"""The main job against upstream deltab: wall time, CPU time and peak memory of whole processes.

    python benchmarks/train_vs_upstream.py --upstream PATH [--people 500] [--features 2000] [--repeats 7]

PATH is upstream deltab's `deltab.py` (repository SPMIC-UoN/deltab on GitHub, file `deltab/deltab.py`; it is not on the
package index and not part of this repository). Both processes start from the same `.npy` arrays:

* upstream: `import acro`, `import opendp.prelude`, then upstream's training with 10 components;
* ours: a `DeltabSession` around a live `acro.ACRO`, `train_private` on a shared basis of 10 components read from its
  file (ε 1, spend in a ledger that a profile pins and in which the basis was registered before; without the membership
  test, which upstream has not), `release_weights` and twelve statistics and tables (every rule of every output), and
  `finalise` (the checked folder). At least twelve outputs pass and none fails, or the benchmark ends: a release of
  nothing would be fast.

Processes alternate, BLAS threads are pinned to 1 in both, and memory is the peak resident set that the kernel reports.
`--parts` runs ours once and prints where its time goes.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PINNED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
COMPONENTS = 10


def make(where: Path, people: int, features: int) -> None:
    """Ages, features and ids as files, and a basis from other (simulated, public) people of the same population."""
    import numpy as np

    from sacro_deltab import Basis
    from sacro_deltab.cohort.simulate import smith_cohort

    ours = smith_cohort(people, features, seed=1, loading_seed=0)
    public = smith_cohort(2 * people, features, seed=2, loading_seed=0)
    np.save(where / "X.npy", ours.X)
    np.save(where / "age.npy", ours.age)
    names = [f"idp_{i:04d}" for i in range(features)]
    (where / "names.json").write_text(json.dumps(names))
    Basis.from_public(
        public.X, public.age, feature_names=names, units=["mm"] * features, n_components=COMPONENTS,
        made_on="simulated public people",
    ).save(where / "basis.json")  # fmt: skip


def upstream_side(where: Path, source: Path) -> dict[str, float]:
    """Imports and upstream's training."""
    marks = {"start": time.perf_counter()}
    import acro  # noqa: F401
    import opendp.prelude  # noqa: F401

    marks["imports"] = time.perf_counter()
    import numpy as np

    spec = importlib.util.spec_from_file_location("upstream_deltab", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    X, age = np.load(where / "X.npy"), np.load(where / "age.npy")
    marks["upstream import, arrays"] = time.perf_counter()
    module.BrainDelta().train(age, X, ev_num=COMPONENTS)
    marks["training"] = time.perf_counter()
    return _steps(marks)


def supply(where: Path, folder: Path) -> None:
    """What a TRE has beforehand: a ledger with the registered basis and cohort, a profile that pins it, statements."""
    import numpy as np

    from sacro_deltab import Basis, open_ledger
    from sacro_deltab.ledger.register import Intake, Rows

    ledger = open_ledger(folder / "budget.db")
    ledger.register_bounds(Basis.load(where / "basis.json").digest, "TRE staff")
    X, age = np.load(where / "X.npy"), np.load(where / "age.npy")
    names, (words, hours) = json.loads((where / "names.json").read_text()), _others(age.size)
    numbers = {"age": age, "hours": hours, **dict(zip(names, X.T, strict=True))}
    intake = Intake(ledger)
    intake.add(Rows(_people(age.size), numbers, {k: v.tolist() for k, v in words.items()}, range(1, age.size + 1)))
    intake.register("benchmark", who="TRE staff")
    pin = ledger.pin()
    (folder / "profile.yaml").write_text(
        "profile: {id: benchmark, title: Benchmark, ruleset: deltab-disclosure, decided_by: null}\n"
        "attest: {egress.route: tre_airlock, dp.noise_inside_tre: true}\n"
        f'ledgers:\n  - {{id: "{pin.id}", head_key: "{pin.head_key}"}}\n'
    )
    facts = {"output.declared": True, "dp.trust_model": "central_at_node"}
    said = {"schema": "sacro_deltab/declare/1", "role": "researcher", "by": "benchmark", "simulated": True}
    (folder / "declare.json").write_text(json.dumps({**said, "facts": facts}))


def _people(n: int) -> list[str]:
    return [f"P{i:04d}" for i in range(n)]


def _others(n: int) -> tuple[dict[str, Any], Any]:
    """Four columns of two labels, and hours of sleep."""
    import numpy as np

    rng = np.random.default_rng(0)
    return {name: rng.choice(["a", "b"], n) for name in ("sex", "smoker", "hand", "arm")}, rng.normal(7, 1, n)


def our_side(where: Path, folder: Path) -> dict[str, float]:
    """The whole path through the session; `folder` holds what `supply` put there."""
    marks = {"start": time.perf_counter()}
    import acro

    from sacro_deltab import Basis, DeltabSession

    marks["import acro"] = time.perf_counter()
    import numpy as np

    os.chdir(folder)
    X, age = np.load(where / "X.npy"), np.load(where / "age.npy")
    names = json.loads((where / "names.json").read_text())
    basis = Basis.load(where / "basis.json")
    marks["arrays, basis"] = time.perf_counter()
    session = DeltabSession(
        acro.ACRO(), cohort="benchmark", people=_people(age.size), ages=age, ledger="budget.db", profile="profile.yaml",
        declare="declare.json",
    )  # fmt: skip
    marks["session"] = time.perf_counter()
    model = session.train_private(X, age, feature_names=names, basis=basis, epsilon=1.0, membership_test=False)
    marks["training and noise"] = time.perf_counter()
    session.release_weights(model)
    marks["weights"] = time.perf_counter()
    _results(session, session.deltas(model, X, age), X, age)
    marks["twelve outputs"] = time.perf_counter()
    session.finalise("outputs")
    marks["folder"] = time.perf_counter()
    statuses = [entry.status for entry in session.entries]
    if statuses.count("pass") < 12 or "fail" in statuses or not (folder / "outputs" / "results.json").is_file():
        sys.exit(f"not a release: {[(e.name, e.status) for e in session.entries]}")
    return _steps(marks)


def _results(session: Any, delta: Any, X: Any, age: Any) -> None:
    """Twelve outputs as a paper has them."""
    import pandas as pd

    from sacro_deltab import AgeBands

    words, hours = _others(age.size)
    half = {name: pd.Series(labels, name=name) for name, labels in words.items()}
    session.release_mean(delta)
    session.release_sd(delta)
    session.release_quantiles(delta)
    for column in half.values():
        session.release_group_means(delta, column)
    session.release_counts(half["sex"])
    session.release_group_means(delta, AgeBands(age, 10))
    names = [f"idp_{j:04d}" for j in range(100)]
    session.release_feature_summary(pd.DataFrame(X[:, :100], columns=names))
    session.release_correlations(delta, pd.DataFrame(X[:, :100], columns=names))
    session.release_regression(delta, pd.DataFrame({"age": age, "hours": hours}))


def _steps(marks: dict[str, float]) -> dict[str, float]:
    names = list(marks)
    return {b: marks[b] - marks[a] for a, b in itertools.pairwise(names)}


def measure(arguments: list[str]) -> tuple[float, float, float, dict[str, float]]:
    """Wall seconds, CPU seconds and peak MB of a process of this file."""
    environment = {**os.environ, **dict.fromkeys(PINNED, "1")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode, on both sides
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, __file__, *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stderr is not None
    _, status, used = os.wait4(child.pid, 0)  # outputs are far below a pipe's buffer
    wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    out, err = child.stdout.read(), child.stderr.read()
    if child.returncode != 0:
        sys.exit(f"{arguments}: exit {child.returncode}\n{err}")
    steps: dict[str, float] = json.loads(out.splitlines()[-1])
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, steps


def _supplied(where: Path, folder: Path) -> None:
    """A folder with what the TRE supplies, made by a process of its own that is not measured."""
    folder.mkdir()
    command = [sys.executable, __file__, "--side", "supply", "--where", str(where), "--folder", str(folder)]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit("the ledger could not be made")


def _three(values: list[float], unit: str) -> str:
    return f"{min(values):8.2f} {statistics.median(values):8.2f} {max(values):8.2f} {unit}"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", type=Path, help="upstream deltab's deltab.py")
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--parts", action="store_true", help="run ours once and print its steps")
    parser.add_argument("--side", choices=("upstream", "ours", "supply"), help=argparse.SUPPRESS)
    parser.add_argument("--where", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side == "supply":
        supply(options.where, options.folder)
        return
    if options.side is not None:
        steps = (
            upstream_side(options.where, options.upstream)
            if options.side == "upstream"
            else our_side(options.where, options.folder)
        )
        print(json.dumps(steps))
        return
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        child = subprocess.run(  # in a process of its own: this one stays small
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
             "import train_vs_upstream as t; from pathlib import Path; "
             f"t.make(Path({str(where)!r}), {options.people}, {options.features})"],
            check=False,
        )  # fmt: skip
        if child.returncode != 0:
            sys.exit("the arrays could not be made")
        if options.parts:
            _supplied(where, where / "parts")
            wall, cpu, peak, steps = measure(["--side", "ours", "--where", str(where), "--folder", f"{where}/parts"])
            for name, seconds in steps.items():
                print(f"{seconds:8.3f} s  {name}")
            print(f"{wall:8.3f} s  whole process, CPU {cpu:.2f} s, peak {peak:.0f} MB")
            return
        if options.upstream is None:
            sys.exit("--upstream PATH is needed; see --help")
        compare(where, options)


def compare(where: Path, options: Any) -> None:
    """Alternate both processes and print minimum, median and maximum, with the ratio of the medians."""
    sides: dict[str, list[tuple[float, float, float, dict[str, float]]]] = {"upstream": [], "ours": []}
    for turn in range(options.repeats + 1):
        folder = where / f"run_{turn}"
        _supplied(where, folder)
        for side in ("upstream", "ours") if turn % 2 else ("ours", "upstream"):
            more = ["--upstream", str(options.upstream)] if side == "upstream" else ["--folder", str(folder)]
            result = measure(["--side", side, "--where", str(where), *more])
            if turn:  # the first pair warms the disk cache
                sides[side].append(result)
    print(f"{options.people} people × {options.features} features, {options.repeats} pairs; min, median, max")
    for index, (what, unit) in enumerate((("wall", "s"), ("CPU", "s"), ("peak", "MB"))):
        theirs = [r[index] for r in sides["upstream"]]  # type: ignore[misc]
        ours = [r[index] for r in sides["ours"]]  # type: ignore[misc]
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        print(f"{what:5} upstream {_three(theirs, unit)}")
        middle = statistics.median(ours) / statistics.median(theirs)
        print(f"{what:5} ours     {_three(ours, unit)}   ratio {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    for side, results in sides.items():
        steps = {name: statistics.median(r[3][name] for r in results) for name in results[0][3]}
        print(f"{side}: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in steps.items()))


if __name__ == "__main__":
    main()
