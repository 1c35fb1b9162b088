"""Writing the folder a session leaves: everything into a temporary folder, checked, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.digests import sha256_hex
from ..base.errors import InputError, SacroDeltabError
from ..base.strict import DATA, read_object
from ..build.results import own_records, results_bytes
from ..certificate.seal import seal_folder
from ..judging.evidence import dump_evidence, statement_digest, statement_name
from ..tables.problem_json import problem_to_json
from .asked import asked_block
from .header import session_block
from .history import record_releases
from .recheck import recheck

if TYPE_CHECKING:
    from .core import SessionCore

ARTIFACTS = Path("acro_artifacts")
SUMMARIES = frozenset({"session_summary.json", "session_summary.csv"})


def write_folder(session: SessionCore, target: Path) -> Path:
    """See `SessionCore.finalise`.

    Order: re-check everything, write the temporary folder and force it to disk, close the spends in the ledger with
    the digests of the bytes, rename. A failure at any step removes the temporary folder and restores ACRO's records.
    """
    session.require_open()
    target = _free(target)
    if not session.live.results.results:
        raise InputError("the session has no output", next_step="Release something first.")
    own = [uid for uid in session.live.results.results if str(uid).endswith("DONT_RELEASE")]
    if own:  # what ACRO adds when it writes its folder: a habit from sessions without this one
        raise InputError(
            "acro.finalise() was called on this session already, and its folder has no evidence that a checker accepts",
            next_step=f"Call acro.remove_output({own[0]!r}), then session.finalise('a new folder') alone: it writes "
            "ACRO's records too.",
        )

    recheck(session)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as error:
        raise InputError(f"cannot write here ({error.strerror})", path=target.parent) from error
    inner = temporary / target.name
    try:
        with _acro_as_it_was(session):
            _write(session, inner)
        digests = {p.name: sha256_hex(p.read_bytes()) for p in inner.iterdir() if p.is_file()}
        _sync(inner)
        _close_spends(session, digests)
        inner.rename(target)
    except OSError as error:
        raise InputError(
            f"the folder could not be written ({error.strerror or type(error).__name__})",
            path=target,
            next_step="Free some space and call finalise again; nothing was left behind.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _free(target: Path) -> Path:
    """The absolute path of a folder that can be made."""
    try:
        target = target.expanduser().absolute()
        if target.exists() or target.is_symlink():
            raise InputError(
                "the output folder exists", path=target, next_step="Choose another name; nothing was written."
            )
        if not target.parent.is_dir():
            raise InputError("there is no such place", path=target.parent, next_step="Make the folder above it first.")
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError("this cannot be the name of a folder", next_step="For example finalise('outputs').") from error
    return target


def _write(session: SessionCore, folder: Path) -> None:
    _finalise_acro(session, folder)
    evidence = build_evidence(session)
    inside = folder / "inside"
    inside.mkdir(mode=0o700)
    documents = {entry.name: entry.document for entry in session.entries}
    own = own_records(evidence, documents)
    others = _acro_records(folder, own)
    for uid in [uid for uid in others if _is_summary(others[uid])]:
        for file in others.pop(uid)["files"]:  # ACRO's overview of the session is for the checker: it stays inside
            (folder / file["name"]).rename(inside / file["name"])
            (folder / "checksums" / f"{file['name']}.txt").unlink(missing_ok=True)
    (folder / "results.json").write_bytes(results_bytes(evidence, own, others))
    digest = sha256_hex((folder / "results.json").read_bytes())
    (folder / "checksums" / "results.json.txt").write_text(digest, encoding="ascii")
    (inside / "evidence.json").write_text(dump_evidence(evidence), encoding="utf-8")
    if session.attack_report is not None:
        shutil.copyfile(session.attack_report, inside / "attack.json")
    if session.package_report is not None:
        shutil.copyfile(session.package_report, inside / session.package_report.name)
    _statement(session, folder, evidence)


def _is_summary(record: Mapping[str, Any]) -> bool:
    return all(str(file["name"]) in SUMMARIES for file in record["files"])


def _finalise_acro(session: SessionCore, folder: Path) -> None:
    """ACRO's own `finalise`, with its failures in words and its shared artifacts folder put back for other sessions."""
    try:
        with _artifacts_kept():
            session.live.finalise(str(folder), "json")
    except OSError:
        raise
    except SacroDeltabError:
        raise
    except Exception as error:
        raise InputError(
            f"ACRO could not write the session ({type(error).__name__}: {str(error)[:200]})",
            next_step="Remove the record that holds an array, a set or another value that is not plain JSON.",
        ) from error
    if not (folder / "results.json").is_file():
        raise InputError("ACRO wrote no results.json", path=folder)


def _acro_records(folder: Path, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Records that are not ours; refused where one breaks the viewer: no files, a NaN, names twice, a file gone."""
    try:
        data = read_object(folder / "results.json", bounds=DATA)
    except InputError:
        raise InputError(
            "a record of the session holds NaN or infinity, on which the viewer stops",
            next_step="Remove that record with acro.remove_output and add it again without it.",
        ) from None
    seen: dict[str, str] = {}
    for uid, record in data["results"].items():
        if not record["files"]:
            raise InputError(
                f"record {uid!r} has no file any more: the viewer would drop every status of the session",
                next_step=f"Restore its file, or call acro.remove_output({uid!r}).",
            )
        for file in record["files"]:
            name = str(file["name"])
            if name.lower() in seen:
                raise InputError(
                    f"records {seen[name.lower()]!r} and {uid!r} have a file of the same name",
                    next_step="Rename one of the files and add it again.",
                )
            seen[name.lower()] = uid
            if Path(name).name != name or not (folder / name).is_file():
                raise InputError(f"record {uid!r} names a file that is not in the folder", place=name)
    return {str(uid): record for uid, record in data["results"].items() if uid not in own}


def _statement(session: SessionCore, folder: Path, evidence: dict[str, Any]) -> None:
    """The unsigned statement over the finished folder; see `certificate.seal` for why this comes last."""

    seal_folder(folder, evidence=evidence, ruleset=session.ruleset, certificate_id=session.id, waivers=session.waivers)


def build_evidence(session: SessionCore) -> dict[str, Any]:
    """Content of `inside/evidence.json`."""
    linked = session.state.linked
    names: list[str | None] = [*linked.variables()] or [None]
    problems = [problem_to_json(p) for v in names if (p := linked.problem(v, fixed=False)) is not None]
    outputs = [entry.to_evidence() for entry in session.entries]
    return {
        "schema": "sacro_deltab/evidence/1",
        "session": session_block(session, datetime.now(UTC).isoformat(timespec="seconds")),
        "outputs": outputs,
        "free_bits": sum(entry["free_bits"] for entry in outputs),
        "tables": problems[0] if problems else None,
        "tables_more": problems[1:],
        "asked": asked_block(session),
        "n_known": sorted(session.state.n_known),
        "privacy": session.budget.totals_json({s for entry in session.entries for s in entry.spends}),
        "repairs": list(session.repairs),
        "not_checked": list(dict.fromkeys(session.not_checked)),
    }


def _close_spends(session: SessionCore, digests: dict[str, str]) -> None:
    """Tell the ledger which bytes each spend paid for, then remember what leaves."""

    for spend in sorted({s for entry in session.entries for s in entry.spends}):
        files = {
            name: digests[name]
            for entry in session.entries
            if spend in entry.spends
            for name in entry.files
            if name in digests
        }
        files |= {
            statement_name(entry.name): statement_digest(entry.privacy)
            for entry in session.entries
            if spend in entry.spends and entry.privacy is not None
        }
        session.budget.ledger.close_spend(spend, files, who=session.budget.who)
    record_releases(session, session.entries, digests)


@contextlib.contextmanager
def _acro_as_it_was(session: SessionCore) -> Iterator[None]:
    """ACRO adds its session summary, and we the certificate, while writing: neither stays in the live session."""
    results = session.live.results
    kept, number = dict(results.results), results.output_id
    try:
        yield
    finally:
        results.results = kept
        results.output_id = number


@contextlib.contextmanager
def _artifacts_kept() -> Iterator[None]:
    """`finalise` deletes `./acro_artifacts`, which every session of the process shares: put it back as it was."""
    if not ARTIFACTS.is_dir():
        yield
        return
    with tempfile.TemporaryDirectory() as spare:
        copy = Path(spare) / "artifacts"
        shutil.copytree(ARTIFACTS, copy)
        try:
            yield
        finally:
            if not ARTIFACTS.exists():
                shutil.copytree(copy, ARTIFACTS)


def _sync(folder: Path) -> None:
    """Force every byte to disk before the folder gets its name."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
