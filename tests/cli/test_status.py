"""What people see while a job runs: stories, told by events that go through the real group."""

from __future__ import annotations

import io
import re
import signal
from textwrap import dedent

import pytest
from attrs import evolve

from elastic.adapters.agent import Started, Step
from elastic.adapters.rendezvous_loop import Recorded
from elastic.adapters.settings import Kind, LaunchSettings, Program
from elastic.cli.render.status import StatusLines
from elastic.core import group, rendezvous
from elastic.core.group import Group, begin, transition
from elastic.core.group.state import Beaten, Elapsed, Event, Exited, Over, Ready, Reaped, Signalled
from elastic.core.world import Endpoint, Fault, Life, Member, Node, Profile, Why, World, WorldId

HERE, THERE = Node("gpu-02/1", 1), Node("gpu-01/1", 1)
FAULT = Fault(
    HERE,
    round=0,
    rank=5,
    local_rank=1,
    pid=8812,
    exit_code=1,
    after_s=12.41,
    host="gpu-02",
    when="2025-01-01 13:05:40",
    message="RuntimeError: an illegal memory access\nCUDA kernel errors might be …",
    where="train.py:88 in step",
    log="logs/job7_x1/attempt_0/1/stderr.log",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Story:
    """One agent's observer, and the group whose steps it sees. Points in time count from the beginning."""

    def __init__(self, out: io.StringIO | None = None, quiet: bool = False, workers: int = 2) -> None:
        self.out = out or Terminal()
        settings = LaunchSettings(
            Program(Kind.SCRIPT, "train.py"),
            local_world_size=workers,
            rendezvous=rendezvous.Settings(rendezvous.Limits(1, 2, 3)),
        )
        self.status = StatusLines(self.out, settings, quiet)
        self.group, _ = begin(Group(HERE, group.Settings(grace=30.0)))
        self.workers = workers

    def at(self, seconds: float) -> float:
        return self.status.began_at + seconds

    def happens(self, *events: Event) -> None:
        for event in events:
            before, (self.group, commands) = self.group, transition(self.group, event)
            self.status.saw(Step(event, before, self.group, commands, event.at))

    def starts(self, seconds: float, round: int = 0, failures: int = 0, nodes: tuple[Node, ...] = (HERE,)) -> None:
        profile = Profile(Endpoint("localhost", 1), self.workers)
        world = World(WorldId(Life("l"), round), tuple(Member(node, profile) for node in nodes), failures)
        at = self.at(seconds)
        self.happens(Ready(world, at), Beaten(at, at))
        self.status.saw(Started(world, tuple(range(self.workers)), at))

    def exits(self, local_rank: int, code: int, seconds: float) -> None:
        self.happens(Exited(local_rank, code, self.at(seconds), self.at(seconds)))

    def reads(self, text: str) -> None:
        assert self.out.getvalue() == dedent(text).removeprefix("\n")


def test_a_start_is_one_line() -> None:
    story = Story()
    story.starts(0.12)
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0.1 s
        """
    )


def test_a_job_that_goes_well_says_no_more_than_its_end() -> None:
    story = Story()
    story.starts(0.12)
    story.exits(0, 0, 5.0)
    story.exits(1, 0, 6.0)
    story.status.end(["all 2 workers succeeded"])
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0.1 s
        elastic  all 2 workers succeeded
        """
    )


def test_a_worker_fails_cause_first_then_cost_then_how_fast_it_was_over() -> None:
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
        elastic  round 0: 1 node, 4 workers, started in 0.0 s
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s
                   RuntimeError: an illegal memory access      train.py:88 in step
                   last lines: logs/job7_x1/attempt_0/1/stderr.log (gpu-02)
        elastic  restart 1 of 3: 3 workers stopped in 0.2 s, 1 node back in 0.1 s, round 1 started · 0.3 s in all
        """
    )


def test_of_a_worker_that_left_no_word_only_its_end_is_said() -> None:
    story = Story()
    story.status.saw(Recorded(evolve(FAULT, exit_code=-9, message="killed by SIGKILL", where="", log="")))
    story.reads(
        """
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: killed by SIGKILL after 12.4 s
        """
    )


def test_words_that_a_terminal_would_obey_are_shown_as_what_they_are() -> None:
    story = Story()
    story.status.saw(Recorded(evolve(FAULT, message="\n \n\x1b[2Jgone\a", where="", log="")))
    story.reads(
        r"""
        elastic  gpu-02 rank 5 (local 1, pid 8812) failed: exit code 1 after 12.4 s
                   \x1b[2Jgone\x07
        """
    )


def test_the_only_worker_fails_and_none_was_to_be_stopped() -> None:
    story = Story(workers=1)
    story.starts(0.0)
    story.exits(0, 1, 1.0)
    story.happens(Reaped(story.at(1.0)))
    story.starts(1.1, round=1, failures=1)
    story.reads(
        """
        elastic  round 0: 1 node, 1 worker, started in 0.0 s
        elastic  restart 1 of 3: 1 node back in 0.1 s, round 1 started · 0.1 s in all
        """
    )


def test_a_worker_that_takes_its_time_is_named_once_and_then_killed() -> None:
    story = Story()
    story.starts(0.0)
    story.exits(1, 1, 1.0)
    assert story.status.until == pytest.approx(story.at(3.0))
    story.status.passed(story.at(2.9))
    story.status.passed(story.at(3.0))
    story.status.passed(story.at(3.1))
    story.happens(Elapsed(story.at(31.0)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0.0 s
        elastic  waiting for 1 worker to stop: local rank 0 · SIGKILL in 28 s (--grace)
        elastic  1 worker did not stop in time: SIGKILL
        """
    )
    assert story.status.until is None


def test_a_signal_is_passed_on_and_a_second_one_kills() -> None:
    story = Story()
    story.starts(0.0)
    story.happens(Signalled(signal.SIGINT, story.at(1.0)), Signalled(signal.SIGINT, story.at(1.5)))
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0.0 s
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


def test_a_node_that_is_lost_costs_no_restart_and_the_lines_say_so() -> None:
    story = Story()
    story.starts(0.0, nodes=(HERE, THERE))
    story.happens(Over(0, Why.LOST, THERE, story.at(5.0)))
    story.exits(0, -15, 5.1)
    story.exits(1, -15, 5.2)
    story.happens(Reaped(story.at(5.2)))
    story.starts(5.4, round=1)
    story.reads(
        """
        elastic  round 0: 2 nodes, 4 workers, started in 0.0 s
        elastic  round 0 ends: lost, no restart spent
        elastic  2 workers stopped in 0.2 s, 1 node back in 0.2 s, round 1 started · 0.4 s in all
        """
    )


def test_a_failure_on_another_node_costs_a_restart_here_as_well() -> None:
    story = Story()
    story.starts(0.0, nodes=(HERE, THERE))
    story.happens(Over(0, Why.FAILED, THERE, story.at(5.0)))
    story.exits(0, -15, 5.1)
    story.exits(1, -15, 5.2)
    story.happens(Reaped(story.at(5.2)))
    story.starts(5.4, round=1, failures=1, nodes=(HERE, THERE))
    story.reads(
        """
        elastic  round 0: 2 nodes, 4 workers, started in 0.0 s
        elastic  round 0 ends: a worker failed on gpu-01/1
        elastic  restart 1 of 3: 2 workers stopped in 0.2 s, 2 nodes back in 0.2 s, round 1 started · 0.4 s in all
        """
    )


def test_in_a_log_file_every_line_that_begins_has_a_clock() -> None:
    story = Story(out=io.StringIO())
    story.starts(0.0)
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d elastic  round 0: 1 node, 2 workers, started in 0\.0 s\n", story.out.getvalue()
    )


@pytest.mark.parametrize(("lines", "said"), [(["all well"], ""), (["FAILED", "  why"], "elastic  FAILED\n  why\n")])
def test_one_that_was_told_to_be_quiet_says_only_a_bad_end(lines: list[str], said: str) -> None:
    story = Story(quiet=True)
    story.starts(0.0)
    story.exits(1, 1, 1.0)
    story.status.saw(Recorded(FAULT))
    story.status.end(lines)
    assert story.out.getvalue() == said


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Shut(Terminal):
    def write(self, text: str) -> int:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("out", [Broken(), Shut()])
def test_a_stderr_that_is_gone_is_no_reason_to_stop(out: io.StringIO) -> None:
    story = Story(out=out)
    story.starts(0.0)
    story.exits(1, 1, 1.0)
    story.status.end(["FAILED", "  why"])
