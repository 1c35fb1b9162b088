"""Streamed moments against bare numpy: time and memory, over one memory-mapped file.

    python benchmarks/moments_streaming.py [--people 100000] [--features 500] [--repeats 5]

Prints one table: seconds for the bare X'X in chunks (best chunk size tried), for `Moments.update` over the same
file (centring, age, squares and finite checks included), for the exact integer sums of the certified path (clipping
and rounding to the grid included), for the fit afterwards, and peak memory of a streaming process at N and at N/4.
BLAS is pinned to one thread on all sides; the sides take turns, and each ratio is of minima and of medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sacro_deltab.model import Moments, one_blas_thread
from sacro_deltab.privacy.blocks import CHUNK, Layout
from sacro_deltab.privacy.moments import Scaling, exact_sums

CHUNKS = (1024, 2048, 10_000)


def make(path: Path, people: int, features: int) -> None:
    """Write a people x features float64 file block by block, with an age column file beside it."""
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(people, features))
    age = rng.uniform(45, 85, people)
    slope = rng.normal(size=features) / 10
    for start in range(0, people, 10_000):
        rows = slice(start, min(start + 10_000, people))
        x[rows] = 3.0 + np.outer(age[rows] - 65, slope) + rng.normal(size=(rows.stop - rows.start, features))
    x.flush()
    np.save(path.with_suffix(".age.npy"), age)


def bare(x: np.ndarray, chunk: int) -> tuple[float, float]:
    """Wall and CPU seconds for X'X in chunks, nothing else."""
    total = np.zeros((x.shape[1], x.shape[1]))
    start = _now()
    with one_blas_thread():
        for row in range(0, x.shape[0], chunk):
            block = x[row : row + chunk]
            total += block.T @ block
    return _since(start)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(start: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = _now()
    return wall - start[0], cpu - start[1]


def streamed(x: np.ndarray, age: np.ndarray, rows: int) -> tuple[tuple[float, float], Moments]:
    """Wall and CPU seconds for Moments over the first `rows` rows, 10,000 at a time as a caller would."""
    moments = Moments(tuple(f"f{i}" for i in range(x.shape[1])), x_centre=3.0)
    start = _now()
    for row in range(0, rows, 10_000):
        stop = min(row + 10_000, rows)
        moments.update(x[row:stop], age[row:stop])
    return _since(start), moments


def private(x: np.ndarray, age: np.ndarray) -> tuple[float, float]:
    """Wall and CPU seconds for the exact integer sums over people, Gram matrix included, before any noise."""
    width = x.shape[1]
    layout, scaling = Layout(width, gram=True), Scaling(float(np.sqrt(width)), 65.0, 20.0)
    start = _now()
    with one_blas_thread():
        rows = (x[row : row + CHUNK] - 3.0 for row in range(0, x.shape[0], CHUNK))
        exact_sums(layout, scaling, rows, (age - scaling.age_mid) / scaling.age_half, None)
    return _since(start)


def peak(path: Path, rows: int) -> dict[str, float]:
    """Private peak memory of a process that does nothing but stream (file pages of the map not counted)."""
    code = (
        "import sys, json, numpy as np; sys.path.insert(0, sys.argv[3]);"
        "from moments_streaming import streamed; from pathlib import Path; p = Path(sys.argv[1]);"
        "lines = lambda: (line.split(':') for line in open('/proc/self/status'));"
        "read = lambda: {k: int(v.split()[0]) for k, v in lines() if 'kB' in v};"
        "before = read()['RssAnon'];"
        "streamed(np.load(p, mmap_mode='r'), np.load(p.with_suffix('.age.npy'), mmap_mode='r'), int(sys.argv[2]));"
        "import resource; after = read();"
        "print(json.dumps({'anon_mb': after['RssAnon'] / 1024, 'added_mb': (after['RssAnon'] - before) / 1024}))"
    )
    here = str(Path(__file__).resolve().parent)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(rows), here], capture_output=True, text=True, check=True
    )
    loaded: dict[str, float] = json.loads(done.stdout)
    return loaded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        make(path, args.people, args.features)
        x, age = np.load(path, mmap_mode="r"), np.load(path.with_suffix(".age.npy"))
        bare(x, 10_000)  # bring the file into the page cache: both sides read from memory
        times: dict[str, list[tuple[float, float]]] = {}
        for _ in range(args.repeats):  # in turn, so that other load on the machine meets all
            for chunk in CHUNKS:
                times.setdefault(f"bare X'X, {chunk} rows", []).append(bare(x, chunk))
            seconds, moments = streamed(x, age, args.people)
            times.setdefault("Moments.update", []).append(seconds)
            times.setdefault("exact_sums", []).append(private(x, age))
        start = time.perf_counter()
        moments.fit(n_components=25)
        fit = time.perf_counter() - start
        full, quarter = peak(path, args.people), peak(path, args.people // 4)
    print(f"people {args.people}, features {args.features}, one BLAS thread, {args.repeats} repetitions, seconds")
    for i, clock in enumerate(("wall", "CPU")):  # on a shared machine the CPU figures say more
        table = {name: (min(s[i] for s in got), statistics.median(s[i] for s in got)) for name, got in times.items()}
        best = [min(figures[j] for name, figures in table.items() if name.startswith("bare")) for j in (0, 1)]
        for name, (least, middle) in table.items():
            ratio = f"{least / best[0]:.2f} and {middle / best[1]:.2f}"
            print(f"{clock:4} {name:22} minimum {least:7.3f}   median {middle:7.3f}   ratio to the best bare {ratio}")
    print(f"Moments.fit, J = 25    {fit:7.3f} s")
    print(f"memory added, N        {full['added_mb']:7.1f} MB (process {full['anon_mb']:.0f} MB)")
    print(f"memory added, N / 4    {quarter['added_mb']:7.1f} MB")


if __name__ == "__main__":
    main()
