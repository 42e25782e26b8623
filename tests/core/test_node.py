"""The events and requests between a node's worker group and its rendezvous."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import FENCED, beat, closed, exited, led, ready, world
from worlds import edited, holding, node, profile, running

from elastic.core.group import Group, Phase, transition
from elastic.core.group.state import (
    Beat,
    Close,
    Closed,
    Command,
    Elapsed,
    End,
    Event,
    Gone,
    Join,
    Leave,
    MarkDone,
    Noticed,
    Ready,
    Reaped,
    Record,
    Refused,
    Signal,
    Signalled,
    Start,
    Stopped,
    Unstartable,
)
from elastic.core.group.state import Drain as GroupDrain
from elastic.core.group.state import Over as RoundOver
from elastic.core.node import CAME_LATE, acknowledged, asks_for_stacks, farewell, follows, heard, noticed, requested
from elastic.core.rendezvous import Close as CloseEdit
from elastic.core.rendezvous import (
    Drain,
    Fail,
    Held,
    Outcome,
    Over,
    Raise,
    RendezvousState,
    Settled,
    Told,
    close,
    done,
    drain,
    end,
    join,
    leave,
    linger,
    watch,
)
from elastic.core.rendezvous import End as EndEdit
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.context import Handler
from elastic.core.rendezvous.state import Ended
from elastic.core.world import Ending, Life, Notice, Verdict, Why

VERDICT = Verdict(Ending.FAILED, 1, node("b"), Why.FAILED)


@pytest.mark.parametrize(
    ("handler", "answer", "event"),
    [
        (join, world(), Ready(world(), 7.0)),
        (watch, Over(3, Ended(3, Why.LOST, node("b"))), RoundOver(3, Why.LOST, node("b"), 7.0)),
        (watch, Over(3, None), RoundOver(3, None, None, 7.0)),
        (watch, VERDICT, Closed(VERDICT, 7.0)),
        (join, Raise(Fail(Why.CLOSED, VERDICT)), Closed(VERDICT, 7.0)),
        (join, Raise(Fail(Why.TIMEOUT), "why"), Refused(Why.TIMEOUT, "why", 7.0)),
        (leave, Settled(), Gone(7.0)),
        (done, Settled(), None),
        (end, Settled(), RoundOver(0, None, None, 7.0)),
        (drain, Settled(), None),
        (drain, Raise(Fail(Why.UNCONFIRMED)), None),
    ],
)
def test_each_answer_is_an_event_or_nothing_new(handler: Handler, answer: Outcome | Raise, event: Event | None) -> None:
    assert heard(Told(handler, answer, holding("a", running(), ran=0)), 7.0) == event


def test_a_node_that_wanted_to_end_its_round_hears_whose_write_did_or_the_verdict() -> None:
    ended = edited(running(), "b", EndEdit(0, Why.FAILED))
    over = edited(running(), "b", CloseEdit(evolve(VERDICT, round=0, ending=Ending.CANCELLED, why=Why.ASKED)))

    def told(state: RendezvousState) -> Event | None:
        return heard(Told(end, Settled(), evolve(holding("a", running(), ran=0), state=state)), 7.0)

    assert told(ended) == RoundOver(0, Why.FAILED, node("b"), 7.0)
    assert over.closed and told(over) == Closed(over.closed, 7.0)


NOTICE = Notice(60.0, "a test")
SUCCESS = Verdict(Ending.SUCCEEDED, 0, node("b"), Why.DONE)
LATE = Refused(Why.CLOSED, CAME_LATE, 7.0)


@pytest.mark.parametrize(
    ("held", "verdict", "event"),
    [
        (holding("c", running()), SUCCESS, LATE),
        (holding("c", running()), VERDICT, Closed(VERDICT, 7.0)),
        (holding("a", running()), SUCCESS, Closed(SUCCESS, 7.0)),
        (holding("c", running(), ran=0), SUCCESS, Closed(SUCCESS, 7.0)),
        (evolve(holding("c", running()), spare_at=1.0), SUCCESS, Closed(SUCCESS, 7.0)),
    ],
    ids=["a stranger", "a failed job", "seated", "it ran here", "it was a spare"],
)
def test_a_node_that_comes_after_the_success_of_a_job_is_refused(held: Held, verdict: Verdict, event: Event) -> None:
    assert heard(Told(join, Raise(Fail(Why.CLOSED, verdict)), held), 7.0) == event


@pytest.mark.parametrize(
    ("command", "request_"),
    [
        (Join(), Request(join, profile=profile("a"))),
        (End(Why.FAILED), Request(end, Why.FAILED)),
        (MarkDone(), Request(done)),
        (Leave(), Request(leave)),
        (Close(Ending.FAILED, Why.CANNOT_START), Request(close, Why.CANNOT_START, Ending.FAILED)),
        (GroupDrain(node("a"), NOTICE), Request(drain, drain=Drain(node("a"), NOTICE))),
        (Beat(), None),
        (Start(world()), None),
        (Signal(15), None),
        (Record(0, 1, 0.0), None),
    ],
)
def test_each_command_of_the_group_is_a_request_or_none(command: Command, request_: Request | None) -> None:
    assert requested(command, profile("a")) == request_


def test_when_the_last_worker_has_exited_none_lives() -> None:
    both = led(ready(), beat())
    one_left = led(ready(), beat(), exited(0))
    none_left = led(ready(), beat(), exited(0), exited(1))
    assert follows(beat(), both, 7.0) is None
    assert follows(exited(0), one_left, 7.0) is None
    assert follows(exited(1), none_left, 7.0) == Reaped(7.0)


# --- another life


def test_an_acknowledgement_counts_if_it_names_the_life_that_i_hold() -> None:
    held = running()
    assert acknowledged(held.life, held)
    assert not acknowledged(None, held)
    assert not acknowledged(Life("other"), held)
    assert not acknowledged(held.life._replace(epoch=2), held)
    assert not acknowledged(None, None)
    assert not acknowledged(held.life, None)


@pytest.mark.parametrize(
    ("named", "phase", "later"),
    [(running().life, Phase.RUNNING, Phase.RUNNING), (Life("other"), Phase.HELD, Phase.STOPPING)],
    ids=["of mine", "of another life"],
)
def test_heartbeats_in_another_life_neither_start_workers_nor_hold_off_the_fence(
    named: Life, phase: Phase, later: Phase
) -> None:
    """The agent tells the group of an answered heartbeat only if the answer acknowledges it."""
    held = running()
    waits, runs = led(ready(), settings=FENCED), led(ready(), beat(0.0), settings=FENCED)
    for second in range(1, 4):
        if acknowledged(named, held):
            waits, _ = transition(waits, beat(float(second)))
            runs, _ = transition(runs, beat(float(second)))
    runs, _ = transition(runs, Elapsed(3.0))
    assert (waits.phase, runs.phase) == (phase, later)


def test_a_node_lingers_only_if_it_knows_the_verdict() -> None:
    assert farewell(VERDICT) == Request(linger)
    assert farewell(Stopped(15)) is None
    assert farewell(Refused(Why.TIMEOUT, "why", 7.0)) is None


@pytest.mark.parametrize(
    ("event", "asks"),
    [
        (exited(1, 1), True),
        (RoundOver(0, Why.FAILED, node("b"), 1.0), True),
        (RoundOver(0, Why.LOST, node("b"), 1.0), True),
        (RoundOver(0, Why.FENCED, node("b"), 1.0), True),
        (RoundOver(0, Why.UPSCALE, node("b"), 1.0), False),
        (RoundOver(0, Why.LEFT, node("b"), 1.0), False),
        (RoundOver(0, None, None, 1.0), False),
        (closed(Ending.FAILED), True),
        (closed(Ending.CANCELLED), False),
        (Signalled(15, 1.0), False),
        (Unstartable("no such file", 1.0, False), False),
        (Elapsed(9.0), False),
        (exited(1, 0), False),
    ],
)
def test_stacks_are_asked_for_when_workers_are_stopped_for_a_failure_and_not_for_a_newcomer_or_on_a_person_s_word(
    event: Event, asks: bool
) -> None:
    runs = led(ready(), beat(), settings=FENCED)
    after, _ = transition(runs, event)
    assert asks_for_stacks(event, runs, after) is asks
    assert not asks_for_stacks(event, after, transition(after, event)[0])


def test_a_notice_in_the_register_is_news_to_a_group_that_does_not_know_it() -> None:
    state = edited(running("a b"), "operator", Drain(node("a"), Notice(60.0, "an operator")))
    mine = Group(node("a"))
    assert noticed(running("a b"), mine, 1.0) is None
    assert noticed(state, Group(node("z")), 1.0) is None
    told = noticed(state, mine, 1.0)
    assert told == Noticed(Notice(60.0, "an operator"), 1.0, known=True)
    knows, _ = transition(mine, told)
    assert noticed(state, knows, 2.0) is None
    assert noticed(state, transition(mine, Noticed(Notice(90.0, "the signal"), 1.0))[0], 2.0) is not None
