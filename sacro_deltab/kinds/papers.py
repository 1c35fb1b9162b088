"""Papers, not numbers: what goes along with outputs, or stays beside them."""

from __future__ import annotations

from .kind import Kind

CERTIFICATE, JOB, ATTACK = "certificate", "job_file", "attack_report"

KINDS = (
    Kind(CERTIFICATE, "The certificate of a release: every rule with its result, and what was not checked."),
    Kind(JOB, "What nodes are asked to compute; it holds nothing from anybody's data."),
    Kind(ATTACK, "The report of a membership-inference test. It stays inside."),
)
