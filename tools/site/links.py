"""Every link of the pages and of README leads somewhere: files, headings, pictures, and pages of the published site."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Documentation"]
MADE = frozenset({"index.md", "why.md", "commands.md", "api.md"})  # pages that the site makes while it is built
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the generator and the usual hosts make them."""
    found: set[str] = set(re.findall(r'(?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", words.lower()).strip())
        found.add(name if name not in found else f"{name}_1")
    return found


def links(text: str) -> Iterator[str]:
    """Targets of links and pictures, code left out."""
    yield from _LINK.findall(_CODE.sub("", text))


def dead(pages: Iterable[Path]) -> list[str]:
    """`page: target` of every link that leads nowhere."""
    faults = []
    for page in pages:
        for target in links(page.read_text(encoding="utf-8")):
            if not _leads(page, target):
                faults.append(f"{page.relative_to(ROOT)}: {target}")
    return faults


def _leads(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    if target.startswith(SITE):
        path = path.removeprefix(SITE)
        place = DOCS / (path.removesuffix(".html") + ".md" if path.endswith(".html") else path or "index.html")
    elif re.match(r"[a-z]+:", target):
        return target.startswith(("https://", "mailto:"))  # another site's: nothing here fetches it
    else:
        place = (page.parent / path).resolve() if path else page
    if place.is_relative_to(DOCS) and place.relative_to(DOCS).as_posix() in {*MADE, "index.html"}:
        return True  # the generator holds their anchors (`make docs`)
    if not place.is_file():
        return False
    return not anchor or anchor in anchors(place.read_text(encoding="utf-8"))
