"""The private models of a session: remembered, known again, and taken up from their sealed results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import PrivacyError
from ..privacy import PrivateModel
from ..privacy.noisy_count import PEOPLE, attempt_error, gaussian_allowance, least
from ..privacy.spend import Receipt
from ..privacy.stored import model_of
from .common import ROWS_ARE_PEOPLE
from .trained import TrainedHere, Training

if TYPE_CHECKING:
    from .core import SessionCore


def trained_here(session: SessionCore, model: Any) -> TrainedHere | None:
    """The session's own record of a private model; None where the model is not of this session.

    Raises
    ------
    PrivacyError
        When weights, moments or statement are not those of the training any more: the noise was paid for those only.
    """
    record = session.models.get(id(model))
    if record is None:
        return None
    try:
        same = record.model is model and _model_digest(model) == record.digest
    except (AttributeError, TypeError, ValueError):
        same = False
    if not same:
        raise PrivacyError(
            "the weights of this private model are not those its training gave",
            next_step="Train it again with session.train_private; a changed model has no guarantee.",
        )
    return record


def _model_digest(model: Any) -> bytes:
    """SHA-256 of everything a model may release; stays in memory."""

    digest = sha256()
    for each in fields(model.weights):
        value = getattr(model.weights, each.name)
        body = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        digest.update(f"{each.name} {np.shape(value)} {len(body)} ".encode() + body)
    moments = None if model.noisy_moments is None else model.noisy_moments.to_json()
    told = [moments, model.statement.to_json(), model.n_noisy, model.intervals]
    digest.update(json.dumps(told, sort_keys=True, default=str).encode())
    return digest.digest()


def remembered(session: SessionCore, model: PrivateModel, receipt: Receipt, training: Training) -> PrivateModel:
    """The session's record of a training, and its lines in the journal."""
    session.journal.write("trained", {"entry": receipt.entry, **training.to_json()})
    model = _known(session, model, receipt, training)
    session.orders.answered(receipt.entry)
    return model


def _known(session: SessionCore, model: PrivateModel, receipt: Receipt, training: Training) -> PrivateModel:
    if session.state.ids is None:
        said = replace(model.statement, not_covered=(ROWS_ARE_PEOPLE, *model.statement.not_covered))
        model = replace(model, statement=said)
    fewest, most = _limits_of_n(session, model, receipt)
    session.models[id(model)] = TrainedHere(
        model,
        receipt,
        training,
        statement=model.statement.to_json(),
        digest=_model_digest(model),
        n_least=fewest,
        n_most=most,
        intervals=model.intervals,
    )
    return model


def taken_up(session: SessionCore, step: Mapping[str, Any]) -> None:
    """A training of before, its sealed result opened; nothing is spent or drawn."""
    receipt = session.budget.ledger.receipt(step["entry"])
    _known(session, model_of(session.orders.opened(receipt.entry)), receipt, Training.from_json(step))


def _limits_of_n(session: SessionCore, model: PrivateModel, receipt: Receipt) -> tuple[int | None, int]:
    """Confidence limits of the noised count, at a level that holds over all attempts on these people."""
    if model.n_noisy is None:
        return None, 0
    attempt = receipt.after.releases
    error = attempt_error(float(session.ruleset.parameters["noisy_n_error"]), attempt)
    told = model.public["noise_sd"]
    allowance = gaussian_allowance(float(told.get("n", told.get(PEOPLE))), error)
    return least(model.n_noisy, allowance), math.ceil(model.n_noisy + allowance)
