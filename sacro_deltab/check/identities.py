"""Relations between weights that hold exactly where no noise was added to each of them."""

from __future__ import annotations

from ..base.findings import Effect, Finding, note
from ..inert.content import Content, last_name
from ..outputs.parameters import BETA1, BETA2, GAMMA


def identities(content: Content) -> list[Finding]:
    """Relations between weights that hold exactly before separate noise and not after.

    b2 = −(1 − b1·γ); b1/γ·ev is one number (the variance of age). Weights worked out together from one noisy
    matrix obey them too, so the finding speaks only of noise added to each parameter.
    """
    b1, gamma = content.array_named("b1", BETA1), content.array_named(GAMMA)
    ev = content.array_named("explained_variance_", "explained_variance", "ev")
    b2 = _scalar(content, "b2", BETA2)
    out: list[Finding] = []
    if b1 is None or gamma is None or b1.values is None or gamma.values is None or len(b1.values) != len(gamma.values):
        return out
    if b2 is not None:
        fitted = -(1 - sum(x * y for x, y in zip(b1.values, gamma.values, strict=True)))
        if abs(fitted - b2) <= 1e-6 * max(1.0, abs(b2)):
            out.append(_no_noise("b2 is exactly what b1 and γ give"))
    if ev is not None and ev.values is not None and len(ev.values) == len(b1.values) > 1:
        ages = [x * e / g for x, e, g in zip(b1.values, ev.values, gamma.values, strict=True) if g]
        if len(ages) > 1 and max(ages) - min(ages) <= 1e-6 * abs(max(ages, key=abs)):
            out.append(_no_noise("b1, γ and the explained variances give one age variance exactly"))
    return out


def _scalar(content: Content, *names: str) -> float | None:
    for place, value in content.walk_scalars():
        if last_name(place) in names:
            return value
    info = content.array_named(*names)
    return info.values[0] if info is not None and info.values is not None and len(info.values) == 1 else None


def _no_noise(what: str) -> Finding:
    return note(
        "no-noise",
        Effect.BLOCK,
        f"{what}: no noise was added to each of them.",
        outside="The parameters are related exactly: no noise was added to each of them.",
        next_step="Make the weights with `sacro-deltab run`, which draws the noise before anything is worked out.",
    )
