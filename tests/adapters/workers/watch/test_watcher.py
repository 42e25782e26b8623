"""The thread that waits for deaths."""

from __future__ import annotations

import os
import subprocess
from itertools import count
from queue import SimpleQueue
from threading import Event

from processes import TIMEOUT_S

from elastic.adapters.workers.watch.watcher import Watcher


def dead() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["true"])


def test_a_death_is_told_once() -> None:
    watcher, told = Watcher(), SimpleQueue[int]()
    processes = [dead(), dead()]
    pidfds = [os.pidfd_open(process.pid) for process in processes]
    for number, pidfd in enumerate(pidfds):
        watcher.watch(pidfd, lambda at, number=number: told.put(number))  # type: ignore[misc]
    assert sorted(told.get(timeout=TIMEOUT_S) for _ in pidfds) == [0, 1]
    watcher.stop()
    assert told.empty()
    for process, pidfd in zip(processes, pidfds, strict=True):
        process.wait()
        os.close(pidfd)


def test_deaths_that_are_seen_together_have_one_time_however_long_the_callbacks_take() -> None:
    ticks = count()
    watcher, entered, gate = Watcher(lambda: float(next(ticks))), Event(), Event()
    told = SimpleQueue[float]()

    def hold(at: float) -> None:
        entered.set()
        gate.wait(TIMEOUT_S)

    processes = [dead(), dead(), dead()]
    pidfds = [os.pidfd_open(process.pid) for process in processes]
    watcher.watch(pidfds[0], hold)
    assert entered.wait(TIMEOUT_S)
    for process, pidfd in zip(processes[1:], pidfds[1:], strict=True):
        process.wait()
        watcher.watch(pidfd, told.put)
    gate.set()
    assert told.get(timeout=TIMEOUT_S) == told.get(timeout=TIMEOUT_S) == 1.0
    watcher.stop()
    processes[0].wait()
    for pidfd in pidfds:
        os.close(pidfd)


def seen_and_not_handled(watcher: Watcher, told: SimpleQueue[str]) -> tuple[list[int], Event]:
    """Descriptors, of which the watcher handles all but the last, which it has seen too, and the gate at which it stands."""
    entered, gates = SimpleQueue[int](), [Event(), Event()]
    first, *both = (os.eventfd(1) for _ in range(3))

    def hold(descriptor: int, gate: Event) -> None:
        told.put("seen")
        entered.put(descriptor)
        gate.wait(TIMEOUT_S)

    watcher.watch(first, lambda at: hold(first, gates[0]))
    assert entered.get(timeout=TIMEOUT_S) == first
    for each in both:  # the next poll sees both
        watcher.watch(each, lambda at, each=each: hold(each, gates[1]))  # type: ignore[misc]
    gates[0].set()
    second = entered.get(timeout=TIMEOUT_S)
    assert [told.get(timeout=TIMEOUT_S) for _ in range(2)] == ["seen"] * 2
    return [first, second, *({*both} - {second})], gates[1]


def test_what_was_seen_of_a_descriptor_is_not_told_of_the_next_one_that_has_its_number() -> None:
    watcher, told = Watcher(), SimpleQueue[str]()
    seen, gate = seen_and_not_handled(watcher, told)
    watcher.forget(seen[-1])
    alive, last = os.eventfd(0), os.eventfd(1)
    os.dup2(alive, seen[-1])
    watcher.watch(seen[-1], lambda at: told.put("the next one"))
    watcher.watch(last, lambda at: told.put("last"))
    gate.set()
    assert told.get(timeout=TIMEOUT_S) == "last"
    os.eventfd_write(alive, 1)
    assert told.get(timeout=TIMEOUT_S) == "the next one"
    watcher.stop()
    for each in (*seen, alive, last):
        os.close(each)


def test_a_descriptor_that_was_read_from_before_it_is_told_is_watched_on() -> None:
    watcher, told = Watcher(), SimpleQueue[str]()
    seen, gate = seen_and_not_handled(watcher, told)
    last = os.eventfd(1)
    os.eventfd_read(seen[-1])
    watcher.watch(last, lambda at: told.put("last"))
    gate.set()
    assert told.get(timeout=TIMEOUT_S) == "last"
    os.eventfd_write(seen[-1], 1)
    assert told.get(timeout=TIMEOUT_S) == "seen"
    watcher.stop()
    for each in (*seen, last):
        os.close(each)


def test_a_stop_may_be_repeated_and_come_before_any_watch() -> None:
    watcher = Watcher()
    watcher.stop()
    watcher.stop()
    watcher.forget(99)


def test_an_error_of_a_callback_is_told() -> None:
    told = SimpleQueue[BaseException]()
    watcher, error = Watcher(failed=told.put), ValueError("nobody foresaw this")

    def then(at: float) -> None:
        raise error

    process = dead()
    pidfd = os.pidfd_open(process.pid)
    watcher.watch(pidfd, then)
    assert told.get(timeout=TIMEOUT_S) is error
    watcher.stop()
    process.wait()
    os.close(pidfd)


def test_a_callback_may_forget_and_watch() -> None:
    watcher, told = Watcher(), SimpleQueue[str]()
    first, second = dead(), dead()
    pidfds = [os.pidfd_open(first.pid), os.pidfd_open(second.pid)]

    def then(at: float) -> None:
        watcher.forget(pidfds[0])
        watcher.watch(pidfds[1], lambda at: told.put("second"))

    watcher.watch(pidfds[0], then)
    assert told.get(timeout=TIMEOUT_S) == "second"
    watcher.stop()
    for process, pidfd in zip((first, second), pidfds, strict=True):
        process.wait()
        os.close(pidfd)
