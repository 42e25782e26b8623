"""The lines about other nodes: waited for, lost, replaced, and what that costs."""

from __future__ import annotations

from attrs import evolve
from narration import HERE, THERE, Story, two
from worlds import arrived, edited, node, nodes, profile, register, running

from elastic.core import rendezvous
from elastic.core.group.state import Over, Reaped
from elastic.core.rendezvous import Arrive, Done, End, Evict, Leave, RendezvousState
from elastic.core.world import Why


def back(state: RendezvousState, names: str) -> RendezvousState:
    for each in names.split():
        state = edited(state, each, Arrive(profile(each)))
    return state


def test_a_wait_for_nodes_counts_them_names_those_here_and_advises_once() -> None:
    story = Story(me=node("gpu-01"))
    here = arrived(register("4"), "gpu-01 gpu-02")
    story.sees(here)
    story.lasts(14.0)
    story.sees(arrived(here, "gpu-03"), 14.3)
    story.lasts(80.0)
    story.reads(
        """
        elastic  round 0: waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2 · 00:02 of 10:00
                 with --nnodes=2:4 it would start with the 2 that are here in 5 s
        elastic  round 0: waiting for 1 of 4 nodes · here: gpu-01, gpu-02, gpu-03 · not yet seen: 1 · 00:15 of 10:00
        elastic  round 0: waiting for 1 of 4 nodes · here: gpu-01, gpu-02, gpu-03 · not yet seen: 1 · 01:15 of 10:00
        """
    )


def test_a_wait_of_less_than_two_seconds_is_not_shown() -> None:
    story = Story(me=node("gpu-01"))
    story.sees(arrived(register("2"), "gpu-01"))
    story.lasts(1.9)
    assert story.out.getvalue() == ""
    story.lasts(2.0)
    assert "waiting for 1 of 2 nodes" in story.out.getvalue()


def test_a_lost_node_and_its_replacement_are_named_and_no_restart_is_spent() -> None:
    story, state = two()
    lost = edited(state, "gpu-01", Evict(nodes("gpu-03")))
    story.sees(lost, 5.0)
    story.happens(Over(0, Why.LOST, node("gpu-01"), story.at(5.0)))
    story.stops(5.2)
    story.sees(back(lost, "gpu-01"), 5.2)
    story.lasts(40.0)
    again = back(lost, "gpu-01 gpu-07")
    story.sees(again, 40.0)
    story.starts_in(again.world, 40.1)
    story.reads(
        """
        elastic  round 0: 2 nodes, 2 workers, started in 100 ms
        elastic  gpu-03 lost · round 0 ends, no restart spent
        elastic  round 1: waiting for 1 of 2 nodes · here: gpu-01 · not yet seen: 1 · lost: gpu-03 · 00:02 of 10:00
                 with --nnodes=1:2 it would start with the one that is here in 5 s
        elastic  round 1: 2 nodes (gpu-07 for gpu-03), 2 workers, started · 35.1 s in all
        """
    )


def test_on_a_shared_host_a_lost_agent_and_its_replacement_are_named_by_their_slots() -> None:
    def shared(state: RendezvousState) -> RendezvousState:
        seats = {each: evolve(seat, profile=evolve(seat.profile, host="gpu")) for each, seat in state.seats.items()}
        return evolve(state, seats=seats)

    story, state = Story(me=node("a"), workers=1), shared(running("a b", "1:2"))
    story.sees(state)
    story.starts_in(state.world, 0.1)
    lost = edited(state, "a", Evict(nodes("b")))
    story.sees(lost, 5.0)
    story.happens(Over(0, Why.LOST, node("a"), story.at(5.0)))
    story.stops(5.2)
    alone = shared(edited(back(lost, "a"), "a", rendezvous.Complete(1)))
    story.sees(alone, 10.2)
    story.starts_in(alone.world, 10.2)
    story.reads(
        """
        elastic  round 0: 2 nodes, 2 workers, started in 100 ms
        elastic  b lost · round 0 ends, no restart spent
        elastic  round 1: 1 node (without b), 1 worker, started · 5.2 s in all
        """
    )


def test_members_expected_back_are_named_until_they_are_back() -> None:
    story, state = two("gpu-01 gpu-02 gpu-03", "3")
    lost = edited(state, "gpu-01", Evict(nodes("gpu-03")))
    story.sees(lost, 5.0)
    story.happens(Over(0, Why.LOST, node("gpu-01"), story.at(5.0)))
    story.stops(5.1)
    story.sees(back(lost, "gpu-01"), 5.1)
    story.lasts(7.1)
    story.sees(back(lost, "gpu-01 gpu-02"), 7.5)
    story.lasts(8.1)
    waiting = "elastic  round 1: waiting for 2 of 3 nodes · here: gpu-01 · expected back: gpu-02 · not yet seen: 1"
    both = "here: gpu-01, gpu-02 · not yet seen: 1"
    assert story.out.getvalue().splitlines()[2:] == [
        f"{waiting} · lost: gpu-03 · 00:02 of 10:00",
        f"elastic  round 1: waiting for 1 of 3 nodes · {both} · lost: gpu-03 · 00:03 of 10:00",
        "         with --nnodes=2:3 it would start with the 2 that are here in 5 s",
    ]


def test_a_node_that_leaves_is_named_and_so_is_the_smaller_world() -> None:
    story, state = two(size="1:2")
    left = edited(state, "gpu-03", Leave())
    story.sees(left, 5.0)
    story.happens(Over(0, Why.LEFT, node("gpu-03"), story.at(5.0)))
    story.stops(5.2)
    alone = edited(back(left, "gpu-01"), "gpu-01", rendezvous.Complete(1))
    story.sees(alone, 5.3)
    story.starts_in(alone.world, 5.3)
    story.reads(
        """
        elastic  round 0: 2 nodes, 2 workers, started in 100 ms
        elastic  gpu-03 left · round 0 ends, no restart spent
        elastic  round 1: 1 node (without gpu-03), 1 worker, started · 300 ms in all
        """
    )


def test_a_node_that_joins_a_running_job_is_named() -> None:
    story, state = two("gpu-01", "1:2")
    ended = edited(arrived(state, "gpu-09"), "gpu-01", End(0, Why.UPSCALE))
    story.sees(ended, 5.0)
    story.happens(Over(0, Why.UPSCALE, node("gpu-01"), story.at(5.0)))
    story.stops(5.2)
    grown = back(ended, "gpu-01 gpu-09")
    story.sees(grown, 5.2)
    story.starts_in(grown.world, 5.3)
    story.reads(
        """
        elastic  round 0: 1 node, 1 worker, started in 100 ms
        elastic  a node waits and there is room (upscale_after of --rdzv-conf says how long) · round 0 ends, no restart spent
        elastic  round 1: 2 nodes (with gpu-09), 2 workers, started · 300 ms in all
        """
    )


def test_a_failure_on_another_node_costs_a_restart_here_as_well() -> None:
    story = Story()
    story.starts(0.0, nodes=(HERE, THERE))
    story.happens(Over(0, Why.FAILED, THERE, story.at(5.0)))
    story.exits(0, -15, 5.1)
    story.exits(1, -15, 5.2)
    story.happens(Reaped(story.at(5.2)))
    story.starts(5.4, round=1, failures=1, nodes=(HERE, THERE))
    story.reads(
        """
        elastic  round 0: 2 nodes, 4 workers, started in 0 ms
        elastic  a worker failed on gpu-01 · round 0 ends
        elastic  restart 1 of 3: 2 workers stopped in 200 ms, 2 nodes back in 200 ms, round 1 started · 400 ms in all
        """
    )


def test_a_node_at_the_barrier_names_whom_it_waits_for_and_joins_again_after_a_failure() -> None:
    story, state = two()
    story.exits(0, 0, 3.0)
    done = edited(state, "gpu-01", Done(0))
    story.sees(done, 3.0)
    story.lasts(10.0)
    story.happens(Over(0, Why.FAILED, node("gpu-03"), story.at(10.0)))
    story.starts_in(evolve(state.world, id=state.world.id._replace(round=1), failures=1), 10.2)
    story.reads(
        """
        elastic  round 0: 2 nodes, 2 workers, started in 100 ms
        elastic  this node's workers are done · waiting for those of gpu-03
        elastic  a worker failed on gpu-03 · round 0 ends
        elastic  restart 1 of 3: 2 nodes back in 200 ms, round 1 started · 200 ms in all
        """
    )


def test_a_spare_s_wait_is_shown_without_a_limit() -> None:
    story = Story(me=node("gpu-03"))
    story.sees(arrived(running("gpu-01 gpu-02", "2"), "gpu-03"))
    story.lasts(62.0)
    story.reads(
        """
        elastic  round 0: spare, 2 of 2 seats are taken · 00:02
        elastic  round 0: spare, 2 of 2 seats are taken · 01:02
        """
    )
