"""A worker group whose node is drained: when it leaves, what its workers are told, and what came of it."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import FAIL, RUN, SUCCEED, closed, commands, exited, led, noticed, over, refused

from elastic.core.group import Group, Phase, Settings, transition
from elastic.core.group.state import (
    SIGTERM,
    Command,
    Deadline,
    Drain,
    Drained,
    Elapsed,
    End,
    Event,
    Gone,
    Leave,
    Noticed,
    ReadyToLeave,
    Reaped,
    Record,
    RecordUnfit,
    Refused,
    Signal,
    Signalled,
    Stopped,
    Tell,
)
from elastic.core.world import Ending, Notice, Why

TERM = Signal(SIGTERM)
TOLD = Tell(Notice(60.0, "a test"), goes_at=29.0, gone_by=60.0)
"""With a grace of 30 s, and a second for SIGKILL."""


def told(group: Group, event: Event) -> tuple[Phase, tuple[Command, ...]]:
    after, commands = transition(group, event)
    return after.phase, commands


def test_a_running_node_tells_its_workers_and_the_register_if_that_does_not_know() -> None:
    assert told(led(*RUN), noticed()) == (Phase.RUNNING, (TOLD,))
    local = told(led(*RUN), noticed(known=False))
    assert (
        local == told(led(*RUN), Noticed(TOLD.notice, 0.0)) == (Phase.RUNNING, (Drain(led().node, TOLD.notice), TOLD))
    )
    assert told(led(*SUCCEED), noticed()) == (Phase.BARRIER, (TOLD,))


def test_a_later_notice_changes_nothing_and_a_sooner_one_does() -> None:
    group = led(*RUN, noticed())
    assert told(group, noticed(60.0, at=5.0)) == (Phase.RUNNING, ())
    assert transition(group, Noticed(Notice(60.0, "another"), 0.0)) == (group, ())
    sooner, commands_ = transition(group, noticed(40.0, at=1.0))
    assert (sooner.goes_at, sooner.deadline) == (10.0, Deadline(noticed(40.0).notice, 41.0))
    assert commands_ == (Tell(Notice(40.0, "a test"), 10.0, 41.0),)
    assert transition(group, noticed(40.0, at=10.0))[0].deadline == Deadline(noticed(40.0).notice, 50.0)


UNFIT = Noticed(TOLD.notice, 0.0, unfit=True)


def test_a_node_that_is_found_unfit_is_drained_and_ends_as_unfit() -> None:
    drains = Drain(led().node, TOLD.notice)
    assert told(led(*RUN), UNFIT) == (Phase.RUNNING, (RecordUnfit("a test"), drains, TOLD))
    assert transition(led(*RUN), UNFIT)[0].goes_at == led(*RUN, noticed()).goes_at
    gone = led(*RUN, UNFIT, ReadyToLeave(0, 2.0), ReadyToLeave(1, 2.0), exited(0), exited(1), Gone(4.0))
    assert isinstance(gone.outcome, Refused) and (gone.outcome.why, gone.outcome.text) == (Why.UNFIT, "a test")
    assert transition(gone, UNFIT) == (gone, ())


def test_a_node_is_put_on_record_as_unfit_once_and_a_sooner_notice_does_not_make_it_fit() -> None:
    group = led(*RUN, UNFIT)
    assert told(group, Noticed(Notice(60.0, "again"), 1.0, unfit=True)) == (Phase.RUNNING, ())
    sooner, commands_ = transition(group, noticed(40.0, at=1.0))
    assert commands_ == (Tell(Notice(40.0, "a test"), 10.0, 41.0),)
    assert sooner.deadline == Deadline(noticed(40.0).notice, 41.0, "a test")


def test_a_drained_node_that_is_found_unfit_later_ends_as_unfit() -> None:
    after, commands_ = transition(led(*RUN, noticed()), Noticed(Notice(60.0, "a check"), 5.0, unfit=True))
    assert commands_ == (RecordUnfit("a check"),) and after.deadline == Deadline(TOLD.notice, 60.0, "a check")


def test_a_node_without_a_world_that_is_unfit_leaves_at_once() -> None:
    assert told(led(), UNFIT) == (Phase.LEAVING, (RecordUnfit("a test"), Leave()))


def test_it_leaves_when_all_its_workers_are_ready() -> None:
    group = led(*RUN, noticed())
    assert told(group, ReadyToLeave(0, 2.0)) == (Phase.RUNNING, ())
    ready = led(*RUN, noticed(), ReadyToLeave(0, 2.0))
    assert told(ready, ReadyToLeave(1, 3.0)) == (Phase.LEAVING, (Leave(), TERM))
    twice = transition(ready, ReadyToLeave(0, 2.5))[0]
    assert told(twice, ReadyToLeave(1, 3.0)) == (Phase.LEAVING, (Leave(), TERM))
    assert told(led(*RUN), ReadyToLeave(0, 1.0)) == (Phase.RUNNING, ())


def test_workers_that_end_well_after_they_said_so_have_not_succeeded() -> None:
    ready = led(*RUN, noticed(), ReadyToLeave(0, 2.0))
    assert told(ready, exited(0, at=2.0)) == (Phase.RUNNING, ())
    assert told(ready, exited(1, at=2.0)) == (Phase.LEAVING, (Leave(), TERM))
    both = led(*RUN, noticed(), ReadyToLeave(0, 2.0), exited(0, at=2.0))
    assert told(both, ReadyToLeave(1, 3.0)) == (Phase.LEAVING, (Leave(), TERM))


def test_it_leaves_at_its_time_and_its_workers_are_dead_before_the_deadline() -> None:
    group = led(*RUN, noticed())
    assert group.until == 29.0
    assert told(group, Elapsed(28.0)) == (Phase.RUNNING, ())
    left, commands_ = transition(group, Elapsed(29.0))
    assert (left.phase, commands_) == (Phase.LEAVING, (Leave(), TERM))
    assert (left.stop.kill_at, left.leave_by) == (59.0, 34.0)
    assert told(group, Elapsed(40.0)) == (Phase.LEAVING, (Leave(), TERM))


def test_a_node_with_less_than_its_grace_leaves_at_once() -> None:
    left, commands_ = transition(led(*RUN), noticed(3.0, at=1.0))
    assert (left.phase, commands_) == (Phase.LEAVING, (Leave(), TERM))
    assert (left.stop.kill_at, left.leave_by) == (3.0, 4.0)


@pytest.mark.parametrize("deadline", [0.0, 60.0])
def test_a_node_without_running_workers_leaves_at_once(deadline: float) -> None:
    assert told(led(), noticed(deadline)) == (Phase.LEAVING, (Leave(),))
    assert told(led(RUN[0]), noticed(deadline)) == (Phase.LEAVING, (Leave(),))


def test_workers_that_are_being_stopped_keep_their_grace_but_for_the_deadline() -> None:
    stopping = led(*FAIL)
    left, commands_ = transition(stopping, noticed(5.0, at=2.0))
    assert (left.phase, commands_, left.stop.kill_at) == (Phase.LEAVING, (Leave(),), 6.0)
    assert transition(stopping, noticed(60.0, at=2.0))[0].stop.kill_at == stopping.stop.kill_at


def test_a_drained_node_does_not_come_back_when_its_round_is_over() -> None:
    group = led(*RUN, noticed())
    assert told(group, over()) == (Phase.LEAVING, (Leave(), TERM))
    assert told(led(*SUCCEED, noticed()), over()) == (Phase.LEAVING, (Leave(),))
    failed = led(*RUN, noticed(), exited(0, 1, at=1.0))
    assert commands(group, exited(0, 1, at=1.0)) == (Record(0, 1, 1.0), End(Why.FAILED), TERM)
    assert told(failed, exited(1, -15, at=2.0)) == (Phase.STOPPING, ())
    assert told(evolve(failed, running=frozenset()), Reaped(2.0)) == (Phase.LEAVING, (Leave(),))


def test_a_node_at_the_exit_barrier_waits_for_the_others_until_its_time() -> None:
    group = led(*SUCCEED, noticed())
    assert group.until == 29.0
    assert told(group, Elapsed(29.0)) == (Phase.LEAVING, (Leave(),))
    assert told(led(*SUCCEED), noticed(1.0)) == (Phase.LEAVING, (Leave(),))
    assert led(*SUCCEED, noticed(), settings=Settings(barrier_timeout=10.0)).until == 10.0


def test_a_node_that_a_signal_told_to_leave_hurries_for_a_notice() -> None:
    leaving = led(*RUN, Signalled(15, 1.0))
    hurried, commands_ = transition(leaving, noticed(4.0, at=1.0))
    assert (hurried.stop.kill_at, hurried.leave_by, commands_) == (4.0, 5.0, ())
    assert led(*RUN, Signalled(15, 1.0), noticed(4.0, at=1.0), Gone(2.0), Reaped(2.0)).outcome == Stopped(15)


def test_a_drained_node_says_by_what_unless_the_job_has_a_verdict() -> None:
    group = led(*RUN, noticed(1.0), Gone(1.0))
    assert led(*RUN, noticed(1.0), Gone(1.0), Reaped(1.0)).outcome == Drained("a test")
    assert led(*RUN, noticed(), refused(), Reaped(1.0)).outcome == refused()
    over_ = closed(Ending.SUCCEEDED, at=1.0)
    ended = transition(transition(group, over_)[0], Reaped(1.0))[0]
    assert ended.outcome == over_.verdict
