"""A folder that somebody reviewed in SACRO-Viewer before it was certified: judged as the session left it.

What the viewer adds to results.json is taken away and held to the forms that `verify` holds it to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..base.findings import Effect, Finding, note
from ..build.results import dumped
from ..inert.snapshot import Snapshot

_ADDS = "SACRO-Viewer adds to results.json"


def before_the_viewer(value: Any, data: bytes) -> tuple[Any, bytes]:
    """results.json as the session wrote it, where the viewer may have rewritten it; else as it is."""
    from ..certificate.viewer import as_packed  # late: brings scipy, threadpoolctl

    plain = data.replace(b"\r\n", b"\n")
    try:
        if not plain.startswith(b'{\n  "') or plain != json.dumps(value, indent=2).encode("ascii"):
            return value, data
        before = as_packed(value, ())
        return before, dumped(before)
    except (KeyError, TypeError, ValueError, AttributeError):
        return value, data  # another form than that of a session: said where it is read


def viewer_findings(before: Mapping[str, Any], data: bytes, files: Mapping[str, Snapshot]) -> Iterator[Finding]:
    """What stands in results.json since: named where it follows from the files or is bounded, refused where not."""
    from ..certificate.viewer import read_results, record_digests  # late: brings scipy, threadpoolctl

    own = [{"name": uid} for uid, record in before["results"].items() if "sacro_deltab" in record["properties"]]
    made = {"results": record_digests(before, files.keys()), "outputs": own}
    reading = read_results(data, made, {name: snapshot.sha256 for name, snapshot in files.items()})
    if reading.changed:
        step = "Take the folder as the session left it."
        yield note("results-form", Effect.BLOCK, f"It is not what {_ADDS}: {reading.changed[0]}.", next_step=step)
    said = "; ".join(reading.reviewed) or "nothing but what follows from the files"
    yield note(
        "reviewed",
        Effect.REVIEW if reading.words else Effect.LABEL,
        f"It was judged without what {_ADDS}: {said}.",
        asks=("Do the remarks written in the viewer say anything of single people?",) if reading.words else (),
        next_step="Certify the folder, then review it." if reading.words else None,
    )
