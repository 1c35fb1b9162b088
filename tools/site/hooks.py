"""What mkdocs asks while it builds: pages are made and executed; nothing may be fetched from elsewhere."""

from __future__ import annotations

import json
import logging
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import made
from executed import MARK, as_notebook, run_page, with_results

log = logging.getLogger("mkdocs.hooks.sacro_deltab")
FETCHED = re.compile(
    r"<(?:script|img|iframe)[^>]+src=[\"']?https?://|<link[^>]+stylesheet[^>]+href=[\"']?https?://|@import[^;]*https?://"
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and a notebook of each page that is executed."""
    for name, text in made.pages().items():
        if files.get_file_from_path(name) is None:
            files.append(File.generated(config, name, content=text))
    for page in list(files.documentation_pages()):
        text = page.content_string
        if text.startswith(MARK):
            notebook = json.dumps(as_notebook(text), ensure_ascii=False, indent=1)
            files.append(File.generated(config, page.src_uri.removesuffix(".md") + ".ipynb", content=notebook))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Run the page's code, and put what it showed under it."""
    if not markdown.startswith(MARK):
        return markdown
    log.info("running the code of %s", page.file.src_uri)
    with tempfile.TemporaryDirectory() as place:
        done = with_results(markdown, run_page(markdown, Path(place)), Path(place))
    notebook = page.file.src_uri.rpartition("/")[2].removesuffix(".md") + ".ipynb"
    return f"{done}\n\n[This page as a notebook]({notebook}): every result above was made when the site was built.\n"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme fetches a shim that searches from a disk need; it lies beside the pages instead."""
    up = "../" * page.url.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}pictures/iframe-worker.js")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The page for addresses that lead nowhere needs no search."""
    return re.sub(r'<script src="https://unpkg[^>]*></script>', "", output)


def on_post_build(config: Any) -> None:
    """The site stands alone: no script, style, font or picture is fetched from elsewhere."""
    site = Path(config["site_dir"])
    faults = [
        f"{path.relative_to(site)}: {found.group(0)[:100]}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css")
        for found in FETCHED.finditer(path.read_text(encoding="utf-8"))
    ]
    if faults:
        raise SystemExit("the site fetches from elsewhere:\n" + "\n".join(faults))
