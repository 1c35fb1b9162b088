"""The safety nets: lines without which a fault, or somebody's edit, would go out. Each is switched off in turn.

`python tests/nets/nets.py` (`make nets`) breaks one line at a time in a copy of the package and runs the end-to-end
tests that must notice. A net that can be cut unnoticed is either needless or untested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Net:
    """One line, what stands there when it is off, and the tests that must then fail."""

    name: str
    module: str
    line: str
    off: str
    tests: str


SECOND = "tests/session/test_second_nets.py"
VERIFY = "tests/certificate/test_cert_verify.py"
FOLDER = "tests/check/test_session_folder.py"
BASE = "tests/base/test_base_files.py"
STRICT = "tests/base/test_base_strict.py"
NETS = (
    Net("what fails after rounding blocks", "judging/judge.py", "if problems and (leaves or unmarked):",
        "if problems and unmarked:", SECOND),
    Net("the released document follows its schema", "judging/judge.py", "        check_document(released)",
        "        pass", SECOND),
    Net("a draft is valid before it is a record", "session/recording.py", "        validate_draft(draft, taken=taken)",
        "        pass", SECOND),
    Net("staged files of a failed record go", "session/recording.py", "            path.unlink(missing_ok=True)",
        "            pass", SECOND),
    Net("a failed record is dropped from the journal", "session/recording.py", "        if journalled:",
        "        if False:", SECOND),
    Net("only ordinary files", "base/opening.py", "if not stat.S_ISREG(mode):", "if False:", BASE),
    Net("links are not followed in a folder", "base/opening.py", '(0 if links else getattr(os, "O_NOFOLLOW", 0))', "0",
        BASE),
    Net("a file that changes is refused", "base/opening.py", "left != 1 or _identity(before) != _identity(after)",
        "False", BASE),
    Net("a half-written file goes", "base/writing.py", "        part.unlink(missing_ok=True)", "        pass", BASE),
    Net("no key twice", "base/strict.py", "if len(out) != len(items):", "if False:", STRICT),
    Net("no lone surrogate", "base/strict.py", "if _SURROGATE.search(text):", "if False:", STRICT),
    Net("bounded depth", "base/strict.py", "_check_depth(value, bounds.depth)", "pass", STRICT),
    Net("canonical bytes only", "base/canonical.py", "if canonical_json(value) != data:", "if False:", STRICT),
    Net("signatures hold", "certificate/envelope.py",
        "elif not good_signature(envelope, keyid, value, key.public_pem):",
        "elif False:", VERIFY),
    Net("a role's threshold is met", "certificate/envelope.py",
        "        if have < least:", "        if False:", VERIFY),
    Net("a key counts within its dates", "certificate/envelope.py",
        "elif late := [m for m in moments if not key.valid_at(m)]:", "elif late := []:", VERIFY),
    Net("the ledger's totals are worked out again", "ledger/verifying.py",
        "if self._state != entry.state:", "if False:",
        "tests/ledger/test_ledger_tamper.py"),
    Net("entries are signed", "ledger/verifying.py", "elif not checker.holds(entry.digest, entry.signature):",
        "elif False:", "tests/ledger/test_ledger_tamper.py"),
    Net("released cells are those of the entry", "ledger/verifying.py",
        'if stored.pop(entry.seq, none) != _body(entry.body).get("cells_sha256"):',
        "if stored.pop(entry.seq, none) is None:",
        "tests/ledger/test_ledger_tamper.py"),
    Net("checksums are those of the files", "check/structure.py",
        "if written != snapshot.sha256.encode():", "if False:", FOLDER),
)  # fmt: skip


def noticed(net: Net) -> tuple[bool, str]:
    """Whether the net's tests fail without it, and the last line they printed."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        shutil.copytree(ROOT / "sacro_deltab", copy / "sacro_deltab", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("rules", "schemas"):
            (copy / name).symlink_to(ROOT / name)
        target = copy / "sacro_deltab" / net.module
        text = target.read_text(encoding="utf-8")
        if text.count(net.line) < 1:
            return False, "the line is not there any more: the list of nets is out of date"
        target.write_text(text.replace(net.line, net.off), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not soak", str(ROOT / net.tests)]
        done = subprocess.run(
            [*command, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")],
            cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.returncode == 1, (done.stdout.strip().splitlines() or ["nothing printed"])[-1]


def main() -> int:
    """Every net in turn; 0 when each is noticed."""
    missed = 0
    for net in NETS:
        found, last = noticed(net)
        missed += not found
        sys.stdout.write(f"{'noticed' if found else 'NOT NOTICED':12} {net.name} ({net.module}): {last}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(NETS) - missed} of {len(NETS)} nets are noticed when they are off\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
