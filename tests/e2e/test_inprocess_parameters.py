"""What a wrapper is told and what its function may ask for, with real processes: callbacks, limits, policies, sections."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from launches import PROGRAMS, Launch, Launcher
from processes import comes_true, dies, is_stopped
from wrapped import FIRST_GATE, SECOND_GATE, begun, comes_to, entered, job, returned, told

PROGRAM = PROGRAMS / "behaves.py"


def behaves(launch: Launcher, *arguments: str, ranks: int = 2, restarts: int = 0) -> Launch:
    return job(launch, *arguments, ranks=ranks, restarts=restarts, program=PROGRAM)


def called(running: Launch, *ranks: int) -> dict[int, list[str]]:
    """What each of these ranks called, in order, once it has told."""
    found: dict[int, list[str]] = {}
    while set(found) < set(ranks):
        for each in running.hears(1):
            if each.words.startswith("called "):
                found[each.rank] = each.words.removeprefix("called ").split(", ")
    return found


def test_callbacks_are_called_in_their_order(launch: Launcher) -> None:
    running = behaves(launch, "fails")
    begun(running)
    once = ["initialize {0} active", "health_check {0} active", "function {0}"]
    again = ["abort 0 active", "finalize 0 active", "health_check 0 active"]
    order = [each.format(0) for each in once] + again + [each.format(1) for each in once] + ["completion 1 active"]
    assert called(running, 0, 1) == {0: order, 1: order}
    assert running.ends().code == 0


def test_an_abort_that_fails_is_the_end_of_that_rank_and_the_others_go_on(launch: Launcher) -> None:
    running = behaves(launch, "fails", "0:abort:raise")
    begun(running)
    why = "0 raised Stopped rank 0: abort failed (last error here: OSError: not yet)"
    comes_to(running, *entered(1, 1, of=1), *returned(1, 1), why)
    ended = running.ends()
    assert ended.code == 0
    assert "OSError: not yet" in ended.err and "exit code 75" in ended.err


def test_an_abort_that_hangs_is_the_end_of_that_rank_and_the_others_go_on(launch: Launcher) -> None:
    running = behaves(launch, "fails", "0:abort:hang", "abort_timeout=0.5")
    begun(running)
    comes_to(running, *entered(1, 1, of=1), *returned(1, 1), "0 raised Stopped rank 0: abort did not end")
    ended = running.ends()
    assert ended.code == 0
    assert "exit code 75" in ended.err


def test_an_unhealthy_rank_leaves_and_the_others_go_on(launch: Launcher) -> None:
    running = behaves(launch, "fails", "1:health_check:raise")
    begun(running)
    text = "1 raised Unhealthy rank 1: finalize or the health check failed (last error here: OSError: not yet)"
    comes_to(running, *entered(1, 0, of=1), *returned(1, 0), text)
    ended = running.ends()
    assert ended.code == 0
    assert "exit code 74" in ended.err


@pytest.mark.parametrize(
    "way", ["abort", *(pytest.param(way, marks=pytest.mark.long) for way in ("health_check", "finalize"))]
)
def test_a_rank_that_leaves_and_is_replaced_is_waited_for_like_one_that_is_killed(launch: Launcher, way: str) -> None:
    """One interruption: nobody is in an iteration of one rank."""
    running = job(launch, way, "replace_wait=60", restarts=1, program=PROGRAMS / "unhealthy_once.py")
    first = running.hears(2)
    running.open_gate()
    second = running.hears(4)
    assert sorted(f"{each.rank} {each.words}" for each in first) == ["0 in 0 of 2", "1 in 0 of 2"]
    assert sorted(f"{each.rank} {each.words}" for each in second)[:2] == ["0 in 1 of 2", "0 returned"]
    ended = running.ends()
    assert ended.code == 0
    assert "OSError: past help" in ended.err
    assert "1 worker of this node started again alone, 1 restart of wrapped functions" in ended.err


def test_a_callback_that_hangs_is_left_and_its_rank_with_it(launch: Launcher) -> None:
    running = behaves(launch, "fails", "1:finalize:hang", "callback_timeout=0.5")
    begun(running)
    before = "initialize 0 active, health_check 0 active, function 0, abort 0 active, finalize 0 active"
    comes_to(running, *entered(1, 0, of=1), *returned(1, 0), f"1 called {before}, terminate 0 terminated")
    assert running.ends().code == 0


def test_long_stretches_that_were_announced_disturb_nobody_though_they_keep_the_interpreter(launch: Launcher) -> None:
    running = behaves(launch, "long", "both", "soft_timeout=1.5", "hard_timeout=2.0")
    begun(running)
    comes_to(running, *returned(0, 0, 1))
    assert running.ends().code == 0


def test_a_hang_in_an_atomic_section_ends_with_its_process_and_the_others_go_on(launch: Launcher) -> None:
    limits = ("soft_timeout=0.4", "hard_timeout=20", "unwind_timeout=0.8", "termination_grace_time=0.2")
    running = behaves(launch, "atomic", *limits)
    first = running.hears(2)
    running.open_gate(FIRST_GATE)
    comes_to(running, *entered(1, 0, of=1), *returned(1, 0))
    assert dies(first[1].pid)
    assert running.ends().code == 0


def test_whoever_returned_and_waits_too_long_for_the_others_has_all_begin_anew(launch: Launcher) -> None:
    running = behaves(launch, "stays", "completion_timeout=2.0")
    begun(running)
    comes_to(running, *entered(1, 0, 1), *returned(1, 0, 1))
    assert running.ends().code == 0


def test_an_interrupted_rank_may_leave_alone_and_is_not_started_again(launch: Launcher) -> None:
    running = behaves(launch, "interrupted", "on_interrupt=leave", restarts=1)
    begun(running)
    comes_to(running, *entered(1, 0, of=1), *returned(1, 0), "1 raised Interrupted interrupted")
    ended = running.ends()
    assert ended.code == 0
    assert "1 of 2 workers succeeded; rank 1 did not (ended by itself, exit code 130) · 0 restarts" in ended.err


def test_too_few_ranks_wait_for_more_and_give_up_in_time(launch: Launcher) -> None:
    spans = ("soft_timeout=0.5", "hard_timeout=0.8", "heartbeat_timeout=4.0", "barrier_timeout=5.0")
    running = behaves(launch, "killed", "min_world_size=2", *spans)
    begun(running)
    why = "0 raised Stopped rank 0: too few ranks for too long (rank 1: "
    while not told(running, 1)[0].startswith(why):
        pass
    ended = running.ends()
    assert ended.code == 1
    assert "rank 1," in ended.err.split("first cause")[1].splitlines()[0], ended.err


def test_a_newcomer_waits_for_the_next_iteration_where_it_is_not_to_end_the_present_one(launch: Launcher) -> None:
    running = behaves(launch, "killed", "upscale=False", "newcomer", restarts=1)
    begun(running)
    comes_to(running, *entered(1, 0, of=1))
    running.open_gate(FIRST_GATE + 1)
    comes_to(running, *entered(2, 0, 1), *returned(2, 0, 1))
    ended = running.ends()
    assert ended.code == 0
    assert "rank 0, iteration 1: function ended by ValueError" in ended.err


def test_a_reserve_that_cannot_begin_leaves_and_disturbs_nobody(launch: Launcher) -> None:
    running = behaves(launch, "returns", "policy=one", "1:initialize:raise")
    unfit = "1 raised Unhealthy rank 1: a reserve failed to initialize (last error here: OSError: not yet)"
    comes_to(running, *entered(0, 0, of=1), unfit)
    running.open_gate(FIRST_GATE)
    comes_to(running, *returned(0, 0))
    assert running.ends().code == 0


def test_ranks_whose_policies_are_not_the_same_end_the_job(launch: Launcher) -> None:
    running = behaves(launch, "returns", "policy=own")
    running.open_gate(FIRST_GATE)
    whys: list[str] = []
    while len(whys) < 2:
        whys += [each.partition(": ")[2].partition(" (")[0] for each in told(running, 1) if " raised " in each]
    assert sorted(whys) == ["the job spent its restarts", "the ranks follow different policies"]
    assert running.ends().code == 1


def test_what_a_policy_raises_ends_the_job_and_is_raised_to_the_caller(launch: Launcher) -> None:
    running = behaves(launch, "returns", "policy=broken")
    while " raised " not in (word := told(running, 1)[0]):
        assert word.endswith(" called terminate 0 terminated")
    assert word.endswith(" raised ZeroDivisionError integer division or modulo by zero")
    ended = running.ends()
    assert ended.code == 1
    assert "the rank policy raised ZeroDivisionError: integer division or modulo by zero" in ended.err


def test_what_a_key_of_an_assignment_raises_ends_the_job_and_each_rank_says_so(launch: Launcher) -> None:
    running = behaves(launch, "returns", "policy=key")
    said: list[str] = []
    while len(said) < 2:
        said += [each.partition(" raised ")[2] for each in told(running, 1) if " raised " in each]
    assert all("ZeroDivisionError" in each for each in said), said
    ended = running.ends()
    assert ended.code == 1
    assert "rank 1: the rank policy raised ZeroDivisionError: integer division or modulo by zero" in ended.err
    assert re.search(r"first cause +\S+ rank 1, .*: ZeroDivisionError: ", ended.err), ended.err


def test_a_function_that_was_called_by_another_thread_comes_back_at_its_safe_points_and_it_is_said(
    launch: Launcher,
) -> None:
    running = behaves(launch, "fails", "thread")
    begun(running)
    comes_to(running, *entered(1, 0, 1), *returned(1, 0, 1))
    ended = running.ends()
    assert ended.code == 0
    assert "safe points alone: the function was not called from the main thread" in ended.err


def test_calls_one_after_the_other_are_apart_and_one_inside_of_another_is_refused_in_words(launch: Launcher) -> None:
    running = behaves(launch, "fails", "twice")
    refused = "nested: a wrapped function is called inside of another one: wrap the outermost alone"
    for gate in (FIRST_GATE, SECOND_GATE):
        begun(running, first_gate=gate)
        comes_to(running, *entered(1, 0, 1), f"0 {refused}", f"1 {refused}")
    comes_to(running, *returned(1, 0, 1))
    assert running.ends().code == 0


def test_a_rank_that_moved_up_in_one_call_is_in_nobody_s_way_in_the_next(launch: Launcher) -> None:
    """Rank 1 is lost in the first call, rank 2 takes its number, and then rank 1 is started again."""
    running = behaves(launch, "killed", "again", "upscale=False", ranks=3, restarts=1)
    begun(running, ranks=(0, 1, 2))
    comes_to(running, *entered(1, 0, 2))
    running.open_gate(FIRST_GATE + 1)
    comes_to(running, *(f"{rank} again in 0 of 3 as {rank}" for rank in range(3)), *returned(0, 0, 1, 2))
    assert running.ends().code == 0


def test_two_faults_at_once_cost_one_iteration_and_what_it_held_is_gone_in_the_next(launch: Launcher) -> None:
    """Though its exception and a cycle hold it, and the program has switched the collector off."""
    running = behaves(launch, "fails", "both", "held")
    assert begun(running, more=2) == ["0 holds 0 of 0", "1 holds 0 of 0"]
    comes_to(running, "0 holds 0 of 1", "1 holds 0 of 1", *entered(1, 0, 1), *returned(1, 0, 1))
    assert running.ends().code == 0


def test_a_host_that_is_gone_without_a_word_is_missed_after_its_silence(launch: Launcher, tmp_path: Path) -> None:
    """The rank and its monitor at once: nobody speaks for them. The files say which process watches which rank."""
    files = (f"monitor_process_pidfile={tmp_path}/{{rank}}.pid", f"monitor_process_logfile={tmp_path}/{{rank}}.log")
    running = behaves(launch, "stays", "heartbeat_interval=0.2", "heartbeat_timeout=3.0", *files)
    first = running.hears(2)
    logs = [tmp_path / f"{rank}.log" for rank in (0, 1)]
    assert comes_true(lambda: all(log.exists() and "beside" in log.read_text() for log in logs))
    monitor = int((tmp_path / "1.pid").read_text())
    os.kill(monitor, signal.SIGSTOP)
    try:
        assert comes_true(lambda: is_stopped(monitor))
        os.kill(first[1].pid, signal.SIGKILL)
        running.open_gate(FIRST_GATE)
        comes_to(running, *entered(1, 0, of=1), *returned(1, 0))
    finally:
        os.kill(monitor, signal.SIGKILL)
    assert running.ends().code == 0
