"""A job as `elastic status --json` tells it: the places at which its workers were stopped last."""

from __future__ import annotations

from attrs import evolve
from worlds import edited, node, profile, register, running

from elastic.cli.render.job import Job, data, lines
from elastic.core.rendezvous import Arrive
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
