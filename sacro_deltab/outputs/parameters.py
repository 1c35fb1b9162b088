"""The parameters of a model, by the names they leave under: keys of the rule set's vocabulary.

This list is the one that everything goes by; what each looks like as an output stands in `kinds/weights.py`.
"""

from __future__ import annotations

BETA1, BETA2, BETA2SQ, GAMMA, GAMMASQ = "beta1", "beta2", "beta2sq", "gamma", "gammasq"
COMPONENTS, CONF_BETA, FOLDED = "pca_components", "conf_beta", "folded_weights"
X_MEAN, X_STD, Y_MEAN, YSQ_MEAN, YSQ_SLOPE = "x_mean", "x_std", "y_mean", "ysq_mean", "ysq_slope"
MOMENTS = "noised_moments"
N_SUBJECTS = "n_subjects"
POOLED_MODEL = "pooled_model"  # as folded weights

WEIGHTS = (
    BETA1, BETA2, BETA2SQ, GAMMA, GAMMASQ, COMPONENTS, X_MEAN, X_STD, Y_MEAN, YSQ_MEAN, YSQ_SLOPE, CONF_BETA, FOLDED,
)  # fmt: skip
AVERAGED = (FOLDED, BETA1, BETA2, BETA2SQ, GAMMA, GAMMASQ, Y_MEAN, YSQ_MEAN, YSQ_SLOPE)  # over nodes of one basis
TRAINED = (*WEIGHTS, MOMENTS)  # everything that a private training pays for
GIVE_DELTAS = frozenset({FOLDED, BETA1})  # with one of these a reader can compute deltas
INTERCEPT, CONFOUND = "(intercept)", "confound "  # rows of the folded weights besides features
