"""The timeline of a job, read from its history: rounds, recoveries, lanes."""

from __future__ import annotations

import pytest
from attrs import evolve
from traced import Agent, Pair, Shared, finished, restarted, restored, started
from worlds import node

from elastic.core.group import Phase
from elastic.core.group.state import End, Exited, Over, Unstartable
from elastic.core.rendezvous import Limits, Settings
from elastic.core.replay.comparison import replayed
from elastic.core.replay.history import History, histories
from elastic.core.replay.lanes import Mark, Span
from elastic.core.replay.timeline import lanes, recoveries, rounds
from elastic.core.trace.steps import Asked
from elastic.core.work import Mark as Progress
from elastic.core.work import Worked
from elastic.core.world import Ending, Verdict, Why

FINISHED = finished()


def history(pair: Pair) -> History:
    (found,) = histories([replayed(pair.a.trace), replayed(pair.b.trace)])
    return found


def test_a_round_tells_its_members_and_why_it_ended() -> None:
    first, second = rounds(history(FINISHED))
    assert (first.number, first.members, first.workers) == (0, (node("a"), node("b")), 2)
    assert (first.why, first.by, first.verdict) == (Why.FAILED, node("b"), None)
    assert second.verdict == Verdict(Ending.SUCCEEDED, 1, node("b"), Why.DONE)
    times = [first.complete_at, first.over_at, second.complete_at, second.over_at]
    assert times == sorted(at for at in times if at is not None)


def test_a_round_that_stands_has_no_end() -> None:
    (only,) = rounds(history(started()))
    assert (only.over_at, only.why, only.by, only.verdict) == (None, None, None, None)


def test_a_round_that_is_not_complete_has_no_members() -> None:
    agent = Agent("a", Shared())
    agent.runs()
    (only,) = rounds(histories([replayed(agent.trace)])[0])
    assert (only.members, only.workers, only.complete_at) == ((), 0, None)


def test_a_recovery_names_its_first_witness_and_each_moment_in_order() -> None:
    (only,) = recoveries(history(FINISHED))
    assert (only.ended, only.began, only.first) == (0, 1, node("b"))
    assert isinstance(only.event, Exited)
    assert End(Why.FAILED) in only.commands
    moments = [only.detected_at, only.stopped_at, only.joined_at, only.complete_at, only.started_at]
    assert None not in moments
    assert moments == sorted(at for at in moments if at is not None)


def worked(pair: Pair, *works: tuple[str, int, int, float | None]) -> History:
    """The history of these agents, whose workers came to this: the node, the round, which start it was, first progress."""
    runs, end = [], pair.a.shared.now
    for agent in (pair.a, pair.b):
        marks = (
            (round, start, None if at is None else Progress(at))
            for name, round, start, at in works
            if name == agent.name
        )
        steps = [
            Worked(round, 0, start, standby=False, began_at=0.0, ended_at=end, at=end, first=mark, last=mark)
            for round, start, mark in marks
        ]
        trace = agent.trace
        lines = range(2, len(trace.steps) + len(steps) + 2)
        runs.append(replayed(evolve(trace, steps=(*trace.steps, *steps), lines=tuple(lines))))
    (found,) = histories(runs)
    return found


def test_a_recovery_ends_with_the_first_progress_of_the_last_worker_that_says_so() -> None:
    (silent,) = recoveries(history(FINISHED))
    assert silent.progressed_at is None
    at = FINISHED.a.shared.now
    told = worked(
        FINISHED,
        *(("a", 0, 0, at - 0.3), ("a", 1, 0, at - 0.2), ("a", 1, 0, at - 0.1), ("a", 1, 1, at - 0.01)),
        *(("b", 1, 0, at - 0.15), ("b", 1, 0, None)),
    )
    (recovery,) = recoveries(told)
    origin = told.runs[0].trace.header.now
    assert recovery.progressed_at == pytest.approx(at - 0.1 - origin)
    assert evolve(recovery, progressed_at=None) == silent
    marks = [(mark.node.slot, mark.label) for mark in lanes(told).marks if mark.kind == "progress"]
    assert marks == [("a", f"first progress of round {round}") for round in (0, 1)] + [
        ("b", "first progress of round 1")
    ]


def test_a_job_without_an_end_of_a_round_has_no_recovery() -> None:
    assert recoveries(history(started())) == ()


def test_an_end_that_no_trace_tells_is_no_recovery() -> None:
    blind = [
        evolve(run, moments=tuple(moment for moment in run.moments if moment.after.group.phase is not Phase.STOPPING))
        for run in history(FINISHED).runs
    ]
    assert recoveries(History("by a", tuple(blind))) == ()


def test_each_host_tells_of_a_recovery_by_its_own_clock() -> None:
    shared = Shared()
    pair = Pair(Agent("a", shared), Agent("b", shared, boot="other")).run()
    pair.b.exits(9)
    pair.run()
    pair.a.exits(-15)
    by_clock = recoveries(history(pair.run()))
    assert {each.first: type(each.event) for each in by_clock} == {node("a"): Over, node("b"): Exited}


def test_a_lane_tells_the_phases_of_its_node() -> None:
    drawn = lanes(history(FINISHED))
    assert drawn.nodes == (node("a"), node("b"))
    of_b = [(span.kind, span.label) for span in drawn.spans if span.node == node("b")]
    assert of_b == [
        ("joining", ""),
        ("held", "round 0"),
        ("running", "round 0"),
        ("stopping", "round 0"),
        ("joining", ""),
        ("held", "round 1"),
        ("running", "round 1"),
        ("barrier", "round 1"),
        ("ended", "round 1"),
    ]
    ends = {span.node: span.end for span in drawn.spans}
    assert all(span.start <= span.end <= ends[span.node] for span in drawn.spans)


def test_lanes_have_marks_for_faults_and_writes() -> None:
    marks = [(mark.node.slot, mark.kind, mark.label) for mark in lanes(history(FINISHED)).marks]
    assert marks == [
        ("a", "write", "arrive"),
        ("a", "complete", "round 1"),
        ("a", "write", "done"),
        ("b", "complete", "round 0"),
        ("b", "fault", "worker 0 failed (9)"),
        ("b", "end", "ends round 0 (failed)"),
        ("b", "write", "arrive"),
        ("b", "closed", "closed SUCCEEDED"),
    ]


def test_a_loss_of_the_store_ends_no_round_and_is_marked_by_the_node_that_restores() -> None:
    whole, lost = history(restarted()), history(restored())
    assert [(each.number, each.why, each.by) for each in rounds(lost)] == [
        (each.number, each.why, each.by) for each in rounds(whole)
    ]
    assert [(each.ended, each.began) for each in recoveries(lost)] == [(0, 1)]
    spans = [span.kind for span in lanes(lost).spans]
    assert spans == [span.kind for span in lanes(whole).spans]
    marks = [(mark.node.slot, mark.kind, mark.label) for mark in lanes(lost).marks]
    assert ("a", "write", "restore") in marks
    assert len(marks) == len(lanes(whole).marks) + 1


def test_a_world_that_is_restored_by_one_that_held_nothing_is_not_completed_by_that() -> None:
    shared = Shared()
    Pair(Agent("a", shared), Agent("b", shared)).run()
    shared.loses(older=shared.state)
    newcomer = Agent("c", shared)
    newcomer.runs()
    (found,) = histories([replayed(newcomer.trace)])
    assert [(mark.kind, mark.label) for mark in lanes(found).marks] == [
        ("write", "restore"),
        ("write", "arrive"),
        ("fault", "its trace breaks off"),
    ]


def test_a_spare_waits() -> None:
    shared = Shared()
    one = Settings(Limits(1, 1))
    pair = Pair(Agent("a", shared, one), Agent("b", shared, one)).run()
    spans = [span.kind for span in lanes(history(pair)).spans if span.node == node("b")]
    assert spans == ["joining", "waiting"]


def test_a_program_that_cannot_be_started_and_a_step_that_differs_are_marked() -> None:
    pair = started()
    pair.a.hears(Unstartable("no such file", pair.a.shared.now))
    pair.run()
    wrong = [evolve(step, now=0.0) if isinstance(step, Asked) else step for step in pair.b.steps]
    run = replayed(evolve(pair.b.trace, steps=tuple(wrong)))
    (found,) = histories([replayed(pair.a.trace), run])
    marks = [mark for mark in lanes(found).marks if mark.kind in ("fault", "violation")]
    assert [(mark.node.slot, mark.kind) for mark in marks] == [("a", "fault"), ("b", "violation")]
    assert marks[0].label == "no such file"


def test_an_agent_of_which_nothing_is_known_has_an_empty_lane() -> None:
    agent = Agent("a", Shared())
    (found,) = histories([replayed(evolve(agent.trace, steps=(), lines=()))])
    drawn = lanes(found)
    assert (drawn.nodes, drawn.spans, drawn.marks) == ((node("a"),), (), ())


def test_spans_and_marks_are_plain_values() -> None:
    assert Span(node("a"), 0.0, 1.0, "running").label == Mark(node("a"), 0.5, "fault").label == ""
    assert restarted().a.group.phase.value == "running"
