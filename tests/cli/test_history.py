"""What an onlooker remembers of a job, and what the page is told of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from attrs import evolve
from narration import FAULT
from seats import seated
from worlds import arrived, edited, node, register, running, with_one_aside

from elastic.adapters.store.notes import FAULTS_MAX
from elastic.cli.render.history import (
    EVENTS_MAX,
    LANES_MAX,
    MARKS_MAX,
    ROUNDS_MAX,
    SPANS_MAX,
    History,
    kept,
    lanes,
    observed,
    unanswered,
)
from elastic.cli.render.job import Job
from elastic.cli.render.page import FAILURES_MAX, PLACES_MAX, page, shown, timeline
from elastic.cli.render.parting import LONG, Quiet
from elastic.core.group.state import Alone
from elastic.core.rendezvous import Close, Done, Drain, End, Evict, Leave, RendezvousState
from elastic.core.world import Ending, Fault, Life, Node, Notice, Stacks, Unfit, Verdict, Why

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
        "round 1 runs: 2 nodes, 2 workers · at most 1.0 s after the round before",
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
    job = evolve(before.job, unfit=(Unfit(node("10.0.0.1/0123abcd"), "gpu-03", "12:00", "GPU 3 is lost\nmore"),))
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
    history = unanswered(unanswered(seen(TWO), "refused", 4, 5), "refused", 4, 8)
    assert told(history)["silent"] == {"why": "refused", "since": 4}
    assert told(unanswered(history, "no answer", 4, 9))["silent"] == {"why": "no answer", "since": 4}
    back = observed(history, history.job, 8)
    assert texts(back)[-2:] == ["the store answers no longer: refused", "the store answers again after 4.0 s"]
    assert [event.at for event in back.events[-2:]] == [4, 8]
    assert told(back)["silent"] is None


def test_a_gap_is_nothing_unless_the_store_refuses_for_3_s_or_has_not_answered_for_5_s() -> None:
    refused = unanswered(unanswered(seen(TWO), "refused", 4.5, 5), "refused", 4.5, 7.9)
    assert told(refused)["silent"] is None and refused.silent
    assert told(unanswered(refused, "refused", 4.5, 8))["silent"]
    back = observed(refused, refused.job, 8)
    assert (texts(back), back.gaps) == (texts(seen(TWO)), ())
    assert told(unanswered(seen(TWO), "no answer", 4, 8.9))["silent"] is None
    assert told(unanswered(seen(TWO), "no answer", 4, 9))["silent"] == {"why": "no answer", "since": 4}


def test_bars_are_hatched_where_the_store_did_not_answer() -> None:
    history = unanswered(seen(TWO), "no answer", 4, 9)
    assert lanes(history, 12.0).gaps == ((4, 12.0),)
    assert timeline(history, 12.0).count('height="16" fill="url(#unseen)"') == 2
    back = seen(FAILED, history=evolve(history, at=13.0))
    assert lanes(back, 20.0).gaps == ((4, 14.0),)
    assert "url(#unseen)" not in timeline(seen(TWO), 12.0)


def test_a_store_that_forgets_the_job_says_so() -> None:
    history = seen(TWO)
    gone = observed(history, evolve(history.job, state=None), 2)
    assert texts(gone)[-1] == "the store remembers this job no longer"
    assert "has no job train" in told(gone)["sentence"]


def restored(state: RendezvousState) -> RendezvousState:
    """The same job, put back into a store that had lost it."""
    return evolve(state, life=Life("other", 2), base=((1, state.version),))


def test_a_job_that_is_put_back_has_no_round_twice_and_its_recovery_the_time_that_it_took() -> None:
    history = seen(TWO)
    gone = observed(history, evolve(history.job, state=None), 5)
    assert [each["name"] for each in told(gone)["nodes"]] == ["a", "b"] and told(gone)["forgotten"]
    history = seen(restored(TWO), history=gone)
    assert texts(history)[-1] == "the store had lost this job; its nodes have put it back"
    assert [each.number for each in history.rounds] == [0]
    history = seen(restored(FAILED), history=history)
    history = observed(history, evolve(history.job, state=restored(arrived(FAILED, "a b"))), 7.25, 7.2)
    assert [(each["round"], each["recovery"], each["at_most"]) for each in told(history)["rounds"]] == [
        (0, None, False),
        (1, 0.25, False),
    ]


def test_a_recovery_that_nobody_saw_took_at_most_as_long_as_nobody_looked() -> None:
    history = unanswered(seen(TWO), "refused", 4, 9)
    history = observed(history, evolve(history.job, state=restored(arrived(FAILED, "a b"))), 20, 4)
    assert [(each["recovery"], each["at_most"]) for each in told(history)["rounds"]] == [(None, False), (16, True)]
    ended = unanswered(seen(TWO, FAILED), "refused", 4, 9)
    ended = observed(ended, evolve(ended.job, state=restored(arrived(FAILED, "a b"))), 20, 4)
    assert [(each["recovery"], each["at_most"]) for each in told(ended)["rounds"]] == [(None, False), (18, True)]


def test_an_older_round_that_a_store_shows_again_stands_again() -> None:
    history = seen(TWO, FAILED, restored(TWO))
    assert [(each.number, each.ended_at) for each in history.rounds] == [(0, None)]


def test_another_job_of_this_id_is_no_return_of_the_first() -> None:
    other = evolve(restored(TWO), job="other", completed_in=Life("other", 2))
    history = seen(TWO, other)
    assert "another job meets under this id now" in texts(history)
    assert [each.number for each in history.rounds] == [0, 0] and not history.gone


def test_failures_that_the_store_has_forgotten_are_kept() -> None:
    first, second = fault(node("b"), 1, 1), fault(node("a"), 0, 0)
    assert kept((second, first), ()) == kept((second, first), (first,)) == (second, first)
    ended = evolve(first, exit_code=-9)
    assert kept((second, first), (ended,)) == (second, ended)
    many = (first,) * FAULTS_MAX
    assert kept((second,), many) is many


def test_an_end_that_completes_a_failure_is_no_second_event() -> None:
    raised = evolve(fault(node("b"), 0, 1), exit_code=None)
    history = observed(seen(TWO), evolve(seen(TWO).job, faults=(raised,)), 2)
    ended = observed(history, evolve(history.job, faults=(evolve(raised, exit_code=1),)), 3)
    assert texts(ended) == texts(history) and ended.job.faults != history.job.faults


LOST = edited(TWO, "a", Evict(frozenset({node("b")})))
TTL_5 = "--restart-scope=group --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=5"


@pytest.mark.parametrize(
    ("quiet", "agreed", "how"),
    [
        (Quiet(0.3, 1.3), TTL_5, "lost: its agent died"),
        (Quiet(5.3, 6.2), TTL_5, "lost: no heartbeat for 5.3 s"),
        (Quiet(4.2, 5.2), TTL_5, "lost: no heartbeat for 5.0 s"),
        (Quiet(0.0, math.inf), TTL_5, "lost"),
        (LONG, TTL_5, "lost: no heartbeat for 5.0 s"),
        (Quiet(0.3, 1.3), "", "lost"),
        (Quiet(0.3, 1.3), "keep_alive_interval=1e,keep_alive_max_attempt=5", "lost"),
        (None, TTL_5, "lost"),
    ],
)
def test_a_lost_node_keeps_its_tile_which_says_how_it_was_lost(quiet: Quiet | None, agreed: str, how: str) -> None:
    before, after = (evolve(each, limits=evolve(each.limits, agreed=agreed)) for each in (TWO, LOST))
    history = seen(before)
    history = observed(history, evolve(history.job, state=after), 9, 8, {node("b"): quiet} if quiet else {})
    assert [(each["name"], each["state"], each["look"], each["since"]) for each in told(history)["nodes"]][1:] == [
        ("b", how, "silent", 9)
    ]
    returned = seen(arrived(after, "b#2"), history=history)
    assert [each["node"] for each in told(returned)["nodes"]] == ["a#1", "b#2"]


def test_a_node_that_was_lost_while_the_store_was_silent_is_lost_and_no_more_is_known() -> None:
    history = unanswered(seen(TWO), "refused", 4, 9)
    history = observed(history, evolve(history.job, state=LOST), 20, 4, {node("b"): Quiet(16.0, 17.0)})
    assert [each["state"] for each in told(history)["nodes"]][1:] == ["lost"]


def test_a_node_that_left_keeps_its_tile_until_the_job_is_over() -> None:
    left = edited(TWO, "b", Leave())
    history = seen(TWO, left)
    assert [(each["name"], each["state"], each["look"]) for each in told(history)["nodes"]][1:] == [
        ("b", "left", "left")
    ]
    over = seen(
        edited(arrived(left, "a"), "a", Close(Verdict(Ending.CANCELLED, 1, node("a"), Why.ASKED))), history=history
    )
    assert [each["name"] for each in told(over)["nodes"]] == ["a"]


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
