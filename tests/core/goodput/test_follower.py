"""The steps of a trace, read to an account."""

from __future__ import annotations

import pytest
from attrs import evolve
from goodputs import imbalances, read
from traced import Agent, Shared, finished, started
from traced_calls import called_again

from elastic.core.goodput import follow, take
from elastic.core.goodput.entries import Piece
from elastic.core.group import Phase, transition
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import Elapsed, Join, MarkDone, Over, Start, Unstartable
from elastic.core.trace.steps import CallStepped, HangEnd, Started, Stepped, step_at
from elastic.core.work import Mark, Worked
from elastic.core.world import Generation

OVER = Over(0, None, None, 200.0)


def test_the_traces_of_a_job_add_up() -> None:
    pair = finished()
    assert imbalances([pair.a.trace, pair.b.trace]) == []


def test_the_trace_of_a_rank_s_call_has_no_account() -> None:
    rank = called_again().a
    with pytest.raises(ValueError, match="is the call of a rank"):
        follow(rank.header)
    follower = follow(started().a.header)
    (step, *_) = [step for step in rank.steps if isinstance(step, CallStepped)]
    assert take(follower, step) == (follower, ())
    assert imbalances([rank.trace]) == []


def test_after_missing_steps_the_start_of_workers_shows_where_the_group_stands() -> None:
    trace = finished().b.trace
    (start,) = [step for step in trace.steps[20:] if _commands(step, Start)]
    follower = follow(trace.header)
    follower, _ = take(follower, None)
    follower, _ = take(follower, start)
    assert follower.account.group and follower.account.group.phase is Phase.RUNNING
    assert len(follower.account.group.running) == 1


def test_after_missing_steps_a_join_shows_where_the_group_stands_unless_workers_run_on() -> None:
    follower = follow(started().a.header)
    follower, _ = take(follower, None)
    unclear, _ = take(follower, Stepped(None, (MarkDone(),), 200.0))
    assert unclear.account.group is None
    moving, _ = take(follower, Stepped(OVER, (Join(Generation("by a", 0)),), 200.0))
    assert moving.account.group is None
    joining, _ = take(follower, Stepped(OVER, (Join(),), 200.0))
    assert joining.account.group and joining.account.group.phase is Phase.JOINING


def test_a_step_that_the_core_would_not_take_leaves_the_rest_unknown_until_it_is_clear() -> None:
    trace = finished().b.trace
    number = next(number for number, step in enumerate(trace.steps) if _commands(step, MarkDone))
    step = trace.steps[number]
    assert isinstance(step, Stepped)
    steps = (*trace.steps[:number], evolve(step, commands=()), *trace.steps[number + 1 :])
    assert [piece.bucket for piece in read(trace.header, steps).pieces][-2:] == ["running", "unknown"]


def test_an_agent_that_cannot_start_workers_is_followed_though_it_never_begins() -> None:
    header = started().a.header
    follower, event = follow(header), Unstartable("no such file", header.now + 1.0)
    _, commands = transition(follower.born, event)
    told = Stepped(event, commands, event.at)
    pieces = read(header, (told, Stepped(Elapsed(event.at + 9.0), (), event.at + 9.0))).all
    assert [(each.bucket, each.end - each.start) for each in pieces if isinstance(each, Piece)] == [
        ("waiting", 1_000_000),
        ("stopping", 9_000_000),
    ]
    follower, _ = take(follower, None)
    follower, _ = take(follower, told)
    assert follower.account.is_cut


def test_what_workers_came_to_is_taken_from_the_trace() -> None:
    trace = started().b.trace
    (start,) = (step for step in trace.steps if isinstance(step, Started))
    ended_at = start.at + 9.0
    work = Worked(0, 1, 0, False, start.at, ended_at, ended_at, None, Mark(start.at + 2.0), None, Mark(start.at + 4.0))
    pieces = read(trace.header, (*trace.steps, work)).pieces
    assert [piece.bucket for piece in pieces] == ["waiting", "starting", "training", "training"]
    assert [piece.end - piece.start for piece in pieces[-2:]] == [2_000_000, 5_000_000]


def test_the_hang_watch_s_end_of_a_worker_is_taken_from_the_trace() -> None:
    trace = started().b.trace
    steps = (*trace.steps, HangEnd(0, 1, 200.0))
    assert (run := read(trace.header, steps).account.run) and run.hung == {1}
    assert read(trace.header, (HangEnd(0, 1, 200.0),)).account.run is None


def test_a_run_after_one_that_told_of_progress_starts_until_it_tells_too() -> None:
    """It runs as long as nobody knows: of an agent that was killed, or still runs, no worker has told what it came to."""
    trace = finished().b.trace
    first, second = (step for step in trace.steps if isinstance(step, Started))
    work = Worked(0, 1, 0, False, first.at, first.at, first.at, None, Mark(first.at), None, Mark(first.at))
    mute = Worked(1, 0, 0, False, second.at, second.at, second.at)
    for succeeds, also, running in (False, (), 1), (False, (mute,), 0), (True, (), 1), (True, (mute,), 1):
        steps = [step for step in trace.steps if succeeds or step_at(step) <= second.at + 0.01]
        later = {first: (work,), second: also}
        steps = [each for step in steps for each in (step, *(later.get(step, ()) if isinstance(step, Started) else ()))]
        found = [piece.bucket for piece in read(trace.header, steps).pieces]
        assert (found.count("training"), found.count("running")) == (1, running)


def test_an_agent_that_checks_its_node_begins_with_that() -> None:
    agent = Agent("a", Shared(), of_group=GroupSettings(checks=True))
    agent.shared.now = 103.0
    agent.sleeps()
    assert [piece.bucket for piece in read(agent.trace.header, agent.trace.steps).pieces] == ["checking"]


def _commands(step: object, kind: type) -> bool:
    return isinstance(step, Stepped) and any(isinstance(each, kind) for each in step.commands)
