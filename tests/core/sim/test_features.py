"""Features of simulated worlds: a user can ask for them, and runs count them.

property_tests/test_runs.py counts how often they are drawn, and which of them meet.
"""

from __future__ import annotations

import pytest

from elastic.core.sim.chance import seeded
from elastic.core.sim.features import FEATURES, PAIRS, features_of
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import wander
from elastic.core.sim.story import QUICK
from elastic.core.sim.swarm import DRAWN, Shape, setting
from elastic.core.sim.tally import Tally, showed


def test_the_racks_of_a_world_make_its_minimum_of_segments_and_one_node_has_none() -> None:
    wanted = frozenset({"segments"})
    for nodes in range(2, 12):
        for seed in range(20):
            drawn = setting(seeded(seed), Shape(nodes=nodes, features=wanted))
            assert drawn.racks and drawn.limits.segment and not drawn.are_too_few(drawn.slots)
    assert setting(seeded(1), Shape(nodes=1, features=wanted)).racks == 0


@pytest.mark.parametrize("name", FEATURES)
def test_each_world_has_the_features_that_were_asked_for(name: str) -> None:
    for seed in range(20):
        assert name in features_of(setting(seeded(seed), Shape(features=frozenset((name,)))))


def test_a_feature_is_one_of_the_table() -> None:
    with pytest.raises(ValueError, match=r"features: crash: none of FEATURES \(links, helping, .*\)"):
        Shape(features=frozenset(("crash",)))


def test_runs_that_leave_out_faults_are_of_plain_worlds() -> None:
    shape = Shape(faults=frozenset(DRAWN) - {Kind.CRASH})
    seen = {name for seed in range(200) for name in features_of(setting(seeded(seed), shape))}
    assert seen == {name for name, feature in FEATURES.items() if feature.plain} | {"long"}


def test_a_bare_world_has_no_feature_but_that_notices_may_be_given() -> None:
    assert list(features_of(QUICK)) == ["notices"]


def test_runs_count_how_often_each_pair_of_features_met() -> None:
    tally, shape = Tally(), Shape(features=frozenset(("links", "echoes")), operations=0)
    for number in range(3):
        tally.adds(showed(number, wander(number, shape)))
    assert tally.pairs["links", "echoes"] == 3
    assert ("links", "echoes") not in tally.apart
    assert {*tally.apart} == {*PAIRS} - tally.pairs.keys()
