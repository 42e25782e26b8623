"""Restarts inside the process: random runs, every run of small worlds, and bugs that must be found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import callmutants
import mutation
import pytest
from callmutants import Known
from callworlds import explored
from profiles import SOAK

from elastic.core.caller import Terms
from elastic.core.inprocess import Settings
from elastic.core.policies import at_most
from elastic.core.sim.calls import over_nodes
from elastic.core.sim.calls.call_sometimes import SOMETIMES
from elastic.core.sim.calls.call_strength import LAWS
from elastic.core.sim.calls.call_world import Budget, Shape
from elastic.core.sim.calls.node_laws import LAWS as OVER_NODES
from elastic.core.sim.calls.nodes_walk import walked_over_nodes
from elastic.core.sim.calls.walk import UNLIKE, walked

RUNS = 10_000 if SOAK else 400
"""A run has about 87 steps."""


def small(*kinds: str, faults: int = 1, restarts: int = 1, **changes: Any) -> Shape:
    """Return a world of two ranks, with one fault of these kinds unless said otherwise."""
    spent = {name: changes.pop(name) for name in ("sections", "respawns", "losses") if name in changes}
    return Shape(2, max_restarts=restarts, budget=Budget(faults, **spent), kinds=frozenset(kinds), **changes)


# The numbers are pinned: a rule that changes what can happen changes them, and its author must know why.
SMALL: Mapping[str, tuple[Shape, int, int, int]] = {
    "no fault": (small(faults=0), 957, 1_732, 8),
    "stuck in C": (small("is stuck"), 6_429, 12_812, 56),
    "a lost host": (small("is lost"), 6_633, 9_028, 226),
    "a lost host, and a section": (small("is lost", sections=1), 23_425, 32_818, 596),
    "a death": (small("dies"), 22_343, 34_974, 496),
    "a monitor that dies": (small("monitor dies"), 3_828, 10_500, 32),
    "a thread that starves": (small("starves"), 17_451, 35_714, 146),
    "a store out of reach": (small("is cut off"), 15_583, 28_976, 300),
    "a store that forgets, or a write without an answer": (small(faults=0, losses=1), 18_845, 43_240, 112),
}
LARGER: Mapping[str, tuple[Shape, int, int, int]] = {
    "a hang": (small("hangs"), 24_837, 56_268, 88),
    "a death and a new incarnation": (small("dies", respawns=1), 58_265, 129_008, 340),
    "a death and its replacement": (small("dies", respawns=1, replace_s=0.5), 62_757, 134_980, 364),
    "a death, one of them a reserve": (small("dies", terms=Terms(at_most(1))), 34_399, 68_196, 1_038),
    "a hang that swallows": (small("hangs", "swallows", faults=2, restarts=0), 95_045, 248_900, 256),
    "a failure over the budget": (small("failed", restarts=0), 89_205, 268_836, 72),
    "a failure": (small("failed"), 112_597, 318_644, 232),
}


QUICK_WORLDS_MAX = 10_000
"""`make test` explores no world of more."""


@pytest.mark.parametrize(
    ("shape", "worlds", "steps", "ends"),
    [
        pytest.param(*row, id=name, marks=[pytest.mark.long] * (row[1] > QUICK_WORLDS_MAX))
        for name, row in SMALL.items()
    ],
)
def test_every_run_of_a_small_world_keeps_the_laws_and_can_end(
    shape: Shape, worlds: int, steps: int, ends: int
) -> None:
    told = explored(shape)
    assert (told.worlds, told.steps, told.ends) == (worlds, steps, ends)


@pytest.mark.skipif(not SOAK, reason="minutes: HYPOTHESIS_PROFILE=soak")
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("shape", "worlds", "steps", "ends"), LARGER.values(), ids=LARGER.keys())
def test_every_run_of_a_larger_world_keeps_the_laws_and_can_end(
    shape: Shape, worlds: int, steps: int, ends: int
) -> None:
    told = explored(shape)
    assert (told.worlds, told.steps, told.ends) == (worlds, steps, ends)


@pytest.mark.timeout(0 if SOAK else 600)
def test_random_runs_keep_the_laws_and_show_what_they_should() -> None:
    seen, armed = Counter[str](), Counter[str]()
    for seed in range(RUNS):
        run = walked(seed)
        assert run.broken is None, f"walked({seed}): {run.broken}"
        seen += run.seen
        armed += run.strength.armed
    assert [number for number in LAWS if not armed[number]] == []
    assert set(SOMETIMES) - seen.keys() <= (frozenset() if SOAK else RARE)


def test_runs_whose_steps_take_time_keep_the_laws_and_arm_those_of_time() -> None:
    seen, armed = Counter[str](), Counter[str]()
    for seed in range(60):
        shape = Shape(
            2 + seed % 2, budget=Budget(8, 4, 2), calls=UNLIKE if seed % 3 else Settings(), lasting=True, replace_s=0.5
        )
        walk = walked(seed, shape)
        assert walk.broken is None, f"{seed}: {walk.broken}"
        seen += walk.seen
        armed += walk.strength.armed
    assert armed["I20"] and armed["I21"] and armed["I22"]
    assert {"takes long", "fault: stands still", "monitor speaks for a dead rank"} <= seen.keys()
    assert seen["killed at a limit"] or seen["monitor injects"]


FIRST_OVER_NODES, ENOUGH = 130, RUNS if SOAK else RUNS // 4
"""So many runs over nodes, from this seed on, are enough if they show all. After a change of the core it may take more."""

RARE = frozenset(
    {
        *("declined in: atomic", "leaves: too many faults of this rank", "timer: store"),
        *("leaves: the same failure of this rank again and again", "timer: steady", "injected by the monitor"),
        "restored over a forming job",
    }
)
"""The situations that 400 runs need not show and 10,000 runs must (`elastic simulate --calls` warns)."""


@pytest.mark.timeout(0 if SOAK else 600)
def test_random_runs_over_nodes_keep_the_laws_of_both_and_those_that_connect_them() -> None:
    seen, armed = Counter[str](), Counter[str]()
    wanted = {*OVER_NODES, *over_nodes.SOMETIMES}
    for run, seed in enumerate(range(FIRST_OVER_NODES, FIRST_OVER_NODES + RUNS), 1):
        walk = walked_over_nodes(seed)
        assert walk.broken is None, f"walked_over_nodes({seed}): {walk.broken}"
        seen += walk.seen
        armed += walk.strength.armed
        if run >= ENOUGH and wanted <= {*seen, *armed}:
            return
    assert [number for number in OVER_NODES if not armed[number]] == []
    assert set(over_nodes.SOMETIMES) - seen.keys() == set()


KNOWN = callmutants.known()


@pytest.fixture(scope="module")
def finders() -> Mapping[str, Mapping[str, Any]]:
    """Return what finds each mutant now."""
    command = [sys.executable, callmutants.__file__, "check"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1_200).stdout.splitlines()
    return {answer["mutant"]: answer for answer in map(json.loads, lines)}


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("each", KNOWN, ids=[each.mutant.name for each in KNOWN])
def test_a_mutant_is_found_by_the_run_of_its_seed(each: Known, finders: Mapping[str, Mapping[str, Any]]) -> None:
    finder = finders[each.mutant.name]
    assert "drifted" not in finder, finder["drifted"]
    if each.mutant.test:
        assert finder.get("test") == each.mutant.test, finder
    else:
        assert finder.get("number") == each.number, finder


def test_the_core_itself_breaks_nothing_in_the_same_runs() -> None:
    seeds = {each.seed for each in KNOWN if not each.mutant.test}
    assert {seed: run for seed in sorted(seeds) if (run := walked(seed).broken)} == {}


SIMULATOR_ALONE = 0.60
"""The share of the mutants of core/inprocess that a simulated run must find."""


def test_the_simulator_alone_finds_most_mutants_of_restarts_inside_the_process() -> None:
    of_calls = [*mutation.mutants(), *mutation.mutants(mutation.CALLS)]
    alone, all = mutation.shares(of_calls)["core/inprocess"]
    assert alone >= SIMULATOR_ALONE * all
