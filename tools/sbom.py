"""What an installed sacro-deltab consists of: a CycloneDX list of packages with versions and licences.

    python tools/sbom.py [--extras crate,parquet] > dist/sbom.json
    python tools/sbom.py --licences            # one line a package

Read from the environment's own metadata, without a network: what stands there is what runs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

NAME = "sacro-deltab"


def closure(extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """Every package that the named one needs here, by normalised name."""
    found: dict[str, Distribution] = {}
    todo = [(NAME, frozenset(extras))]
    while todo:
        name, wanted = todo.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            continue  # an optional dependency of a dependency
        for text in found[key].requires or ():
            need = Requirement(text)
            if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in (*wanted, "")):
                todo.append((need.name, frozenset(need.extras)))
    return found


def licence(one: Distribution) -> str:
    """The licence that a package states: its expression, else its classifiers, else its text's first line."""
    meta = one.metadata
    said = [c.rsplit(" :: ", 1)[-1] for c in meta.get_all("Classifier") or () if c.startswith("License ::")]
    text = meta.get("License-Expression") or "; ".join(said) or (meta.get("License") or "").strip().splitlines()[:1]
    stated = (text if isinstance(text, str) else "".join(text)) or _first_line(one)
    return stated[:80] or "not stated"


def _first_line(one: Distribution) -> str:
    """Of the licence's text, where the metadata only point to it."""
    for file in one.files or ():
        if re.match(r"(?i)licen[cs]e", file.name):
            lines = file.locate().read_text(encoding="utf-8", errors="replace").split("\n")
            return next((line.strip() for line in lines if line.strip()), "")
    return ""


def bill(packages: dict[str, Distribution]) -> dict[str, object]:
    """CycloneDX 1.5, sorted, without a date: the same environment gives the same bytes."""
    components = [
        {"type": "library", "name": name, "version": one.version, "purl": f"pkg:pypi/{name}@{one.version}",
         "licenses": [{"license": {"name": licence(one)}}]}
        for name, one in sorted(packages.items()) if name != NAME
    ]  # fmt: skip
    own = packages[NAME]
    main = {"type": "application", "name": NAME, "version": own.version, "purl": f"pkg:pypi/{NAME}@{own.version}"}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": main},
            "components": components}  # fmt: skip


def main() -> None:
    """Write the bill, or the licences, to stdout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", default="", help="extras to include, separated by commas")
    parser.add_argument("--licences", action="store_true", help="one line a package")
    options = parser.parse_args()
    packages = closure(tuple(e for e in options.extras.split(",") if e))
    if options.licences:
        sys.stdout.writelines(f"{name} {one.version}: {licence(one)}\n" for name, one in sorted(packages.items()))
    else:
        sys.stdout.write(json.dumps(bill(packages), indent=1) + "\n")


if __name__ == "__main__":
    main()
