"""What a frozen TRE image needs to know of the package: its parts, their licences, exact versions with digests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _needed() -> set[str]:
    return {_plain(re.split(r"[\[<>=!~ ]", text, maxsplit=1)[0]) for text in PROJECT["project"]["dependencies"]}


def test_the_bill_of_materials_lists_every_dependency_with_its_licence() -> None:
    made = subprocess.run([sys.executable, str(ROOT / "tools" / "sbom.py")], capture_output=True, text=True, check=True)
    bill = json.loads(made.stdout)
    listed = {part["name"]: part["licenses"][0]["license"]["name"] for part in bill["components"]}
    assert bill["bomFormat"] == "CycloneDX" and len(listed) > 20
    texts = [text for text in requires("sacro-deltab") or () if "extra ==" not in text]
    installed = {_plain(re.split(r"[\[<>=!~; ]", text, maxsplit=1)[0]) for text in texts}
    assert not [name for name in installed if listed.get(name, "not stated") == "not stated"], listed


def test_constraints_have_a_digest_for_each_dependency_and_agree() -> None:
    plain = dict(line.split("==", 1) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    versions = {_plain(name): version.split()[0] for name, version in plain.items()}
    hashed = (ROOT / "constraints-hashed.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([\w.-]+)==(\S+)(?: --hash=sha256:[0-9a-f]{64}){1,3}$", hashed, re.MULTILINE))
    assert _needed() <= {_plain(name) for name in found}
    assert {_plain(n): v for n, v in found.items()}.items() <= versions.items()


def test_the_wheel_brings_rules_schemas_and_pages() -> None:
    brought = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert set(brought) >= {"rules", "schemas", "docs"} and all((ROOT / name).is_dir() for name in brought)
