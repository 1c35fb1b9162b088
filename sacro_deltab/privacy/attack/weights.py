"""Reading weights back: from the documents of a session folder, or from one JSON file with the fields of `Weights`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError, SacroDeltabError
from ...model.weights import Weights
from ...outputs.document import OutputDocument

_TYPES = ("folded_weights", "beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "y_mean", "ysq_mean",
          "ysq_slope")  # fmt: skip
_MOST_BYTES = 200_000_000
_STEP = "Give a session's folder that holds folded_weights.json, or a JSON file with the fields of the weights."


def weights_json(weights: Weights) -> dict[str, Any]:
    """Every field of a set of weights as JSON; `read_weights` reads it back."""
    out: dict[str, Any] = {}
    for field in fields(weights):
        value = getattr(weights, field.name)
        out[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return out


def read_weights(path: str | Path) -> Weights:
    """Weights of a session folder (its `folded_weights` document is needed), or of a JSON file.

    Raises
    ------
    InputError
        Naming what is missing or does not fit.
    """
    source = Path(path)
    try:
        return _from_folder(source) if source.is_dir() else _from_fields(_load(source))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("the weights cannot be read", path=source, next_step=_STEP) from error
    except SacroDeltabError as error:
        raise InputError(error.what, path=error.path or source, next_step=error.next_step or _STEP) from error


def _load(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError("the file is too large for weights", path=path, next_step=_STEP)
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("the weights cannot be read", path=path, next_step=_STEP) from error
    if not isinstance(data, dict):
        raise InputError("the file holds no JSON object", path=path, next_step=_STEP)
    return data


def _from_fields(data: Mapping[str, Any]) -> Weights:
    known = {field.name for field in fields(Weights)}
    unknown = sorted(set(data) - known - {"schema"})
    if unknown:
        raise InputError(f"weights have no field {unknown[0]!r}", next_step=_STEP)
    values = {name: value for name, value in data.items() if name in known}
    for name in ("feature_names", "conf_names"):
        if name in values:
            values[name] = tuple(str(n) for n in values[name])
    return Weights(**values)


def _from_folder(folder: Path) -> Weights:
    found: dict[str, OutputDocument] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name in ("results.json", "config.json") or path.name.startswith("certificate"):
            continue
        data = _load(path)
        if data.get("type") in _TYPES and "rows" in data:
            found.setdefault(str(data["type"]), OutputDocument.from_json(data))
    if "folded_weights" not in found:
        raise InputError("the folder holds no folded weights", path=folder, next_step=_STEP)
    return _assemble(found)


def _numbers(document: OutputDocument) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[float(v) for v in row[1:]] for row in document.rows], dtype=np.float64)  # type: ignore[arg-type]


def _assemble(found: Mapping[str, OutputDocument]) -> Weights:
    """Prediction from the folded weights; the rest, where it is there, for the reconstruction checks."""
    names, table, conf, intercept = [], [], {}, 0.0
    for label, centre, scale, weight in found["folded_weights"].rows:
        if label == "(intercept)":
            intercept = float(weight)  # type: ignore[arg-type]
        elif str(label).startswith("confound ") and centre is None:
            conf[str(label).removeprefix("confound ")] = float(weight)  # type: ignore[arg-type]
        else:
            names.append(str(label))
            table.append((float(centre), float(scale), float(weight)))  # type: ignore[arg-type]
    centre_, scale_, coef = np.array(table).T
    y_mean = float(_numbers(found["y_mean"])[0, 0]) if "y_mean" in found else intercept
    b1, components = coef, None
    if "beta1" in found and "pca_components" in found:
        b1, components = _numbers(found["beta1"])[:, 0], _numbers(found["pca_components"]).T
    length = float(b1 @ b1)
    more: dict[str, Any] = {
        name: float(_numbers(found[name])[0, 0]) for name in ("ysq_mean", "ysq_slope") if name in found
    }
    if components is not None:
        for kind, name in (("beta2", "b2"), ("beta2sq", "b2sq"), ("gamma", "gamma"), ("gammasq", "gammasq")):
            if kind in found:
                values = _numbers(found[kind])
                more[name] = values.T if kind.startswith("gamma") else values[:, 0]
    if conf:
        direction = coef / float(coef @ coef)
        more["conf_names"] = tuple(conf)
        more["conf_beta"] = -np.outer(list(conf.values()), direction)
    return Weights(
        feature_names=tuple(names),
        x_mean=centre_,
        x_std=scale_,
        components=components,
        b1=b1,
        y_mean=y_mean,
        score_mean=b1 * (y_mean - intercept) / length if length > 0 else None,
        **more,
    )
