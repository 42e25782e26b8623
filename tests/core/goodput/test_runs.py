"""The time of a run, by what its workers say that they came to."""

from __future__ import annotations

from functools import reduce

from attrs import evolve
from worlds import node

from elastic.core.goodput import Kind, Piece, Reason, opened, worked
from elastic.core.goodput.runs import Run, noted, pieces
from elastic.core.work import Mark, Worked

RUN = Run(0, 7, "job", executed_at=1_000_000, end=100_000_000)
NONE, PROGRAM = Kind.NONE, Kind.PROGRAM


def work(
    first: float | None = None,
    passed: float | None = None,
    last: float | None = None,
    rank: int = 0,
    start: int = 0,
    before: int | None = None,
    busy: tuple[float, float, float] = (0.0, 0.0, 0.0),
    **spans: float,
) -> Worked:
    """Return what a worker came to that lived from 1 to 100: its marks, and how long it had been busy at each."""
    marks = [None if at is None else Mark(at, by) for at, by in zip((first, passed, last), busy, strict=True)]
    step = (before or 0) + 1 if passed else before
    first_step, step = (0, step) if first is not None and step is not None else (None, None)
    life = Worked(0, rank, start, False, 1.0, 100.0, 100.0, before, spans=tuple(spans.items()))
    last_mark = marks[2] or marks[1] or marks[0]
    return evolve(life, first=marks[0], passed=marks[1], last=last_mark, first_step=first_step, step=step)


def told(*works: Worked, run: Run = RUN, says_steps: bool = False) -> list[tuple[str, Reason, float]]:
    """Return the buckets of a run with these workers, in their order, which leave nothing out."""
    found = list(pieces(reduce(noted, works, evolve(run, says_steps=says_steps)), node("a"), 200_000_000))
    at = run.begin
    for piece in found:
        assert piece.start == at < piece.end
        at = piece.end
    assert at == (200_000_000 if run.end is None else run.end)
    return [(piece.bucket, piece.reason, (piece.end - piece.start) / 1e6) for piece in found]


def test_a_program_that_says_nothing_runs() -> None:
    assert told() == told(work(), work(rank=1)) == [("starting", 7, 1.0), ("running", NONE, 99.0)]


def test_a_run_that_has_no_processes_yet_starts() -> None:
    assert told(run=Run(0, 7, "job")) == [("starting", 7, 200.0)]


def test_a_node_starts_until_the_last_worker_s_first_progress() -> None:
    assert told(work(10.0), work(30.0, rank=1)) == [("starting", 7, 30.0), ("training", NONE, 70.0)]


def test_where_one_rank_alone_speaks_it_speaks_for_its_node() -> None:
    assert told(work(10.0), work(rank=1)) == [("starting", 7, 10.0), ("training", NONE, 90.0)]


def test_of_a_program_that_had_spoken_a_run_without_progress_did_not_come_so_far() -> None:
    assert told(work(), says_steps=True) == [("starting", 7, 100.0)]
    assert told(says_steps=True, run=Run(0, 7, "job")) == [("starting", 7, 200.0)]


def test_a_run_of_which_a_worker_has_not_told_what_it_came_to_runs() -> None:
    """The agent was killed, or still runs: it may have come to anything."""
    for works in (), (work(),):
        assert told(*works, run=evolve(RUN, size=2), says_steps=True) == [("starting", 7, 1.0), ("running", NONE, 99.0)]
    assert told(work(), work(rank=1), run=evolve(RUN, size=2), says_steps=True) == [("starting", 7, 100.0)]


def test_workers_that_succeed_without_progress_had_no_step_left_to_do() -> None:
    run = evolve(RUN, succeeds=True)
    assert told(work(evaluation=9.0), run=run, says_steps=True) == [
        ("starting", 7, 1.0),
        ("running", NONE, 90.0),
        ("evaluation", PROGRAM, 9.0),
    ]


def test_what_had_been_done_before_is_recomputed_until_the_last_worker_has_passed_it() -> None:
    found = told(work(10.0, 20.0, before=5), work(10.0, 50.0, rank=1, before=5))
    assert found == [("starting", 7, 10.0), ("recomputed", 7, 40.0), ("training", NONE, 50.0)]


def test_a_worker_that_never_passed_it_recomputed_to_its_end() -> None:
    assert told(work(10.0, before=5)) == [("starting", 7, 10.0), ("recomputed", 7, 90.0)]


def test_a_worker_that_tells_no_steps_recomputes_nothing_that_anybody_knows_of() -> None:
    silent = Worked(0, 0, 0, False, 1.0, 100.0, 100.0, 5, Mark(10.0), None, Mark(50.0))
    assert told(silent) == [("starting", 7, 10.0), ("training", NONE, 40.0), ("training", NONE, 50.0)]


def test_a_worker_that_starts_again_alone_changes_nothing() -> None:
    later = evolve(work(60.0, rank=1, before=5), round=1)
    for again in work(60.0, start=1, before=5), later:
        for works in (work(10.0), again), (again, work(10.0)):
            assert told(*works) == [("starting", 7, 10.0), ("training", NONE, 50.0), ("training", NONE, 40.0)]


def test_where_nobody_else_made_progress_that_of_a_worker_that_started_again_alone_counts() -> None:
    again = work(30.0, last=60.0, start=1), work(50.0, last=55.0, start=2)
    for works in again, again[::-1]:
        found = told(work(), *works, says_steps=True)
        assert found == [("starting", 7, 30.0), ("training", NONE, 30.0), ("training", NONE, 40.0)]


def test_a_run_of_many_starts_takes_no_more_room() -> None:
    once = noted(RUN, work(10.0))
    assert reduce(noted, [work(10.0, start=1)] * 9, once) == noted(once, work(10.0, start=1))
    assert evolve(noted(once, work(10.0, rank=1)).tally, ended=1) == once.tally


def test_marks_beyond_the_run_count_as_its_ends() -> None:
    early = Run(20_000_000, 7, "job", executed_at=21_000_000, end=40_000_000)
    assert told(work(10.0, 50.0, before=5), run=early) == [("recomputed", 7, 20.0)]
    assert told(work(60.0), run=early) == [("starting", 7, 20.0)]


def test_busy_time_is_taken_from_what_it_interrupted() -> None:
    spans = work(10.0, 30.0, 90.0, before=5, busy=(3.0, 5.0, 9.0), compilation=3.0, checkpoint=7.0)
    assert told(spans) == [
        ("starting", 7, 7.0),
        ("compilation", PROGRAM, 3.0),
        ("recomputed", 7, 18.0),
        ("checkpoint", PROGRAM, 2.0),
        ("training", NONE, 56.0),
        ("checkpoint", PROGRAM, 4.0),
        ("training", NONE, 9.0),
        ("checkpoint", PROGRAM, 1.0),
    ]


def test_what_came_after_the_last_progress_names_the_round_that_ended_then() -> None:
    run = reduce(noted, (work(10.0, last=60.0), work(10.0, last=70.0, rank=1)), evolve(RUN, ended=3))
    assert [(each.bucket, each.end, each.tail, each.job) for each in pieces(run, node("a"), 0)] == [
        ("starting", 10_000_000, None, "job"),
        ("training", 70_000_000, None, ""),
        ("training", 100_000_000, 3, "job"),
    ]
    again = noted(evolve(RUN, ended=3), work(10.0, last=60.0, before=5))
    assert [(each.bucket, each.end, each.tail) for each in pieces(again, node("a"), 0)][1:] == [
        ("recomputed", 60_000_000, None),
        ("recomputed", 100_000_000, 3),
    ]


def test_a_busy_span_after_the_last_progress_names_that_round_too() -> None:
    run = noted(evolve(RUN, ended=3), work(10.0, last=60.0, busy=(0.0, 0.0, 2.0), checkpoint=30.0))
    assert [(each.bucket, each.tail, each.job) for each in pieces(run, node("a"), 0)][2:] == [
        ("checkpoint", None, ""),
        ("training", 3, "job"),
        ("checkpoint", 3, "job"),
    ]


def test_of_several_workers_the_busy_time_of_the_busiest_counts() -> None:
    found = told(work(10.0, checkpoint=4.0), work(10.0, rank=1, evaluation=6.0), work(10.0, rank=2, start=1, x=9.0))
    assert found[1:] == [("training", NONE, 84.0), ("evaluation", PROGRAM, 6.0)]


def test_a_program_that_says_only_that_it_is_busy_is_not_busy_for_longer_than_it_ran() -> None:
    assert told(work(checkpoint=99.0)) == [("starting", 7, 1.0), ("checkpoint", PROGRAM, 99.0)]
    short = Run(0, 7, "job", executed_at=1_000_000, end=5_000_000)
    assert told(work(checkpoint=99.0), run=short) == [("starting", 7, 1.0), ("checkpoint", PROGRAM, 4.0)]
    assert told(work(compilation=9.0), says_steps=True) == [("starting", 7, 91.0), ("compilation", PROGRAM, 9.0)]


def test_the_busy_time_of_a_worker_that_passed_nothing_is_of_what_it_did_again() -> None:
    assert told(work(10.0, before=5, checkpoint=4.0))[1:] == [("recomputed", 7, 86.0), ("checkpoint", PROGRAM, 4.0)]


def test_a_span_that_is_called_as_a_bucket_is_another() -> None:
    assert told(work(10.0, waiting=4.0, training=2.0, other=1.0))[1:] == [
        ("training", NONE, 83.0),
        ("other", PROGRAM, 7.0),
    ]


def test_the_work_of_workers_whose_start_is_not_known_belongs_to_no_run() -> None:
    account, entries = worked(opened(node("a"), 0.0), work(10.0))
    assert (account.run, account.at, entries) == (None, 100_000_000, ())


def test_a_piece_for_the_end_of_a_round_names_its_job() -> None:
    (start, rest) = pieces(RUN, node("a"), 0)
    assert (start, rest.job) == (Piece(node("a"), 0, 1_000_000, "starting", 7, "job"), "")
