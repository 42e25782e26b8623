"""A simulated node whose store is away for long and whose only peer is dead ends, if its workers stand still."""

from __future__ import annotations

import pytest
from simulated import TWO, then, world

SIX = "world nodes=6 min=6 max=6 links=1 join=15"
SETTING = "world nodes=2 min=2 max=2 links={links} join=15"


@pytest.mark.parametrize(
    ("operations", "links", "ends"),
    [
        (("hang b", "pass 1", "crash a", "outage 60"), 1, True),
        (("pass 1", "crash a", "outage 60"), 1, False),
        (("hang b", "pass 1", "outage 60"), 1, False),
        (("hang b", "pass 1", "crash a", "outage 60"), 0, False),
        (("hang b", "pass 1", "crash a", "outage 10"), 1, False),
        (("pause b 2", "hang b", "crash a", "outage 60"), 1, True),
    ],
    ids=["stranded", "no standstill", "no death", "no links", "not for long", "it hears that late"],
)
def test_a_stranded_node_ends(operations: tuple[str, ...], links: int, ends: bool) -> None:
    made = then(world(*TWO, setting=SETTING.format(links=links)), *operations, "pass 40")
    assert made.counts["stranded"] == ends
    assert not ends or made.at("b") is None


@pytest.mark.parametrize("lives", ["", "c", "f"])
def test_a_node_of_a_large_world_is_stranded_when_all_others_are_dead(lives: str) -> None:
    """It keeps links to three of them; those move on from the dead."""
    starts, deaths = ([f"{verb} {each}" for each in who] for verb, who in (("start", "abcdef"), ("crash", "bcdef")))
    deaths = [each for each in deaths if each != f"crash {lives}"]
    made = then(world(*starts, "pass 3", setting=SIX), "hang a", "pass 1", *deaths, "outage 60", "pass 40")
    assert made.counts["stranded"] == (not lives)
