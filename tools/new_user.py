"""A new user's way, played: from a clone to the first output that a checker has approved; prints commands and seconds.

    python tools/new_user.py [REPOSITORY]

The two commands are `git clone` and `make demo` (which sets itself up, and needs a package index). The rest is what the
viewer does when the checker opens the folder and approves: every file's checksum is compared, one output that passes is
approved, and the zip that leaves is made of it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 180


def approve(folder: Path, out: Path) -> str:
    """Open a session folder as SACRO-Viewer does, approve the first output that passes, and pack it."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"]
    name, record = next((n, r) for n, r in results.items() if r["status"] == "pass")
    with zipfile.ZipFile(out, "w") as packed:
        for item in record["files"]:
            data = (folder / item["name"]).read_bytes()
            said = (folder / "checksums" / f"{item['name']}.txt").read_text(encoding="utf-8")
            if hashlib.sha256(data).hexdigest() != said:
                raise SystemExit(f"the checksum of {item['name']} does not hold")
            packed.writestr(item["name"], data)
    return name


def main(repository: str) -> None:
    """Play it in an empty folder."""
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        commands = (["git", "clone", "--quiet", repository, "sacro_deltab"], ["make", "-C", "sacro_deltab", "demo"])
        for command in commands:
            print("$", " ".join(command), flush=True)
            subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
        name = approve(Path(place) / "sacro_deltab" / "outputs", Path(place) / "approved.zip")
        took = time.monotonic() - began
        print(f"approved: {name}; {len(commands)} commands, {took:.0f} s (asked: under {SECONDS})")
    if took >= SECONDS:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(ROOT))
