"""The rank that failed is named with its reason, and not a peer that failed of it, however workers are started and fail.

A few runs of each row of benchmarks/causes.py, in which another rank fails each time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from jobs import Jobs, only_in
from launches import TESTS, Ended, Launcher

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "programs"
RAISES = BENCHMARKS / "raises.py"
CAUSE = "RuntimeError: the real cause"
LONG = pytest.mark.long
WORKERS = ("--nproc-per-node=2", "--max-restarts=0")


def names(ended: Ended, rank: int, reason: str) -> bool:
    """Return True if this rank is the first cause for this reason, and nothing false is said of the other one."""
    assert ended.code == 1, ended.err
    (cause,) = re.findall(r"^ +first cause +(.*)$", ended.err, re.MULTILINE)
    return f"rank {rank}, round 0, " in cause and any(text in cause for text in reason.split("|"))


WAYS: dict[str, tuple[tuple[str | Path, ...], tuple[str, ...]]] = {
    "plain": ((RAISES,), ()),
    "--tee": (("--tee=3", RAISES), ()),
    "@record": ((RAISES,), ("record",)),
    "-m": (("-m", "raises"), ()),
    "--run-path": (("--run-path", RAISES), ()),
    "standby": (("--standby", RAISES), ()),
}
RANKS = {"plain": (0, 1), "--tee": (0,), "@record": (1,), "-m": (1,), "--run-path": (0,), "standby": (0,)}
"""The ranks that raise. Which one does makes no difference to how the workers are started."""
QUICK = {("plain", 0), ("@record", 1), ("standby", 0)}


@pytest.mark.parametrize(
    ("program", "words", "rank"),
    [
        pytest.param(*WAYS[way], rank, id=f"{way}-{rank}", marks=[LONG] * ((way, rank) not in QUICK))
        for way in WAYS
        for rank in RANKS[way]
    ],
)
def test_the_rank_that_raised_is_named_however_it_was_started(
    launch: Launcher,
    program: tuple[str | Path, ...],
    words: tuple[str, ...],
    rank: int,
) -> None:
    environment = {"PYTHONPATH": f"{TESTS}:{BENCHMARKS}"}
    ended = launch(*WORKERS, *program, "all_reduce", str(rank), *words, environment=environment).ends()
    assert names(ended, rank, CAUSE)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("ddp", CAUSE),
        pytest.param("fsdp2", CAUSE, marks=LONG),
        pytest.param("loader", "RuntimeError: DataLoader worker", marks=LONG),
        ("exit", "exit code 7|killed by SIGABRT while it ended"),  # torch may abort a process that ends
        pytest.param("repl", CAUSE, marks=LONG),
    ],
)
def test_the_rank_that_failed_is_named_however_it_failed(launch: Launcher, how: str, reason: str) -> None:
    assert names(launch(*WORKERS, RAISES, how, "1").ends(), 1, reason)


@pytest.mark.parametrize("how", ["atexit", pytest.param("thread", marks=LONG)])
def test_an_exception_is_the_failure_also_if_the_end_of_the_interpreter_hangs(launch: Launcher, how: str) -> None:
    ended = launch(*WORKERS, "--grace=2", RAISES, how, "0").ends()
    assert names(ended, 0, CAUSE)
    assert re.search(r"still running \d+ s after its exception, (told to end|killed)", ended.err)


def test_a_worker_that_hangs_after_its_exception_and_ignores_sigterm_is_killed_after_the_grace(
    launch: Launcher, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import atexit, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\natexit.register(time.sleep, 1000)\n"
        "raise RuntimeError('the real cause')\n"
    )
    ended = launch("--max-restarts=0", "--grace=3", program).ends()
    assert names(ended, 0, CAUSE)
    assert re.search(r"still running \d+ s after its exception, killed", ended.err)


@pytest.mark.parametrize("method", ["spawn", *(pytest.param(how, marks=LONG) for how in ("fork", "forkserver"))])
def test_a_function_that_raised_is_named(launch: Launcher, method: str) -> None:
    """By the report that its caller prints."""
    program = BENCHMARKS / "raises_function.py"
    ended = launch.command(sys.executable, program, "2", "all_reduce", "1", method).ends()
    assert names(ended, 1, CAUSE)


@only_in("tcpstore")
def test_both_agents_name_the_rank_that_raised(job: Jobs) -> None:
    both = job("2", "--max-restarts=0")
    agents = both.nodes("ab", program=(RAISES, "all_reduce", "1"))
    assert all(names(agent.ends(), 1, CAUSE) for agent in agents)
