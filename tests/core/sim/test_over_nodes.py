"""Ranks in the workers of simulated nodes: random runs keep all laws, and each law that connects the two is judged."""

from __future__ import annotations

import pytest
from attrs import evolve

from elastic.core.group import Phase
from elastic.core.group.state import Departure, Heart, LeaveReason
from elastic.core.inprocess.exits import HEARD, JOB_OVER
from elastic.core.inprocess.words import Raised, Reason
from elastic.core.rendezvous import Complete, Evict
from elastic.core.sim.calls import node_laws
from elastic.core.sim.calls.call_world import Rank, put
from elastic.core.sim.calls.moves import Move
from elastic.core.sim.calls.nodes_walk import walked_over_nodes
from elastic.core.sim.calls.over_nodes import OverNodes
from elastic.core.sim.chance import seeded
from elastic.core.sim.process import Process
from elastic.core.sim.story import QUICK, parsed_operation
from elastic.core.violation import Violation
from elastic.core.world import Node

RUNS = 14
"""property_tests/test_calls.py makes 100 and more, and asks what they show."""


def over(*lines: str) -> OverNodes:
    """Return three nodes with two ranks each, after these operations."""
    world = OverNodes(seeded(0), QUICK.but(nodes=3, max=3, workers=2, alone=1), tell=True)
    world.heals()  # no rank has faults of its own
    for line in ("start a", "start b", "start c", "pass 5", *lines):
        world.does(parsed_operation(line))
    return world


def ranks(world: OverNodes) -> tuple[Rank, ...]:
    (calls,) = world.registers.values()
    return calls.ranks


def of(world: OverNodes, slot: str) -> Rank:
    return next(rank for rank in ranks(world) if rank.node.slot == slot)


def node(world: OverNodes, slot: str) -> Process:
    process = world.nodes.at(slot)
    assert process is not None
    return process


def test_workers_that_start_after_their_node_has_lost_its_seat_give_it_none() -> None:
    world = over()
    process, register = node(world, "a"), world.nodes.store.register
    assert register is not None and process.group.world is not None
    world.unseated = frozenset({process.node})
    world.started(process, process.group.world)
    assert world.unseated == frozenset()
    world.unseated = frozenset({process.node})
    seats = {each: seat for each, seat in register.seats.items() if each != process.node}
    world.nodes.store.register = evolve(register, seats=seats)
    world.started(process, process.group.world)
    assert world.unseated == {process.node}


def test_random_runs_keep_all_laws() -> None:
    runs = [walked_over_nodes(seed) for seed in range(RUNS)]
    assert [(seed, run.broken) for seed, run in enumerate(runs) if run.broken] == []


def test_a_run_can_be_told_and_is_the_same_again() -> None:
    told = walked_over_nodes(3, nodes=3, tell=True)
    again = walked_over_nodes(3, nodes=3)
    assert (told.steps, told.seen, again.told) == (again.steps, again.seen, ())
    assert any("rank 0#1: " in line for line in told.told)
    assert any("starts" in line for line in told.told)


def test_a_property_of_a_user_is_judged_too() -> None:
    run = walked_over_nodes(0, also=(lambda judge, fact: [("mine", "a fact")],))
    assert run.broken == ("mine", "mine: a fact")


def test_an_operator_has_no_ranks_and_throws_none_out() -> None:
    world = over("cancel")
    world.does(parsed_operation("pass 9"))
    world.ends()
    assert not any(rank.runs for rank in ranks(world))


def test_the_ranks_of_a_lost_node_are_thrown_out_and_the_others_run_on() -> None:
    world = over("crash c", "pass 9")
    assert [rank.alive for rank in ranks(world)].count(True) == 4
    (calls,) = world.registers.values()
    assert calls.register and calls.register.complete
    assert len(calls.register.members) == 4
    assert world.seen["ranks are thrown out with their node"]
    assert world.seen["ranks are told to stop"] == 0


def test_the_ranks_of_a_node_that_was_silent_and_has_returned_stay_when_another_is_lost() -> None:
    """Its incarnation is the same, so its new ranks are of a party of the same name."""
    world = over("pause-heart c 7", "pass 20", "crash b", "pass 9")
    (calls,) = world.registers.values()
    living = {rank.node for rank in calls.ranks if rank.runs}
    assert calls.register and living == set(calls.register.members)
    assert len(living) == 4


def test_a_failed_round_begins_another_generation_with_a_register_of_its_own() -> None:
    world = over("fail a", "pass 1", "fail a", "pass 1", "fail a", "pass 9")
    old, new = world.registers.values()
    assert not any(rank.runs for rank in old.ranks)
    assert sum(rank.runs for rank in new.ranks) == 6
    assert world.seen["another generation begins"] == 1


def on_the_way(*codes: int) -> tuple[OverNodes, Process]:
    """Return a world, and its node a, which is on the way into the next round. Its ranks die there, each with its code. c
    keeps the others waiting for a while."""
    world = over("pause c 2", "drain b", "pass 0.1")
    a = node(world, "a")
    for local_rank, code in enumerate(codes):
        world.nodes.agents.workers.dies(a, local_rank, code, a.attempt.number)
    assert a.group.phase is Phase.MOVING
    return world, a


def test_one_rank_of_two_that_gives_up_on_the_way_ends_the_next_round_as_failed() -> None:
    world, a = on_the_way(min(JOB_OVER))
    assert a.workers
    world.does(parsed_operation("pass 9"))
    assert a.attempt.world is not None and a.attempt.world.round == 2


def test_a_node_that_ends_the_next_round_for_what_a_rank_heard_on_the_way_may_do_so() -> None:
    world, a = on_the_way(*HEARD)
    world.does(parsed_operation("pass 40"))
    assert a.attempt.world is not None and a.attempt.world.round >= 2


def test_a_node_whose_ranks_have_succeeded_and_heard_on_the_way_is_done_in_the_next_round() -> None:
    world, a = on_the_way(*HEARD, 0)
    world.does(parsed_operation("pass 9"))
    assert a.group.phase is Phase.BARRIER and a.group.course.done_at is not None


def test_a_rank_that_starts_again_leaves_the_code_of_another_one_that_gave_up() -> None:
    world, a = on_the_way(*JOB_OVER, 1)
    world.does(parsed_operation("pass 9"))
    assert a.attempt.world is not None and a.attempt.world.round == 2


def test_ranks_do_not_reach_the_store_while_their_agent_stands_still() -> None:
    world = over("pause a 2", "pass 1", "crash c", "pass 0.5")
    assert world.seen["ranks lose the store with their node"] == 2
    world.does(parsed_operation("pass 20"))
    assert not any(rank.cut_off for rank in ranks(world) if rank.runs)


def test_a_node_that_is_out_of_reach_for_long_is_waited_for_by_its_own_ranks() -> None:
    world = over("fail b", "cut a 4", "pass 30")
    assert sum(rank.runs for rank in ranks(world)) == 6


def test_a_rank_waits_for_a_world_as_long_as_its_barrier_timeout() -> None:
    world = over()
    (key,) = world.registers
    move = Move("driver is too late", 0)
    assert [world._may_be_late(key, world.registers[key], move, rested) for rested in (5.0, 200.0)] == [False, True]


def test_N1_an_agent_that_stops_living_ranks_for_no_reason_of_its_own_is_found() -> None:
    world = over()
    process = node(world, "a")
    with pytest.raises(Violation, match="N1: a stops its living ranks of round 0"):
        world.signalled(process, 15)
    process.attempt.world = None
    with pytest.raises(Violation, match="of no round"):
        node_laws.N1.judge(process, ())


@pytest.mark.parametrize("why", ["leaves", "was told", "failed", "fenced"])
def test_N1_a_node_stops_its_own_ranks_for_reasons_of_its_own(why: str) -> None:
    process = node(over(), "a")
    group = process.group
    assert list(node_laws.may_stop(process, 5.0)) == []
    match why:
        case "leaves":
            process.agent = evolve(
                process.agent, group=evolve(group, departure=Departure(LeaveReason.SIGNAL, 5.0, signum=15))
            )
        case "was told":
            process.agent = evolve(process.agent, group=evolve(group, refused=object()))  # type: ignore[arg-type]
        case "failed":
            process.attempt.codes.append(1)
        case _:
            process.agent = evolve(
                process.agent, group=evolve(group, settings=evolve(group.settings, fence=3.0), heart=Heart(-9.0))
            )
    assert len(list(node_laws.may_stop(process, 5.0))) == 1


def test_N1_a_call_whose_place_was_given_away_is_found() -> None:
    rank = of(over(), "0")
    node_laws.N1.judge(None, (), evolve(rank, returned=Raised(Reason.DRAINED)))
    with pytest.raises(Violation, match="N1: the call of 0#1 ends: a later incarnation"):
        node_laws.N1.judge(None, (), evolve(rank, returned=Raised(Reason.SUPERSEDED)))


def test_N2_an_agent_that_throws_out_ranks_of_a_living_node_is_found() -> None:
    world = over()
    (key,) = world.registers
    with pytest.raises(Violation, match="N2: a throws rank 4#1 out, but c lives"):
        world._writes(key, node(world, "a"), Evict(frozenset((of(world, "4").node,))))


def test_N3_a_rank_that_lives_without_a_seat_when_nothing_moves_is_found() -> None:
    world = over()
    (calls,) = world.registers.values()
    node_laws.N3.judge(calls, calls.ranks)
    stranger = evolve(calls.ranks[0], node=Node("9", 1))
    with pytest.raises(Violation, match="N3: 9#1 is running and has no seat"):
        node_laws.N3.judge(put(calls, 0, stranger), [stranger])
    with pytest.raises(Violation, match="has no seat"):
        node_laws.N3.judge(evolve(calls, register=None), [stranger])
    node_laws.N3.judge(calls, [evolve(stranger, cut_off=True)])


def test_N4_a_first_world_that_an_agent_begins_without_ranks_that_come_is_found() -> None:
    world = over()
    ((key, calls),) = world.registers.items()
    assert calls.register is not None
    seats = {rank: seat for rank, seat in calls.register.seats.items() if rank.slot != "4"}
    world.registers[key] = evolve(calls, register=evolve(calls.register, seats=seats))
    with pytest.raises(Violation, match="N4: a begins the first world of its ranks with 1 of c#1, which has a seat"):
        world._writes(key, node(world, "a"), Complete(0))


def test_N4_an_agent_may_begin_the_first_world_of_its_ranks_when_all_that_come_are_in() -> None:
    world = over()
    (key,) = world.registers
    world._writes(key, node(world, "a"), Complete(0))
    assert world.seen["a first world begins without the ranks of a lost node"] == 1
