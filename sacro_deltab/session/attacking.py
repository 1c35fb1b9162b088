"""Membership-inference reports of a session: attached, or made after a training; they stay in `inside/`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.canonical import shown_json
from ..base.errors import InputError, SacroDeltabError
from ..base.strict import read_object
from ..base.writing import write_file
from ..measure.people import columns_of, numbers

if TYPE_CHECKING:
    from ..privacy.attack.membership import AttackReport
    from .core import SessionCore

_SACRO_ML = ("log_id", "attack_experiment_logger")  # keys of a SACRO-ML report
_SLOW_FROM = 300  # features of a node basis: a shadow training then takes long, and the command is the better place
_FEW = 8


def attach(session: SessionCore, report: AttackReport | str | Path) -> None:
    """See `SessionCore.attach_attack_report`."""
    from ..privacy.attack.membership import AttackReport, check_report  # late: brings scipy, threadpoolctl

    if isinstance(report, AttackReport):
        data: Any = report.to_json()
        path: Any = None
    else:
        if not isinstance(report, str | Path):
            raise InputError("this is no attack report", next_step="Make one with `sacro-deltab attack`.")
        path = report
        data = read_object(Path(report))
    if data.get("schema") is not None or not any(key in data for key in _SACRO_ML):
        check_report(data, path)
    _keep(session, data)


def _keep(session: SessionCore, data: Mapping[str, Any]) -> None:
    kept = session.journal.folder / "attack.json"
    write_file(kept, shown_json(data))
    session.attack_report = kept
    session.journal.write("attack_report", {"file": kept.name})


def reported_weights(session: SessionCore, weights: Any) -> str | None:
    """Digest of these weights where the attached report is about them, else None.

    A SACRO-ML report names none and is taken at its word.
    """
    if session.attack_report is None:
        return None
    from ..privacy.attack.membership import weights_digest  # late: brings scipy, threadpoolctl

    own, target = weights_digest(weights), read_object(session.attack_report).get("target")
    stated = target.get("weights_sha256") if isinstance(target, Mapping) else None
    return own if stated in (None, own) else None


def attack_trained(
    session: SessionCore,
    model: Any,
    X: Any,
    age: Any,
    confounds: Any | None,
    feature_names: Any | None,
    *,
    basis: Any | None,
    bounds: Any | None,
) -> None:
    """Attack a training just made in a session. What goes wrong here costs no model: it is listed as not checked."""
    import pandas as pd  # late: pandas is heavy

    try:
        names = [str(n) for n in (X.columns if feature_names is None else feature_names)]
        frame = pd.DataFrame(dict(zip(names, map(numbers, columns_of(X)), strict=True)))
        extra = None
        if confounds is not None:
            labels = getattr(confounds, "columns", model.weights.conf_names)
            extra = pd.DataFrame(dict(zip(map(str, labels), map(numbers, columns_of(confounds)), strict=True)))
        why = attack_training(session, model, frame, age, extra, basis=basis, bounds=bounds, say=_warn)
    except Exception as error:
        why = _could_not(session, model, f"it ended with {type(error).__name__}")
    if why is not None and why not in session.not_checked:
        session.not_checked.append(why)


def _could_not(session: SessionCore, model: Any, why: str) -> str | None:
    """Said where it may be said: of formal weights only inside, since it was seen in the data."""
    from ..privacy.attack.membership import not_run  # late: brings jsonschema_rs, scipy …

    statement = model.statement.to_json()
    if statement["label"] != "formal":
        return f"no membership test of the weights: {why}"
    people = session.state.people
    _keep(session, not_run(model.weights, statement, 0 if people is None else people.n_people, why))
    return None


def _warn(text: str) -> None:
    """Progress is not worth a line in a notebook; a test that beats the noise is."""
    if "DOES BETTER" in text:
        warnings.warn(text, UserWarning, stacklevel=2)


def attack_training(
    session: SessionCore,
    model: Any,
    X: Any,
    age: Any,
    confounds: Any | None,
    *,
    basis: Any | None,
    bounds: Any | None,
    say: Callable[[str], None],
) -> str | None:
    """Attack the training that gave a private model and attach the report. Returns why not, where it cannot be done.

    Whether there is a report depends on N alone where N is public, else on the release's own noised N, so that it tells
    nothing besides; what it found, and why it could not be made, changes no verdict of formal weights and stays inside.
    """
    from ..privacy.attack.membership import (  # late: brings scipy
        LEAST_PEOPLE,
        SHADOWS,
        attack_report,
        private_trainer,
    )

    record = session.models[id(model)]
    known = record.n_least if record.n_is_secret and record.n_least is not None else record.training.n
    if known < 2 * LEAST_PEOPLE:
        return "no membership test of the weights: too few people to attack halves of them"
    statement = model.statement.to_json()
    slow = basis is None and X.shape[1] > _SLOW_FROM
    say("membership test: attacking the training with shadow models (stays inside)")
    trainer = private_trainer(
        feature_names=[str(c) for c in X.columns], basis=basis, bounds=bounds, epsilon=statement["epsilon"],
        delta_dp=statement["delta_dp"], adjacency=statement["adjacency"], method=model.public["method"],
        confound_names=None if confounds is None else [str(c) for c in confounds.columns],
        n_components=int(model.public["n_components"]),
    )  # fmt: skip
    try:
        report = attack_report(
            model.weights,
            np.column_stack([numbers(X.iloc[:, j]) for j in range(X.shape[1])]),
            numbers(age),
            confounds=None if confounds is None else confounds.to_numpy(dtype=float),
            trainer=trainer,
            statement=statement,
            shadows=_FEW if slow else SHADOWS,
        )
    except Exception as error:  # ε is spent: no test costs a model
        why = error.what if isinstance(error, SacroDeltabError) else f"it ended with {type(error).__name__}"
        return _could_not(session, model, why)
    attach(session, report)
    if report.verdict == "above_bound":
        say("THE MEMBERSHIP TEST DOES BETTER THAN THE NOISE ALLOWS: see inside/attack.json before anything leaves")
    return None
