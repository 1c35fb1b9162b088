"""How long `check` takes: folders of 200 and 1,000 outputs, and one table of 3,000 × 40 against ACRO's own checks.

    python benchmarks/check_speed.py [--acro]

`--acro` also runs ACRO 1.0.2 on the same table (over a minute). Prints seconds; nothing else is loaded in between.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import logging
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "check"))

from sessions import Made, make

from sacro_deltab.check import check_paths
from sacro_deltab.rules import load_ruleset


def folder_of(made: Made, where: Path, n_outputs: int) -> Path:
    """A session folder of `n_outputs` sets of quantiles, cloned from a real session."""
    where.mkdir()
    (where / "inside").mkdir()
    (where / "checksums").mkdir()
    shutil.copy(made.folder / "config.json", where)
    evidence = json.loads((made.folder / "inside" / "evidence.json").read_text())
    results = json.loads((made.folder / "results.json").read_text())
    templates = ["delta_quantiles"]  # no tables: the attack over all of them together is another benchmark
    entries: dict[str, Any] = {e["name"]: e for e in evidence["outputs"]}
    records = {
        t: next(r for r in results["results"].values() if r["files"][0]["name"] == f"{t}.csv") for t in templates
    }
    evidence["outputs"], results["results"], evidence["tables"], evidence["tables_more"] = [], {}, None, []
    for index in range(n_outputs):
        template = templates[index % len(templates)]
        name, uid = f"{template}_{index:04d}", f"output_{index}"
        text = (made.folder / f"{template}.json").read_text().replace(f'"name": "{template}"', f'"name": "{name}"', 1)
        for suffix, body in (("json", text), ("csv", (made.folder / f"{template}.csv").read_text())):
            (where / f"{name}.{suffix}").write_text(body)
            digest = hashlib.sha256(body.encode()).hexdigest()
            (where / "checksums" / f"{name}.{suffix}.txt").write_text(digest)
        entry, record = copy.deepcopy(entries[template]), copy.deepcopy(records[template])
        entry.update(name=name, uid=uid, files=[f"{name}.csv", f"{name}.json"])
        entry["facts"]["output_name"] = entry["raw"]["name"] = name
        record["uid"] = uid
        for file, suffix in zip(record["files"], ("csv", "json"), strict=True):
            file["name"] = f"{name}.{suffix}"
        evidence["outputs"].append(entry)
        results["results"][uid] = record
    (where / "inside" / "evidence.json").write_text(json.dumps(evidence))
    (where / "results.json").write_text(json.dumps(results))
    return where


def timed_folder(made: Made, where: Path, n_outputs: int) -> float:
    """Seconds to check one folder, rule set loaded before."""
    ruleset = load_ruleset(None, profile=made.profile)
    folder = folder_of(made, where / f"outputs_{n_outputs}", n_outputs)
    started = time.perf_counter()
    report = check_paths([folder], ruleset=ruleset, ledger=made.ledger)
    seconds = time.perf_counter() - started
    assert report.exit_code == 0, [f.text for o in report.outputs for f in o.findings if f.verdict != "pass"][:3]
    assert len(report.outputs) == 2 * n_outputs
    return seconds


def people_of_wide_table(rows: int = 3_000, columns: int = 40) -> Any:
    """The people behind the wide table, for ACRO: 100 a row."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    column = rng.permutation(np.tile(np.arange(100) % columns, rows))
    return pd.DataFrame({"a": np.repeat(np.arange(rows), 100), "b": column})


def wide_table(where: Path, rows: int = 3_000, columns: int = 40) -> Path:
    """A plain ACRO folder with one crosstab of counts."""
    import random

    rng = random.Random(0)
    folder = where / "wide"
    (folder / "checksums").mkdir(parents=True)
    lines = [",".join(["a", *(str(j) for j in range(columns))])]
    lines += [",".join([str(i), *(str(rng.randrange(0, 9)) for _ in range(columns))]) for i in range(rows)]
    (folder / "output_0_0.csv").write_text("\n".join(lines) + "\n")
    digest = hashlib.sha256((folder / "output_0_0.csv").read_bytes()).hexdigest()
    (folder / "checksums" / "output_0_0.csv.txt").write_text(digest)
    (folder / "config.json").write_text(json.dumps({"safe_threshold": 10}))
    record = {
        "uid": "output_0", "status": "review", "type": "table", "properties": {"method": "crosstab"},
        "files": [{"name": "output_0_0.csv", "sdc": {"summary": {"MinimumThresholdCheck": 0}, "cells": {}}}],
        "outcome": {}, "command": "crosstab", "summary": "review", "timestamp": "2026-01-01T00:00:00", "comments": [],
        "exception": "", "fair": {"statbarn": "Frequencies"},
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps({"version": "1.0.2", "results": {"output_0": record}}))
    return folder


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acro", action="store_true", help="also time ACRO on the same table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        made = make(where)
        timed_folder(made, where, 3)  # start-up
        for n_outputs in (200, 1_000):
            seconds = timed_folder(made, where, n_outputs)
            print(f"{n_outputs} outputs: {seconds:.2f} s, {1000 * seconds / n_outputs:.1f} ms an output")
        table = wide_table(where)
        started = time.perf_counter()
        report = check_paths([table], ruleset=load_ruleset())
        print(f"3000 × 40 table, check: {time.perf_counter() - started:.2f} s ({report.verdict})")
        if arguments.acro:
            import acro

            logging.disable(logging.CRITICAL)
            session, data = acro.ACRO(suppress=False), people_of_wide_table()
            started = time.perf_counter()
            session.crosstab(data["a"], data["b"])
            print(f"3000 × 40 table, ACRO {version('acro')}: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
