"""The card of a released model: what its folder says of training, error, bias and privacy, in words for who uses it.

It is made of released files alone, so it may go wherever they may; nothing of `inside/` is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.strict import read_object
from ..kinds.cv_mae import CV_MAE
from ..kinds.prediction_error import ERRORS
from ..model.weights import Weights
from ..outputs.document import OutputDocument
from ..outputs.parameters import FOLDED, N_SUBJECTS, Y_MEAN

_INTENDED = (
    "Brain age, and brain-age delta where ages are given, of adults scanned and processed as the training people were.",
    "For research about groups. A delta is no diagnosis, and single people's values stay inside the TRE where they are "
    "made.",
    "People of other ages, scanners or pipelines: recalibrate on people of that place first (`predict --recalibrate`).",
)


def model_card(folder: str | Path) -> str:
    """Markdown about the model of a released folder.

    Raises
    ------
    InputError
        Where the folder holds no weights that can be applied.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError("a card is made of a released folder", path=place, next_step="Name the folder, not a file.")
    weights, documents = Weights.load(place), list(_documents(place))
    statement = place / "certificate.json"
    privacy = read_object(statement).get("predicate", {}).get("privacy", {}) if statement.is_file() else {}
    parts = {
        "Model": [
            f"Linear brain age from {len(weights.feature_names)} features; the delta with least age bias that its "
            f"weights can give: {weights.best_model}.",
            f"Confounds: {', '.join(weights.conf_names) if weights.conf_names else 'none'}.",
        ],
        "Trained on": list(_trained_on(documents, privacy)),
        "Error": list(_errors(documents)) or ["No error of predicted age was released."],
        "Age bias": list(_intervals(documents)) or ["No interval was released: the bias of its deltas is not known."],
        "Privacy": list(_privacy(privacy)) or ["The folder has no statement about privacy: nothing is claimed."],
        "Intended use": _INTENDED,
    }
    body = [f"## {head}\n\n" + "\n".join(f"* {line}" for line in lines) for head, lines in parts.items() if lines]
    return "\n\n".join(["# Brain-age model", *body]) + "\n"


def _documents(folder: Path) -> Iterator[OutputDocument]:
    for path in sorted(folder.glob("*.json")):
        data = read_object(path)
        if data.get("schema") == "sacro_deltab/output/1":
            yield OutputDocument.from_json(data)


def _trained_on(documents: list[OutputDocument], privacy: Mapping[str, Any]) -> Iterator[str]:
    for one in documents:
        if one.type == N_SUBJECTS:
            yield f"N {one.rows[0][1]} people, as released."
        elif one.type == Y_MEAN:
            yield f"Mean age {one.rows[0][1]} years, as released."
        elif one.type == FOLDED and "where" in one.about:
            column, *labels = one.about["where"]
            yield f"Only the part {column}: {', '.join(labels)}."
    for basis in {str(r["basis"]["made_on"]) for r in privacy.get("releases", ()) if r.get("basis")}:
        yield f"Components, centres and scales were made on: {basis}."


def _errors(documents: list[OutputDocument]) -> Iterator[str]:
    for one in documents:
        if one.type == ERRORS:
            numbers = "; ".join(f"{row[0]} {row[2]}" for row in one.rows)
            yield f"{numbers} ({one.about.get('validated', 'how it was validated is not said')})."
        elif one.type == CV_MAE:
            yield f"MAE {one.rows[0][1]} years ({one.about.get('validated')})."


def _intervals(documents: list[OutputDocument]) -> Iterator[str]:
    said = [one.about for one in documents if one.type == FOLDED]
    for about in said:
        for name, value in about.items():
            if isinstance(value, Mapping) and {"low", "high", "unit"} <= set(value):
                words = value.get("says") or f"{value['low']:g} to {value['high']:g} {value['unit']}"
                yield f"{name.replace('_', ' ')}: {words} ({value.get('covers', 'noise of this release')})."


def _privacy(privacy: Mapping[str, Any]) -> Iterator[str]:
    if not privacy:
        return
    yield (
        f"Label of the package: {privacy.get('label', 'none')}, as its statement says; `sacro-deltab verify` and "
        "`check` hold that against the signature and the ledger."
    )
    for one in privacy.get("releases", ()):
        if FOLDED in one.get("outputs", ()):
            if one.get("label") == "formal":
                spent = f"ε {one['epsilon']:g}, δ {one['delta_dp']:g} ({one['adjacency']})"
                yield f"{spent}, by the {one['mechanism']} mechanism."
            else:
                yield "Noise was added without a guarantee."
            yield f"Not covered: {'; '.join(one.get('not_covered', ()))}."
    if privacy.get("outside_budget"):
        yield "Other outputs left beside it that are outside this budget: no end-to-end guarantee."
