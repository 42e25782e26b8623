"""The moves of the worker group, in the order of docs/protocol.md#moves-of-the-worker-group."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from groups import (
    FAIL,
    FENCED,
    GROUPS,
    RUN,
    SUCCEED,
    beat,
    closed,
    commands,
    exited,
    led,
    noticed,
    over,
    ready,
    refused,
    world,
)
from worlds import node

from elastic.core.group import Group, Outcome, Phase, Settings, Stopped, begin, transition
from elastic.core.group.state import (
    SIGKILL,
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
    Reaped,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Refused,
    Signal,
    Signalled,
    Start,
    Unawaited,
    Unstartable,
)
from elastic.core.rendezvous import Settings as RendezvousSettings
from elastic.core.world import Ending, Notice, Verdict, Why

TERM, KILL = Signal(15), Signal(9)
FAILED_0 = (Record(0, 1, 1.0), End(Why.FAILED), TERM)


def told(group: Group, event: Event) -> tuple[Phase, tuple[Command, ...]]:
    after, commands = transition(group, event)
    return after.phase, commands


# --- joining and held


def test_held_the_wait_for_a_start_is_as_long_as_a_join() -> None:
    assert Settings().start_timeout == RendezvousSettings().join_timeout == 600


def test_a_new_agent_joins() -> None:
    assert begin(Group(node("a")), 0.0)[1] == (Join(),)


def test_joining_a_world_holds_the_start_and_asks_for_a_heartbeat() -> None:
    assert told(led(), ready()) == (Phase.HELD, (Beat(),))


def test_held_a_fresh_heartbeat_starts_the_workers() -> None:
    group = led(ready())
    assert told(group, beat(1.0, 2.25)) == (Phase.RUNNING, (Start(world()),))
    assert transition(group, beat(1.0))[0].running == {0, 1}


def test_held_F1_a_heartbeat_sent_more_than_a_quarter_of_the_ttl_ago_starts_nothing() -> None:
    assert told(led(ready()), beat(1.0, 2.26)) == (Phase.HELD, ())


def test_held_a_node_unheard_for_longer_than_the_fence_joins_again_instead_of_starting() -> None:
    held = led(beat(0.0), ready(at=5.0), settings=FENCED)
    assert told(held, beat(3.0, 3.1)) == (Phase.RUNNING, (Start(world()),))
    assert told(held, beat(3.1)) == (Phase.JOINING, (Join(),))


@pytest.mark.parametrize("by", [over(at=1.0), Signalled(15, 1.0)], ids=["stopping", "leaving"])
def test_the_fence_falls_on_workers_that_are_being_stopped_too(by: Event) -> None:
    """Found by the simulator (S9 strong): a hung worker outlived the fence by the rest of its grace."""
    stopping = led(*RUN, by, settings=evolve(FENCED, grace=30.0, shutdown_timeout=30.0, leave_timeout=30.0))
    assert (stopping.until, stopping.kill_by) == (2.0, 3.0)
    after, commands = transition(stopping, Elapsed(3.0))
    assert (commands, after.kill_by) == ((Signal(SIGKILL),), None)
    assert after.until != 3.0


def test_held_a_node_unheard_until_just_before_it_heard_of_its_world_joins_again() -> None:
    """Found by the simulator (S9 strong): a spare is promoted while it is cut off, and others hold it for dead."""
    held = led(beat(0.0), beat(9.0), ready(at=9.1), settings=FENCED)
    after, commands = transition(held, beat(9.2))
    assert (after.phase, commands, after.heart.heard_again_at) == (Phase.JOINING, (Join(),), None)
    for at in (14.0, 14.1):
        long_ago = led(beat(0.0), beat(9.0), beat(11.0), beat(13.0), ready(at=at), settings=FENCED)
        assert told(long_ago, beat(14.2)) == (Phase.RUNNING, (Start(world()),))


def test_held_a_node_that_heard_of_its_world_longer_ago_than_the_fence_joins_again() -> None:
    """Found by the simulator (S9 strong): the node's world may be over, and the next one may run without it."""
    held = led(ready(at=1.0), beat(1.0, 3.0), beat(2.5, 4.0), settings=FENCED)
    assert told(held, beat(3.9, 4.0)) == (Phase.RUNNING, (Start(world()),))
    assert told(held, beat(4.0, 4.1)) == (Phase.JOINING, (Join(),))


def test_held_without_a_fence_a_node_starts() -> None:
    assert told(led(beat(0.0), ready(at=5.0)), beat(5.1)) == (Phase.RUNNING, (Start(world()),))


def test_a_start_that_no_heartbeat_allows_is_given_up_after_a_last_try() -> None:
    held = led(ready(at=1.0), settings=Settings(start_timeout=600.0))
    assert held.until == 601.0
    assert told(held, Elapsed(600.9)) == (Phase.HELD, ())
    held, commands = transition(held, Elapsed(601.0))
    assert (held.phase, commands, held.until) == (Phase.HELD, (Beat(),), 606.0)
    assert told(held, Elapsed(605.9)) == (Phase.HELD, ())
    for at in (606.0, 999.0):
        after, commands = transition(held, Elapsed(at))
        assert (after.phase, commands) == (Phase.ENDED, ())
        assert isinstance(after.outcome, Refused) and after.outcome.why is Why.UNCONFIRMED


def test_a_node_that_slept_through_the_wait_for_its_start_tries_once_more_and_starts() -> None:
    held = led(ready(at=1.0), settings=Settings(start_timeout=600.0))
    woken, commands = transition(held, Elapsed(9_000.0))
    assert (woken.phase, commands) == (Phase.HELD, (Beat(),))
    assert told(woken, beat(9_000.0, 9_000.1)) == (Phase.RUNNING, (Start(world()),))
    again, _ = transition(transition(woken, over())[0], ready(1, at=9_001.0))
    assert (again.phase, again.until) == (Phase.HELD, 9_601.0)


def test_held_a_round_that_is_over_before_the_start_is_joined_again() -> None:
    assert told(led(ready(3)), over(3)) == (Phase.JOINING, (Join(),))
    assert told(led(ready(3)), over(2)) == (Phase.HELD, ())


@pytest.mark.parametrize("name", ["joining", "held", "barrier"])
@pytest.mark.parametrize("event", [closed(), refused()], ids=["closed", "refused"])
def test_without_workers_a_verdict_or_a_refusal_ends_at_once(name: str, event: Event) -> None:
    assert told(GROUPS[name], event) == (Phase.ENDED, ())


@pytest.mark.parametrize("name", ["joining", "held", "barrier"])
def test_without_workers_a_signal_leaves_and_signals_nobody(name: str) -> None:
    assert told(GROUPS[name], Signalled(15, 1.0)) == (Phase.LEAVING, (Leave(),))


# --- running


def test_running_one_of_two_workers_succeeds_and_the_other_runs_on() -> None:
    assert told(led(*RUN), exited(0)) == (Phase.RUNNING, ())


def test_running_when_all_workers_have_succeeded_the_node_is_done() -> None:
    assert told(led(*RUN, exited(1)), exited(0)) == (Phase.BARRIER, (MarkDone(),))


def test_running_a_failure_is_recorded_then_ends_the_round_then_stops_the_others() -> None:
    assert told(led(*RUN), exited(0, 1, at=1.0)) == (Phase.STOPPING, FAILED_0)


def test_running_the_last_worker_fails_and_there_is_nobody_to_signal() -> None:
    assert told(led(*RUN, exited(1)), exited(0, 1, at=1.0)) == (Phase.STOPPING, FAILED_0[:2])


@pytest.mark.parametrize("event", [over(), closed(), refused()], ids=["over", "closed", "refused"])
def test_running_when_the_round_is_over_or_the_job_is_the_workers_are_stopped(event: Event) -> None:
    assert told(led(*RUN), event) == (Phase.STOPPING, (TERM,))


def test_running_another_rounds_end_means_nothing() -> None:
    assert told(led(*RUN), over(7)) == (Phase.RUNNING, ())


@pytest.mark.parametrize("before", [(), RUN])
def test_a_node_that_cannot_start_workers_says_why_and_asks_for_the_end_of_the_job(before: tuple[Event, ...]) -> None:
    words = (RecordUnfit("no such file"), Close(Ending.FAILED, Why.CANNOT_START))
    out = led(*before, Unstartable("no such file", 1.0), Reaped(1.0))
    assert told(led(*before), Unstartable("no such file", 1.0)) == (Phase.LEAVING, words)
    assert out.phase is Phase.LEAVING and out.until is None, "the register tells what follows"
    assert transition(out, Gone(2.0))[0].outcome == Refused(Why.UNFIT, "no such file", 1.0)
    assert transition(out, Refused(Why.UNCONFIRMED, "", 2.0))[0].outcome == Refused(Why.UNFIT, "no such file", 1.0)
    verdict = Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START)
    assert transition(out, Closed(verdict, 2.0))[0].outcome == verdict
    assert transition(out, Signalled(15, 2.0))[0].outcome == Stopped(15)


def test_running_workers_that_cannot_be_started_for_now_cost_a_restart() -> None:
    words = (RecordUnstartable("too many open files"), End(Why.FAILED))
    assert told(led(*RUN), Unstartable("too many open files", 0.0, passes=True)) == (Phase.STOPPING, words)
    assert told(led(*RUN, Unstartable("too many open files", 0.0, passes=True)), Reaped(1.0)) == (
        Phase.JOINING,
        (Join(),),
    )


def test_running_the_first_signal_is_forwarded_and_the_node_leaves() -> None:
    assert told(led(*RUN), Signalled(2, 1.0)) == (Phase.LEAVING, (Leave(), Signal(2)))


def test_running_fenced_workers_are_killed_at_once_when_no_heartbeat_is_acknowledged() -> None:
    group = led(*RUN, beat(4.0), settings=FENCED)
    assert group.until == 7.0
    assert told(group, Elapsed(6.9)) == (Phase.RUNNING, ())
    for at in (7.0, 9.0):
        assert told(group, Elapsed(at)) == (Phase.STOPPING, (KILL,))


def test_a_fenced_node_joins_again_when_its_workers_are_gone() -> None:
    fenced = led(*RUN, beat(4.0), Elapsed(7.0), exited(0, -9), exited(1, -9), settings=FENCED)
    assert told(fenced, Reaped(7.1)) == (Phase.JOINING, (Join(),))


def test_running_an_acknowledgement_that_comes_late_fences_nobody_earlier() -> None:
    assert led(*RUN, beat(4.0), beat(3.0, 5.0), settings=FENCED).until == 7.0


def test_running_without_a_fence_no_timer_runs() -> None:
    assert led(*RUN).until is None
    assert told(led(*RUN), Elapsed(999.0)) == (Phase.RUNNING, ())


# --- stopping


def test_stopping_SIGKILL_follows_when_the_grace_is_over() -> None:
    group = led(*FAIL)
    assert group.kill_by == 31.0
    assert told(group, Elapsed(29.9)) == (Phase.STOPPING, ())
    for at in (31.0, 99.0):
        assert told(group, Elapsed(at)) == (Phase.STOPPING, (KILL,))


def test_stopping_SIGKILL_is_sent_once() -> None:
    assert commands(led(*FAIL), Elapsed(31.0), Elapsed(32.0)) == (KILL,)
    assert led(*FAIL, Elapsed(31.0)).until is None


def test_stopping_fenced_workers_get_no_second_SIGKILL() -> None:
    group = led(*RUN, Elapsed(3.0), settings=FENCED)
    assert (group.phase, group.until) == (Phase.STOPPING, None)


def test_stopping_when_all_are_reaped_the_node_joins_again() -> None:
    group = led(*FAIL, exited(1, -15))
    assert told(group, Reaped(2.0)) == (Phase.JOINING, (Join(),))


@pytest.mark.parametrize("event", [closed(), refused()], ids=["closed", "refused"])
def test_stopping_when_all_are_reaped_a_closed_or_refused_node_ends(event: Event) -> None:
    assert told(led(*FAIL, event), Reaped(2.0)) == (Phase.ENDED, ())


def test_stopping_a_worker_that_had_died_by_itself_is_recorded() -> None:
    assert told(led(*FAIL), exited(1, -9, at=0.9)) == (Phase.STOPPING, (Record(1, -9, 0.9),))


@pytest.mark.parametrize("event", [exited(1, -15, at=1.1), exited(1, 0, at=0.9)], ids=["by us", "with success"])
def test_stopping_a_worker_that_we_stopped_or_that_succeeded_is_no_failure(event: Event) -> None:
    assert told(led(*FAIL), event) == (Phase.STOPPING, ())


def test_stopping_a_worker_that_was_dead_when_our_signal_was_sent_had_died_by_itself() -> None:
    assert told(led(*FAIL), exited(1, -9, at=1.0)) == (Phase.STOPPING, (Record(1, -9, 1.0),))


def test_stopping_an_exit_that_is_posted_twice_counts_once() -> None:
    assert led(*FAIL, exited(1, -15), exited(1, -15)).running == frozenset()


def test_a_thousand_rounds_in_over_is_still_of_this_round() -> None:
    # A number that Python does not keep as a single object.
    assert told(led(ready(1_000), beat()), over(int("1000"))) == (Phase.STOPPING, (TERM,))


def test_stopping_a_signal_leaves_and_is_forwarded() -> None:
    assert told(led(*FAIL), Signalled(15, 2.0)) == (Phase.LEAVING, (Leave(), TERM))


# --- barrier


def test_barrier_a_round_that_is_over_makes_the_result_void() -> None:
    assert told(led(*SUCCEED), over()) == (Phase.JOINING, (Join(),))
    assert told(led(*SUCCEED), over(7)) == (Phase.BARRIER, ())


IMPATIENT = Settings(barrier_timeout=10.0, leave_timeout=5.0)


@pytest.mark.parametrize("span", [-1.0, 0.0, float("nan")])
def test_a_barrier_timeout_that_is_no_span_is_refused(span: float) -> None:
    with pytest.raises(ValueError, match=rf"barrier_timeout: a span above 0 seconds, or inf, not {span}"):
        Settings(barrier_timeout=span)


def test_barrier_the_others_are_waited_for_as_long_as_the_setting_says() -> None:
    done = led(*SUCCEED, settings=IMPATIENT)
    assert done.until is not None and done.course.done_at is not None
    assert done.until == done.course.done_at + 10.0
    assert told(done, Elapsed(done.until - 0.1)) == (Phase.BARRIER, ())
    assert told(done, Elapsed(done.until)) == (Phase.LEAVING, (Leave(),))


def test_barrier_a_node_that_waits_no_longer_ends_with_the_success_of_its_workers() -> None:
    gone = led(*SUCCEED, Elapsed(99.0), settings=IMPATIENT)
    assert gone.until == 104.0
    assert led(*SUCCEED, Elapsed(99.0), Gone(99.1), settings=IMPATIENT).outcome == Unawaited()
    assert transition(gone, Elapsed(104.0))[0].outcome == Unawaited()
    assert transition(gone, refused())[0].outcome == Unawaited()


def test_barrier_a_verdict_that_is_heard_meanwhile_stands_above_that() -> None:
    for ending in (Ending.FAILED, Ending.SUCCEEDED):
        ended = led(*SUCCEED, Elapsed(99.0), closed(ending), settings=IMPATIENT)
        assert isinstance(ended.outcome, Verdict) and ended.outcome.ending is ending


def test_barrier_a_node_waits_there_without_a_timer() -> None:
    assert led(*SUCCEED).until is None
    assert led(*SUCCEED, settings=FENCED).until is None


def test_success_comes_from_the_register_alone() -> None:
    assert led(*SUCCEED).outcome is None
    assert led(*SUCCEED, closed(Ending.SUCCEEDED)).outcome == closed(Ending.SUCCEEDED).verdict


# --- leaving

LEAVING = (*RUN, Signalled(15, 1.0))


def test_leaving_ends_when_the_register_knows_and_all_are_reaped() -> None:
    assert told(led(*LEAVING), Gone(1.5)) == (Phase.LEAVING, ())
    assert told(led(*LEAVING, Gone(1.5), exited(0, -15)), exited(1, -15)) == (Phase.LEAVING, ())
    assert told(led(*LEAVING, Gone(1.5)), Reaped(2.0)) == (Phase.ENDED, ())
    assert told(led(*LEAVING, Reaped(1.5)), Gone(2.0)) == (Phase.ENDED, ())


def test_leaving_without_workers_is_no_leave_that_the_register_knows() -> None:
    reaped = led(*LEAVING, exited(0, -15), exited(1, -15), Reaped(2.0))
    assert (reaped.phase, reaped.leave_by, reaped.until) == (Phase.LEAVING, 6.0, 6.0)


def test_leaving_a_program_that_could_not_start_is_reaped_too() -> None:
    # The signal came between the start and the news that it was none.
    assert led(*LEAVING, Unstartable("no such file", 1.0), Reaped(1.0), Gone(1.1)).phase is Phase.ENDED


@pytest.mark.parametrize("event", [closed(), refused()], ids=["closed", "refused"])
def test_leaving_a_job_that_is_closed_or_a_register_that_refuses_needs_no_leave(event: Event) -> None:
    assert told(led(Signalled(15, 1.0)), event) == (Phase.ENDED, ())


def test_leaving_waits_for_the_register_no_longer_than_the_leave_timeout() -> None:
    group = led(Signalled(15, 1.0))
    assert group.until == 6.0
    assert told(group, Elapsed(5.9)) == (Phase.LEAVING, ())
    for at in (6.0, 9.0):
        assert told(group, Elapsed(at)) == (Phase.ENDED, ())


def test_the_grace_of_a_restart_and_that_of_a_signal_are_two() -> None:
    spans = Settings(grace=7.0, shutdown_timeout=11.0, leave_timeout=90.0)
    assert led(*FAIL, settings=spans).stop.kill_at == 1.0 + spans.grace
    assert led(*RUN, over(at=1.0), settings=spans).stop.kill_at == 1.0 + spans.grace
    assert led(*RUN, noticed(60.0), over(at=1.0), settings=spans).stop.kill_at == 1.0 + spans.grace
    assert led(*LEAVING, settings=spans).stop.kill_at == 1.0 + spans.shutdown_timeout
    assert led(*FAIL, Signalled(15, 2.0), settings=spans).stop.kill_at == 2.0 + spans.shutdown_timeout


def test_leaving_workers_have_the_shutdown_timeout_then_SIGKILL() -> None:
    group = led(*LEAVING, Gone(1.5))
    assert group.kill_by == 31.0
    for at in (31.0, 99.0):
        assert told(group, Elapsed(at)) == (Phase.LEAVING, (KILL,))
    assert led(*LEAVING, Gone(1.5), Elapsed(31.0)).until is None


def test_leaving_what_the_register_knows_is_known_after_a_kill_too() -> None:
    spans = Settings(shutdown_timeout=2.0)
    assert led(*LEAVING, Gone(1.5), Elapsed(3.0), Reaped(3.1), settings=spans).phase is Phase.ENDED


def test_leaving_with_workers_the_leave_timeout_passes_and_the_workers_still_have_theirs() -> None:
    assert led(*LEAVING).until == 6.0
    assert told(led(*LEAVING), Elapsed(6.0)) == (Phase.LEAVING, ())
    assert led(*LEAVING, Elapsed(6.0)).kill_by == 31.0


CHILDREN = Signal(15, children=True)


@pytest.mark.parametrize(
    ("stops", "phase"), [(FAIL, Phase.STOPPING), ((*LEAVING, Gone(1.5)), Phase.LEAVING)], ids=["stopping", "leaving"]
)
def test_the_children_of_workers_have_one_second_of_the_grace_for_themselves(
    stops: tuple[Event, ...], phase: Phase
) -> None:
    group = led(*stops)
    assert group.until == 30.0
    assert told(group, Elapsed(29.9)) == (phase, ())
    for at in (30.0, 30.9):
        assert told(group, Elapsed(at)) == (phase, (CHILDREN,))
    warned = led(*stops, Elapsed(30.0))
    assert warned.until == 31.0
    assert told(warned, Elapsed(30.5)) == (phase, ())
    assert told(warned, Elapsed(31.0)) == (phase, (KILL,))


def test_no_signal_is_due_for_the_children_of_workers_that_are_dead_or_have_a_second_at_most() -> None:
    ends = [exited(rank, -15, at=2.0) for rank in sorted(led(*LEAVING).running)]
    assert led(*LEAVING, *ends).children_by is None
    short = Settings(grace=1.0, shutdown_timeout=1.0)
    assert led(*FAIL, settings=short).until == 2.0
    assert told(led(*LEAVING, settings=short), Elapsed(1.9)) == (Phase.LEAVING, ())


def test_a_drained_node_s_workers_have_children_too() -> None:
    drained = led(*RUN, Noticed(Notice(3.5, "test"), 1.0))
    assert (drained.phase, drained.kill_by, drained.children_by) == (Phase.LEAVING, 3.5, 2.5)
    assert transition(drained, Elapsed(2.5))[1] == (CHILDREN,)


def test_leaving_a_second_signal_kills_at_once_and_waits_for_no_register() -> None:
    assert told(led(*LEAVING), Signalled(2, 1.2)) == (Phase.LEAVING, (KILL,))
    assert led(*LEAVING, Signalled(2, 1.2), Reaped(1.3)).phase is Phase.ENDED
    assert told(led(Signalled(15, 1.0)), Signalled(15, 1.1)) == (Phase.ENDED, ())


@pytest.mark.parametrize("event", [over(), ready(1), beat(2.0), exited(0)], ids=["over", "ready", "beat", "exit"])
def test_leaving_other_events_change_nothing(event: Event) -> None:
    assert told(led(*LEAVING), event) == (Phase.LEAVING, ())


# --- ended


@pytest.mark.parametrize("event", [closed(Ending.SUCCEEDED), refused(), Signalled(9, 9.0), beat(9.0), ready(1)])
def test_ended_is_final(event: Event) -> None:
    group = led(Signalled(2, 1.0), Gone(1.0))
    assert transition(group, event) == (group, ())
    assert group.until is None


@pytest.mark.parametrize(
    ("group", "outcome"),
    [
        (led(closed()), closed().verdict),
        (led(refused()), refused()),
        (led(*RUN, refused(), closed(), Reaped(1.0)), closed().verdict),
        (led(Signalled(2, 1.0), Gone(1.0)), Stopped(2)),
        (led(Signalled(2, 1.0), Signalled(15, 1.0)), Stopped(2)),
        (led(Signalled(2, 1.0), closed()), Stopped(2)),
        (led(*SUCCEED, Signalled(2, 1.0), closed(Ending.SUCCEEDED)), closed(Ending.SUCCEEDED).verdict),
        (led(*RUN), None),
    ],
    ids=[
        "a verdict",
        "a refusal",
        "a verdict above a refusal",
        "a signal",
        "the first signal",
        "a signal above a verdict",
        "a success above a signal",
        "not yet",
    ],
)
def test_the_outcome_is_a_success_else_a_signal_else_a_verdict_or_a_refusal(
    group: Group, outcome: Outcome | None
) -> None:
    assert group.outcome == outcome


def test_the_first_verdict_and_the_first_refusal_stay() -> None:
    group = led(*RUN, closed(), closed(Ending.SUCCEEDED), refused(), refused(Why.LIMITS))
    assert (group.verdict, group.refused) == (closed().verdict, refused())


# --- settings


@pytest.mark.parametrize("span", ["grace", "shutdown_timeout", "leave_timeout", "ttl", "keep_alive_interval"])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_a_span_is_finite_and_not_negative(span: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{span}: a span of 0 or more seconds, not {value}"):
        Settings(**{span: value})  # type: ignore[arg-type]


def test_a_fence_leaves_the_others_time_to_find_out() -> None:
    # fence + heartbeat + 1 s <= TTL: or the others may start a world while our workers still run.
    assert Settings(ttl=5.0, fence=3.0).fence == 3.0
    with pytest.raises(ValueError, match=r"fence: 2.5 to 3 s with a TTL of 5 s and a heartbeat each 1 s, not 3.1"):
        Settings(ttl=5.0, fence=3.1)
    assert Settings(ttl=5.0, keep_alive_interval=0.5, fence=3.1).fence == 3.1


def test_F1_a_fence_is_at_least_a_quarter_of_the_ttl_after_a_start() -> None:
    # A start takes a heartbeat that is up to TTL/4 old, so the fence is at least TTL/2.
    with pytest.raises(ValueError, match=r"fence: 2.5 to 3 s .* not 2.4"):
        Settings(ttl=5.0, fence=2.4)
    started_at = 1.25
    group = led(ready(), beat(0.0, started_at), settings=Settings(fence=2.5))
    assert group.until is not None
    assert group.until - started_at >= Settings().ttl / 4


def test_a_group_is_a_value() -> None:
    assert evolve(led(*RUN)) == led(*RUN)
