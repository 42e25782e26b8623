"""Sentences about several nodes, made from worlds and registers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from attrs import evolve
from worlds import arrived, edited, node, nodes, profile, register, running, with_one_aside

from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.report.news import Restored, StoreSilent
from elastic.cli.render import sentences
from elastic.core import group
from elastic.core.group import Group
from elastic.core.group.state import Course, Deadline
from elastic.core.rendezvous import Arrive, Close, Done, End, Evict, Leave, RendezvousState, Restore, Seat, restored
from elastic.core.rendezvous.state import known_as
from elastic.core.world import Ending, Fault, Life, Member, Node, Notice, Origin, Verdict, Why, World, WorldId, world_of

SETTINGS = LaunchSettings(Program(Kind.SCRIPT, "x"), store="gpu-01:29400", group=group.Settings(fence=3.0))


def world(names: str, round: int = 1, failures: int = 0, size: int = 2) -> World:
    members = [Member(node(name), evolve(profile(name), local_world_size=size)) for name in names.split()]
    return world_of(WorldId(Life("l"), round), tuple(members), failures)


def on_one_host(state: RendezvousState) -> RendezvousState:
    seats = {each: evolve(seat, profile=evolve(seat.profile, host="gpu")) for each, seat in state.seats.items()}
    return evolve(state, seats=seats)


def test_an_incomplete_round_names_the_nodes_that_are_here_and_its_limit() -> None:
    state = arrived(register("4"), "gpu-01 gpu-02")
    assert sentences.joining(state, node("gpu-01"), "h:1", 14.9, 600.0) == (
        "round 0: waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2 · 00:14 of 10:00"
    )
    assert sentences.advice(state, 5.0) == ["         with --nnodes=2:4 it would start with the 2 that are here in 5 s"]


def test_without_a_register_there_is_no_advice() -> None:
    assert sentences.joining(None, node("a"), "h:1", 3.0, 600.0) == "store h:1 has not answered yet · 00:03 of 10:00"
    assert sentences.advice(None, 5.0) == []


def test_a_last_call_is_named_and_needs_no_advice() -> None:
    state = arrived(register("1:3"), "a")
    told = "round 0: last call, 1 of up to 3 nodes · here: a · 00:03 of 10:00"
    assert sentences.joining(state, node("a"), "h:1", 3.0, 600.0) == told
    assert sentences.advice(state, 5.0) == []


def test_agents_that_share_a_host_are_named_by_their_slots() -> None:
    a, b = "10.0.0.1/0123abcd", "10.0.0.1/1123abcd"
    state = on_one_host(arrived(register("3"), f"{a} {b}"))
    assert f" · here: {a}, {b} · " in sentences.joining(state, node(a), "h:1", 3.0, 600.0)
    assert [sentences.who(node(name), "gpu", state) for name in (a, b)] == [a, b]
    assert sentences.who(node(a), "gpu", on_one_host(arrived(register("3"), a))) == "gpu"
    assert sentences.who(node(a), "gpu", None) == "gpu"


def test_two_incarnations_of_one_slot_are_one_agent_of_their_host() -> None:
    a, b = "10.0.0.1/0123abcd", "10.0.0.2/1123abcd"
    left = edited(edited(running(f"{a} {b}"), a, Done(0)), a, Leave())
    back = arrived(left, f"{a}#2")
    seats = {
        each: evolve(seat, profile=evolve(seat.profile, host=f"gpu-{each.slot[7]}"))
        for each, seat in back.seats.items()
    }
    names = {node(a): "gpu-1", node(f"{a}#2"): "gpu-1", node(b): "gpu-2"}
    assert known_as(evolve(back, seats=seats), list(names)) == list(names.values())
    assert sentences.names_of(evolve(back, seats=seats)) == names


def test_a_spare_waits_without_a_limit() -> None:
    state = arrived(running("a b", "2"), "c")
    assert sentences.joining(state, node("c"), "h:1", 75.0, 600.0) == "round 0: spare, 2 of 2 seats are taken · 01:15"
    finishing = edited(state, "a", Done(0))
    told = "round 0: spare, the running round is finishing (2 nodes) · 01:15"
    assert sentences.joining(finishing, node("c"), "h:1", 75.0, 600.0) == told


@pytest.mark.parametrize(
    ("names", "change"),
    [
        ("gpu-01 gpu-07", " (gpu-07 for gpu-03)"),
        ("gpu-01 gpu-03 gpu-07", " (with gpu-07)"),
        ("gpu-01", " (without gpu-03)"),
        ("gpu-01 gpu-03", ""),
        ("gpu-07 gpu-08", " (gpu-07, gpu-08 for gpu-01, gpu-03)"),
    ],
)
def test_a_new_world_says_which_node_replaces_which(names: str, change: str) -> None:
    size = len(names.split())
    said = sentences.formed_anew(world(names), world("gpu-01 gpu-03", 0), running(names), 0.24)
    nodes_ = "1 node" if size == 1 else f"{size} nodes"
    assert said == f"round 1: {nodes_}{change}, {2 * size} workers, started · 240 ms in all"


@pytest.mark.parametrize(
    ("names", "who"), [("gpu-01 gpu-03#2", "gpu-03 is"), ("gpu-01#2 gpu-03#2", "gpu-01, gpu-03 are")]
)
def test_a_new_world_says_which_node_is_back(names: str, who: str) -> None:
    said = sentences.formed_anew(world(names), world("gpu-01 gpu-03", 0), running(names), 0.24)
    assert said == f"{who} back: round 1 started with 2 nodes, 4 workers, after 240 ms"


def test_a_first_world_says_its_start_and_one_after_a_failure_its_cost() -> None:
    assert sentences.round_began(world("a b", 0), 0.14) == "round 0: 2 nodes, 4 workers, started in 140 ms"
    after = world("a b", 3, failures=2)
    assert sentences.restarted(after, 3, 2, 0.2, 0.1) == (
        "restart 2 of 3: 2 workers stopped in 200 ms, 2 nodes back in 100 ms, round 3 started · 300 ms in all"
    )
    assert sentences.round_began(world("a b", 0), 0.9996).endswith(" started in 1.0 s")
    assert sentences.restarted(after, 3, 0, 0.0, 0.1) == (
        "restart 2 of 3: 2 nodes back in 100 ms, round 3 started · 100 ms in all"
    )


STATE = edited(running("gpu-01 gpu-02 gpu-03", "1:3"), "gpu-01", Evict(nodes("gpu-03")))
SAID: dict[Why | None, str] = {
    Why.FAILED: "a worker failed on gpu-02 · round 4 ends",
    Why.LOST: "gpu-03 lost · round 4 ends, no restart spent",
    Why.LEFT: "gpu-02 left · round 4 ends, no restart spent",
    Why.UPSCALE: "a node waits and there is room (upscale_after of --rdzv-conf says how long) · round 4 ends, "
    "no restart spent",
    Why.FENCED: "gpu-02 had lost the store and stopped its workers · round 4 ends, no restart spent",
    Why.ASKED: "round 4 ends: asked, no restart spent",
    None: "round 4 ends: the reason is unknown, no restart spent",
}


@pytest.mark.parametrize("why", SAID)
def test_a_round_that_another_node_ended_names_the_node_the_reason_and_the_cost(why: Why | None) -> None:
    before = world("gpu-01 gpu-02 gpu-03", 4)
    assert sentences.round_ended(4, why, node("gpu-02"), before, STATE) == SAID[why]


def test_a_round_that_ended_for_an_unknown_reason_is_still_reported() -> None:
    assert sentences.round_ended(4, Why.LOST, None, None, None).startswith("a node lost · ")
    assert sentences.round_ended(4, Why.LEFT, None, None, None).startswith("another node left ")
    assert sentences.round_ended(4, Why.FAILED, Node("x", 1), None, None) == "a worker failed on x · round 4 ends"


def test_who_leaves_and_takes_the_store_along_is_said_to() -> None:
    members = [Member(node("a"), evolve(profile("a"), serves_store=True)), Member(node("b"), profile("b"))]
    served = world_of(WorldId(Life("l"), 1), tuple(members))
    end = " · it serves the store, which ends with it"
    assert sentences.round_ended(1, Why.LEFT, node("a"), served, None).endswith(f"no restart spent{end}")
    assert end not in sentences.round_ended(1, Why.LEFT, node("b"), served, None)
    notice = Notice(60.0, "an operator")
    unfit = Group(node("a"), deadline=Deadline(Notice(60.0, "GPU 3 is lost"), 60.0, "GPU 3 is lost"))
    assert sentences.goes(unfit, Notice(60.0, "GPU 3 is lost")) == "unfit (GPU 3 is lost): leaving, no worker runs"
    assert sentences.given_notice(Group(node("a")), notice, serves=True) == (
        "drained by an operator: no worker runs, this node leaves within 60 s · its agent serves the store until the "
        "other nodes are gone, and no longer than that"
    )


def test_several_nodes_that_are_lost_at_once_are_all_named() -> None:
    state = edited(running("a b c", "1:3"), "a", Evict(nodes("b c")))
    assert sentences.round_ended(0, Why.LOST, node("a"), world("a b c", 0), state).startswith("b, c lost · ")


class Looked(dict[Node, Seat]):
    """Seats that count how often they are gone through."""

    often = 0

    def items(self) -> Any:
        self.often += 1
        return super().items()


@pytest.mark.parametrize(
    "say",
    [
        lambda world, state: sentences.round_ended(0, Why.FAILED, node("a"), world, state),
        lambda world, state: sentences.formed_anew(world, None, state, 1.0),
        sentences.other_contents,
    ],
    ids=["ended", "formed anew", "other contents"],
)
def test_a_sentence_of_many_nodes_goes_through_the_seats_once(say: Callable[[World, RendezvousState], str]) -> None:
    """Each agent says it: for each node once more, it took 0.13 s of CPU time with 1,024 nodes."""
    state = running("a b c", "1:3")
    state = evolve(state, seats={each: _with_content(seat, each.slot) for each, seat in state.seats.items()})
    seats = Looked(state.seats)
    say(state.world, evolve(state, seats=MappingProxyType(seats)))
    assert seats.often == 1


def _with_content(seat: Seat, content: str) -> Seat:
    return evolve(seat, profile=evolve(seat.profile, program="train.py", content=content))


def test_a_failure_on_a_shared_host_is_named_by_its_slot() -> None:
    fault = Fault(node("b"), 0, 5, 1, 8812, 1, 12.41, 8, "gpu", "now", "exit code 1", "", "logs/1.log")
    assert sentences.failed(fault, on_one_host(arrived(register("2"), "a b"))) == [
        "b rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s",
        "           last lines: logs/1.log (b)",
    ]


def test_an_exception_is_reported_once_and_of_the_end_only_what_does_not_follow_from_it() -> None:
    state = on_one_host(arrived(register("2"), "a b"))
    raised = Fault(
        node("b"), 0, 5, 1, 8812, None, 12.41, 8, "gpu", "now", "ValueError: boom", "t.py:3", origin=Origin.RAISE
    )
    assert sentences.failed(raised, state) == [
        "b rank 5 (local 1, pid 8812) failed: uncaught exception after 12.4 s",
        "           ValueError: boom      t.py:3",
    ]
    assert sentences.failed(evolve(raised, exit_code=1), state) == []
    late = evolve(raised, exit_code=-15, remark="still running 2 s after its exception, told to end")
    assert sentences.failed(late, state) == [
        "b rank 5 (local 1, pid 8812) ended, killed by SIGTERM: still running 2 s after its exception, told to end"
    ]
    assert sentences.failed(evolve(raised, exit_code=7), state) == [
        "b rank 5 (local 1, pid 8812) ended, exit code 7 after its exception"
    ]


def test_a_node_at_the_barrier_names_the_nodes_that_it_waits_for() -> None:
    state, done = edited(running("a b c", "3"), "b", Done(0)), Group(node("b"), course=Course(done_at=1.0))
    assert sentences.at_the_barrier(done, state) == "this node's workers are done · waiting for those of a, c"
    assert sentences.at_the_barrier(done, None) == "this node's workers are done"


def test_a_node_that_waits_for_the_node_of_the_rank_that_ended_the_job_says_so() -> None:
    assert sentences.at_the_barrier(Group(node("b"), course=Course(heard_at=1.0)), None) == (
        "another rank ended the job, so this node's workers have ended · waiting for that rank's node"
    )


@pytest.mark.parametrize(("working", "meanwhile"), [(True, "workers run on, "), (False, "")])
def test_a_silent_store_is_reported_with_what_goes_on_and_the_cause(working: bool, meanwhile: str) -> None:
    said = sentences.store_silent(StoreSilent("no register there: --rdzv-id", 10.0), 22.4, SETTINGS, working)
    assert said == [
        f"store gpu-01:29400 out of reach for 12 s; {meanwhile}no node can join or leave meanwhile",
        "         no register there: --rdzv-id",
    ]


def test_fenced_workers_are_counted_and_the_option_is_named() -> None:
    running_two = Group(node("a"), SETTINGS.group, running=frozenset({0, 1}))
    assert sentences.fenced(running_two, SETTINGS) == (
        "2 workers killed (--on-store-loss=stop): for 3 s no heartbeat reached store gpu-01:29400"
    )


def test_a_node_that_arrives_or_comes_back_is_news_of_the_round() -> None:
    one = arrived(register("3"), "a")
    lost = edited(running("a b c", "1:3"), "a", Evict(nodes("c")))
    told = [sentences.statuses(state) for state in (None, one, arrived(one, "b"), lost, edited(lost, "b", ARRIVE))]
    assert len(set(map(repr, told))) == len(told)
    assert sentences.statuses(one) == sentences.statuses(evolve(one, version=99))


ARRIVE = Arrive(profile("b"))


HELD = running("a b", restarts=3)
BACK = restored(Restore(HELD, "again"), None)
FORMING = evolve(arrived(register("3"), "z"), life=Life("new"), job="new")
KEPT = "round 0, 0 restarts spent; later changes, if any, are lost"


@pytest.mark.parametrize(
    ("found", "by_me", "said"),
    [
        (None, True, f"store gpu-01:29400 came back empty · restored from this node: {KEPT}"),
        (FORMING, True, f"store gpu-01:29400 came back empty · restored from this node: {KEPT}"),
        (
            arrived(register("2"), "a"),
            True,
            f"store gpu-01:29400 came back with something older · restored from this node: {KEPT}",
        ),
        (None, False, f"store gpu-01:29400 was lost · restored by another node: {KEPT}"),
    ],
    ids=["empty", "a new job was forming there", "older", "by another"],
)
def test_a_store_that_lost_its_memory_is_reported_with_what_was_restored(
    found: RendezvousState | None, by_me: bool, said: str
) -> None:
    assert sentences.store_lost(Restored(HELD, found, BACK, by_me, 1.0), SETTINGS) == [said]


def test_another_job_with_the_same_run_id_is_reported() -> None:
    other = evolve(running("y z"), life=Life("new"), job="new", completed_in=Life("new"))
    assert sentences.store_lost(Restored(HELD, None, other, False, 1.0), SETTINGS) == [
        "store gpu-01:29400 was lost; another job has the id none now, and this node joins it as a newcomer"
    ]
    anew = evolve(running("a#2 z"), life=Life("new"), job="new", completed_in=Life("new"))
    assert sentences.store_lost(Restored(HELD, None, anew, False, 1.0), SETTINGS) == [
        "store gpu-01:29400 was lost; its nodes have begun job none again, and this node joins it as a newcomer"
    ]
    over = edited(anew, "z", Close(Verdict(Ending.FAILED, 0, node("z"), Why.CANNOT_START)))
    assert sentences.store_lost(Restored(HELD, None, over, False, 1.0), SETTINGS) == [
        "run id none was closed FAILED after its nodes had begun it anew; for a new one use another --rdzv-id"
    ]
    over = edited(other, "y", Close(Verdict(Ending.FAILED, 0, node("y"), Why.CANNOT_START)))
    assert sentences.store_lost(Restored(HELD, None, over, False, 1.0), SETTINGS) == [
        "run id none was closed FAILED by another job; for a new one use another --rdzv-id"
    ]


def test_a_node_that_is_set_aside_is_named_once_with_the_reason_and_the_time_and_so_is_its_return() -> None:
    state = with_one_aside(cooldown_s=60.0)
    (told,) = sentences.aside(running("a b c", "1:3", 5), state, 0.0)
    assert re.fullmatch(r"b is set aside after 2 failures, for 01:00, until \d\d:\d\d:\d\d", told)
    assert sentences.aside(None, state, 0.0) == [told]
    assert sentences.aside(state, edited(state, "a", End(1, Why.FENCED)), 0.0) == []
    assert sentences.aside(state, arrived(state, "b"), 0.0) == ["b is back after it was set aside"]
    lost = edited(state, "a", Evict(nodes("b")))
    assert sentences.aside(state, lost, 0.0) == []
    alone = edited(edited(state, "a", Evict(nodes("c"))), "a", Evict(nodes("a")))
    assert sentences.aside(state, alone, 0.0) == ["b is called back: without it there are too few nodes"]


def test_a_look_at_a_register_asks_for_the_names_of_all_nodes_no_more_than_once() -> None:
    """An agent looks at every version. A name for each node, each found among all nodes, took most of its CPU time."""

    def calls(names: str) -> int:
        before = running(names)
        after = edited(before, names.split()[0], End(0, Why.FAILED))
        seen = list[str]()
        sys.setprofile(lambda frame, event, _: seen.append(event) if "call" in event else None)
        try:
            assert sentences.cause_found(before, after) + sentences.aside(before, after, 0.0) == []
        finally:
            sys.setprofile(None)
        return len(seen)

    assert calls(" ".join(f"n{number}" for number in range(128))) < calls("a b") + 16
