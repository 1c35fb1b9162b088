"""What simulated researchers declare and simulated TRE staff attest, for tests that run whole sessions."""

from __future__ import annotations

DECLARE = {
    "schema": "sacro_deltab/declare/1",
    "role": "researcher",
    "by": "A simulated researcher",
    "simulated": True,
    "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
}
ATTEST = {
    "schema": "sacro_deltab/declare/1",
    "role": "tre_staff",
    "by": "Simulated TRE staff",
    "simulated": True,
    "facts": {"egress.route": "tre_airlock", "dp.noise_inside_tre": True},
}
