"""Whatever ends the agent, nothing of its workers lives on.

Everything here inherits the agent's stdout, a pipe of ours: its end is the moment when the last of them is gone.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import TIMEOUT_S, children_of, comes_true, command_of, is_alive

AGENT = Path(__file__).parents[1] / "programs" / "mortal_agent.py"
FAMILY = "trap '' TERM; setsid sleep 1000 & sleep 1000 & echo family; wait; sleep 1000"
"""A worker that ignores SIGTERM, a child in its group, a child with its own session."""

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def agent(nothing_left: str) -> Iterator[Run]:
    with ExitStack() as stack:

        def run(how: str, script: str = FAMILY) -> subprocess.Popen[str]:
            command = [sys.executable, str(AGENT), how, "sh", "-c", script]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
            process: subprocess.Popen[str] = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield run


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout
    return sorted(process.stdout.readline().strip() for _ in range(count))


def reapers(agent: int) -> list[int]:
    """The agent's living reapers; any of its threads may have started them."""
    return [pid for pid in children_of(agent) if is_alive(pid) and "reaper.py" in command_of(pid)]


def test_an_agent_that_is_killed_leaves_neither_workers_nor_their_children(agent: Run) -> None:
    process = agent("wait")
    assert lines(process, 3) == ["family", "family", "started"]
    process.kill()
    process.communicate(timeout=TIMEOUT_S)


def test_an_agent_that_ends_by_a_signal_it_does_not_handle_leaves_none(agent: Run) -> None:
    process = agent("wait")
    lines(process, 3)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=TIMEOUT_S)


def test_an_agent_that_is_killed_right_after_the_start_leaves_none(agent: Run) -> None:
    for _ in range(3):
        agent("die").communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("microseconds", [1, 1500, 2500, 3000, 3500, 4000, 5000, 6500])
def test_an_agent_that_is_killed_in_the_middle_of_the_start_leaves_none(agent: Run, microseconds: int) -> None:
    agent(str(microseconds)).communicate(timeout=TIMEOUT_S)


def test_a_reaper_that_was_killed_is_replaced_by_one_that_knows_the_workers(agent: Run) -> None:
    process = agent("wait")
    lines(process, 3)
    assert comes_true(lambda: len(reapers(process.pid)) == 1)  # its command is there to be read once it was executed
    (first,) = reapers(process.pid)
    subprocess.run(["kill", "-KILL", str(first)], check=True)
    assert comes_true(lambda: bool(set(reapers(process.pid)) - {first}))
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
