"""Signing and verifying against plain `sha256sum` of the same files, as ratios.

    python benchmarks/certificate_vs_sha256sum.py [--files 100] [--kilobytes 100]

Verification reads each file once and computes SHA-256 and SHA-512; `sha256sum` computes one digest. `sha256sum` is
timed as a process of its own, the rest inside this one; Python's start-up is stated apart. Best of several runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sacro_deltab.certificate.certify import Request, certify_folder
from sacro_deltab.certificate.keys import keygen
from sacro_deltab.certificate.policy import Policy
from sacro_deltab.certificate.seal import new_certificate_id, seal_folder
from sacro_deltab.certificate.verify import verify_path
from sacro_deltab.judging.report import Report
from sacro_deltab.ledger.trust import load_trust

POLICY = Policy("deltab-disclosure", "2026.1", "ab" * 32, parameters={"min_n": 20})


def make_folder(folder: Path, files: int, kilobytes: int) -> None:
    """A sealed folder of random bytes; names and records as a session has them."""
    folder.mkdir()
    names = [f"table_{i:04d}.csv" for i in range(files)]
    for name in names:
        (folder / name).write_bytes(os.urandom(kilobytes * 1024))
    identity = new_certificate_id()
    listed = [*names, "certificate.json", "certificate.dsse.json"]
    records = {
        name: {"uid": name, "status": "review", "files": [{"name": name}], "comments": [], "properties": {}}
        for name in listed
    }
    (folder / "results.json").write_text(json.dumps({"version": "1.0.2", "tool": {}, "results": records}, indent=4))
    (folder / "config.json").write_text("{}")
    (folder / "checksums").mkdir()
    for name in listed:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / "checksums" / f"{name}.txt").write_text(digest)
    (folder / "inside").mkdir()
    (folder / "inside" / "evidence.json").write_text("{}")
    seal_folder(folder, evidence={"outputs": []}, ruleset=POLICY, certificate_id=identity)


def best(what: Callable[[], object], runs: int) -> float:
    """Shortest of several wall-clock times, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        what()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--kilobytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        folder = place / "outputs"
        make_folder(folder, options.files, options.kilobytes)
        key = keygen(place / "tool.pem", "tool", place / "trust.json", b"benchmark")
        trust = load_trust(place / "trust.json")
        report = Report({})
        request = Request(trust, POLICY, lambda _: report, now=datetime.now(UTC))
        names = [str(p) for p in folder.rglob("*") if p.is_file()]
        plain = best(lambda: subprocess.run(["sha256sum", *names], check=True, capture_output=True), options.runs)
        process = best(lambda: subprocess.run(["sha256sum", names[0]], check=True, capture_output=True), options.runs)
        signing = best(lambda: certify_folder(folder, key, request), 3)
        verifying = best(lambda: verify_path(folder, trust), options.runs)
        assert verify_path(folder, trust).ok
        command = ["verify", str(folder), "--trust", str(place / "trust.json")]
        code = [sys.executable, "-c", "from sacro_deltab.cli import main; main()", *command]
        whole = best(lambda: subprocess.run(code, check=True, capture_output=True), 3)
    size = options.files * options.kilobytes / 1024
    print(f"{options.files} files, {size:.1f} MB")
    print(f"sha256sum of the same files   {plain * 1000:8.1f} ms (of which starting it {process * 1000:.1f} ms)")
    print(f"verify                        {verifying * 1000:8.1f} ms, ratio {verifying / plain:.1f}")
    print(f"state, sign and write         {signing * 1000:8.1f} ms, ratio {signing / plain:.1f} (without the check)")
    print(f"verify with Python's start-up {whole * 1000:8.1f} ms, ratio {whole / plain:.1f}")


if __name__ == "__main__":
    main()
