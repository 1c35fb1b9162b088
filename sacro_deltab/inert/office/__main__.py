"""The child: `python -P -m sacro_deltab.inert.office KIND DEPTH` reads a file from standard input and writes JSON."""

from __future__ import annotations

import json
import resource
import sys
import warnings

MEMORY, SECONDS = 2 * 1024**3, 20


def limit() -> None:
    """Memory and processor time; no file can be written, no core left behind."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Read one file of the kind named."""
    warnings.simplefilter("ignore")
    data = sys.stdin.buffer.read()
    limit()
    from .readers import read  # after the limits: the libraries load and work under them

    json.dump(read(sys.argv[1], data).to_json(), sys.stdout, ensure_ascii=True, allow_nan=False)


main()
