"""One attack over everything a session would print, just before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import RefusedError

if TYPE_CHECKING:
    from .core import SessionCore


def recheck(session: SessionCore) -> None:
    """Attack all outputs together, the researcher's own readable ACRO tables and earlier releases included.

    Raises
    ------
    RefusedError
        Something can be worked out: names the outputs, so that one can be dropped.
    """
    from ..measure.context import Context  # late: brings numpy
    from .foreign import add_foreign  # late: brings numpy
    from .history import load_earlier, released_meanwhile
    from .recording import notice_config  # late: brings jsonschema_rs, numpy …

    notice_config(session)
    _refuse_exact_n(session)
    load_earlier(session)
    add_foreign(session)
    linked = session.state.linked
    for derived in linked.sums().small(linked.policy.min_n):
        raise RefusedError(
            f"{derived.sentence}: together they tell of a few people",
            next_step=f"Take one of them back with session.drop({derived.outputs[-1]!r}), then finalise.",
        )
    audit = Context(linked, ()).audit(frozenset())
    if audit.package == 0:
        for release, name in released_meanwhile(session):
            raise RefusedError(
                f"{name} was judged before {release} left, which is about nearly the same people",
                next_step=f"Take it back with session.drop({name!r}) and release it again: then both are judged.",
            )
        return
    guilty = [
        entry.name
        for entry in session.entries
        if not entry.kept_inside and session.state.linked.safe_without(entry.name)
    ]
    foreign = [name for name in session.state.foreign if session.state.linked.safe_without(name)]
    names = ", ".join([*guilty, *foreign]) or "several outputs together"
    raise RefusedError(
        f"a small group can be worked out from the outputs of this session together: {names}. "
        + " ".join(audit.pairs[:2]),
        next_step="Take one of them back with session.drop(name) (ACRO's own with acro.remove_output), then finalise.",
    )


def _refuse_exact_n(session: SessionCore) -> None:
    """Outputs judged before another session paid under add_remove, and ACRO's own, which print exact counts."""
    if not session.budget.n_is_secret():
        return
    for entry in session.entries:
        if entry.rests_on_exact_n:
            raise RefusedError(
                f"{entry.name} rests on an exact N, and by now an add_remove release on these people protects N",
                next_step=f"Take it back with session.drop({entry.name!r}), then finalise.",
            )
    ours = {entry.name for entry in session.entries}
    for uid in session.live.results.results:
        if uid not in ours:
            raise RefusedError(
                f"ACRO's own {uid} rests on an exact N, which the add_remove release on these people protects",
                next_step=f"Take it out with acro.remove_output({uid!r}), then finalise.",
            )
