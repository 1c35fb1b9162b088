"""A certified folder as a Five Safes RO-Crate 0.4: RO-Crate 1.2 metadata in a BagIt 1.0 bag, in one zip, offline.

The disclosure check that our software made is a completed AssessAction with the software as its agent; the human's is
there too and stays potential. When the certificate says fail, or a checker turned a file down, the crate has no output.
A TRE strips AssessActions that a user submits, so this is evidence for its own check and never a sign-off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..base.errors import CertificateError, InputError
from ..base.opening import read_member
from ..base.verdicts import NOTHING
from ..build.results import dumped
from ..ledger.trust import Trust, load_trust
from .bagit import write_bag
from .layout import CONFIG, ENVELOPE, ENVELOPES, RESULTS, STATEMENT, Inventory, scan
from .policy import draft_mark
from .release import packed_results
from .review import load_record, read_submissions, status
from .session_workflow import FOLDER, workflow_files
from .session_workflow import PROFILE as WORKFLOW_PROFILE
from .verify import VerifyResult, verify_path

PROFILE = "https://w3id.org/5s-crate/0.4"
DISCLOSURE = "https://w3id.org/shp#DisclosureCheck"
COMPLETED, FAILED, POTENTIAL = (f"http://schema.org/{s}ActionStatus" for s in ("Completed", "Failed", "Potential"))
_FORMATS = {".csv": "text/csv", ".json": "application/json", ".png": "image/png"}


@dataclass(frozen=True)
class Names:
    """What a crate says beyond the certificate: project, person, TRE and workflow, as the user names them."""

    project: str = "Project not named"
    agent: str = "Researcher not named"
    tre: str = "Trusted Research Environment not named"
    workflow: str | None = None  # permalink of a Workflow RO-Crate
    licence: str = "Conditions of the Trusted Research Environment apply"


@dataclass(frozen=True)
class Crate:
    """What was written. outputs: names of the packed files (empty when disclosure failed)."""

    path: Path
    urn: str
    verdict: str
    outputs: tuple[str, ...]


def write_crate(
    folder: Path, trust: Trust | Path, target: Path, names: Names | None = None, *, now: datetime | None = None
) -> Crate:
    """Verify `folder` and package it.

    Raises
    ------
    CertificateError
        The folder does not verify: nothing is written.
    InputError
        The extra is not installed, or `target` exists or lies in the folder.
    """
    if target.exists() or target.resolve().is_relative_to(folder.resolve()):
        raise InputError("the crate's file exists, or lies in the folder it packages.", path=target)
    moment = now or datetime.now(UTC)
    result = verify_path(folder, trust, at=moment)
    if not result.authentic or result.statement is None:
        raise CertificateError(f"the folder is not packaged: {result.conclusion()}.", path=folder)
    predicate = result.statement["predicate"]
    inventory = scan(folder)
    turned_down = _turned_down(inventory, predicate, trust, moment)
    failed = predicate["verdict"] in ("fail", NOTHING) or bool(turned_down)
    packed = [] if failed else _outputs(result)
    payload = {f"outputs/{name}": read_member(inventory.root[name]) for name in packed}
    if RESULTS in packed:
        payload[f"outputs/{RESULTS}"] = dumped(packed_results(inventory, predicate))
    where = "disclosure" if failed else "outputs"
    payload |= {f"{where}/{name}": read_member(inventory.root[name]) for name in (STATEMENT, ENVELOPE)}
    urn = f"urn:uuid:{uuid4()}"
    names = names or Names()
    metadata = _metadata(predicate, payload, names, packed, turned_down)
    payload |= {} if names.workflow else workflow_files(predicate, names.licence)
    info = {"External-Identifier": urn, "Bagging-Date": datetime.now(UTC).date().isoformat()}
    write_bag(target, f"crate-{urn[-12:]}", {**payload, "ro-crate-metadata.json": metadata}, info)
    return Crate(target, urn, predicate["verdict"], tuple(packed))


def _turned_down(
    inventory: Inventory, predicate: Mapping[str, Any], trust: Trust | Path, moment: datetime
) -> list[str]:
    """Files that a checker refused or returned: a disclosure check by people has then failed."""

    answers = predicate["people"]["answers"]
    found = {a["file"] for a in answers if a["decision"] != "accept"}
    if inventory.inside is not None:
        known = load_trust(trust) if isinstance(trust, Path) else trust
        submissions, _ = read_submissions(inventory, predicate["certificate_id"], known, moment)
        states = status(load_record(inventory.folder), submissions)
        found |= {s.file for s in states if {"refuse", "return"} & set(s.votes.values())}
    return sorted(found)


def _outputs(result: VerifyResult) -> list[str]:
    """Files that leave: as certified, not kept inside; with results.json, so that the crate's outputs verify."""
    assert result.statement is not None
    kept = set(result.statement["predicate"]["kept_inside"])
    return [n for n in result.files if n not in kept and n not in (CONFIG, STATEMENT, *ENVELOPES)]


def _metadata(
    predicate: Mapping[str, Any],
    payload: Mapping[str, bytes],
    names: Names,
    packed: Sequence[str],
    turned_down: Sequence[str],
) -> bytes:
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.model.data_entity import DataEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise InputError("packaging needs the extra `crate`.", next_step="pip install 'sacro-deltab[crate]'.") from None
    crate = ROCrate(version="1.2")

    def add(identifier: str, **properties: Any) -> Any:
        return crate.add(ContextEntity(crate, identifier, properties=properties))

    with tempfile.TemporaryDirectory() as scratch:
        about = {name: o["title"] or o["type"] for o in predicate["outputs"] for name in o["files"]}
        files = {path: _add_file(crate, Path(scratch), path, body, about) for path, body in payload.items()}
        entities = _people(add, predicate, names)
        known = WORKFLOW_PROFILE
        about_workflow = {
            "@type": "Dataset",
            "name": "Session that made the outputs, run by hand inside the TRE",
            "conformsTo": add(known, **{"@type": "Profile", "name": "Workflow RO-Crate profile"}),
        }
        workflow = DataEntity(crate, names.workflow or FOLDER, properties=about_workflow)
        entities["workflow"] = crate.add(workflow)
        actions = _actions(add, predicate, entities, [files[f"outputs/{n}"] for n in packed], bool(turned_down))
        crate.name = f"Release {predicate['certificate_id']}"
        crate.description = (
            f"Outputs of a brain-age session, certified {predicate['verdict']} under {predicate['policy']['id']} "
            f"{predicate['policy']['version']}{draft_mark(predicate['policy'])}. "
            "The certificate is evidence; a person releases."
        )
        crate.license = entities["licence"]
        crate.publisher = entities["tre"]
        crate.root_dataset["conformsTo"] = entities["profile"]
        crate.root_dataset["sourceOrganization"] = entities["project"]
        crate.root_dataset["mainEntity"] = entities["workflow"]
        crate.root_dataset["mentions"] = actions
        crate.root_dataset["datePublished"] = _now()
        crate.write(Path(scratch) / "crate")
        return read_member(Path(scratch) / "crate" / "ro-crate-metadata.json")


def _add_file(crate: Any, scratch: Path, path: str, body: bytes, about: Mapping[str, str]) -> Any:
    source = scratch / "files" / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(body)
    name = path.rsplit("/", 1)[-1]
    description = about.get(name, "Part of the certified record of the release")
    properties = {"name": name, "description": description, "contentSize": str(len(body))}
    if kind := _FORMATS.get(Path(name).suffix):
        properties["encodingFormat"] = kind
    return crate.add_file(source, dest_path=path, properties=properties, validate_url=False)


def _people(add: Any, predicate: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Contextual entities that the actions refer to."""
    tre = add("#tre", **{"@type": "Organization", "name": names.tre})
    project = add("#project", **{"@type": "Project", "name": names.project})
    return {
        "tre": tre,
        "project": project,
        "agent": add("#researcher", **{"@type": "Person", "name": names.agent, "memberOf": project}),
        "checkers": add("#output-checkers", **{"@type": "Organization", "name": f"Output checkers of {names.tre}"}),
        "software": add(
            "#sacro-deltab",
            **{
                "@type": "SoftwareApplication",
                "name": "sacro_deltab",
                "url": "https://w3id.org/sacro-deltab/",
                "version": predicate["versions"]["sacro_deltab"],
                "softwareVersion": predicate["versions"]["sacro_deltab"],
                "provider": tre,
            },
        ),
        "policy": add(
            f"urn:sacro-deltab:policy:{predicate['policy']['sha256']}",
            **{"@type": "CreativeWork", "name": f"{predicate['policy']['id']} {predicate['policy']['version']}"},
        ),
        "licence": add("#conditions", **{"@type": "CreativeWork", "name": names.licence, "description": names.licence}),
        "profile": add(PROFILE, **{"@type": "Profile", "name": "Five Safes RO-Crate profile"}),
        "sha512": add(
            "https://www.iana.org/assignments/named-information#sha-512",
            **{"@type": "DefinedTerm", "name": "sha-512 algorithm"},
        ),
    }


def _actions(
    add: Any, predicate: Mapping[str, Any], e: Mapping[str, Any], outputs: Sequence[Any], turned_down: bool
) -> list[Any]:
    failed = predicate["verdict"] in ("fail", NOTHING)
    made = predicate["made"]
    root = {"@id": "./"}
    found = {"pass": "meets the policy", "review": "a person must decide", "fail": "failed"}.get(
        predicate["verdict"], NOTHING
    )
    actions = [] if failed or turned_down else [_execution(add, predicate, e, outputs)]
    actions.append(
        add(
            f"#disclosure-{uuid4()}",
            **{
                "@type": "AssessAction",
                "additionalType": {"@id": DISCLOSURE},
                "name": f"Automated disclosure check: {found}",
                "endTime": made["time"],
                "object": root,
                "instrument": e["policy"],
                "agent": e["software"],
                "actionStatus": FAILED if failed else COMPLETED,
            },
        )
    )
    actions.append(
        add(
            f"#disclosure-{uuid4()}",
            **{
                "@type": "AssessAction",
                "additionalType": {"@id": DISCLOSURE},
                "name": f"Disclosure check by output checkers: {'not passed so far' if turned_down else 'pending'}",
                "object": root,
                "agent": e["checkers"],
                "actionStatus": POTENTIAL,
            },
        )
    )
    actions.append(
        add(
            f"#bagit-{uuid4()}",
            **{
                "@type": "UpdateAction",
                "additionalType": {"@id": "https://w3id.org/shp#GenerateCheckValue"},
                "name": "BagIt manifests written",
                "startTime": _now(),
                "object": root,
                "instrument": e["sha512"],
                "agent": e["software"],
                "actionStatus": COMPLETED,
            },
        )
    )
    return actions


def _execution(add: Any, predicate: Mapping[str, Any], e: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
    times = {
        "startTime": predicate["made"]["session_started"],
        "endTime": predicate["made"]["session_finished"],
    }
    return add(
        f"#session-{predicate['made']['session'] or uuid4()}",
        **{
            "@type": "CreateAction",
            "name": "Session that made the outputs",
            "actionStatus": COMPLETED,
            "agent": e["agent"],
            "instrument": e["workflow"],
            "result": list(outputs),
            **{k: v for k, v in times.items() if v},
        },
    )


def _now() -> str:
    return datetime.now(UTC).replace(microsecond=0).isoformat()
