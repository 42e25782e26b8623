"""A node that is lost again and again just after a start is named, ever more rarely."""

from __future__ import annotations

import pytest
from narration import two
from worlds import edited, node, nodes, profile

from elastic.cli.render.early_losses import EARLY_S, EarlyLosses
from elastic.core.group.state import Over
from elastic.core.rendezvous import Arrive, Evict, Leave
from elastic.core.world import Why

TTL = 5.0


def test_a_third_early_loss_in_a_row_is_reported_and_then_each_doubling() -> None:
    losses = EarlyLosses(TTL)
    said = [losses.note(["gpu-02"], 1.0) for _ in range(12)]
    assert [number for number, lines in enumerate(said, 1) if lines] == [3, 6, 12]
    (line,) = said[2]
    assert line == (
        "gpu-02 was lost 3 times soon after a start: "
        "perhaps its agent is killed together with its workers, as by memory.oom.group: look at its memory"
    )


def test_a_loss_that_is_noticed_after_a_ttl_of_silence_is_early_and_each_node_counts_for_itself() -> None:
    losses = EarlyLosses(TTL)
    said = [losses.note(names, EARLY_S + TTL) for names in (["a"], ["a", "b"], ["b"], ["a"])]
    assert [bool(lines) for lines in said] == [False, False, False, True]


@pytest.mark.parametrize(("names", "ran_s", "is_third"), [([], 60.0, False), (["a"], 60.0, False), ([], 1.0, True)])
def test_a_round_that_ran_for_a_while_begins_anew_however_it_ended(
    names: list[str], ran_s: float, is_third: bool
) -> None:
    losses = EarlyLosses(TTL)
    for early, after_s in ((["a"], 1.0), (["a"], 1.0), (names, ran_s)):
        assert losses.note(early, after_s) == []
    assert bool(losses.note(["a"], 1.0)) == is_third


@pytest.mark.parametrize("is_good", [False, True])
def test_the_status_counts_the_early_losses_between_two_good_rounds(is_good: bool) -> None:
    """The third round of four runs for an hour if it is good, and ends because the node leaves."""
    story, state = two("gpu-01 gpu-03", size="2")
    at = 0.1
    for round in range(4):
        other, leaves = f"gpu-03#{round + 1}", is_good and round == 2
        at += 3600.0 if leaves else EARLY_S + TTL - 1.0
        state = edited(state, other, Leave()) if leaves else edited(state, "gpu-01", Evict(nodes(other)))
        story.sees(state, at)
        story.happens(Over(round, Why.LEFT if leaves else Why.LOST, node(other), story.at(at)))
        story.stops(at)
        for back in ("gpu-01", f"gpu-03#{round + 2}"):
            state = edited(state, back, Arrive(profile(back)))
        story.sees(state, at)
        story.starts_in(state.world, at)
    assert ("gpu-03 was lost 3 times soon after a start" in story.out.getvalue()) != is_good
