"""The events and requests between a node's worker group and its rendezvous."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import FENCED, beat, closed, exited, led, ready, world
from worlds import arrived, but, edited, holding, node, nodes, profile, register, running

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
    Move,
    Noticed,
    Raised,
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
from elastic.core.node import (
    CAME_LATE,
    acknowledged,
    asks_for_stacks,
    eviction,
    farewell,
    follows,
    had_a_seat,
    heard,
    is_forming,
    lost,
    lost_parties,
    noticed,
    party_of,
    ranks_of,
    requested,
    still_lost,
    workless,
)
from elastic.core.rendezvous import (
    Arrive,
    Complete,
    Done,
    Drain,
    Evict,
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
from elastic.core.rendezvous import Close as CloseJob
from elastic.core.rendezvous import End as EndRound
from elastic.core.rendezvous import Leave as LeaveRound
from elastic.core.rendezvous.actions import Reserve
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.context import Handler
from elastic.core.rendezvous.state import Ended
from elastic.core.world import NAME_MAX, Ending, Generation, Life, Node, Notice, Party, Profile, Verdict, Why

VERDICT = Verdict(Ending.FAILED, 1, node("b"), Why.FAILED)


@pytest.mark.parametrize(
    ("handler", "answer", "event"),
    [
        (join, world(), Ready(world(), 7.0)),
        (watch, Over(3, Ended(3, Why.LOST, node("b"))), RoundOver(3, Why.LOST, node("b"), 7.0, Generation("life", 0))),
        (watch, Over(3, None), RoundOver(3, None, None, 7.0, Generation("life", 0))),
        (watch, VERDICT, Closed(VERDICT, 7.0)),
        (join, Raise(Fail(Why.CLOSED, VERDICT)), Closed(VERDICT, 7.0)),
        (join, Raise(Fail(Why.TIMEOUT), "why"), Refused(Why.TIMEOUT, "why", 7.0)),
        (join, Raise(Fail(Why.UNFIT), "why"), Noticed(Notice(5.0, "why"), 7.0, known=True, unfit=True)),
        (close, Raise(Fail(Why.UNFIT), "why"), Refused(Why.UNFIT, "why", 7.0)),
        (leave, Settled(), Gone(7.0)),
        (close, Settled(), Gone(7.0)),
        (done, Settled(), None),
        (end, Settled(), RoundOver(0, None, None, 7.0, Generation("life", 0))),
        (drain, Settled(), None),
        (drain, Raise(Fail(Why.UNCONFIRMED)), None),
    ],
)
def test_each_answer_is_an_event_or_nothing_new(handler: Handler, answer: Outcome | Raise, event: Event | None) -> None:
    assert heard(Told(handler, answer, holding("a", running(), ran=0)), 7.0) == event


def test_who_has_no_seat_or_no_register_is_of_no_generation() -> None:
    for held in (holding("a", None), holding("c", running())):
        assert heard(Told(watch, Over(3, None), held), 7.0) == RoundOver(3, None, None, 7.0)


def test_a_join_says_which_workers_live() -> None:
    assert requested(Join(Generation("job", 2)), profile("a")) == Request(
        join, profile=profile("a"), alive=Generation("job", 2)
    )


def test_a_node_that_wanted_to_end_its_round_hears_whose_write_did_or_the_verdict() -> None:
    ended = edited(running(), "b", EndRound(0, Why.FAILED))
    over = edited(running(), "b", CloseJob(evolve(VERDICT, round=0, ending=Ending.CANCELLED, why=Why.ASKED)))

    def told(state: RendezvousState) -> Event | None:
        return heard(Told(end, Settled(), but(holding("a", running(), ran=0), state=state)), 7.0)

    assert told(ended) == RoundOver(0, Why.FAILED, node("b"), 7.0, Generation("life", 1))
    later = edited(
        arrived(edited(running(restarts=2), "b", EndRound(0, Why.FAILED)), "a b"), "b", EndRound(1, Why.FAILED)
    )
    assert told(later) == RoundOver(0, None, None, 7.0, Generation("life", 2))
    assert over.closed and told(over) == Closed(over.closed, 7.0)


def test_a_node_had_a_seat_if_an_earlier_start_of_its_slot_with_its_program_has_one() -> None:
    mine = profile("a")

    def had(who: str, state: RendezvousState | None, its: Profile = mine) -> bool:
        return had_a_seat(but(holding(who, state), profile=its), state)

    assert had("a#2", running())
    assert not had("a#2", None)
    assert not had("a", running()), "this start itself"
    assert not had("c#2", running())
    for other in (
        evolve(mine, program="another"),
        evolve(mine, content="another"),
        evolve(mine, arguments="another"),
        evolve(mine, role="another"),
    ):
        assert not had("a#2", running(), other)


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
        (but(holding("c", running()), spare_at=1.0), SUCCESS, Closed(SUCCESS, 7.0)),
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
        (Move(world()), None),
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
        (Raised(1, 1.0, 1.0), True),
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


def test_members_that_are_done_or_reserves_have_no_work_and_nobody_has_any_between_two_rounds() -> None:
    state = edited(running("a b c"), "a", Done(0))
    made = state.world
    assert made is not None
    assert workless(state, made) == (node("a"),)
    assert workless(edited(state, "c", Reserve(0)), made) == (node("a"), node("c"))
    assert workless(edited(edited(state, "c", Reserve(0)), "c", LeaveRound()), made) == (node("a"), node("c"))
    assert workless(None, made) == ()
    assert workless(edited(state, "b", EndRound(0, Why.FAILED)), made) == made.nodes


# --- the ranks of nodes that are lost


THREE = running("a b c", restarts=1)


def test_who_was_evicted_is_lost() -> None:
    assert lost(THREE, edited(THREE, "a", Evict(nodes("b")))) == nodes("b")
    failed = edited(THREE, "a", EndRound(0, Why.FAILED))
    assert lost(failed, edited(failed, "a", Evict(nodes("b c")))) == nodes("b c")
    assert lost(THREE, arrived(THREE, "b#2")) == nodes("b")


def test_who_has_left_is_not_nor_who_is_seated() -> None:
    assert lost(THREE, edited(THREE, "b", LeaveRound())) == frozenset()
    assert lost(THREE, failed := edited(THREE, "a", EndRound(0, Why.FAILED))) == frozenset()
    assert lost(failed, edited(failed, "b", LeaveRound())) == frozenset()
    assert lost(register("1:2"), THREE) == frozenset()


def test_of_nodes_that_share_a_host_the_slot_tells_who_is_lost() -> None:
    here = {who: evolve(seat, profile=evolve(seat.profile, host="h")) for who, seat in THREE.seats.items()}
    shared = evolve(THREE, seats=here)
    after = edited(shared, "a", Evict(nodes("b")))
    assert lost(shared, after) == nodes("b")
    assert lost(shared, evolve(after, seats={node("a"): after.seats[node("a")]})) == nodes("b")


def test_who_returns_is_lost_no_longer_and_who_stays_away_is() -> None:
    """b was silent and lives: it returns in the same incarnation, and starts ranks of the same party."""
    without = edited(THREE, "a", Evict(nodes("b c")))
    first = still_lost({}, THREE, without)
    assert first == {node("b"): 0, node("c"): 0}
    returned = arrived(without, "b")
    assert still_lost(first, without, returned) == {node("c"): 0}
    assert still_lost({node("c"): 0}, returned, returned) == {node("c"): 0}
    assert still_lost({}, None, THREE) == {}
    second = still_lost({node("c"): 0}, returned, edited(returned, "a", Evict(nodes("b"))))
    assert lost_parties(second) == {"b#1": 0, "c#1": 0}


def of(state: RendezvousState, party: Party | None, names: str) -> RendezvousState:
    for name in names.split():
        state = edited(state, name, Arrive(evolve(profile(name), party=party)))
    return state


def test_the_ranks_of_lost_nodes_are_evicted_from_their_register() -> None:
    ranks = of(of(of(register("5"), Party("n#1", 2), "0 1"), Party("m#1", 2), "2 3"), None, "4")
    assert eviction(ranks, {"n#1": 0}, {}) == Evict(nodes("0 1"))
    assert eviction(ranks, {"n#1": 0, "m#1": 3}, {}) == Evict(nodes("0 1 2 3"))
    assert eviction(ranks, {"n#2": 0}, {}) is None
    away = edited(edited(edited(ranks, "0", Done(0)), "1", Done(0)), "0", LeaveRound())
    assert eviction(away, {"n#1": 0}, {}) == Evict(nodes("1"))
    over = edited(ranks, "4", CloseJob(evolve(VERDICT, ending=Ending.CANCELLED)))
    assert eviction(over, {"n#1": 0}, {}) is None


def test_the_ranks_with_which_a_lost_node_has_returned_are_not_evicted_by_who_has_not_heard_of_it() -> None:
    """They are a party of the same name. The round in which their node came tells them from those that it had before."""
    ranks = of(of(register("3"), Party("n#1", 2), "0 1+2"), None, "2")
    assert eviction(ranks, {"n#1": 1}, {}) == Evict(nodes("0"))
    assert eviction(ranks, {"n#1": 2}, {}) == Evict(nodes("0 1+2"))


def test_the_first_round_of_ranks_is_completed_when_all_are_in_whose_nodes_are_left() -> None:
    empty = evolve(register("1:5"), target=5)
    ranks = of(empty, Party("m#1", 2), "0 1")
    assert eviction(ranks, {"n#1": 0}, {"m#1": 3}) is None
    assert eviction(ranks, {"n#1": 0}, {"m#1": 2}) == Complete(0)
    assert edited(ranks, "agent", Complete(0)).complete
    assert eviction(empty, {"n#1": 0}, {}) is None
    assert eviction(ranks, {"m#1": 0}, {"m#1": 2}) == Evict(nodes("0 1"))


def test_the_ranks_of_a_node_that_has_left_stand_in_for_none_whose_node_is_left() -> None:
    """A world without the ranks that are on their way would be interrupted as soon as they come."""
    left = of(evolve(register("1:6"), target=6), Party("l#1", 2), "4 5")
    forming = of(of(left, None, "3"), Party("m#1", 2), "0")
    assert eviction(forming, {"n#1": 0}, {"m#1": 2}) is None
    assert eviction(of(forming, Party("m#1", 2), "1"), {"n#1": 0}, {"m#1": 2}) == Complete(0)


def test_only_a_first_round_that_is_open_forms() -> None:
    ranks = of(evolve(register("1:5"), target=5), None, "0 1")
    begun = edited(ranks, "0", Complete(0))
    again = edited(begun, "0", EndRound(0, Why.FAILED))
    over = edited(ranks, "0", CloseJob(evolve(VERDICT, ending=Ending.CANCELLED)))
    assert [is_forming(each) for each in (None, ranks, begun, again, over)] == [True, True, False, False, False]
    assert [eviction(each, {}, {"m#1": 1}) for each in (begun, again, over)] == [None, None, None]


def test_the_ranks_of_members_and_of_those_who_may_come_back_are_counted() -> None:
    waits = edited(THREE, "d", Arrive(profile("d")))
    all_of_them = {"a#1": 1, "b#1": 1, "c#1": 1}
    assert [ranks_of(each) for each in (THREE, waits)] == [all_of_them] * 2
    assert ranks_of(edited(waits, "a", Evict(nodes("b")))) == {"a#1": 1, "c#1": 1, "d#1": 1}
    assert ranks_of(edited(THREE, "b", LeaveRound())) == {"a#1": 1, "c#1": 1}


def test_the_end_of_a_long_node_s_name_names_its_party() -> None:
    assert party_of(Node("n", 7)) == "n#7"
    assert party_of(Node("n" * NAME_MAX, 7)) == "n" * (NAME_MAX - 2) + "#7"
