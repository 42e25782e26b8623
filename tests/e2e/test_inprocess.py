"""Restart inside the process, with real processes: what goes wrong on one rank, who comes back, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator

import pytest
from launches import PROGRAMS, Launcher
from ports import reserved
from processes import comes_true, dies, monitor_of
from seccomp import known, refusing
from wrapped import FIRST_GATE, LATER, RESTARTS, begun, comes_to, entered, job, needs_torch, returned, told

LONG = pytest.mark.long
SOFT = ("soft_timeout=0.5", "hard_timeout=20.0")

BEHAVES = PROGRAMS / "behaves.py"


@pytest.fixture(autouse=True)
def traced(launch: Launcher) -> Iterator[None]:
    """The ranks of each job here have written traces, for `launch` to replay."""
    yield
    assert list(launch.traces.glob("rank_*.ndjson"))


def test_an_exception_on_one_rank_takes_all_back_into_the_function_in_the_same_processes(launch: Launcher) -> None:
    running = job(launch, "0:1:exception", "1:0:exception")
    begun(running)
    assert begun(running, 1, more=2) == ["0 finalize 0 NoneType", "1 finalize 0 ValueError"]
    assert begun(running, 2, more=2) == ["0 finalize 1 ValueError", "1 finalize 1 NoneType"]
    assert told(running, 2) == returned(2, 0, 1)
    ended = running.ends()
    assert ended.code == 0
    assert "boom" in ended.err


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=LONG)])
def test_a_rank_that_is_killed_is_missed_at_once_and_the_others_go_on(launch: Launcher, rank: int) -> None:
    running = job(launch, f"0:{rank}:kill")
    begun(running)
    other = 1 - rank
    assert told(running, 3) == [f"{other} finalize 0 NoneType", *entered(1, other, of=1), *returned(1, other)]
    ended = running.ends()
    assert ended.code == 0
    assert "iteration 1 begins, world size 1: a rank was lost\n" in ended.err
    assert re.search("not elastic|not sent by elastic", ended.err)


def test_a_rank_that_is_killed_is_started_again_alone_and_joins_the_next_iteration(launch: Launcher) -> None:
    running = job(launch, "0:1:kill", "1:0:sleep", restarts=1)
    first = running.hears(2)
    running.open_gate(FIRST_GATE)
    assert told(running, 2) == ["0 finalize 0 NoneType", *entered(1, 0, of=1)]
    running.open_gate(FIRST_GATE + 1)
    later = running.hears(3)
    assert [f"{each.rank} {each.words}" for each in later] == ["0 finalize 1 NoneType", *entered(2, 0, 1)]
    assert later[1].pid == first[0].pid
    assert later[2].pid not in {each.pid for each in first}
    assert told(running, 2) == returned(2, 0, 1)
    ended = running.ends()
    assert ended.code == 0
    smaller = "1 worker of this node started again alone, 2 restarts of wrapped functions"
    assert f"all 2 workers succeeded · 0 restarts, {smaller}, " in ended.err


@known
def test_where_no_pidfd_is_to_be_had_ranks_are_watched_all_the_same(launch: Launcher) -> None:
    """The monitor sees its process die, and the supervisor its monitor."""
    running = job(launch, "0:1:kill", "1:0:sleep", restarts=1, under=refusing("pidfd_open", 38))
    first = running.hears(2)
    assert comes_true(lambda: monitor_of(first[0].pid) is not None)
    monitor = monitor_of(first[0].pid)
    assert monitor is not None
    os.kill(monitor, signal.SIGKILL)
    assert comes_true(lambda: monitor_of(first[0].pid) not in (None, monitor))
    running.open_gate(FIRST_GATE)
    assert told(running, 2) == ["0 finalize 0 NoneType", *entered(1, 0, of=1)]
    running.open_gate(FIRST_GATE + 1)
    comes_to(running, *entered(2, 0, 1))
    comes_to(running, *returned(2, 0, 1))
    ended = running.ends()
    assert ended.code == 0, ended
    assert ended.err.count("pidfd_open") == 1 and "Traceback" not in ended.err, ended.err


@pytest.mark.parametrize("fault", ["c", "gil", *(pytest.param(each, marks=LONG) for each in ("sleep", "livelock"))])
def test_a_rank_that_hangs_is_called_back_and_keeps_its_process(launch: Launcher, fault: str) -> None:
    running = job(launch, f"0:1:{fault}", *SOFT)
    first = running.hears(2)
    running.open_gate(FIRST_GATE)
    again = running.hears(4)
    assert {each.pid for each in again} == {each.pid for each in first}
    assert [each.words for each in again if " of " in each.words] == ["in 1 of 2 as 0", "in 1 of 2 as 1"]
    assert told(running, 2) == returned(1, 0, 1)
    ended = running.ends()
    assert ended.code == 0
    assert re.search(r"rank 1, iteration 0: function (made no progress for|was called back).*, at\n", ended.err)
    assert re.search(r"iteration 1 begins, world size 2: it went wrong on a rank \(rank [01]\)\n", ended.err)


def test_a_rank_that_computes_for_longer_than_the_limit_is_left_alone(launch: Launcher) -> None:
    running = job(launch, "0:1:busy", "soft_timeout=3.0", "hard_timeout=20.0")
    begun(running)
    assert told(running, 2) == returned(0, 0, 1)
    assert running.ends().code == 0


def test_a_main_thread_that_swallows_the_injection_is_met_again(launch: Launcher) -> None:
    running = job(launch, "0:0:swallow", "0:1:exception later", "unwind_timeout=60.0")
    begun(running)
    comes_to(running, "0 does not listen")
    running.open_gate(LATER)
    comes_to(running, "0 swallowed Injected Injected Injected", *returned(1, 0, 1))
    assert running.ends().code == 0


def test_no_abort_begins_and_nobody_is_called_back_within_an_atomic_section(launch: Launcher) -> None:
    running = job(launch, "0:0:atomic", "0:1:exception later")
    begun(running)
    comes_to(running, "0 in the section")
    running.open_gate(LATER)
    running.says("boom")
    running.open_gate(1)
    comes_to(running, "0 end of the section", "0 finalize 0 NoneType")
    comes_to(running, *returned(1, 0, 1))
    assert "0 after the section" not in running.account()
    assert running.ends().code == 0


def test_an_import_comes_to_its_end_before_its_rank_is_called_back(launch: Launcher) -> None:
    running = job(launch, "0:0:import", "0:1:exception later")
    begun(running)
    comes_to(running, "0 importing")
    running.open_gate(LATER)
    comes_to(running, "1 finalize 0 ValueError")
    running.open_gate(1)
    comes_to(running, "0 has the module True", *returned(1, 0, 1))
    assert running.ends().code == 0


def test_a_fault_during_a_restart_is_one_more_restart(launch: Launcher) -> None:
    running = job(launch, "0:1:exception", "1:0:initialize")
    begun(running)
    comes_to(running, "0 finalize 1 OSError")
    comes_to(running, *returned(2, 0, 1))
    assert running.ends().code == 0


def test_a_function_that_returned_on_some_ranks_is_called_again_when_another_fails(launch: Launcher) -> None:
    running = job(launch, "0:0:return", "0:1:exception")
    begun(running)
    assert told(running, 4) == sorted([*entered(1, 0, 1), "0 finalize 0 NoneType", "1 finalize 0 ValueError"])
    assert told(running, 2) == returned(1, 0, 1)
    assert running.ends().code == 0


def test_an_interrupt_on_one_rank_stops_all_and_nobody_starts_again(launch: Launcher) -> None:
    running = job(launch, "0:1:interrupt", restarts=2)
    begun(running)
    assert told(running, 2) == [
        "0 raised Stopped rank 0: the job was cancelled (rank 1: KeyboardInterrupt)",
        "1 raised Interrupted interrupted",
    ]
    ended = running.ends()
    assert ended.code == 1
    assert "elastic  CANCELLED: asked" in ended.err and "round 1" not in ended.err


def test_a_rank_that_exits_leaves_and_the_others_go_on(launch: Launcher) -> None:
    running = job(launch, "0:1:exit")
    begun(running)
    heard = told(running, 4)
    assert heard == ["0 finalize 0 NoneType", *entered(1, 0, of=1), *returned(1, 0), "1 raised SystemExit 3"]
    assert running.ends().code == 0


def test_one_that_cannot_clean_up_leaves_and_the_others_go_on(launch: Launcher) -> None:
    running = job(launch, "0:1:exception", "0:1:finalize")
    begun(running)
    heard = told(running, 5)
    left = ("1 finalize 0 ValueError", "1 raised OSError past help")
    assert set(heard) == {"0 finalize 0 NoneType", *entered(1, 0, of=1), *returned(1, 0), *left}
    assert running.ends().code == 0


def test_user_code_that_gives_up_ends_the_job_everywhere(launch: Launcher) -> None:
    running = job(launch, "0:1:abort")
    begun(running)
    heard = told(running, 2)
    spent = "rank 0: the job spent its restarts (rank 1: RestartAbort: enough)"
    assert heard == [f"0 raised Stopped {spent}", "1 raised RestartAbort enough"]
    assert running.ends().code == 1


def test_a_wrapped_function_inside_of_another_one_ends_the_job_once_and_says_why(launch: Launcher) -> None:
    running = job(launch, "0:1:nest", restarts=0)
    begun(running)
    inner = "NestedCall: a wrapped function is called inside of another one: wrap the outermost alone"
    assert told(running, 2) == [
        f"0 raised Stopped rank 0: the job spent its restarts (rank 1: {inner})",
        f"1 raised Stopped rank 1: user code gave up (last error here: {inner})",
    ]
    ended = running.ends()
    assert ended.code == 1
    assert "iteration 1 begins" not in ended.err


def test_so_many_iterations_and_no_more(launch: Launcher) -> None:
    running = job(launch, *(f"{iteration}:1:exception" for iteration in range(4)), "max_iterations=2")
    begun(running)
    begun(running, 1, more=2)
    spent = "raised Stopped rank {0}: max_iterations is reached"
    others, own = "(rank 1: ValueError: boom)", "(last error here: ValueError: boom)"
    heard = {words.partition(" raised ")[0]: words for words in told(running, 4) if " raised " in words}
    said = {"0": f"0 {spent.format(0)} {others}", "1": f"1 {spent.format(1)} {own}"}
    late = [words for rank, words in heard.items() if words != said[rank]]
    assert len(heard) == 2 and len(late) < 2 and all("the job spent its restarts" in words for words in late), heard
    assert running.ends().code == 1


def test_the_launcher_s_sigterm_drains_every_rank(launch: Launcher) -> None:
    running = job(launch, "0:1:sleep")
    pids = [each.pid for each in running.hears(2)]
    running.signal(signal.SIGTERM)
    assert [words.partition(" ")[2] for words in told(running, 2)] == ["raised Drained 143"] * 2
    assert running.ends().code == 128 + signal.SIGTERM
    assert all(dies(pid) for pid in pids)


def test_a_monitor_that_is_killed_is_started_again_and_sees_the_next_hang(launch: Launcher) -> None:
    running = job(launch, "0:1:monitor", "soft_timeout=2.0", "hard_timeout=20.0")
    begun(running)
    comes_to(running, "1 has another monitor")
    comes_to(running, *returned(1, 0, 1))
    assert running.ends().code == 0


def test_a_process_that_stands_still_is_killed_at_its_limit_and_the_others_go_on(launch: Launcher) -> None:
    running = job(launch, "0:1:stop", "soft_timeout=0.4", "hard_timeout=1.5", "termination_grace_time=0.2")
    stopped = running.hears(2)[1].pid
    running.open_gate(FIRST_GATE)
    comes_to(running, *entered(1, 0, of=1), *returned(1, 0))
    assert dies(stopped)
    ended = running.ends()
    assert ended.code == 0
    assert "killed by its monitor: no progress for 1.5 s (hard_timeout)\n" in ended.err
    assert not re.search("not elastic|not sent by elastic", ended.err)


@pytest.mark.parametrize(
    "handler", ["none", "raises", *(pytest.param(each, marks=LONG) for each in ("exits", "interrupts"))]
)
def test_a_rank_that_its_monitor_ends_for_a_hang_is_started_again_whatever_its_handler_does(
    launch: Launcher, handler: str
) -> None:
    """SIGTERM ends it: an import that hangs cannot be called back."""
    options = ("--nproc-per-node=2", "--restart-scope=rank", "--max-restarts=3")
    running = launch(*options, PROGRAMS / "hung_import.py", handler)
    ended = running.ends()
    assert ended.code == 0, ended.err
    assert "exit code 78" in ended.err and "killed by its monitor: " in ended.err
    assert "1 worker of this node started again alone" in ended.err


def test_a_rank_that_its_monitor_ends_for_a_hang_is_waited_for_like_one_that_is_killed(launch: Launcher) -> None:
    running = job(launch, "none", "replace_wait=60", restarts=1, program=PROGRAMS / "hung_import.py")
    heard = [f"{each.rank} {each.words}" for each in running.hears(6)]
    assert sorted(heard)[:3] == ["0 in 0 of 2", "0 in 1 of 2", "0 returned"]
    ended = running.ends()
    assert ended.code == 0 and "exit code 78" in ended.err


def test_the_loss_of_a_reserve_disturbs_nobody(launch: Launcher) -> None:
    running = job(launch, "0:0:return", "active=1")
    heard = running.hears(2)
    assert [f"{each.rank} {each.words}" for each in heard] == ["0 in 0 of 1 as 0", "1 reserve 0 as 1"]
    os.kill(heard[1].pid, signal.SIGKILL)
    assert dies(heard[1].pid)
    running.says("rank 1 (local 1")
    running.open_gate(FIRST_GATE)
    assert told(running, 1) == returned(0, 0)
    assert running.ends().code == 0


def test_a_reserve_takes_the_place_of_a_rank_that_is_lost(launch: Launcher) -> None:
    running = job(launch, "0:0:kill", "active=1")
    assert told(running, 2) == ["0 in 0 of 1 as 0", "1 reserve 0 as 1"]
    running.open_gate(FIRST_GATE)
    assert told(running, 3) == ["1 finalize 0 NoneType", "1 in 1 of 1 as 0", *returned(1, 1)]
    assert running.ends().code == 0


def test_a_rank_whose_faults_have_no_end_ends_the_job(launch: Launcher) -> None:
    running = job(launch, *(f"{iteration}:1:exception" for iteration in range(5)), "max_rank_faults=1")
    begun(running)
    begun(running, 1, more=2)
    text = "raised Stopped rank 1: too many faults of this rank (last error here: ValueError: boom)"
    others = "0 raised Stopped rank 0: the job spent its restarts (rank 1: ValueError: boom)"
    comes_to(running, others, f"1 {text}")
    ended = running.ends()
    assert ended.code == 1
    assert re.search(r"first cause .*: ValueError: boom", ended.err)


def test_a_rank_that_fails_the_same_way_again_and_again_ends_the_job(launch: Launcher) -> None:
    running = job(launch, *(f"{iteration}:1:exception" for iteration in range(5)), "max_repeats=1")
    begun(running)
    begun(running, 1, more=2)
    begun(running, 2, more=2)
    text = "raised Stopped rank 1: the same failure of this rank again and again (last error here: ValueError: boom)"
    others = "0 raised Stopped rank 0: the job spent its restarts (rank 1: ValueError: boom)"
    comes_to(running, others, f"1 {text}")
    ended = running.ends()
    assert ended.code == 1
    assert re.search(r"first cause .*: ValueError: boom", ended.err)


def test_what_went_wrong_on_any_rank_is_on_record(launch: Launcher) -> None:
    running = job(launch, "0:1:exception", "faults")
    begun(running)
    comes_to(running, "0 fault 0 1 ValueError: boom", "1 fault 0 1 ValueError: boom", *returned(1, 0, 1))
    assert running.ends().code == 0


@needs_torch
@pytest.mark.parametrize("goes", ["kill", "exit"])
def test_without_a_launcher_the_store_outlives_the_rank_that_served_it(launch: Launcher, goes: str) -> None:
    with reserved() as port:
        place = f"MASTER_ADDR=127.0.0.1 MASTER_PORT={port} WORLD_SIZE=3"
        rank = f"{place} {sys.executable} {RESTARTS} 0:0:{goes} 1:1:exception"
        serves = f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2> /dev/null; do :; done"
        served = f"(RANK=0 {rank}; echo it has gone)"
        script = f"unset ELASTIC_RELAY; {served} & {serves}; RANK=1 {rank} & RANK=2 {rank} & wait"
        running = launch("--no-python", "bash", "-c", script)
        begun(running, ranks=(0, 1, 2))
        comes_to(running, *entered(1, 1, 2))
        running.prints("it has gone")
        running.open_gate(FIRST_GATE + 1)
        comes_to(running, *entered(2, 1, 2), *returned(2, 1, 2))
        assert running.ends().code == 0


@needs_torch
def test_without_a_launcher_the_first_rank_serves_the_store_until_all_have_heard(launch: Launcher) -> None:
    """Plain processes that know of each other by the environment alone."""
    with reserved() as port:
        rank = (
            f"MASTER_ADDR=127.0.0.1 MASTER_PORT={port} WORLD_SIZE=2 RANK=$R {sys.executable} {RESTARTS} 0:1:exception"
        )
        script = f"unset ELASTIC_RELAY; for R in 0 1; do export R; {rank} & done; wait"
        running = launch("--no-python", "sh", "-c", script)
        begun(running)
        comes_to(running, *entered(1, 0, 1), *returned(1, 0, 1))
        assert running.ends().code == 0


@needs_torch
def test_without_a_launcher_a_later_call_meets_where_the_first_did(launch: Launcher) -> None:
    """Each iteration sets MASTER_PORT, and the last one's is another program's by then."""
    with reserved() as port:
        rank = f"MASTER_ADDR=127.0.0.1 MASTER_PORT={port} WORLD_SIZE=2 {sys.executable} {BEHAVES} fails again listens"
        running = launch("--no-python", "sh", "-c", f"unset ELASTIC_RELAY; RANK=0 {rank} & RANK=1 {rank} & wait")
        begun(running)
        comes_to(running, *entered(1, 0, 1), *(f"{rank} again in 0 of 2 as {rank}" for rank in range(2)))
        assert running.ends().code == 0
