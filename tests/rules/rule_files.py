"""Copies of the packaged rule set to break or change."""

import shutil
from pathlib import Path

from sacro_deltab.base import resources


def copy_rules(folder: Path) -> Path:
    target = folder / "rules"
    shutil.copytree(resources.rules_dir(), target, ignore=shutil.ignore_patterns("layers"))  # they pin the packaged set
    return target


def change(folder: Path, name: str, old: str, new: str, count: int = 1) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new, count), encoding="utf-8")


def line_of(folder: Path, name: str, needle: str) -> int:
    lines = (folder / name).read_text(encoding="utf-8").split("\n")
    return next(i for i, line in enumerate(lines, 1) if needle in line)
