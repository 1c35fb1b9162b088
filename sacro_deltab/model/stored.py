"""Weights as they lie in files: a session's or a pooled folder with its documents, or one JSON file with the fields.

Gives the fields of `Weights` as a mapping, so that there is one way for a node's, a released and a pooled model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError, SacroDeltabError
from ..base.strict import read_object
from ..outputs.document import OutputDocument
from ..outputs.parameters import BETA1, BETA2, BETA2SQ, COMPONENTS, CONFOUND, FOLDED, INTERCEPT, POOLED_MODEL, WEIGHTS
from .base import Array

_STEP = "Give a folder that holds folded_weights.json or pooled_model.json, or a JSON file with the weights' fields."
_ENTRY = re.compile(r"^(b2|b2sq)\[(\d)\]$")


def stored_fields(path: str | Path, *, parts: bool = False) -> dict[str, Any]:
    """Fields of the weights in a folder or a JSON file.

    Parameters
    ----------
    parts
        Take β₁ and the components where the folder has them, in the place of the folded weights: the same model with
        more rounding, which only the alternate models and the reconstruction checks need.

    Raises
    ------
    InputError
        Naming what is missing or does not fit.
    """
    source = Path(path)
    try:
        return _from_folder(source, parts) if source.is_dir() else fields_of(read_object(source))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("the weights cannot be read", path=source, next_step=_STEP) from error
    except SacroDeltabError as error:
        raise InputError(error.what, path=error.path or source, next_step=error.next_step or _STEP) from error


def fields_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of weights from what `Weights.to_json` gave."""
    out = {name: value for name, value in data.items() if name != "schema"}
    for name in ("feature_names", "conf_names"):
        if name in out:
            out[name] = tuple(str(n) for n in out[name])
    return out


def _from_folder(folder: Path, parts: bool) -> dict[str, Any]:
    found: dict[str, OutputDocument] = {}
    pooled: dict[str, OutputDocument] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name in ("results.json", "config.json") or path.name.startswith("certificate"):
            continue
        data = read_object(path)
        if data.get("type") == POOLED_MODEL and "rows" in data:
            pooled[path.stem] = OutputDocument.from_json(data)
        elif data.get("type") in WEIGHTS and "rows" in data:
            found.setdefault(str(data["type"]), OutputDocument.from_json(data))
    if POOLED_MODEL in pooled and FOLDED not in found:
        folded = _folded(pooled[POOLED_MODEL])
        return _centred(folded | _parameters(pooled.get("pooled_parameters")), folded["y_mean"])
    if FOLDED not in found:
        raise InputError("the folder holds no folded weights", path=folder, next_step=_STEP)
    return _assemble(found, parts)


def _numbers(document: OutputDocument) -> Array:
    return np.array([[float(v) for v in row[1:]] for row in document.rows], dtype=np.float64)  # type: ignore[arg-type]


def _folded(document: OutputDocument) -> dict[str, Any]:
    """Prediction from one weight a feature; the intercept stands in `intercept` until `y_mean` is known."""
    names, table, conf, intercept = [], [], {}, 0.0
    for label, centre, scale, weight in document.rows:
        if label == INTERCEPT:
            intercept = float(weight)  # type: ignore[arg-type]
        elif str(label).startswith(CONFOUND) and centre is None:
            conf[str(label).removeprefix(CONFOUND)] = float(weight)  # type: ignore[arg-type]
        else:
            names.append(str(label))
            table.append((float(centre), float(scale), float(weight)))  # type: ignore[arg-type]
    centre_, scale_, coef = np.array(table).T
    out: dict[str, Any] = {
        "feature_names": tuple(names), "x_mean": centre_, "x_std": scale_, "b1": coef, "y_mean": intercept,
    }  # fmt: skip
    if conf:
        direction = coef / float(coef @ coef)
        out["conf_names"] = tuple(conf)
        out["conf_beta"] = -np.outer(list(conf.values()), direction)
    return out


def _parameters(document: OutputDocument | None) -> dict[str, Any]:
    """The bias correction of a pooled model, from its list of named parameters."""
    values = {} if document is None else {str(row[0]): float(row[1]) for row in document.rows}  # type: ignore[arg-type]
    out: dict[str, Any] = {n: values[n] for n in ("y_mean", "ysq_mean", "ysq_slope") if n in values}
    for label, value in values.items():
        entry = _ENTRY.match(label)
        if entry:
            out.setdefault(entry.group(1), []).append(value)
    return out


def _assemble(found: Mapping[str, OutputDocument], parts: bool) -> dict[str, Any]:
    out = _folded(found[FOLDED])
    intercept = out["y_mean"]
    for name in ("y_mean", "ysq_mean", "ysq_slope"):
        if name in found:
            out[name] = float(_numbers(found[name])[0, 0])
    for kind, name in ((BETA2, "b2"), (BETA2SQ, "b2sq")):
        if kind in found and "y_mean" in found:
            out[name] = _numbers(found[kind])[:, 0]
    if parts and BETA1 in found and COMPONENTS in found:
        out["b1"], out["components"] = _numbers(found[BETA1])[:, 0], _numbers(found[COMPONENTS]).T
        for kind in ("gamma", "gammasq"):
            if kind in found:
                out[kind] = _numbers(found[kind]).T
    return _centred(out, intercept)


def _centred(out: dict[str, Any], intercept: float) -> dict[str, Any]:
    """The intercept as a mean of the scores, now that the mean age is known."""
    b1 = out["b1"]
    length = float(b1 @ b1)
    if length > 0 and out["y_mean"] != intercept:
        out["score_mean"] = b1 * (out["y_mean"] - intercept) / length
    return out
