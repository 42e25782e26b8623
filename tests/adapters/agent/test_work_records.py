"""What each start of a worker came to, as the agent writes it down."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve
from processes import unloadable

from elastic.adapters.agent.work_records import WorkRecords
from elastic.adapters.clock import SystemClock
from elastic.adapters.workers.messages.progress import STEP, VARIABLE
from elastic.adapters.workers.start.attempts import Attempt
from elastic.adapters.workers.worker_port import Exit, WorkerSpec
from elastic.core.ranks import Ranks, WorkerRanks
from elastic.core.trace.steps import STEPS, HangEnd
from elastic.core.work import Worked
from elastic.core.world import Node

RANKS = Ranks(1, 2, 4, "trainer", 4, (WorkerRanks(2, 0, 2), WorkerRanks(3, 1, 3)))
CLOCK = SystemClock()


def attempts(folder: Path, round: int) -> dict[int, Attempt]:
    """Of one round, by local rank. The second worker has no page."""
    pages = {0: {VARIABLE: f"{folder}/page.{round}"}, 1: dict[str, str]()}
    return {
        rank: Attempt(Node("a", 1), "host", round, RANKS, WorkerSpec(rank, ("x",), environment), None)
        for rank, environment in pages.items()
    }


def works(attempt: Attempt, program: str) -> Exit:
    """Run this as that worker, to its end."""
    began_at = CLOCK.now()
    environment = {**os.environ, **attempt.spec.environment}
    run = subprocess.Popen([sys.executable, "-c", f"import elastic\n{program}"], env=environment)
    return Exit(attempt.spec.local_rank, run.pid, run.wait(), began_at, CLOCK.now())


def test_each_start_is_told_with_what_it_said_and_what_was_reached_before(tmp_path: Path) -> None:
    told = list[Worked]()
    records = WorkRecords(CLOCK, lambda function, work: told.append(work))
    first, second, again = (attempts(tmp_path, round) for round in (0, 1, 1))
    records.begin(first)
    records.ended(works(first[0], "elastic.progress(3); elastic.progress(4); elastic.saved(3)"))
    records.ended(works(first[1], "elastic.progress(9)"))
    records.begin(second)
    records.ended(evolve(works(second[0], "elastic.progress(4); elastic.progress(5)"), was_standby=True))
    records.begin({0: again[0]})
    records.ended(works(again[0], ""))
    assert [(work.round, work.rank, work.start, work.before, work.standby) for work in told] == [
        (0, 2, 0, None, False),
        (0, 3, 0, None, False),
        (1, 2, 0, 4, True),
        (1, 2, 1, 5, False),
    ]
    assert [(work.first_step, work.step, work.saved and work.saved.step) for work in told] == [
        (3, 4, 3),
        (None, None, None),
        (4, 5, None),
        (None, None, None),
    ]
    assert [work.passed is not None for work in told] == [False, False, True, False]
    passes = told[2]
    assert passes.first and passes.passed and passes.last
    assert passes.began_at < passes.first.at < passes.passed.at == passes.last.at < passes.ended_at <= passes.at
    assert list(tmp_path.iterdir()) == []
    records.get_ready()


def test_a_worker_is_ahead_once_in_a_round_when_it_says_a_step_above_all_before_that_round(tmp_path: Path) -> None:
    records = WorkRecords(CLOCK, lambda function, work: None)
    first, second, third = (attempts(tmp_path, round) for round in range(3))
    records.begin(first)
    assert not records.get_ahead(), "no step is said"
    exit = works(first[0], "elastic.progress(4)")
    assert records.get_ahead() and not records.get_ahead(), "the job begins with this round"
    records.move()
    assert not records.get_ahead(), "these steps were done before the round in which it runs on"
    records.ended(exit)
    records.begin(second)
    exit = works(second[0], "elastic.progress(3); elastic.progress(4)")
    assert not records.get_ahead(), "it does again what was done"
    records.ended(exit)
    records.begin(third)
    works(third[0], "elastic.progress(5)")
    assert records.get_ahead()


def test_an_agent_that_is_new_in_the_job_does_not_judge_by_steps(tmp_path: Path) -> None:
    records, second = WorkRecords(CLOCK, lambda function, work: None), attempts(tmp_path, 1)
    records.begin(second)
    works(second[0], "elastic.progress(4)")
    assert not records.get_ahead()


def test_a_worker_that_never_ran_or_is_collected_twice_is_not_told_of(tmp_path: Path) -> None:
    told = list[Worked]()
    records = WorkRecords(CLOCK, lambda function, work: told.append(work))
    records.ended(Exit(0, 7, 0, 1.0, 2.0))
    records.begin(attempts(tmp_path, 0))
    records.ended(Exit(0, 0, 127, 1.0, 1.0))
    assert told == []
    records.ended(Exit(1, 7, 0, 2.0, 1.0))
    records.ended(Exit(1, 7, 0, 2.0, 3.0))
    assert [(work.began_at, work.ended_at) for work in told] == [(2.0, 2.0)]


def test_a_start_is_not_told_of_where_this_cannot_be_loaded_and_leaves_no_page(tmp_path: Path) -> None:
    told = list[Worked]()
    records = WorkRecords(CLOCK, lambda function, work: told.append(work))
    begun = attempts(tmp_path, 0)
    records.begin(begun)
    ended = works(begun[0], "elastic.progress(3)")
    with unloadable("elastic.core.work"):
        records.ended(ended)
    assert (told, list(tmp_path.iterdir())) == ([], [])


def test_a_worker_that_the_hang_watch_has_ended_is_told_as_one_that_hung(tmp_path: Path) -> None:
    told = list[object]()
    records = WorkRecords(CLOCK, lambda function, *given: told.append(STEPS[function](*given)), {7})
    records.begin(attempts(tmp_path, 0))
    records.ended(Exit(0, 7, -9, 1.0, 2.0))
    records.ended(Exit(1, 8, -15, 1.0, 2.0))
    hung, *works = told
    assert isinstance(hung, HangEnd) and (hung.round, hung.rank) == (0, 2)
    assert [isinstance(work, Worked) for work in works] == [True, True]


def test_workers_that_count_differently_are_held_to_their_own_steps(tmp_path: Path) -> None:
    told = list[Worked]()
    records = WorkRecords(CLOCK, lambda function, work: told.append(work))

    def runs(round: int, steps: Mapping[int, int]) -> None:
        begun = attempts(tmp_path, round)
        begun[1].spec.environment[VARIABLE] = f"{tmp_path}/other.{round}"  # type: ignore[index]
        records.begin(begun)
        for local_rank, step in steps.items():
            records.ended(works(begun[local_rank], f"elastic.progress({step})" if step else ""))

    runs(0, {0: 20, 1: 0})
    runs(1, {0: 15, 1: 2_000})
    runs(2, {0: 21, 1: 2_100})
    assert [(work.before, work.step, work.passed is not None) for work in told] == [
        *((None, 20, False), (None, None, False)),
        *((20, 15, False), (20, 2_000, True)),
        *((20, 21, True), (2_000, 2_100, True)),
    ]


def test_the_highest_step_of_all_starts_is_what_was_reached(tmp_path: Path) -> None:
    told = list[Worked]()
    records = WorkRecords(CLOCK, lambda function, work: told.append(work))
    for round, step in enumerate((6, 2, 3)):
        (begun := attempts(tmp_path, round)).pop(1)
        records.begin(begun)
        records.ended(works(begun[0], f"elastic.progress({step})"))
    assert [(work.before, work.step) for work in told] == [(None, 6), (6, 2), (6, 3)]


def test_a_worker_is_ahead_in_each_round_anew(tmp_path: Path) -> None:
    records = WorkRecords(CLOCK, lambda function, work: None)
    for round in (0, 1):
        begun = attempts(tmp_path, round)
        records.begin(begun)
        exit = works(begun[0], f"elastic.progress({4 + round})")
        assert records.get_ahead(), f"in round {round}"
        records.ended(exit)


def test_a_worker_that_runs_on_is_ahead_only_of_all_that_was_done_before(tmp_path: Path) -> None:
    records = WorkRecords(CLOCK, lambda function, work: None)
    first, second = (attempts(tmp_path, round) for round in range(2))
    records.begin(first)
    records.ended(works(first[0], "elastic.progress(9)"))
    records.begin(second)
    works(second[0], "elastic.progress(3)")
    records.move()
    with open(second[0].spec.environment[VARIABLE], "r+b") as page:
        os.pwrite(page.fileno(), struct.pack("=Q", 5 + 1), 8 * STEP)
    assert not records.get_ahead(), "step 9 was done before"
