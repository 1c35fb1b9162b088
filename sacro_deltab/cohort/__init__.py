"""Reading and checking a cohort: ages, imaging-derived phenotypes (IDPs), confounds and groups."""

from __future__ import annotations

from .people import Cohort, Repair
from .reading import read_cohort

__all__ = ["Cohort", "Repair", "read_cohort"]
