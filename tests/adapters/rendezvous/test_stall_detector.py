"""Whether a process stood still: by its clocks, and by a process that is really stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest
from attrs import define

from elastic.adapters.rendezvous.stall_detector import StallDetector

LONGEST_S = 1.0
ANSWER_S = 60.0
PROGRAM = f"""
import sys, threading, time
from elastic.adapters.rendezvous.stall_detector import StallDetector

class Pulse:
    lock, felt_at, gap = threading.Lock(), time.monotonic(), 0.0
    def feel(self):
        with self.lock:
            now = time.monotonic()
            self.felt_at, self.gap = now, max(self.gap, now - self.felt_at)
    def run(self):
        while True:
            time.sleep(0.01)
            self.feel()

pulse = Pulse()
threading.Thread(target=pulse.run, daemon=True).start()
detector = StallDetector({LONGEST_S})
detector.start()
print("ready", flush=True)
for _ in sys.stdin:
    stalled = detector.stalled()
    pulse.feel()
    print("stalled" if stalled else "awake", pulse.gap, flush=True)
    pulse.gap = 0.0
detector.stop()
"""
"""Tells when it is asked, and beside that the longest time that it went without a processor, of its own knowledge."""


@define
class Clocks:
    monotonic: float = 3.0
    boottime: float = 4.0

    def detector(self) -> StallDetector:
        return StallDetector(5.0, lambda: self.monotonic, lambda: self.boottime)


def test_who_looks_often_enough_is_awake() -> None:
    clocks = Clocks()
    one = clocks.detector()
    for _ in range(10):
        clocks.monotonic, clocks.boottime = clocks.monotonic + 5.0, clocks.boottime + 5.0
        assert not one.stalled()


def test_of_several_stalls_since_the_last_call_the_longest_is_told() -> None:
    clocks = Clocks()
    one = clocks.detector()
    for gap_s in (7.0, 9.0, 6.0):
        clocks.monotonic, clocks.boottime = clocks.monotonic + gap_s, clocks.boottime + gap_s
        one._look()
    assert one.stalled() == 9.0
    assert one.stalled() == 0.0


@pytest.mark.parametrize("suspended", [False, True], ids=["stopped", "suspended with its machine"])
def test_a_gap_of_either_clock_is_a_stall_and_is_told_once(suspended: bool) -> None:
    clocks = Clocks()
    one = clocks.detector()
    clocks.boottime += 5.1
    clocks.monotonic += 0.0 if suspended else 5.1
    assert one.stalled()
    assert not one.stalled()


def test_the_clocks_are_read_four_times_within_the_longest_gap_and_as_long_as_a_thread_can_wait() -> None:
    assert StallDetector(6.0).looks_every_s == 1.5
    assert StallDetector(float("inf")).looks_every_s == threading.TIMEOUT_MAX


def test_the_thread_reads_the_clocks_again_and_again_until_it_is_stopped() -> None:
    reads = SimpleQueue[threading.Thread]()

    def clock() -> float:
        reads.put(threading.current_thread())
        return 0.0

    one = StallDetector(0.04, clock, lambda: 0.0)
    assert reads.get(timeout=ANSWER_S) is threading.current_thread()
    one.start()
    for _ in range(10):
        thread = reads.get(timeout=ANSWER_S)
        assert (thread.name, thread.daemon) == ("elastic-stall-detector", True)
    one.stop()
    assert not one.stalled()
    still = reads.qsize()
    one.stop()
    assert reads.qsize() == still


def test_an_error_that_ends_the_thread_is_told() -> None:
    told, error = SimpleQueue[BaseException](), OSError("no clock")

    def clock() -> float:
        if threading.current_thread().name == "elastic-stall-detector":
            raise error
        return 0.0

    one = StallDetector(0.04, clock, failed=told.put)
    one.start()
    assert told.get(timeout=ANSWER_S) is error
    one.stop()


@contextmanager
def watched() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def stalled(process: subprocess.Popen[str]) -> tuple[bool, float]:
    """What it says, and its longest gap in seconds."""
    assert process.stdin and process.stdout
    process.stdin.write("?\n")
    process.stdin.flush()
    said, gap_s = process.stdout.readline().split()
    return said == "stalled", float(gap_s)


def was_awake(process: subprocess.Popen[str]) -> bool:
    """Or has a reason to say otherwise: this machine may really stand still."""
    said, gap_s = stalled(process)
    return not said or gap_s > LONGEST_S / 2


def test_a_process_that_was_stopped_knows_it_and_one_that_waited_was_awake() -> None:
    with watched() as process:
        time.sleep(2 * LONGEST_S)
        assert was_awake(process)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(2 * LONGEST_S)
        os.kill(process.pid, signal.SIGCONT)
        assert stalled(process)[0]
        assert was_awake(process)


def test_one_that_never_started_stops() -> None:
    StallDetector(LONGEST_S).stop()
