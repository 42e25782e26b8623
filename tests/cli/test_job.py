"""A job as `elastic status --json` tells it: the places at which its workers were stopped last."""

from __future__ import annotations

from attrs import evolve
from narration import FAULT
from worlds import edited, node, profile, register, running, with_one_aside

from elastic.cli.render.history import DOES
from elastic.cli.render.job import FAILURES_SHOWN, WORDS, Job, data, lines
from elastic.cli.render.page import LOOKS
from elastic.core.rendezvous import Arrive, Status
from elastic.core.world import Stacks, Unfit


def test_equal_stacks_of_the_last_stopped_round_are_one_place() -> None:
    stacks = (
        Stacks(node("a"), 2, ((0, "x"), (1, "y"))),
        Stacks(node("b"), 2, ((2, "x"),)),
        Stacks(node("c"), 1, ((3, "x"),)),
    )
    told = data(Job("job", "store", running("a b"), stacks=stacks), running("a b"))
    assert told["stacks"] == [{"round": 2, "place": "x", "ranks": [0, 2]}, {"round": 2, "place": "y", "ranks": [1]}]
    assert data(Job("job", "store", running()), running())["stacks"] == []


def test_nodes_that_stay_out_are_named_with_their_reasons() -> None:
    unfit = tuple(
        Unfit(node(f"n{each}"), f"gpu-0{each}", "12:00:00", f"GPU {each} is lost\nsee dmesg") for each in range(7)
    )
    job = Job("job", "store", running("a b"), unfit=unfit)
    told = lines(job, running("a b"))
    assert told[-6:-4] == ["7 nodes out of the job by their checks:", "  gpu-02  12:00:00  GPU 2 is lost"]
    assert data(job, running("a b"))["unfit"][0] == {
        "node": "n0#1",
        "host": "gpu-00",
        "when": "12:00:00",
        "reason": "GPU 0 is lost\nsee dmesg",
    }
    assert data(Job("job", "store", running()), running())["unfit"] == []


def test_a_program_is_told_the_labels_of_each_node() -> None:
    state = edited(register("1", 1), "a", Arrive(evolve(profile("a"), labels=(("node_rank", "0.0"), ("rack", "r7")))))
    assert data(Job("job", "store", state), state)["nodes"][0]["labels"] == {"node_rank": "0.0", "rack": "r7"}


def test_a_node_that_is_set_aside_is_named_with_the_reason_and_the_time() -> None:
    state = with_one_aside()
    told = lines(Job("job", "store", state), state)
    assert told[0].startswith("job job at store · round 1: 2 nodes running · set aside: b · ")
    assert next(line.split()[:3] for line in told if line.startswith("b ")) == ["b", "set", "aside"]
    assert told[-1] == "b is set aside after 2 failures, for 10:00"
    faults = (evolve(FAULT, node=node("b"), when="2026-01-01 13:05:40"), evolve(FAULT, node=node("a"), when="x y"))
    known = Job("job", "store", state, faults=faults)
    assert "b is set aside after 2 failures, for 10:00 since 13:05:40" in lines(known, state)
    nodes = {each["host"]: each for each in data(known, state)["nodes"]}
    assert (nodes["b"]["state"], nodes["b"]["failing"]) == ("set aside", {"failures": 2, "cooldown_s": 600.0})
    assert (nodes["a"]["state"], nodes["a"]["failing"]) == ("running", None)


def test_of_many_nodes_that_are_set_aside_some_are_named() -> None:
    state = with_one_aside()
    seat = state.seats[node("b")]
    more = {node(f"n{each}"): evolve(seat, order=10 + each) for each in range(FAILURES_SHOWN)}
    many = evolve(state, seats={**state.seats, **more}, next_order=99)
    assert lines(Job("job", "store", many), many)[-1] == "and 1 node more"


def test_every_status_of_a_seat_has_its_word_its_look_and_its_lane() -> None:
    assert {*WORDS, Status.IN} == {*LOOKS} == {*DOES} == {*Status}
