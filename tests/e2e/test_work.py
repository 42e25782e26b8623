"""What workers said of their steps, in the traces of real agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jobs import kill
from launches import MAY_NOT_IDLE, PROGRAMS, Launcher
from replays import replays

from elastic.core.replay.history import histories
from elastic.core.replay.timeline import recoveries
from elastic.core.trace.steps import Started, Worked, step_at


@pytest.mark.parametrize("standbys", [False, True])
def test_the_steps_that_a_killed_worker_cost_can_be_counted_from_the_traces(launch: Launcher, standbys: bool) -> None:
    options = ("--nproc-per-node=2", "--max-restarts=1", *(["--standby"] if standbys else []))
    launched = launch(*options, PROGRAMS / "steps.py", under=MAY_NOT_IDLE if standbys else ())
    workers = launched.hears(2)
    if standbys:
        launched.stands_by(2, workers)
    kill(workers[1].pid)
    assert launched.ends().code == 0
    (run,) = replays(launch.traces)
    works = sorted(
        (step for step in run.trace.steps if isinstance(step, Worked)), key=lambda work: (work.round, work.rank)
    )
    assert [(work.round, work.rank, work.start) for work in works] == [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
    assert [(work.before, work.first_step, work.step) for work in works] == [*[(None, 1, 5)] * 2, *[(5, 4, 6)] * 2]
    assert [work.saved and (work.saved.step, work.saved.number) for work in works] == [*[(3, 1)] * 2, *[(6, 1)] * 2]
    assert all(work.saved and work.first and work.first.at < work.saved.at < work.ended_at for work in works)
    done, distinct = 0, set[tuple[int, int]]()
    for work in works:
        assert work.first and work.last and work.first_step and work.step
        steps = range(work.first_step, work.step + 1)
        done, distinct = done + len(steps), distinct | {(work.rank, step) for step in steps}
        assert work.began_at < work.first.at < work.last.at <= work.ended_at
        assert [name for name, _ in work.spans] == ["checkpoint"]
        assert (work.passed is not None) is (work.round == 1)
    assert (done, len(distinct)) == (16, 12)  # two steps of each rank were done again
    again = [work.before + 1 - work.first_step for work in works if work.before and work.first_step]
    assert sum(again) == done - len(distinct)
    started = [step.at for step in run.trace.steps if isinstance(step, Started)]
    assert len(started) == 2 and all(work.began_at <= started[work.round] for work in works)
    assert all(work.standby for work in works[2:]) is standbys
    (recovery,) = recoveries(histories([run])[0])
    last = max(work.first.at for work in works if work.round == 1 and work.first)
    assert recovery.progressed_at == pytest.approx(recovery.started_at + last - started[1])


def test_a_script_that_says_nothing_has_its_life_in_the_trace(launch: Launcher) -> None:
    launched = launch("--rdzv-id=train42", "--no-python", "true")
    assert launched.ends().code == 0
    (run,) = replays(launch.traces)
    assert run.trace.header.run_id == "train42"
    (work,) = (step for step in run.trace.steps if isinstance(step, Worked))
    assert (work.round, work.rank, work.first, work.step, work.spans) == (0, 0, None, None, ())
    assert work.began_at < work.ended_at <= work.at


SLOW = """
import sys, time
from elastic.cli import main
load = main._load
def slow():
    time.sleep(0.5)
    load()
main._load = slow
sys.argv[0] = "elastic"
main.main()
"""


def test_the_time_of_a_node_begins_with_the_program_of_its_agent(tmp_path: Path) -> None:
    """Before an agent takes its first step, much is imported, and that may take long on a busy host."""
    command = [sys.executable, "-c", SLOW, "launch", f"--trace={tmp_path}/", "--no-python", "true"]
    subprocess.run(command, check=True, capture_output=True)
    (run,) = replays(tmp_path)
    assert run.trace.header.now + 0.5 <= step_at(run.trace.steps[0])
