"""The monitor process, beside real processes that are killed, stopped, hang, leave: what it does to them and what it tells
the register."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from processes import comes_true, ignored_by, is_stopped
from worlds import arrived, edited, node, running

from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.beside.monitor import Program
from elastic.adapters.inprocess.beside.supervisor import Charge
from elastic.adapters.inprocess.shared_page import Page
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.relay.relay_server import Relay
from elastic.core.inprocess.exits import INTERNAL
from elastic.core.inprocess.monitoring import Rules, SayEnd
from elastic.core.rendezvous import Close, End, RendezvousState, apply, handlers
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Fault, Verdict, Why, WorldId

PROGRAM = Path(__file__).parents[1] / "programs" / "watched.py"
TIMEOUT_S = 60.0
RULES = {"patience_s": 0.02, "leave_patience_s": 0.2, "unwind_s": 30.0, "grace_s": 30.0, "leave_s": TIMEOUT_S}
UNWIND, GRACE = {"unwind_s": 0.5}, {"grace_s": 0.3}
"""For those who are to run into them."""
DAY_S = 86_400.0
A = node("a")

pytestmark = pytest.mark.usefixtures("nothing_left")


@frozen
class Beside:
    """A process with its monitor, and the register that both stand in: round 0 of nodes a and b is complete, the process
    is a."""

    process: subprocess.Popen[str]
    store: MemoryStore
    relay: Relay
    log: Path

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def monitor(self) -> int:
        """Its pid, once user code runs."""
        return int(self.line().removeprefix("runs "))

    def becomes(self, claim: Callable[[RendezvousState], bool]) -> bool:
        """Whether the register does, in good time."""

        def true() -> bool:
            state = self.store.state
            return state is not None and claim(state)

        with self.store.changed:
            return self.store.changed.wait_for(true, TIMEOUT_S)

    def ended(self) -> tuple[int, Why, str]:
        """Round, why and by whom, once the register has that."""
        assert self.becomes(lambda state: state.ended is not None), self.log.exists() and self.log.read_text()
        state = self.store.state
        assert state and state.ended
        return state.ended.round, state.ended.why, state.ended.by.slot

    def exit_code(self) -> int:
        """Of a process that may go now."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(TIMEOUT_S)

    def says(self, text: str, times: int = 1) -> bool:
        """Whether the monitors do, in good time."""
        return comes_true(lambda: self.log.exists() and self.log.read_text().count(text) >= times)

    def edit(self, who: str, edit: End) -> None:
        backend = MemoryBackend(self.store, SystemClock())
        state = self.store.state
        assert state
        backend.set(apply(state, edit, node(who)), state.token)


@contextmanager
def beside(
    kind: str,
    tmp_path: Path,
    soft_s: float = math.inf,
    hard_s: float = math.inf,
    heartbeat_s: float = 0.05,
    slack_s: float = 30.0,
    rules: Mapping[str, float] = {},
    log: Path | None = None,
) -> Iterator[Beside]:
    """`log`: another one than a file that is read when the monitor is done."""
    store, clock, file = MemoryStore(), SystemClock(), tmp_path / "monitor.log"
    state = running("a b")
    MemoryBackend(store, clock).set(state, None)
    relay = Relay(lambda name: MemoryBackend(store, clock))
    given = {
        "place": {"relay": relay.path, "space": "one"},
        "node": list(A),
        "soft_s": soft_s,
        "hard_s": hard_s,
        "rules": {**RULES, **rules},
        "heartbeat_s": heartbeat_s,
        "slack_s": slack_s,
        "log": str(log or file),
    }
    command = [sys.executable, str(PROGRAM), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        try:
            yield Beside(process, store, relay, file)
        finally:
            process.kill()
            if log is None:
                comes_true(lambda: file.exists() and "is done" in file.read_text())
            relay.close()


def test_a_killed_process_is_spoken_for_though_nobody_has_reaped_it(tmp_path: Path) -> None:
    with beside("trains", tmp_path) as it:
        it.monitor()
        it.process.send_signal(signal.SIGKILL)
        assert it.ended() == (0, Why.LOST, "a")
        assert it.store.state and A not in it.store.state.seats


@pytest.mark.parametrize("log", ["/dev/full", "/no/such/folder/monitor.log"])
def test_a_monitor_that_cannot_write_its_log_does_its_work(tmp_path: Path, log: str) -> None:
    with beside("trains", tmp_path, log=Path(log)) as it:
        it.monitor()
        it.process.send_signal(signal.SIGKILL)
        assert it.ended() == (0, Why.LOST, "a")


SLIPS = """
import os, sys
from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.beside import monitor
from elastic.adapters.inprocess.shared_page import Page
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore

class Slipping(MemoryBackend):
    def clone(self):
        return self
    def heartbeat(self, node, counter):
        raise ZeroDivisionError("a slip")

monitor.backend_at = lambda place, clock, rest_s=0.0: Slipping(MemoryStore(), clock)
page = Page.new()
descriptors = {"page": page.descriptor, "bell": page.bell, "process": os.pidfd_open(os.getppid())}
rules = {"unwind_s": 30.0, "grace_s": 30.0, "leave_s": 3.0, "replace_s": 0.0}
charge = {"node": ["a", 1], "place": {}, "rules": rules, "heartbeat_interval_s": 0.01, "log": sys.argv[1]}
monitor.Program({**charge, **descriptors}).run()
"""


def test_an_error_that_nobody_foresaw_in_a_thread_of_it_ends_the_monitor(tmp_path: Path) -> None:
    """The supervisor of its process starts another one."""
    log = tmp_path / "monitor.log"
    with subprocess.Popen([sys.executable, "-c", SLIPS, str(log)]) as process:
        try:
            assert process.wait(TIMEOUT_S) == INTERNAL
        finally:
            process.kill()
    assert "monitor of a#1: ends: ZeroDivisionError('a slip')" in log.read_text()


def test_a_limit_of_a_month_ends_no_monitor(tmp_path: Path) -> None:
    """It is longer than poll can wait."""
    with beside("trains", tmp_path, soft_s=30 * DAY_S, hard_s=31 * DAY_S) as it:
        it.monitor()
        assert it.says("beside a#1")
        it.process.send_signal(signal.SIGKILL)
        assert it.ended() == (0, Why.LOST, "a")


def test_a_stopped_process_loses_its_round_at_the_soft_limit_and_its_life_at_the_hard_one(tmp_path: Path) -> None:
    with beside("trains", tmp_path, soft_s=1.0, hard_s=3.0, rules=GRACE) as it:
        it.monitor()
        assert it.says("beside a#1")
        it.process.send_signal(signal.SIGSTOP)
        assert comes_true(lambda: is_stopped(it.process.pid))
        assert it.ended() == (0, Why.FAILED, "a")
        assert it.process.wait(TIMEOUT_S) == -signal.SIGKILL
        assert it.becomes(lambda state: A not in state.seats)


def waits(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "S"


def test_a_process_that_stood_still_with_its_monitor_keeps_its_round_and_its_life(tmp_path: Path) -> None:
    """A host that was stopped for longer than any limit, and than the monitor's way of telling that it was."""
    with beside("trains", tmp_path, soft_s=1.5, hard_s=2.0) as it:
        monitor = it.monitor()
        assert it.says("beside a#1")
        for pid in (monitor, it.process.pid):
            os.kill(pid, signal.SIGSTOP)
            assert comes_true(lambda pid=pid: is_stopped(pid))  # type: ignore[misc]
        select.poll().poll(5_000)
        os.kill(monitor, signal.SIGCONT)
        assert comes_true(lambda: waits(monitor))  # it has looked
        it.process.send_signal(signal.SIGCONT)
        it.edit("b", End(0, Why.FAILED))
        assert (it.line(), it.exit_code(), it.line()) == ("ended injected", 0, "monitors 1")
        assert it.ended() == (0, Why.FAILED, "b")


class Heard(Program):
    """A monitor of this process, whose words are kept and not said."""

    def __init__(self, page: Page) -> None:
        process, place = os.pidfd_open(os.getpid()), {"host": "localhost", "port": 1, "space": "one"}
        written = Charge(A, place, Rules(), 1.0).written(page.descriptor, page.bell, process)
        super().__init__(json.loads(written))
        self.said: list[tuple[Handler, WorldId | None]] = []

    def _speak(
        self, handler: Handler, mine: WorldId | None = None, replace_s: float = 0.0, fault: Fault | None = None
    ) -> None:
        self.said.append((handler, mine))

    def sees(self, state: RendezvousState) -> list[tuple[Handler, WorldId | None]]:
        """Return what it says when it sees this register."""
        self.said.clear()
        self._saw(state)
        self._end_if_due()
        return list(self.said)

    def closes(self) -> None:
        self._close()
        self._page.close()
        os.close(self._process)


def test_a_monitor_ends_the_round_in_which_its_process_hangs_and_no_later_one() -> None:
    """Its follower may show the world of that round late, and the next one at once."""
    before = running("a b")
    later = arrived(edited(before, "b", End(0, Why.FAILED)), "a b")
    for hung, shown in ((0, later), (1, before)):
        monitor = Heard(Page.new())
        try:
            monitor._do(SayEnd(hung))
            assert monitor.sees(shown) == []
            assert monitor.sees(later) == ([(handlers.end, later.world_id)] if hung == 1 else [])
            assert monitor.sees(later) == []
        finally:
            monitor.closes()


def test_a_hang_that_keeps_the_gil_is_ended_and_the_process_lives(tmp_path: Path) -> None:
    with beside("keeps_the_gil", tmp_path, soft_s=0.3) as it:
        it.monitor()
        assert it.ended() == (0, Why.FAILED, "a")
        assert (it.line(), it.exit_code(), it.line()) == ("ended injected", 0, "monitors 1")
        assert it.store.state and A in it.store.state.seats


def test_a_hang_that_keeps_the_gil_is_left_when_the_round_is_over(tmp_path: Path) -> None:
    with beside("keeps_the_gil", tmp_path) as it:
        it.monitor()
        it.edit("b", End(0, Why.FAILED))
        assert (it.line(), it.exit_code(), it.line()) == ("ended injected", 0, "monitors 1")
        assert it.ended() == (0, Why.FAILED, "b")


def test_the_process_s_heart_beats_while_it_keeps_the_gil(tmp_path: Path) -> None:
    with beside("keeps_the_gil", tmp_path) as it:
        it.monitor()
        assert comes_true(lambda: it.store.beats.get(A, (0, 0.0))[0] >= 5)


def test_user_code_that_does_not_end_is_told_to_go_and_spoken_for(tmp_path: Path) -> None:
    with beside("is_deaf", tmp_path, rules=UNWIND) as it:
        it.monitor()
        it.edit("b", End(0, Why.FAILED))
        assert it.line() == "ended exited"
        assert it.says("SIGTERM, SIGCONT")
        it.process.kill()
        assert it.becomes(lambda state: A not in state.seats)


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    with beside("ignores_everything", tmp_path, rules=UNWIND | GRACE) as it:
        it.monitor()
        it.edit("b", End(0, Why.FAILED))
        assert it.exit_code() == -signal.SIGKILL


def test_a_rank_that_leaves_and_says_nothing_is_said_to_leave(tmp_path: Path) -> None:
    with beside("leaves", tmp_path) as it:
        it.monitor()
        assert it.ended() == (0, Why.LEFT, "a")


def test_a_call_that_is_over_and_known_is_not_spoken_for_and_its_heart_stops(tmp_path: Path) -> None:
    with beside("returns", tmp_path, heartbeat_s=1.0) as it:
        before = it.store.state
        it.monitor()
        assert comes_true(lambda: A in it.store.beats)
        assert (it.line(), it.exit_code(), it.line()) == ("ended returned", 0, "monitors 1")
        assert it.store.state is before
        assert A not in it.store.beats


def test_a_call_that_is_over_and_perhaps_not_known_is_spoken_for(tmp_path: Path) -> None:
    with beside("returns_unknown", tmp_path) as it:
        it.monitor()
        assert it.exit_code() == 0
        assert it.ended() == (0, Why.LOST, "a")


def test_a_closed_job_needs_no_word_for_the_dead(tmp_path: Path) -> None:
    with beside("trains", tmp_path) as it:
        it.monitor()
        state = it.store.state
        assert state
        closed = apply(state, Close(Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)), node("b"))
        MemoryBackend(it.store, SystemClock()).set(closed, state.token)
        it.process.kill()
        assert it.says("is done")
        assert it.store.state is closed


def test_a_monitor_that_dies_is_followed_by_another_that_speaks_for_the_dead(tmp_path: Path) -> None:
    with beside("trains", tmp_path) as it:
        monitor = it.monitor()
        assert it.says("beside a#1")
        assert ignored_by(monitor) >= {signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}  # for the process beside it
        os.kill(monitor, signal.SIGKILL)
        assert it.says("beside a#1", times=2)
        it.process.send_signal(signal.SIGKILL)
        assert it.ended() == (0, Why.LOST, "a")


def test_a_store_out_of_reach_saves_no_process_from_its_limit(tmp_path: Path) -> None:
    with beside("ignores_everything", tmp_path, hard_s=1.0, rules=GRACE) as it:
        it.monitor()
        it.relay.close()
        assert it.exit_code() == -signal.SIGKILL


def test_what_nobody_can_interrupt_any_longer_is_ended_by_the_kernel(tmp_path: Path) -> None:
    with beside("keeps_the_gil_without_a_monitor", tmp_path, hard_s=0.5, slack_s=1.0) as it:
        monitor = it.monitor()
        assert it.exit_code() == -signal.SIGALRM
        os.kill(monitor, signal.SIGCONT)
        assert it.ended() == (0, Why.LOST, "a")
