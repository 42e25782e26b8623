"""Programs for nvidia-resiliency-ext with the import changed, on real ranks: their classes, and who takes whose place."""

from __future__ import annotations

from launches import PROGRAMS, Launch, Launcher
from wrapped import FIRST_GATE, comes_to, entered, job, returned, told

CHANGED = PROGRAMS / "changed.py"


def changed(launch: Launcher, way: str, ranks: int) -> Launch:
    return job(launch, way, ranks=ranks, program=CHANGED)


def test_classes_of_the_user_s_own_are_told_the_state_and_place_the_ranks(launch: Launcher) -> None:
    """A part of a composed callback gets the state that the one before it returned."""
    running = changed(launch, "backwards", 2)
    began = ["0 Begins 1 2 1 0 ACTIVE NoneType", "0 BeginsToo 1 12 1 0 ACTIVE NoneType", "0 in 0 of 2 as 1"]
    began += ["1 Begins 0 2 0 0 ACTIVE NoneType", "1 BeginsToo 0 12 0 0 ACTIVE NoneType", "1 in 0 of 2 as 0"]
    assert told(running, 6) == sorted(began)
    running.open_gate(FIRST_GATE)
    tidied = ["0 Tidies 1 2 1 0 ACTIVE NoneType", "1 Tidies 0 2 0 0 ACTIVE ValueError"]
    comes_to(running, *tidied, "0 in 1 of 2 as 0", "1 in 1 of 2 as 1", *returned(1, 0, 1))
    assert running.ends().code == 0


def test_a_reserve_of_the_tree_takes_the_place_of_the_rank_that_is_killed(launch: Launcher) -> None:
    running = changed(launch, "tree", 3)
    assert told(running, 2) == entered(0, 0, 1)
    running.open_gate(FIRST_GATE)
    comes_to(running, "1 in 1 of 2 as 1", "2 in 1 of 2 as 0", *returned(1, 1, 2))
    assert running.ends().code == 0


def test_the_partner_of_a_rank_that_is_killed_waits_and_the_other_pair_goes_on(launch: Launcher) -> None:
    running = changed(launch, "pairs", 4)
    assert told(running, 4) == entered(0, 0, 1, 2, 3, of=4)
    running.open_gate(FIRST_GATE)
    comes_to(running, *entered(1, 2, 3), *returned(1, 2, 3), "1 returned None")
    assert running.ends().code == 0
