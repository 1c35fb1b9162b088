"""One value per subject: never an aggregate. What such arrays are called wherever a model keeps them."""

from __future__ import annotations

from .kind import Kind

AGES, AGES_MOVED, RAW, NORMALISED = "ytrain", "y_demean", "xtrain", "x_norm"
REDUCED, DELTAS, OTHER = "x_reduced", "delta_vector", "other_per_subject"

# in the order in which a file of several is called
_CALLED = {
    AGES: ("True ages.", ("ytrain", "y_train", "age", "ages", "true_ages", "y")),
    AGES_MOVED: ("Ages demeaned or normalised.", ("ynorm", "y_demean")),
    RAW: ("Features of people.", ("xtrain", "x_train")),
    NORMALISED: ("Normalised features of people.", ("xnorm", "x_norm")),
    REDUCED: ("Component scores of people.", ("xreduce", "x_reduced")),
    DELTAS: ("Deltas of people.", ("delta", "deltas", "brain_age_delta")),
    OTHER: (
        "Any other array with one entry per subject.",
        ("ysq", "ysqnorm", "ysqorth", "ysq_demean", "ysq_orth", "y2", "y2sq", "conf", "brain_age", "predicted_age"),
    ),
}
BY_NAME = {name: kind for kind, (_, names) in _CALLED.items() for name in names}
KINDS = tuple(Kind(kind, f"{page} It never leaves.") for kind, (page, _) in _CALLED.items())
