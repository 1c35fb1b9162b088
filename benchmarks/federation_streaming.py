"""Moments of a large Parquet file in bounded memory, against numpy and Dask on this machine.

    python benchmarks/federation_streaming.py [--people 1000000] [--features 500] [--workers 2]

Each way runs in a process of its own, so that its peak memory is its own. Prints one table: wall and CPU seconds, each
per million people too, and peak memory of the process; for Dask the workers' CPU is counted in, and the largest
worker's memory stands beside the client's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WAYS = ("parquet, row groups", "npy, memory map", "numpy, all in memory", "dask, local cluster")
GROUP = 20_000


def make(folder: Path, people: int, features: int) -> None:
    """Write the same people as Parquet and as .npy, a block at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"idp_{j}" for j in range(features)]
    slope = rng.normal(size=features) / 10
    schema = pa.schema([("age", pa.float64()), *((n, pa.float64()) for n in names)])
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float64, shape=(people, features))
    ages = np.lib.format.open_memmap(folder / "age.npy", mode="w+", dtype=np.float64, shape=(people,))
    with pq.ParquetWriter(folder / "x.parquet", schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, people, GROUP):
            size = min(GROUP, people - start)
            age = rng.uniform(45, 85, size)
            block = 3.0 + np.outer(age - 65, slope) + rng.normal(size=(size, features))
            x[start : start + size], ages[start : start + size] = block, age
            writer.write_table(pa.table([age, *block.T], schema=schema))
    x.flush()
    ages.flush()


def one(way: str, folder: Path, features: int, workers: int) -> dict[str, float]:
    """Run one way and measure it."""
    from sacro_deltab.federation import streams
    from sacro_deltab.model import Moments

    blank = Moments(tuple(f"idp_{j}" for j in range(features)), x_centre=np.full(features, 3.0))
    worker_mb = 0.0
    start, cpu = time.perf_counter(), _cpu()
    if way == WAYS[0]:
        total = streams.of_parquet(folder / "x.parquet", blank)
    elif way == WAYS[1]:
        total = streams.of_npy(folder / "x.npy", folder / "age.npy", blank)
    elif way == WAYS[2]:
        total = blank.empty().update(np.load(folder / "x.npy"), np.load(folder / "age.npy"))
    else:
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            start, cpu = time.perf_counter(), _cpu() + sum(client.run(_cpu).values())
            total = streams.of_dask([folder / "x.parquet"], blank, client=client)
            seconds, used = time.perf_counter() - start, _cpu() + sum(client.run(_cpu).values()) - cpu
            worker_mb = max(client.run(_peak).values())
    if not worker_mb:
        seconds, used = time.perf_counter() - start, _cpu() - cpu
    return {"seconds": seconds, "cpu": used, "peak_mb": _peak(), "worker_mb": worker_mb, "n": float(total.n),
            "trace": float(np.trace(total.matrix))}  # fmt: skip


def _cpu() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    """Peak resident memory of this program in MB (Linux; not inherited from whoever started it, unlike getrusage)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def main() -> None:
    """Make the data, run every way in a process of its own, print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FOLDER"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], Path(options.one[1]), options.features, options.workers)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.people, options.features)
        size = options.people * options.features * 8 / 2**20
        print(f"{options.people:,} people × {options.features} features, {size:,.0f} MB of numbers")
        print(
            f"{'way':<24} {'wall s':>8} {'CPU s':>8} {'wall/million':>13} {'CPU/million':>12} {'peak MB':>8}",
            flush=True,
        )
        traces = []
        for way in WAYS:
            command = [sys.executable, __file__, "--features", str(options.features), "--workers", str(options.workers)]
            done = subprocess.run([*command, "--one", way, name], capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.strip().splitlines()[-1])
            million = options.people / 1e6
            peak = f"{found['peak_mb']:.0f}" + (f" + {found['worker_mb']:.0f}" if found["worker_mb"] else "")
            print(f"{way:<24} {found['seconds']:>8.1f} {found['cpu']:>8.1f} {found['seconds'] / million:>13.1f} "
                  f"{found['cpu'] / million:>12.1f} {peak:>8}", flush=True)  # fmt: skip
            traces.append(found["trace"])
        spread = (max(traces) - min(traces)) / max(traces)
        print(f"largest relative difference of the traces: {spread:.1e}")


if __name__ == "__main__":
    main()
