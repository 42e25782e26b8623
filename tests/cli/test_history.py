"""What an onlooker remembers of a job, and what the page is told of it."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from narration import FAULT
from seats import seated
from worlds import arrived, edited, node, register, running, with_one_aside

from elastic.cli.render.history import (
    EVENTS_MAX,
    LANES_MAX,
    MARKS_MAX,
    ROUNDS_MAX,
    SPANS_MAX,
    History,
    lanes,
    observed,
    unanswered,
)
from elastic.cli.render.job import Job
from elastic.cli.render.page import FAILURES_MAX, PLACES_MAX, page, shown, timeline
from elastic.core.group.state import Alone
from elastic.core.rendezvous import Done, Drain, End, Evict, RendezvousState
from elastic.core.world import Fault, Node, Notice, Stacks, Unfit, Why

NONE = History(Job("train", "gpu-01:29400", None))
TWO = running("a b", size="1:2", restarts=3)
FAILED = edited(TWO, "b", End(0, Why.FAILED))


def seen(*states: RendezvousState, history: History = NONE) -> History:
    """A history of one state each second."""
    for state in states:
        history = observed(history, evolve(history.job, state=state), history.at + 1)
    return history


def texts(history: History) -> list[str]:
    return [event.text for event in history.events]


def told(history: History, alone: Alone | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(history, 0.0, alone))
    return found


def fault(who: Node, round: int, rank: int) -> Fault:
    return evolve(FAULT, node=who, round=round, rank=rank, host=who.slot)


def test_the_end_of_a_round_and_the_next_one_are_events_with_the_time_between() -> None:
    back = arrived(FAILED, "a b")
    history = seen(TWO, FAILED, back)
    assert texts(history) == [
        "first look · round 0: 2 nodes running",
        "round 0 ended: failed, by b",
        "round 1 runs: 2 nodes, 2 workers · 1.0 s after the round before",
    ]
    assert [(each.number, each.began_at, each.broken_at, each.how) for each in history.rounds] == [
        (0, 1.0, None, "failed"),
        (1, 3.0, 2.0, ""),
    ]


def test_a_recovery_that_was_over_before_it_was_seen_is_told_in_its_order() -> None:
    assert texts(seen(TWO, arrived(FAILED, "a b")))[1:] == [
        "round 0 ended: failed, by b",
        "round 1 runs: 2 nodes, 2 workers · 0 ms after the round before",
    ]


def test_nodes_that_go_and_come_are_named() -> None:
    lost = edited(TWO, "a", Evict(frozenset({node("b")})))
    history = seen(TWO, lost, arrived(lost, "c"))
    assert "gone: b" in texts(history) and "arrived: c" in texts(history)


def test_the_end_of_the_job_is_the_last_event() -> None:
    over = edited(edited(TWO, "a", Done(0)), "b", Done(0))
    history = seen(TWO, over)
    assert over.closed and texts(history)[-1] == f"round 0 ended: succeeded, by {over.closed.by.slot}"
    assert told(history)["state"] == "succeeded"


def test_a_failure_is_an_event_once_and_none_if_it_was_there_before() -> None:
    first, second = fault(node("b"), 0, 1), fault(node("a"), 0, 0)
    history = observed(NONE, evolve(NONE.job, state=TWO, faults=(first,)), 1)
    history = observed(history, evolve(history.job, faults=(first, second)), 2)
    history = observed(history, history.job, 3)
    assert [text for text in texts(history) if "failed in round" in text] == [
        "a rank 0 failed in round 0: exit code 1 · RuntimeError: an illegal memory access"
    ]


def test_a_node_that_stays_out_is_an_event_once() -> None:
    before = seen(TWO)
    job = evolve(before.job, unfit=(Unfit(node("c"), "gpu-03", "12:00", "GPU 3 is lost\nmore"),))
    after = observed(observed(before, job, 2.0), job, 3.0)
    assert [each.text for each in after.events[len(before.events) :]] == ["gpu-03 stays out: GPU 3 is lost"]


def test_a_node_that_is_set_aside_is_an_event_once_and_its_tile_says_why() -> None:
    state = with_one_aside()
    history = seen(running("a b c", "1:3", 5), state, edited(state, "a", End(1, Why.FENCED)))
    assert [text for text in texts(history) if "aside" in text] == ["set aside after 2 failures, for 10:00: b"]
    tiles = {tile["host"]: (tile["state"], tile["look"], tile["aside"]) for tile in told(history)["nodes"]}
    assert tiles["b"] == ("set aside", "spare", "set aside after 2 failures, for 10:00")
    assert tiles["a"] == ("expected back", "expected", "")


def test_a_node_that_leaves_because_it_is_drained_has_a_lane_until_it_is_gone() -> None:
    ended = edited(edited(TWO, "operator", Drain(node("b"), Notice(9.0, "x"))), "a", End(0, Why.FENCED))
    history = seen(TWO, ended)
    assert history.doing[node("b")].kind == "stopping"


def test_the_first_cause_is_of_the_node_that_ended_the_round() -> None:
    echo, cause = fault(node("a"), 0, 0), fault(node("b"), 0, 1)
    history = seen(TWO, FAILED)
    history = observed(history, evolve(history.job, faults=(echo, cause)), 4)
    assert [(each["who"], each["cause"]) for each in told(history)["failures"]] == [
        ("b rank 1", True),
        ("a rank 0", False),
    ]


def test_where_workers_restart_alone_a_failure_that_was_mended_is_not_the_first_cause() -> None:
    mended, missing = fault(node("b"), 0, 0), fault(node("b"), 0, 1)
    history = seen(TWO, FAILED)
    history = observed(history, evolve(history.job, faults=(mended, missing)), 4)
    assert [each["cause"] for each in told(history)["failures"]] == [False, True]
    assert [each["cause"] for each in told(history, Alone(1))["failures"]] == [True, False]


def test_a_silent_store_is_one_event_and_its_return_another() -> None:
    history = unanswered(unanswered(seen(TWO), "no answer", 5), "no answer", 6)
    assert told(history)["silent"] == {"why": "no answer", "since": 5}
    back = observed(history, history.job, 8)
    assert texts(back)[-2:] == ["the store: no answer", "the store answers again after 3.0 s"]
    assert told(back)["silent"] is None


def test_a_store_that_forgets_the_job_says_so() -> None:
    history = seen(TWO)
    gone = observed(history, evolve(history.job, state=None), 2)
    assert texts(gone)[-1] == "the store remembers this job no longer"
    assert "has no job train" in told(gone)["sentence"]


def test_an_onlooker_who_stays_for_months_keeps_little() -> None:
    history, state = NONE, TWO
    for _ in range(600):
        ended = edited(state, "b", End(state.round, Why.UPSCALE))
        state = arrived(ended, "a b")
        history = seen(ended, state, history=history)
    assert len(history.events) <= EVENTS_MAX and len(history.rounds) <= ROUNDS_MAX
    assert len(history.spans) <= SPANS_MAX and len(history.marks) <= MARKS_MAX
    assert timeline(history, history.at).startswith("<svg")


def test_the_picture_has_the_nodes_to_which_something_happened_last() -> None:
    many = seated(100, 1)
    history = seen(many, edited(many, "gpu-0007", Evict(frozenset({Node("gpu-0042", 1)}))))
    names = [each.slot for each in lanes(history, 3.0).nodes]
    assert len(names) == LANES_MAX and "gpu-0042" in names


def test_what_a_page_is_told_is_bounded() -> None:
    large = dict[str, Any](callstack="x" * 16_384, tail=("y" * 4_096,) * 20, message="z" * 4_096)
    faults = tuple(evolve(fault(node("b"), 0, n), **large) for n in range(4_096))
    stacks = Stacks(node("a"), 0, tuple((rank, f"{rank}{'z' * 256}") for rank in range(256)))
    history = observed(seen(TWO), evolve(seen(TWO).job, faults=faults, stacks=(stacks,)), 2)
    assert len(told(history)["stacks"]) == PLACES_MAX and told(history)["stacked"] == 256
    assert len(told(history)["failures"]) == FAILURES_MAX and told(history)["failed"] == 4_096
    assert len(shown(history, 0.0, None)) < 1_000_000


def test_a_job_s_name_is_no_markup() -> None:
    text = page("</title><script>alert(1)</script>{script}").text
    assert "<script>alert" not in text and text.count("<script>") == 1


def test_a_job_that_forms_shows_who_is_here() -> None:
    history = seen(arrived(register("2"), "a"))
    assert [(each["host"], each["look"], each["ranks"]) for each in told(history)["nodes"]] == [("a", "here", "")]
