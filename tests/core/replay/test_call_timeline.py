"""The timeline of a wrapped function, read from its history: restarts, and the lanes of its ranks."""

from __future__ import annotations

from attrs import evolve
from traced import finished
from traced_calls import Rank, Ranks, called_again, ranks

from elastic.core.inprocess.words import How, Over, Span, SpanEnded, Terminated
from elastic.core.replay.call_restarts import restarts
from elastic.core.replay.comparison import replayed
from elastic.core.replay.history import histories
from elastic.core.replay.lanes import Mark
from elastic.core.replay.timeline import lanes, recoveries, rounds
from elastic.core.world import Why

AGAIN = called_again()


def test_a_restart_names_its_first_witness_and_each_moment_in_order() -> None:
    (only,) = restarts(AGAIN.history)
    assert (only.ended, only.began, only.first, only.span) == (0, 1, AGAIN.b.held.who.node, Span.FUNCTION)
    assert only.event == SpanEnded(2, How.FAILED)
    assert only.interrupted_at and only.aborted_at
    over = max(only.interrupted_at, only.aborted_at)  # abort runs beside the unwinding
    moments = [only.detected_at, over, only.joined_at, only.complete_at, only.called_at]
    assert None not in moments
    assert moments == sorted(at for at in moments if at is not None)


def test_iterations_are_rounds() -> None:
    first, second = rounds(called_again().finish().history)
    assert (first.workers, first.why, second.verdict and second.verdict.why) == (2, Why.FAILED, Why.DONE)
    assert recoveries(AGAIN.history) == ()


def test_a_round_without_another_call_is_no_restart() -> None:
    assert restarts(ranks().history) == ()
    assert restarts(finished_history()) == ()


def finished_history():  # type: ignore[no-untyped-def]
    (history,) = histories([replayed(finished().a.trace)])
    return history


def test_each_boot_has_moments_of_its_own() -> None:
    elsewhere = evolve(AGAIN.b.trace, header=evolve(AGAIN.b.trace.header, boot="other"))
    (history,) = histories([replayed(AGAIN.a.trace), replayed(elsewhere)])
    here, there = sorted(restarts(history), key=lambda restart: restart.first)
    assert (here.first, type(here.event)) == (AGAIN.a.held.who.node, Over)
    assert (there.first, type(there.event)) == (AGAIN.b.held.who.node, SpanEnded)


def test_a_rank_alone_knows_of_its_own_only() -> None:
    (history,) = histories([replayed(AGAIN.a.trace)])
    (only,) = restarts(history)
    assert only.joined_at is None or only.complete_at is not None


def test_a_picture_shows_the_phases_of_a_call_and_what_went_wrong() -> None:
    drawn = lanes(called_again().finish().history)
    kinds = [span.kind for span in drawn.spans if span.node == AGAIN.a.held.who.node]
    assert kinds == ["joining", "running", "stopping", "joining", "running", "barrier", "ended"]
    faults = [mark for mark in drawn.marks if mark.kind == "fault"]
    assert faults == [Mark(AGAIN.b.held.who.node, faults[0].at, "fault", "exception")]


def test_a_rank_that_leaves_is_marked() -> None:
    made = ranks()
    made.b.hears(Terminated())
    marks = [(mark.node, mark.label) for mark in lanes(made.history).marks if mark.kind == "fault"]
    unended = "its trace breaks off"
    assert [label for _, label in marks if label != unended] == ["leaves"]
    assert [node for node, label in marks if label == unended] == [run.trace.header.node for run in made.history.runs]


def test_a_rank_that_has_not_begun_has_a_lane_without_a_label() -> None:
    made = Ranks(rank := Rank("0", AGAIN.a.shared.__class__()), rank)
    (history,) = histories([replayed(made.a.trace)])
    assert [(span.kind, span.label) for span in lanes(history).spans] == [("joining", "")]
