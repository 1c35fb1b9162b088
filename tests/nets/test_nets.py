"""A seeded sample of the nets; all of them with `make nets`."""

from __future__ import annotations

import random

import pytest
from nets import NETS, ROOT, noticed

QUICK = [net for net in NETS if net.tests.startswith("tests/base")]


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.name)
def test_every_net_is_where_the_list_says(net: object) -> None:
    text = (ROOT / "sacro_deltab" / net.module).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert net.line in text and (ROOT / net.tests).is_file()  # type: ignore[attr-defined]


def test_a_sample_is_noticed_when_it_is_off() -> None:
    net = random.Random(13).choice(QUICK)
    found, last = noticed(net)
    assert found, f"{net.name}: {last}"


@pytest.mark.soak
@pytest.mark.parametrize("net", NETS, ids=lambda net: net.name)
def test_every_net_is_noticed_when_it_is_off(net: object) -> None:
    found, last = noticed(net)  # type: ignore[arg-type]
    assert found, last
