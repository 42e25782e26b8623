"""The account of one node: which bucket each second is in, and for which reason."""

from __future__ import annotations

import pytest
from attrs import evolve
from goodputs import Reading, gaps, read
from groups import ALONE, CHECKED, FIT, RUN, SUCCEED, exited, lost, noticed, over, ready, refused
from traced import Agent, Shared, finished, restored
from worlds import arrived, edited, node, register, running

from elastic.core.goodput import (
    Account,
    Arrival,
    Culprit,
    Death,
    Entry,
    Kind,
    Meeting,
    Reason,
    RoundEnd,
    closed,
    cut,
    executed,
    heard,
    hung,
    micros,
    opened,
    stepped,
    worked,
)
from elastic.core.group import Group, Settings, begin, transition
from elastic.core.group.state import Beaten, Checked, Closed, Elapsed, Event, Exited, Gone, Over, Reaped, Signalled
from elastic.core.rendezvous import Counted, Drain, End, Evict, Leave, Linked, Pushed, RendezvousState, Shown, Silent
from elastic.core.rendezvous.links import Says
from elastic.core.rendezvous.state import Status
from elastic.core.work import Worked
from elastic.core.world import Ending, Life, Notice, Verdict, Why

A, B, C = node("a"), node("b"), node("c")
FAILED = edited(running("a b", "2", 3), "b", End(0, Why.FAILED))


def told(*facts: Event | RendezvousState | float, settings: Settings | None = None) -> Reading:
    """Return the account of node a that was told these facts, a second after one another. A number: nothing happens for so
    many seconds but that the processes of its workers are there."""
    group, commands = begin(Group(A, settings or Settings()), 0.0)
    account, entries = stepped(opened(A, 0.0), None, group, commands, 0.0)
    at = 0.0
    for fact in facts:
        if isinstance(fact, float):
            at += fact
            account, more = executed(account, at)
        elif isinstance(fact, RendezvousState):
            at += 1.0
            account, more = heard(account, Shown(fact), at)
        else:
            at += 1.0
            group, commands = transition(group, fact)
            account, more = stepped(account, fact, group, commands, at)
        entries += more
    return Reading(account, 0, entries)


def seconds(reading: Reading) -> list[tuple[str, Reason, float]]:
    """Return the pieces, which leave nothing out."""
    assert list(gaps(reading)) == []
    return [(piece.bucket, piece.reason, (piece.end - piece.start) / 1e6) for piece in reading.pieces]


def those(reading: Reading, kind: type[Entry]) -> list[Entry]:
    return [entry for entry in reading.entries if isinstance(entry, kind)]


FIRST, END, NONE = Kind.FIRST, Kind.END, Kind.NONE


def test_a_job_whose_worker_failed_once() -> None:
    pair = finished()
    both = [read(each.trace.header, each.trace.steps) for each in (pair.a, pair.b)]
    assert [[(bucket, reason) for bucket, reason, _ in seconds(each)] for each in both] == [
        [
            ("waiting", FIRST),
            ("starting", FIRST),
            ("running", NONE),
            ("stopping", 0),
            ("waiting", 0),
            ("starting", 0),
            ("running", NONE),
            ("finished", END),
        ],
        [
            ("waiting", FIRST),
            ("starting", FIRST),
            ("running", NONE),
            ("stopping", 0),
            ("waiting", 0),  # for a moment it knows of nobody who is expected
            ("waiting", 0),
            ("waiting", 0),
            ("starting", 0),
            ("running", NONE),
            ("finished", END),
        ],
    ]
    assert [piece.awaits for piece in both[1].pieces if piece.bucket == "waiting"] == [(), (), (A,), ()]
    assert those(both[1], Culprit) == [Culprit("by a", 0, B, 1)]
    assert those(both[0], Meeting) == [Meeting(A, "by a", 1)]


def test_the_loss_of_the_store_s_memory_costs_workers_that_run_nothing() -> None:
    pair = restored()
    (*_, (bucket, reason, _)) = seconds(read(pair.a.trace.header, pair.a.trace.steps))
    assert (bucket, reason) == ("running", NONE)


def test_workers_start_until_their_processes_are_there() -> None:
    assert seconds(told(*RUN, 2.0, 3.0)) == [("waiting", FIRST, 2.0), ("starting", FIRST, 2.0), ("running", NONE, 3.0)]
    assert seconds(told(*RUN, lost())) == [("waiting", FIRST, 2.0), ("starting", FIRST, 1.0)]


def test_workers_that_stop_do_so_for_the_end_of_their_round_and_start_again_for_it() -> None:
    again = (exited(0, -15), exited(1, -15), Reaped(9.0), ready(1), Beaten(9.0, 9.0), 1.0)
    assert seconds(told(*RUN, 0.0, lost(), *again)) == [
        ("waiting", FIRST, 2.0),
        ("running", NONE, 1.0),
        ("stopping", 0, 3.0),
        ("waiting", 0, 2.0),
        ("starting", 0, 1.0),
    ]


def test_a_world_that_ended_before_its_workers_were_started_is_a_reason_to_wait_on() -> None:
    assert seconds(told(ready(), over(), 1.0)) == [("waiting", FIRST, 2.0), ("waiting", 0, 1.0)]


def test_a_step_that_was_written_down_late_counts_as_late_as_the_one_before() -> None:
    account, entries = heard(opened(A, 5.0), Counted(1), 7.0)
    account, _ = heard(account, Counted(1), 6.0)
    assert (account.at, entries) == (micros(7.0), ())


def test_a_node_checks_itself() -> None:
    assert seconds(told(FIT, settings=CHECKED)) == [("checking", FIRST, 1.0)]
    (*_, last) = seconds(told(Checked(False, "text", 0.0), 1.0, settings=CHECKED))
    assert last == ("stopping", Kind.FAILURE, 1.0)


def test_a_node_without_a_seat_for_it_is_spare() -> None:
    full = arrived(running("b c", "2"), "a")
    assert seconds(told(full, 4.0)) == [("waiting", FIRST, 1.0), ("spare", Kind.SPARE, 4.0)]


def test_a_node_that_comes_into_a_round_comes_for_what_has_opened_it() -> None:
    assert seconds(told(running("b c", "2"), 1.0))[0] == ("waiting", FIRST, 2.0)
    opened = edited(running("b c", "2"), "c", Evict(frozenset({B})))
    assert seconds(told(opened, arrived(opened, "a"), ready(1), Beaten(4.0, 4.0), 1.0)) == [
        ("waiting", FIRST, 1.0),
        ("waiting", 0, 2.0),
        ("waiting", 0, 1.0),  # its world is there, and it waits for a heartbeat
        ("starting", 0, 1.0),
    ]
    assert seconds(told(arrived(register("2"), "b"), 1.0))[0] == ("waiting", FIRST, 2.0)


def test_a_node_that_comes_for_the_end_of_a_round_says_so_once_it_is_in() -> None:
    opened = edited(running("b c", "2"), "c", Evict(frozenset({B})))
    here = told(opened, arrived(opened, "a"), ready(1), 1.0)
    assert those(here, Arrival) == []
    start = (opened, arrived(opened, "a"), ready(1), Beaten(4.0, 4.0))
    assert those(told(*start), Arrival) == [Arrival("life", 0, A)]
    again = (lost(1), exited(0, -15), exited(1, -15), Reaped(9.0), ready(2), Beaten(9.0, 9.0))
    assert those(told(*start, *again), Arrival) == [Arrival("life", 0, A)], "the second time it was there"
    assert those(told(*RUN, lost(), *again[1:-2], ready(1), Beaten(9.0, 9.0)), Arrival) == []


def test_a_node_that_comes_after_an_end_of_long_ago_comes_for_itself() -> None:
    state = evolve(arrived(edited(running("b c", "2"), "c", Evict(frozenset({B}))), "c"), round=5)
    reading = told(state, 1.0)
    assert {reason for _, reason, _ in seconds(reading)} == {FIRST}
    awaits_c = evolve(state, seats={C: state.seats[C].become(Status.EXPECTED)})
    assert [(each.job, each.awaits) for each in told(awaits_c, 1.0).pieces] == [("", ()), ("life", (C,))]


def test_a_node_waits_for_the_store_while_that_is_silent() -> None:
    reading = told(running("b c", "2"))
    account, first = heard(reading.account, Silent(), 2.0)
    account, more = heard(account, Counted(1), 4.0)
    assert seconds(Reading(account, 0, (*reading.entries, *first, *more)))[-1] == ("waiting", Kind.STORE, 2.0)


def test_a_link_tells_that_the_agent_of_another_node_is_dead() -> None:
    reading = told(running("a b", "2", 3), 1.0)
    assert heard(opened(A, 0.0), Linked(B, Says.GONE, None), 1.0)[1] == ()
    found = [heard(reading.account, Linked(B, says, 1.0), 3.0)[1] for says in (Says.SUSPECT, Says.GONE)]
    assert found == [(), (Death("life", 0, B),)]


def test_a_node_that_begins_before_its_store_does_waits_for_its_first_start() -> None:
    account, first = heard(opened(A, 0.0), Silent(), 1.0)
    account, more = heard(account, Counted(1), 3.0)
    account, last = heard(account, Shown(register("2")), 4.0)
    assert seconds(Reading(account, 0, (*first, *more, *last))) == [("waiting", FIRST, 4.0)]


def test_workers_are_none_of_the_store_s_business() -> None:
    reading = told(*RUN, 0.0)
    account, entries = heard(reading.account, Silent(), 5.0)
    account, more = heard(account, Silent(), 9.0)
    (*_, last) = seconds(Reading(account, 0, (*reading.entries, *entries, *more)))
    assert last == ("running", NONE, 7.0)


def test_who_is_done_is_finished() -> None:
    assert seconds(told(*SUCCEED, 2.0))[-1] == ("finished", END, 2.0)
    ended = told(*SUCCEED, 2.0, Closed(Verdict(Ending.SUCCEEDED, 0, B, Why.DONE), 0.0), 5.0)
    assert seconds(ended)[-1] == ("finished", END, 8.0)
    patient = Settings(barrier_timeout=1.0)
    left = told(*SUCCEED, Elapsed(99.0), 1.0, Gone(99.0), 2.0, settings=patient)
    assert seconds(left)[-2:] == [("stopping", END, 2.0), ("finished", END, 2.0)]


@pytest.mark.parametrize(("events", "succeeds"), [(SUCCEED, True), ((*RUN, exited(0), exited(1, 1)), False)])
def test_a_run_succeeds_if_all_its_workers_do(events: tuple[Event, ...], succeeds: bool) -> None:
    run = told(*events).account.run
    assert run and (run.succeeds, run.round, run.size, run.end is None) == (succeeds, 0, 2, False)


def test_workers_run_on_where_they_move_and_none_that_has_ended() -> None:
    assert seconds(told(*RUN, 0.0, lost(), 2.0, settings=ALONE))[-1] == ("running", NONE, 3.0)
    all_done = told(*RUN, 0.0, lost(), exited(0), exited(1), 2.0, settings=ALONE)
    assert seconds(all_done)[-1] == ("waiting", 0, 2.0)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((noticed(),), Kind.DRAIN),
        ((Signalled(15, 0.0),), Kind.OPERATOR),
        ((Closed(Verdict(Ending.FAILED, 3, B, Why.FAILED), 0.0),), 3),
        ((refused(Why.UNCONFIRMED),), Kind.STORE),
    ],
)
def test_a_node_that_goes_without_a_world_says_why(events: tuple[Event, ...], reason: Reason) -> None:
    assert seconds(told(*events, 1.0))[-1] == ("stopping", reason, 1.0)


def test_a_node_without_any_of_these_reasons_goes_for_what_it_came_for() -> None:
    group = evolve(Group(A), phase=told(Signalled(15, 0.0)).account.group.phase)  # type: ignore[union-attr]
    account, _ = stepped(opened(A, 0.0), None, group, (), 0.0)
    account, _ = executed(account, 1.0)
    assert [(piece.bucket, piece.reason) for piece in closed(account)] == [("stopping", FIRST)]


# --- how rounds ended


@pytest.mark.parametrize(
    ("events", "ends"),
    [
        ((Over(0, Why.LOST, B, 0.0),), [(Why.LOST, B, False)]),
        ((Over(0, None, None, 0.0),), []),
        ((Closed(Verdict(Ending.CANCELLED, 0, B, Why.ASKED), 0.0),), [(Why.ASKED, B, False)]),
        ((refused(Why.ILLEGAL),), [(Why.ILLEGAL, None, False)]),
        ((Signalled(15, 0.0),), [(Why.LEFT, A, False)]),
        ((noticed(1.0),), [(Why.LEFT, A, True)]),
        ((exited(0, 1),), [(Why.FAILED, A, False)]),
        ((exited(0),), []),
    ],
)
def test_a_node_has_its_own_word_on_the_end_of_its_round(
    events: tuple[Event, ...], ends: list[tuple[Why, object, bool]]
) -> None:
    found = those(told(*RUN, *events), RoundEnd)
    assert [(each.why, each.by, each.is_drain) for each in found if isinstance(each, RoundEnd)] == ends


def test_a_node_that_stops_its_workers_because_of_the_store_says_so() -> None:
    (end,) = those(told(*RUN, Elapsed(99.0), settings=Settings(fence=3.0)), RoundEnd)
    assert end == RoundEnd("", 0, Why.FENCED, A)


def test_a_verdict_ends_the_round_that_it_names_and_the_one_that_runs() -> None:
    found = those(told(*RUN, Closed(Verdict(Ending.FAILED, 1, B, Why.FAILED), 0.0)), RoundEnd)
    assert found == [RoundEnd("", 1, Why.FAILED, B), RoundEnd("", 0, Why.FAILED, B)]


def test_the_register_s_word_has_its_place_and_comes_once() -> None:
    found = those(told(running("a b", "2", 3), FAILED, arrived(FAILED, "b")), RoundEnd)
    assert found == [RoundEnd("life", 0, Why.FAILED, B, known_at=(1, FAILED.version))]
    assert FAILED.ended
    lost = evolve(FAILED, version=9, ended=evolve(FAILED.ended, lost=("b",)))
    (_, more) = those(told(FAILED, lost), RoundEnd)
    assert more == RoundEnd("life", 0, Why.FAILED, B, ("b",), known_at=(1, 9))


def test_a_node_that_leaves_with_notice_is_drained() -> None:
    two = edited(running("a b", "2"), "b", Drain(B, Notice(60.0, "a test")))
    assert [each.is_drain for each in those(told(two, edited(two, "b", Leave())), RoundEnd)] == [True]  # type: ignore[union-attr]
    gone = evolve(edited(two, "b", Leave()), seats={A: two.seats[A]})
    assert [each.is_drain for each in those(told(two, gone), RoundEnd)] == [True], "it had notice before"  # type: ignore[union-attr]
    one = running("a b", "2")
    assert [each.is_drain for each in those(told(one, edited(one, "b", Leave())), RoundEnd)] == [False]  # type: ignore[union-attr]


def test_the_verdict_in_the_register_ends_its_round() -> None:
    verdict = Verdict(Ending.FAILED, 0, B, Why.FAILED)
    over = evolve(running("a b", "2"), version=7, closed=verdict)
    assert those(told(over, evolve(over, version=8)), RoundEnd) == [RoundEnd("life", 0, Why.FAILED, B, known_at=(1, 7))]


def test_a_node_that_meets_another_job_comes_for_the_first_time() -> None:
    other = evolve(arrived(register("2"), "b"), job="other", life=Life("other"))
    reading = told(FAILED, other, 1.0)
    assert those(reading, Meeting) == [Meeting(A, "life", 1), Meeting(A, "other", 2)]
    assert [(piece.reason, piece.job) for piece in reading.pieces] == [(FIRST, ""), (0, "life"), (FIRST, "")]


# --- who is to blame


def test_the_worker_is_named_that_is_put_on_record_with_the_end_of_the_round() -> None:
    assert those(told(*RUN, exited(1, 1), exited(0, 1)), Culprit) == [Culprit("", 0, A, 1)]


def test_of_failures_that_stay_open_the_first_is_named() -> None:
    opened = told(*RUN, Exited(1, 1, 1.0, 1.0, is_echo=True), Exited(0, 1, 0.5, 0.5, is_echo=True), Elapsed(9.0))
    assert those(opened, Culprit) == [Culprit("", 0, A, 1)]


def test_of_workers_that_a_cut_trace_shows_no_start_of_none_is_named() -> None:
    reading = told(*RUN)
    account: Account = evolve(reading.account, run=None)
    assert account.group
    group, commands = transition(account.group, exited(0, 1, 5.0))
    _, entries = stepped(account, exited(0, 1, 5.0), group, commands, 5.0)
    assert [each for each in entries if isinstance(each, Culprit)] == [Culprit("", 0, A, 0)]


def test_the_worker_that_the_hang_watch_has_ended_is_named_as_one_that_hung() -> None:
    account = told(*RUN, 1.0).account
    account, _ = hung(account, 0, 5.0)
    account, _ = worked(account, Worked(0, 0, 0, False, 2.0, 5.0, 5.0))
    found = list[object]()
    for event in (exited(0, -9, 5.0), exited(1, -9, 5.0)):
        assert account.group
        group, commands = transition(account.group, event)
        account, entries = stepped(account, event, group, commands, 5.0)
        found += [each for each in entries if isinstance(each, Culprit)]
    assert found == [Culprit("", 0, A, 0, is_hang=True)]
    assert account.run and account.run.ended == 0


def test_a_worker_that_failed_beside_one_that_hung_did_not_hang() -> None:
    account, _ = hung(told(*RUN, 1.0).account, 1, 5.0)
    assert account.group
    group, commands = transition(account.group, exited(0, 1, 5.0))
    _, entries = stepped(account, exited(0, 1, 5.0), group, commands, 5.0)
    assert [each for each in entries if isinstance(each, Culprit)] == [Culprit("", 0, A, 0)]


# --- missing steps


def test_what_happens_where_steps_are_missing_is_unknown() -> None:
    account, entries = cut(told(*RUN, 1.0).account)
    account, more = heard(account, Pushed(FAILED, 8.0), 8.0)
    assert [(each.bucket, each.end - each.start) for each in closed(account)] == [
        ("starting", 1_000_000),
        ("unknown", 5_000_000),
    ]
    assert not entries and [type(each) for each in more] == [Meeting, RoundEnd]
    account, _ = executed(account, 9.0)
    group, commands = begin(Group(A), 10.0)
    account, _ = stepped(account, None, group, commands, 10.0)
    account, _ = heard(account, Counted(1), 11.0)
    assert [(each.bucket, each.reason) for each in closed(account)][-1] == ("waiting", Kind.UNKNOWN)


def test_an_agent_that_has_seen_nothing_yet_waits() -> None:
    agent = Agent("a", Shared())
    assert [piece.bucket for piece in read(agent.trace.header, agent.trace.steps).pieces] == ["waiting"]
