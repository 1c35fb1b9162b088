"""The session as a small Workflow RO-Crate 1.0, packed beside the outputs when no registered workflow is named.

A Five Safes RO-Crate must name a Workflow RO-Crate as its main entity, a registered one or one in a folder of its own.
A session run by hand is in no registry, so the crate holds this one: the steps every session takes, and the versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FOLDER = "workflow/"
PROFILE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_MAIN = "session.txt"
_STEPS = """A session of sacro_deltab, run inside the Trusted Research Environment. Nobody wrote it down as a script.

1. The rule set and the ledger are fixed: {policy} {version}, sha256 {sha256}.
2. A brain-age model is trained on the cohort; weights that leave are trained with noise where the rules ask for it.
3. Each output asked for is measured; the rules decide, suppress and round, and what may not leave stays inside.
4. The session is finalised: outputs, records, evidence inside, and a statement over all of them.
5. The whole check is run again and what it finds is signed; the certificate beside the outputs says what it found.

Versions: {versions}
"""


def workflow_files(predicate: Mapping[str, Any], licence: str) -> dict[str, bytes]:
    """Files of the folder, by their paths in the crate.

    Parameters
    ----------
    predicate
        Of the certificate, in full.
    licence
        Conditions of the release, as the outer crate states them.
    """
    policy = predicate["policy"]
    versions = ", ".join(f"{name} {v}" for name, v in sorted(predicate["versions"].items()) if isinstance(v, str))
    steps = _STEPS.format(policy=policy["id"], version=policy["version"], sha256=policy["sha256"], versions=versions)
    metadata = {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [
            {
                "@id": "ro-crate-metadata.json",
                "@type": "CreativeWork",
                "about": {"@id": "./"},
                "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": PROFILE}],
            },
            {
                "@id": "./",
                "@type": "Dataset",
                "name": "Session of sacro_deltab",
                "description": "The steps of a session that was run by hand inside a Trusted Research Environment.",
                "datePublished": predicate["made"]["time"],
                "license": licence,
                "conformsTo": {"@id": PROFILE},
                "mainEntity": {"@id": _MAIN},
                "hasPart": [{"@id": _MAIN}],
            },
            {
                "@id": _MAIN,
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                "name": "Session of sacro_deltab",
                "encodingFormat": "text/plain",
                "contentSize": str(len(steps.encode())),
                "license": licence,
                "programmingLanguage": {"@id": "#sacro-deltab"},
            },
            {
                "@id": "#sacro-deltab",
                "@type": "ComputerLanguage",
                "name": "sacro_deltab",
                "version": predicate["versions"]["sacro_deltab"],
                "url": {"@id": "https://w3id.org/sacro-deltab/"},
            },
        ],
    }
    body = json.dumps(metadata, indent=2, ensure_ascii=False).encode("utf-8")
    return {f"{FOLDER}{_MAIN}": steps.encode("utf-8"), f"{FOLDER}ro-crate-metadata.json": body}
