"""The main job in one go: read, train, judge, write. Used by `sacro-deltab run` and `demo`."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, RefusedError
from ..check import check_paths
from ..cohort import Cohort
from ..run.plan import Plan, Say, check_place, read, set_aside
from ..run.releasing import note_repairs, release_all
from ..session.journal import Journal

if TYPE_CHECKING:
    from ..session.acro_session import DeltabSession


@dataclass(frozen=True)
class Outcome:
    """What a run left: the finalised session, the folder, the checker's report on it, and what was impossible."""

    session: DeltabSession
    folder: Path
    report: Any
    impossible: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """That of `check`."""
        return int(self.report.exit_code)


def run(plan: Plan, say: Say) -> Outcome:
    """Do the whole job. On any error nothing is left at `plan.out`.

    Raises
    ------
    SacroDeltabError
        With exit code 1 or 2; the budget spent until then stays spent.
    """
    check_place(plan)
    if not plan.out.absolute().parent.is_dir():
        raise InputError("there is no such place", path=plan.out.absolute().parent, next_step="Make it first.")
    say("reading the cohort")
    cohort = read(plan)
    return run_cohort(plan, cohort, say)


def run_cohort(plan: Plan, cohort: Cohort, say: Say) -> Outcome:
    """The job on a cohort already read."""
    return carried_out(plan, cohort, say, lambda session: release_all(session, plan, cohort, say))


def carried_out(plan: Plan, cohort: Cohort, say: Say, release: Callable[[DeltabSession], Iterable[str]]) -> Outcome:
    """Open a session, release into it, write the folder, check it as a checker would.

    `release` asks for the outputs and says what was impossible.
    """

    with working_folder(plan, say) as journal:
        session = started(plan, cohort, journal, say)
        impossible = list(release(session))
        if not session.entries:
            raise RefusedError(
                f"there is nothing that could be asked to leave: {'; '.join(impossible)}",
                next_step="Ask for something else, or see `run --dry-run`.",
            )
        with contextlib.suppress(InputError):  # too few people, or nothing without noise
            say("attacking all that leaves (stays inside)")
            session.attack_package()
        say("writing the folder")
        session.not_checked += [text for text in impossible if text not in session.not_checked]
        set_aside(plan)
        folder = session.finalise(plan.out)
        say("checking the folder as a checker would")
        ledger = plan.ledger if session.budget.pinned else None
        report = check_paths([folder], ruleset=session.ruleset, trust=plan.trust, ledger=ledger)
        return Outcome(session, folder, report, tuple(impossible))


def judged(plan: Plan, cohort: Cohort, journal: Path, say: Say) -> tuple[DeltabSession, list[str]]:
    """A session with everything that the plan asks for judged, and what was impossible."""
    session = started(plan, cohort, journal, say)
    return session, list(release_all(session, plan, cohort, say))


def started(plan: Plan, cohort: Cohort, journal: Path, say: Say) -> DeltabSession:
    from ..session.acro_session import DeltabSession  # late: brings sqlalchemy

    say("starting ACRO")
    said: dict[str, Any] = {
        "cohort": plan.cohort, "rules": plan.rules, "profile": plan.profile, "ledger": plan.ledger,
        "trust": plan.trust, "declare": plan.declare, "attest": plan.attest, "people": cohort.person_ids,
        "ages": cohort.age,
    }  # fmt: skip
    if plan.resume is None:
        session = DeltabSession(quiet_acro(), journal=journal, **said)
    else:
        session = DeltabSession.resume(quiet_acro(), _only_session(journal), outputs=False, **said)
    session.not_checked += list(cohort.declared)
    note_repairs(session, cohort.repairs)
    return session


def quiet_acro() -> Any:
    """A live ACRO without its log of risk tables on the terminal."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        import acro  # late: acro is heavy

        logging.getLogger("acro").setLevel(logging.WARNING)
        for name in ("records", "tables", "regression", "summary"):
            logging.getLogger(f"acro:{name}").setLevel(logging.WARNING)
        return acro.ACRO()


@contextlib.contextmanager
def working_folder(plan: Plan, say: Say) -> Iterator[Path]:
    """A private working folder beside the output. It stays where something was paid for, whatever became of the run."""

    folder = plan.resume
    try:
        if folder is None:
            parent = plan.out.absolute().parent
            folder = Path(tempfile.mkdtemp(prefix=f".{plan.out.name}.", suffix=".session", dir=parent))
    except OSError as error:
        raise InputError(f"cannot write here ({error.strerror})", path=plan.out.absolute().parent) from error
    try:
        yield folder
    except OSError as error:
        raise InputError(
            f"the run could not be written ({error.strerror or type(error).__name__})",
            path=plan.out,
            next_step="Free some space and run again.",
        ) from error
    finally:
        if not _ordered(folder):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"paid results are kept, sealed: `sacro-deltab run` with --resume {folder} judges it again for no ε")


def _ordered(folder: Path) -> bool:
    """Whether a session in this working folder has ordered anything that was not refused: it may be paid for."""
    steps = [step for path in folder.glob("*/journal.jsonl") for step in Journal(path.parent).steps()]
    refused = {step["token"] for step in steps if step["step"] == "order_done" and step["how"] == "refused"}
    return any(step["step"] == "order" and step["token"] not in refused for step in steps)


def _only_session(folder: Path) -> Path:
    """The session's folder in the working folder of a run."""
    found = [path.parent for path in folder.glob("*/journal.jsonl")]
    if len(found) != 1:
        raise InputError(
            "this is no working folder of a run that paid", path=folder, next_step="Name the one that the run printed."
        )
    return found[0]
