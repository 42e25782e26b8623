"""The sentence that explains a state to people."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import arrived, edited, node, nodes, profile, register, running

from elastic.core.rendezvous import Arrive, Close, Done, Drain, End, Evict, Leave, RendezvousState, explain
from elastic.core.rendezvous.explain import clock, hint, named, naming
from elastic.core.world import Ending, Notice, Verdict, Why

FAILED = edited(running("a b c", size="2:4", restarts=1), "a", End(0, Why.FAILED))
CANCELLED = edited(running(), "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))


def on_host(state: RendezvousState, who: str, host: str) -> RendezvousState:
    return edited(state, who, Arrive(evolve(profile(who), host=host)))


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (None, "nobody has arrived yet"),
        (register("2"), "round 0: waiting for 2 of 2 nodes · here: nobody · not yet seen: 2"),
        (arrived(register("2:4"), "a"), "round 0: waiting for 1 of 2 nodes · here: a · not yet seen: 1"),
        (arrived(register("2:4"), "a b"), "round 0: last call, 2 of up to 4 nodes · here: a, b"),
        (arrived(FAILED, "a"), "round 1: waiting for 2 of 3 nodes · here: a · expected back: b, c"),
        (
            arrived(edited(running("a b c"), "c", Leave()), "a"),
            "round 1: waiting for 2 of 3 nodes · here: a · expected back: b · not yet seen: 1",
        ),
        (
            edited(running("a b c d e", size="5", restarts=1), "e", Leave()),
            "round 1: waiting for 5 of 5 nodes · here: nobody · expected back: a, b, c, d · not yet seen: 1",
        ),
        (
            arrived(edited(running(), "a", Evict(nodes("b"))), "a"),
            "round 1: waiting for 1 of 2 nodes · here: a · not yet seen: 1 · lost: b",
        ),
        (
            arrived(edited(running("a b c", size="1:4"), "a", Evict(nodes("b c"))), "c#2"),
            "round 1: waiting for 1 of 2 nodes · here: c · expected back: a · lost: b",
        ),
        (running("a"), "round 0: 1 node running"),
        (running(), "round 0: 2 nodes running"),
        (edited(running(), "a", Done(0)), "round 0: 1 of 2 nodes done · waiting for b"),
        (edited(running("a b c d"), "a", Done(0)), "round 0: 1 of 4 nodes done · waiting for b, c, d"),
        (CANCELLED, "closed: cancelled in round 0 (asked)"),
    ],
)
def test_the_sentence_says_what_the_round_waits_for(state: RendezvousState | None, text: str) -> None:
    assert explain(state, node("a")) == text


def test_a_spare_is_told_why_it_waits() -> None:
    full = arrived(running(), "c")
    assert explain(full, node("c")) == "round 0: spare, 2 of 2 seats are taken"
    finishing = edited(arrived(running(), "c"), "a", Done(0))
    assert explain(finishing, node("c")) == "round 0: spare, the running round is finishing (2 nodes)"
    drain = Drain(node("b"), Notice(900.0, "an operator"))
    drained = edited(arrived(running(size="1:3"), "c"), "operator", drain)
    text = "round 0: spare, the running round goes on until its drained nodes leave (b)"
    assert explain(drained, node("c")) == text
    assert explain(edited(full, "operator", drain), node("c")) == "round 0: spare, 2 of 2 seats are taken"


MADE_UP = ("10.0.0.1/0123abcd", "10.0.0.2/1123abcd", "10.0.0.2/2123abcd")


def test_a_node_is_named_by_its_id_else_by_its_host_or_by_its_slot_where_several_share_one() -> None:
    x, y, z = MADE_UP
    state = on_host(on_host(on_host(register("5"), x, "gpu-01"), y, "gpu-02"), z, "gpu-02")
    told = f"round 0: waiting for 1 of 5 nodes · here: gpu-01, {y}, {z}, w · not yet seen: 1"
    assert explain(on_host(state, "w", "gpu-03"), node(x)) == told


def test_a_node_that_has_only_a_node_rank_is_named_by_its_host() -> None:
    placed = evolve(profile("0"), host="gpu-01", labels=(("node_rank", "0"),))
    state = edited(register("2"), "0", Arrive(placed))
    assert " · here: gpu-01 · " in explain(state, node("0"))
    assert naming(state)(node("0#7"), "gpu-01") == "gpu-01"  # an earlier one of its slot, on record with its host alone


def test_a_record_names_its_node_as_the_register_does() -> None:
    x, y, z = MADE_UP
    state = on_host(on_host(register("4"), y, "gpu-02"), z, "gpu-02")
    assert [naming(state)(node(each), "gpu-02") for each in (y, z)] == [y, z]
    assert [naming(None)(node(each), "gpu-02") for each in (x, "rack/7", "gpu-9")] == ["gpu-02", "rack/7", "gpu-9"]
    assert naming(None, running("a b").world)(node("a"), "gpu-02") == "a"
    assert naming(None)(node(x), "") == x


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00"), (14.9, "00:14"), (59, "00:59"), (605, "10:05"), (-1, "00:00")]
)
def test_a_clock_shows_minutes_and_seconds(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_hint_says_with_which_limits_it_would_start() -> None:
    one = "with --nnodes=1:4 it would start with the one that is here in 5 s"
    assert hint(arrived(register("3:4"), "a"), 5.0) == one
    two = "with --nnodes=2:4 it would start with the 2 that are here in 0.5 s"
    assert hint(arrived(register("3:4"), "a b"), 0.5) == two


@pytest.mark.parametrize(
    "state",
    [None, register("2"), running(), arrived(register("1:3"), "a"), arrived(FAILED, "a"), CANCELLED],
    ids=["absent", "nobody", "complete", "quorum", "expected", "closed"],
)
def test_there_is_no_hint_where_nobody_waits_for_the_minimum(state: RendezvousState | None) -> None:
    assert hint(state, 5.0) == ""


def test_of_many_nodes_a_few_are_named() -> None:
    state = arrived(register("12"), " ".join("abcdefghij"))
    assert named(state, state.participants) == "a, b, c, d, e, f, g, h and 2 more"
    assert named(state, state.participants[:8]) == "a, b, c, d, e, f, g, h"
    more = arrived(register("26"), " ".join("abcdefghijklmnopqr"))
    assert named(more, more.participants) == "a, b, c, d, e, f, g, h and 10 more"
