"""The lines that a job of one node prints: stories, from events that go through the real group."""

from __future__ import annotations

import signal

import pytest
from attrs import evolve
from narration import FAULT, Story

from elastic.adapters.report.news import Recorded, Remark, SuspectedHang, TraceLost
from elastic.core.group import Alone
from elastic.core.group.state import Beaten, Elapsed, Over, Raised, Reaped, Signalled
from elastic.core.world import Why


def test_a_start_is_one_line() -> None:
    story = Story()
    story.starts(0.12)
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 120 ms
        """
    )


def test_a_job_that_goes_well_prints_only_its_end() -> None:
    story = Story()
    story.starts(0.12)
    story.exits(0, 0, 5.0)
    story.exits(1, 0, 6.0)
    story.status.end(["all 2 workers succeeded"], True)
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 120 ms
        elastic  all 2 workers succeeded
        """
    )


def test_ranks_that_end_early_are_named_after_a_minute_and_then_ever_more_rarely() -> None:
    story = Story(workers=4)
    story.starts(0.0)
    story.exits(0, 0, 10.0)
    story.exits(2, 0, 20.0)
    story.lasts(79.9)
    story.lasts(1599.0)
    story.exits(1, 0, 1600.0)
    story.exits(3, 0, 1601.0)
    story.lasts(1602.0)
    story.reads(
        """
        elastic  round 0: 1 node, 4 workers, started in 0 ms
        elastic  ranks 0, 2 ended with exit code 0, 01:00 ago, and ranks 1, 3 run on
        elastic  ranks 0, 2 ended with exit code 0, 05:00 ago, and ranks 1, 3 run on
        elastic  ranks 0, 2 ended with exit code 0, 25:00 ago, and ranks 1, 3 run on
        """
    )


def test_a_suspected_hang_names_the_ranks_that_had_ended() -> None:
    story = Story()
    story.starts(0.0)
    story.exits(0, 0, 0.0)
    story.status.saw(SuspectedHang(0, 60.0, ()))
    assert story.out.getvalue().endswith(" ago, and rank 1 runs on\n")
    assert " · rank 0 ended with exit code 0, " in story.out.getvalue()


def test_a_failure_shows_its_cause_then_its_cost_then_the_time_to_recover() -> None:
    story = Story(workers=4)
    story.starts(0.0)
    story.exits(1, 1, 12.4)
    story.status.saw(Recorded(FAULT))
    for rank in (0, 2, 3):
        story.exits(rank, -15, 12.6)
    story.happens(Reaped(story.at(12.6)))
    story.starts(12.7, round=1, failures=1)
    story.reads(
        """
        elastic  round 0: 1 node, 4 workers, started in 0 ms
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s
                   RuntimeError: an illegal memory access      train.py:88 in step
                   last lines: logs/job7_x1/attempt_0/1/stderr.log (gpu-02)
        elastic  restart 1 of 3: 3 workers stopped in 200 ms, 1 node back in 100 ms, round 1 started · 300 ms in all
        """
    )


TOLD = [
    "elastic  gpu-02 rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s",
    "           RuntimeError: an illegal memory access      train.py:88 in step",
    "           last lines: logs/job7_x1/attempt_0/1/stderr.log (gpu-02)",
]


@pytest.mark.parametrize("alone", [None, Alone(0)])
def test_each_failure_is_told_in_full_at_once_whether_the_job_ends_for_it_or_not(alone: Alone | None) -> None:
    """The report tells in full one of them, the first cause, and comes when all workers have stopped."""
    story = Story(alone=alone)
    story.starts(0.0, failures=3)
    story.status.saw(Recorded(FAULT))
    story.status.saw(Recorded(evolve(FAULT, rank=4, message="ValueError: file 4.bin is missing", where="", log="")))
    assert story.out.getvalue().splitlines()[1:] == [
        *TOLD,
        "elastic  gpu-02 rank 4 (local 1, pid 8812) failed: exit code 1 after 12.4 s",
        "           ValueError: file 4.bin is missing",
    ]
    story.status.end(["stopped by SIGTERM"], False, tells_failures=False)
    assert story.out.getvalue().count("illegal") == 1


@pytest.mark.parametrize(
    ("restarts", "tells", "well", "told"),
    [
        (False, False, False, TOLD),
        (False, True, False, []),
        (False, False, True, []),
        (True, False, False, []),
    ],
)
def test_with_status_off_an_end_that_is_no_report_of_a_failure_is_told_after_it(
    restarts: bool, tells: bool, well: bool, told: list[str]
) -> None:
    story = Story(mode="off")
    story.starts(0.0, failures=2)
    story.status.saw(Recorded(FAULT))
    if restarts:
        story.starts(1.0, round=1, failures=3)
    assert story.out.getvalue() == ""
    story.status.end(["stopped by SIGTERM"], well, tells_failures=tells)
    assert story.out.getvalue().splitlines() == [*told, *([] if well else ["elastic  stopped by SIGTERM"])]


def test_a_worker_without_an_error_file_shows_only_its_exit() -> None:
    story = Story()
    story.status.saw(Recorded(evolve(FAULT, exit_code=-9, message="killed by SIGKILL", where="", log="")))
    story.reads(
        """
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: killed by SIGKILL after 12.4 s
        """
    )


def test_escape_codes_of_a_worker_are_spelled_out() -> None:
    story = Story()
    story.status.saw(Recorded(evolve(FAULT, message="\n \n\x1b[2Jgone\a", where="", log="")))
    story.reads(
        r"""
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s
                   \x1b[2Jgone\x07
        """
    )


def test_a_restart_of_the_only_worker_counts_no_stopped_worker() -> None:
    story = Story(workers=1)
    story.starts(0.0)
    story.exits(0, 1, 1.0)
    story.happens(Reaped(story.at(1.0)))
    story.starts(1.1, round=1, failures=1)
    story.reads(
        """
        elastic  round 0: 1 node, 1 worker, started in 0 ms
        elastic  restart 1 of 3: 1 node back in 100 ms, round 1 started · 100 ms in all
        """
    )


def test_a_worker_that_does_not_stop_is_named_once_and_then_killed() -> None:
    story = Story()
    story.starts(0.0)
    story.exits(1, 1, 1.0)
    assert story.status.until == pytest.approx(story.at(3.0))
    story.status.passed(story.at(2.9))
    story.lasts(30.9)
    story.happens(Elapsed(story.at(31.0)))
    story.lasts(60.0)
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  waiting for 1 worker to stop: local rank 0 · SIGKILL in 28 s (--grace)
        elastic  1 worker did not stop in time: SIGKILL
        """
    )
    story.exits(0, -9, 60.0)
    story.happens(Reaped(story.at(60.0)))
    story.starts(60.1, round=1, failures=1)
    story.lasts(1000.0)
    assert story.status.until is None


def test_a_worker_that_raised_and_does_not_end_is_killed_with_a_line() -> None:
    story = Story()
    story.starts(0.0)
    story.happens(Raised(1, story.at(1.0), story.at(1.0)))
    story.exits(0, -15, 1.2)
    story.happens(Elapsed(story.at(3.0)), Elapsed(story.at(31.0)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  local rank 1: still running 30 s after its exception, killed
        """
    )


def test_a_round_that_ends_by_echoes_alone_says_that_the_cause_is_open() -> None:
    story = Story()
    story.starts(0.0)
    story.happens(Raised(1, story.at(1.0), story.at(1.0), is_echo=True), Elapsed(story.at(1.5)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  the round ends; which worker failed first is open: those on record say only that a peer is gone or silent
        """
    )


def test_a_signal_is_passed_on_and_a_second_one_kills() -> None:
    story = Story()
    story.starts(0.0)
    story.happens(Signalled(signal.SIGINT, story.at(1.0)), Signalled(signal.SIGINT, story.at(1.5)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  SIGINT: passed on to 2 workers, up to 30 s to end; again kills them
        elastic  SIGINT again: 2 workers killed
        """
    )


def test_a_signal_while_no_worker_runs() -> None:
    story = Story()
    story.happens(Signalled(signal.SIGTERM, story.at(1.0)))
    story.reads(
        """
        elastic  SIGTERM: leaving, no worker runs
        """
    )


def test_a_round_without_log_files_is_reported() -> None:
    story = Story()
    story.status.saw(Remark("logs/none_1: no space left on device: the output of round 0 is on the console only"))
    story.starts(0.12)
    story.reads(
        """
        elastic  logs/none_1: no space left on device: the output of round 0 is on the console only
        elastic  round 0: 1 node, 2 workers, started in 120 ms
        """
    )


def test_a_lost_trace_is_reported_and_the_job_goes_on() -> None:
    story = Story()
    story.starts(0.12)
    story.status.saw(TraceLost("traces/a_1.ndjson: no space left on device"))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 120 ms
        elastic  the trace ends here, the job goes on: traces/a_1.ndjson: no space left on device
        """
    )


HEARS = Alone(0, frozenset({79}), frozenset({71}), frozenset({79}))


@pytest.mark.parametrize("fence", [None, 3.0])
def test_a_node_that_ends_the_round_for_another_node_s_rank_says_so_while_its_own_workers_run(
    fence: float | None,
) -> None:
    story = Story(alone=HEARS, fence=fence)
    story.starts(0.0)
    story.exits(0, 79, 5.0)
    story.happens(Beaten(story.at(34.0), story.at(34.0)), Elapsed(story.at(35.0)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  local rank 0 is not started again · 1 worker of this node left
        elastic  another rank ended the job, and no node has ended the round for 30 s: this node ends it
        """
    )


def test_a_node_that_ends_the_round_when_no_worker_of_its_own_is_left_counts_from_then() -> None:
    story = Story(alone=HEARS)
    story.starts(0.0)
    story.exits(0, 79, 5.0)
    story.exits(1, 79, 6.0)
    story.happens(Elapsed(story.at(35.0)))
    story.starts(35.5, round=1, failures=1)
    assert story.out.getvalue().splitlines()[-2:] == [
        "elastic  another rank ended the job, and no node has ended the round for 30 s: this node ends it",
        "elastic  restart 1 of 3: 1 node back in 500 ms, round 1 started · 500 ms in all",
    ]


def test_workers_that_are_killed_at_the_fence_on_their_way_into_the_next_world_are_told_as_such() -> None:
    story = Story(alone=HEARS, fence=3.0)
    story.starts(0.0)
    assert story.group.world is not None
    story.happens(Over(0, Why.LOST, None, story.at(1.0), story.group.world.generation), Elapsed(story.at(3.0)))
    assert story.out.getvalue().splitlines()[-1] == (
        "elastic  2 workers killed (--on-store-loss=stop): for 3 s no heartbeat reached store gpu-01:29400"
    )
