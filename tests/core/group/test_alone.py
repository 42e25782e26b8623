"""Restart of single workers: when a worker starts again, when it stays missing, and how the node ends then."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import FAIL, FIT, RUN, SUCCEED, beat, closed, commands, exited, led, lost, over, ready, refused, world

from elastic.core.group import Alone, Group, Phase, Settings, transition
from elastic.core.group.state import (
    HEARD_S,
    SIGKILL,
    SIGTERM,
    Beat,
    Close,
    Command,
    Course,
    Elapsed,
    End,
    Event,
    Exited,
    Join,
    Leave,
    MarkDone,
    Move,
    Noticed,
    Over,
    Raised,
    ReadyToLeave,
    Reaped,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Signal,
    Signalled,
    StartAgain,
    Stop,
    Unstartable,
)
from elastic.core.world import Ending, Generation, Notice, Why

TWICE = Settings(alone=Alone(2, frozenset({76}), frozenset({71})))


def alone(*events: Event) -> Group:
    return led(*RUN, *events, settings=TWICE)


def told(group: Group, *events: Event) -> tuple[Phase, tuple[Command, ...]]:
    for event in events[:-1]:
        group, _ = transition(group, event)
    return transition(group, events[-1])[0].phase, commands(group, events[-1])


def test_a_worker_that_fails_is_started_again_and_the_others_run_on() -> None:
    assert told(alone(), exited(0, -9)) == (Phase.RUNNING, (Record(0, -9, 0.0), StartAgain(0)))
    assert alone(exited(0, -9)).running == {0, 1}


def test_a_worker_that_was_ready_to_leave_and_starts_again_is_not_ready() -> None:
    notice, ready_0, ready_1 = Noticed(Notice(60.0, "a test"), 0.0), ReadyToLeave(0, 1.0), ReadyToLeave(1, 3.0)
    assert alone(notice, ready_0, exited(0, 1, at=2.0)).course.ready == frozenset()
    assert told(alone(notice, ready_0, exited(0, 1, at=2.0)), ready_1) == (Phase.RUNNING, ())
    both = told(alone(notice, ready_0, exited(0, 1, at=2.0), ready_1), ready_0)
    assert both == (Phase.LEAVING, (Leave(), Signal(SIGTERM)))
    assert alone(ready_0, over(), Reaped(2.0), ready(1, generation=1), beat(2.0)).course.ready == frozenset()


def test_the_budget_is_the_node_s_in_this_world() -> None:
    spent = alone(exited(0, 1), exited(1, 1))
    assert told(spent, exited(0, 1)) == (Phase.RUNNING, (Record(0, 1, 0.0),))
    assert spent.course.restarted == 2
    many = evolve(alone(), settings=Settings(alone=Alone(int("1000"))), course=Course(restarted=1_000))
    assert told(many, exited(0, 1)) == (Phase.RUNNING, (Record(0, 1, 0.0),))
    again = led(*RUN, exited(0, 1), over(0), exited(0, -15), exited(1, -15), Reaped(2.0), settings=TWICE)
    assert again.phase is Phase.JOINING
    assert led(*FAIL).course.restarted == 0


def test_a_worker_with_a_final_exit_code_stays_missing_and_the_others_run_on() -> None:
    assert told(alone(), exited(0, 76)) == (Phase.RUNNING, (Record(0, 76, 0.0),))


def never_entered(code: int = 1, local_rank: int = 0) -> Exited:
    return evolve(exited(local_rank, code), entered=False)


def test_a_missing_worker_that_never_entered_a_call_ends_the_round() -> None:
    spent = alone(exited(0, 1), exited(1, 1))
    fails = (Record(0, 1, 0.0), End(Why.FAILED))
    assert told(spent, never_entered()) == (Phase.STOPPING, (*fails, Signal(SIGTERM)))
    assert told(evolve(spent, running=frozenset({0})), never_entered()) == (Phase.STOPPING, fails)
    assert told(spent, evolve(never_entered(), entered=True)) == (Phase.RUNNING, (Record(0, 1, 0.0),))
    assert told(spent, never_entered(76)) == (Phase.RUNNING, (Record(0, 76, 0.0),))
    assert told(alone(), never_entered()) == (Phase.RUNNING, (Record(0, 1, 0.0), StartAgain(0)))
    succeeded = evolve(spent, course=Course(2, succeeded=True), running=frozenset({0}))
    assert told(succeeded, never_entered()) == (Phase.STOPPING, fails)


def test_a_missing_worker_that_never_entered_a_call_ends_the_world_that_its_node_is_on_its_way_to() -> None:
    spent = evolve(moving(), course=Course(restarted=2))
    assert told(spent, never_entered()) == (Phase.MOVING, (Record(0, 1, 0.0),))
    ends = (Move(world(1)), End(Why.FAILED), Signal(SIGTERM))
    assert told(spent, never_entered(), ready(1)) == (Phase.STOPPING, ends)
    assert told(spent, evolve(never_entered(), entered=True), ready(1))[0] is Phase.RUNNING


def test_when_the_last_worker_is_gone_the_success_of_another_counts() -> None:
    assert told(alone(exited(0, 0)), exited(1, 76)) == (Phase.BARRIER, (Record(1, 76, 0.0), MarkDone()))
    assert told(alone(exited(1, 76)), exited(0, 0)) == (Phase.BARRIER, (MarkDone(),))
    assert told(alone(exited(0, 76)), exited(1, 76)) == (Phase.STOPPING, (Record(1, 76, 0.0), End(Why.FAILED)))


@pytest.mark.parametrize("earlier", [(), (exited(1, -9),)])
def test_a_worker_that_says_that_all_have_given_up_ends_the_round(earlier: tuple[Event, ...]) -> None:
    phase, words = told(alone(), *earlier, exited(0, 71))
    assert (phase, words) == (Phase.STOPPING, (Record(0, 71, 0.0), End(Why.FAILED), Signal(SIGTERM)))


HEARS = Settings(alone=Alone(0, frozenset({79}), frozenset({71}), frozenset({79})))
LATE = Elapsed(HEARD_S)


def test_a_job_that_an_interrupt_has_cancelled_ends_and_no_round_follows() -> None:
    """The last worker of the node says so. Where one has succeeded that counts."""
    cancels = Settings(alone=Alone(2, frozenset({76}), frozenset({71}), cancelled=frozenset({76})))
    running = led(*RUN, settings=cancels)
    one, first = transition(running, exited(0, 76))
    assert (one.phase, [type(each) for each in first]) == (Phase.RUNNING, [Record])
    both, last = transition(one, exited(1, 76))
    assert (both.phase, last[1:]) == (Phase.STOPPING, (Close(Ending.CANCELLED, Why.ASKED),))
    well = transition(transition(running, exited(0, 0))[0], exited(1, 76))[1]
    assert well[1:] == (MarkDone(),)


def hears(*events: Event, settings: Settings = HEARS) -> Group:
    return led(*RUN, *events, settings=settings)


def test_a_node_whose_ranks_have_heard_that_another_ended_the_job_waits_for_the_word_of_that_one() -> None:
    assert told(hears(), exited(0, 79)) == (Phase.RUNNING, (Record(0, 79, 0.0),))
    waits = hears(exited(0, 79), exited(1, 79))
    assert (waits.phase, waits.until) == (Phase.BARRIER, HEARD_S)
    assert told(waits, over(0)) == (Phase.JOINING, (Join(),))
    assert told(hears(exited(0, 79)), exited(1, 71)) == (Phase.STOPPING, (Record(1, 71, 0.0), End(Why.FAILED)))
    assert told(hears(exited(0, 79)), exited(1, 0)) == (Phase.BARRIER, (MarkDone(),))


def test_a_node_that_waits_for_that_word_for_long_ends_the_round_itself() -> None:
    assert told(hears(exited(0, 79)), Elapsed(HEARD_S - 0.1)) == (Phase.RUNNING, ())
    for late in (LATE, Elapsed(HEARD_S + 9.0)):
        assert told(hears(exited(0, 79)), late) == (Phase.STOPPING, (End(Why.FAILED), Signal(SIGTERM)))
        assert told(hears(exited(0, 79), exited(1, 79)), late) == (Phase.JOINING, (End(Why.FAILED), Join()))
    assert told(hears(exited(0, 79), exited(1, 79, at=9.0)), LATE) == (Phase.JOINING, (End(Why.FAILED), Join()))
    assert told(hears(exited(0, 79), exited(1, 79)), Elapsed(HEARD_S - 0.1)) == (Phase.BARRIER, ())
    checked = led(FIT, *RUN, exited(0, 79), exited(1, 79), settings=evolve(HEARS, checks=True))
    assert told(checked, LATE) == (Phase.CHECKING, (End(Why.FAILED),))


def test_the_wait_for_that_word_begins_anew_in_the_next_world() -> None:
    """The registers of the ranks are those of their generation, which only a failed round ends."""
    part, whole = (exited(0, 79), lost()), (exited(0, 79), exited(1, 79), lost())
    assert told(hears(*part), ready(1, at=5.0)) == (Phase.RUNNING, (Move(world(1)),))
    assert told(hears(*whole), ready(1, at=5.0)) == (Phase.BARRIER, (Move(world(1)),))
    assert told(hears(lost(), exited(0, 79), exited(1, 79)), ready(1, at=5.0)) == (Phase.BARRIER, (Move(world(1)),))
    assert [hears(*events, ready(1, at=5.0)).until for events in (part, whole)] == [5.0 + HEARD_S] * 2
    assert told(hears(lost(), exited(0, 79), exited(1, 71)), ready(1)) == (
        Phase.JOINING,
        (Move(world(1)), End(Why.FAILED), Join()),
    )


@pytest.mark.parametrize("ends", [(exited(0, 79), exited(1, 0)), (exited(1, 0), exited(0, 79))])
def test_a_node_that_is_done_waits_for_no_word(ends: tuple[Event, ...]) -> None:
    done = hears(*ends)
    assert (done.phase, done.until) == (Phase.BARRIER, None)
    assert hears(*ends, lost(), ready(1)).until is None


def test_a_drained_node_that_waits_for_that_word_for_long_ends_the_round_and_goes() -> None:
    drained = hears(exited(0, 79), exited(1, 79), Noticed(Notice(600.0, "a test"), 0.0))
    assert (drained.phase, drained.until) == (Phase.BARRIER, HEARD_S)
    assert told(drained, LATE) == (Phase.BARRIER, (End(Why.FAILED),))
    assert told(drained, LATE, over(0)) == (Phase.LEAVING, (Leave(),))
    assert transition(drained, LATE)[0].until == drained.goes_at


def test_a_new_world_begins_with_the_whole_budget() -> None:
    second = led(*RUN, exited(0, 1), exited(1, 1), exited(0, 0), exited(1, 0), settings=TWICE)
    assert (second.phase, second.course.restarted, second.course.succeeded) == (Phase.BARRIER, 2, True)


def test_less_than_no_restart_is_refused() -> None:
    assert Alone().restarts_max == 0
    with pytest.raises(ValueError, match="restarts_max: 0 or more, not -1"):
        Alone(-1)


# --- a change of nodes stops no living worker


def moving(*events: Event) -> Group:
    return alone(lost(), *events)


def test_the_end_of_a_round_by_a_change_of_nodes_stops_no_worker() -> None:
    assert told(alone(), lost()) == (Phase.MOVING, (Join(Generation("job", 0)),))
    assert moving().running == {0, 1}
    assert told(moving(), ready(1)) == (Phase.RUNNING, (Move(world(1)),))
    assert moving(ready(1)).world == world(1)


def test_without_single_restarts_it_stops_them() -> None:
    assert told(led(*RUN), lost()) == (Phase.STOPPING, (Signal(SIGTERM),))
    assert told(led(*SUCCEED), lost()) == (Phase.JOINING, (Join(),))


def test_a_drained_node_goes_and_does_not_move() -> None:
    notice = Noticed(Notice(600.0, "a test"), 1.0)
    goes = (Leave(), Signal(SIGTERM))
    assert told(alone(notice), lost()) == (Phase.LEAVING, goes)
    assert told(moving(), notice) == (Phase.LEAVING, goes)
    assert told(moving(exited(0), exited(1)), notice) == (Phase.LEAVING, (Leave(),))
    assert told(alone(exited(0), exited(1), notice), lost()) == (Phase.LEAVING, (Leave(),))


def test_with_a_check_a_node_that_failed_on_the_way_waits_for_the_word_on_where_the_first_failure_was() -> None:
    checked = evolve(TWICE, checks=True)
    failed = led(FIT, *RUN, lost(), exited(0, 76), exited(1, 76), settings=checked)
    assert told(failed, ready(1)) == (Phase.CHECKING, (Move(world(1)), End(Why.FAILED)))


@pytest.mark.parametrize("generation", [None, Generation("job", 1), Generation("another job", 0)])
def test_a_failed_round_another_job_or_a_register_that_is_gone_stops_them(generation: Generation | None) -> None:
    """The generation counts, and not the reason: a refund may have changed that since."""
    ended = Over(0, Why.LOST, None, 0.0, generation)
    assert told(alone(), ended) == (Phase.STOPPING, (Signal(SIGTERM),))
    assert told(alone(exited(0), exited(1)), ended) == (Phase.JOINING, (Join(),))


@pytest.mark.parametrize("event", [ready(2, generation=2), over()])
def test_a_generation_that_begins_on_the_way_stops_them(event: Event) -> None:
    assert told(moving(), event) == (Phase.STOPPING, (Signal(SIGTERM),))
    assert told(moving(event), exited(0, -15), exited(1, -15), Reaped(2.0)) == (Phase.JOINING, (Join(),))
    assert told(moving(exited(0, 76), exited(1, 76)), event) == (Phase.JOINING, (Join(),))


@pytest.mark.parametrize("event", [ready(2, generation=2), over()])
def test_a_node_without_workers_that_a_generation_leaves_behind_keeps_no_timer_of_a_stop(event: Event) -> None:
    """One had raised, and was to be told to end in time; then no worker could be started, and none runs."""
    raised = Raised(0, 1.0, 1.0)
    assert moving(raised).stop.kill_at is not None
    left = moving(raised, Unstartable("no memory", 1.0, passes=True), event)
    assert (left.phase, left.running, left.stop) == (Phase.JOINING, frozenset(), Stop())


def test_a_worker_that_fails_on_the_way_starts_again_alone() -> None:
    assert told(moving(), exited(0, -9)) == (Phase.MOVING, (Record(0, -9, 0.0), StartAgain(0)))
    assert told(moving(exited(0, -9)), ready(1)) == (Phase.RUNNING, (Move(world(1)),))
    assert moving(exited(0, -9), ready(1)).course.restarted == 0
    assert told(moving(), exited(0, 76)) == (Phase.MOVING, (Record(0, 76, 0.0),))


def test_workers_that_say_on_the_way_that_all_have_given_up_end_the_next_round() -> None:
    assert told(moving(), exited(0, 71)) == (Phase.MOVING, (Record(0, 71, 0.0),))
    ends = Move(world(1)), End(Why.FAILED)
    assert told(moving(exited(0, 71)), ready(1)) == (Phase.STOPPING, (*ends, Signal(SIGTERM)))
    assert told(moving(exited(0, 71), exited(1, 71)), ready(1)) == (Phase.JOINING, (*ends, Join()))
    assert told(moving(exited(0, 76), exited(1, 76)), ready(1)) == (Phase.JOINING, (*ends, Join()))


def test_a_node_whose_workers_have_succeeded_says_so_in_the_next_round_too() -> None:
    done = alone(exited(0), exited(1))
    assert told(done, lost()) == (Phase.MOVING, (Join(Generation("job", 0)),))
    assert told(done, lost(), ready(1)) == (Phase.BARRIER, (Move(world(1)), MarkDone()))
    assert told(moving(exited(0)), ready(1)) == (Phase.RUNNING, (Move(world(1)),))
    assert told(moving(exited(0), exited(1)), ready(1)) == (Phase.BARRIER, (Move(world(1)), MarkDone()))


@pytest.mark.parametrize("event", [closed(), refused()])
def test_a_verdict_or_a_refusal_on_the_way_ends_the_node(event: Event) -> None:
    assert told(moving(), event) == (Phase.STOPPING, (Signal(SIGTERM),))
    assert told(moving(event), exited(0, -15), exited(1, -15), Reaped(2.0)) == (Phase.ENDED, ())
    assert told(moving(exited(0), exited(1)), event) == (Phase.ENDED, ())


def test_the_agent_s_signal_on_the_way_is_forwarded() -> None:
    assert told(moving(), Signalled(15, 1.0)) == (Phase.LEAVING, (Leave(), Signal(15)))


def test_workers_killed_at_the_fence_on_the_way_start_in_the_world_that_was_asked_for() -> None:
    """One join is under way, and no second one is asked for. A world that was told meanwhile ends: nothing runs there."""
    fenced = evolve(TWICE, fence=3.0)
    assert told(led(*RUN, lost(), settings=fenced), Elapsed(2.9)) == (Phase.MOVING, ())
    assert told(led(*RUN, lost(), settings=fenced), Elapsed(9.0)) == (Phase.STOPPING, (Signal(SIGKILL),))
    killed = led(*RUN, lost(), Elapsed(3.0), settings=fenced)
    assert (killed.phase, killed.until) == (Phase.STOPPING, None)
    ends = exited(0, -9), exited(1, -9), Reaped(3.1)
    assert told(killed, *ends) == (Phase.JOINING, ())
    assert told(killed, *ends, ready(1)) == (Phase.HELD, (Beat(),))
    assert told(killed, ready(1), *ends) == (Phase.JOINING, (Join(),))
    assert told(killed, *ends, over()) == (Phase.JOINING, (Join(),))
    assert told(killed, over(), *ends) == (Phase.JOINING, (Join(),))
    assert told(killed, *ends, over(), over()) == (Phase.JOINING, ())


def test_who_has_no_worker_left_is_not_fenced_on_the_way() -> None:
    fenced = evolve(TWICE, fence=3.0)
    assert led(*RUN, lost(), settings=fenced).until == 3.0
    assert led(*SUCCEED, lost(), settings=fenced).until is None


def test_workers_that_could_not_be_started_end_the_job_also_when_the_round_is_over_by_then() -> None:
    late = Unstartable("no such file", 0.0)
    word = RecordUnfit("no such file")
    assert told(moving(), late) == (Phase.LEAVING, (word, Close(Ending.FAILED, Why.CANNOT_START)))
    assert told(moving(late), Reaped(1.0)) == (Phase.LEAVING, ()), "the close has voided the join before"
    passing = Unstartable("no memory", 0.0, passes=True)
    assert told(moving(), passing) == (Phase.MOVING, (RecordUnstartable("no memory"),))
    for earlier in ((), (exited(0),)):
        assert told(moving(*earlier, passing), ready(1)) == (Phase.JOINING, (Move(world(1)), End(Why.FAILED), Join()))


def test_a_success_of_an_earlier_round_counts_in_no_other() -> None:
    again = led(*RUN, exited(0), over(0), exited(1, -15), Reaped(2.0), ready(1), beat(), settings=TWICE)
    assert told(again, exited(0, 76), exited(1, 76)) == (Phase.STOPPING, (Record(1, 76, 0.0), End(Why.FAILED)))
