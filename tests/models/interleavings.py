"""The exhaustive search over the gate: every interleaving of its two threads, and a signal at every bytecode.

The gate and the threads are real, and run one step at a time. The main thread runs a program under the gate. Before its
`at`-th access to the shared page another one interrupts:

- the driver calls `want`, and returns;
- the driver calls `want` and stops between its two accesses, until the main thread needs the lock or ends (torn);
- the monitor process asks for the end of the span.

The handler of a signal is called before the `signal_at`-th bytecode of the main thread, with the frame that would execute
it. CPython itself looks for signals at some of these bytecodes only.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from types import FrameType, TracebackType
from typing import Any, cast

from attrs import Factory, define

from elastic.adapters.inprocess.gate.gate import SIGNUM, Gate
from elastic.adapters.inprocess.shared_page import ARMED, DEPTH, WANT, WANT_MONITOR, WORDS, Page
from elastic.adapters.inprocess.thread_events import FromGate, Injected, Order, SpanEnd
from elastic.adapters.inprocess.user_stack import USERS
from elastic.core.inprocess.words import How, Span

TIMEOUT_S = 90.0
TOKEN = 7
Program = Callable[[Gate, list[str]], object]
Make = Callable[[Page, Callable[[FromGate], None]], Gate]


class Asker(Enum):
    """The party that asks for the end of the span."""

    DRIVER = "driver"
    TORN = "driver, in two pieces"
    MONITOR = "monitor"


class Wrong(AssertionError):
    """A run broke a rule of the gate."""


@define
class Played:
    """The record of one run. `log` has the marks of the program and of the driver and the events, in order."""

    log: list[str] = Factory(list)
    accesses: int = 0
    bytecodes: int = 0
    wanted_at: int | None = None
    """The bytecode of the main thread before which the span's end was asked for."""
    how: How | None = None


class _Words:
    """The words of the page. Each access is reported."""

    def __init__(self, accessed: Callable[[int, bool], None]) -> None:
        self._words = [0] * WORDS
        self._words[WANT] = self._words[WANT_MONITOR] = TOKEN - 1  # of an earlier span
        self._accessed = accessed

    def __getitem__(self, word: int) -> int:
        self._accessed(word, False)
        return self._words[word]

    def __setitem__(self, word: int, value: int) -> None:
        self._accessed(word, True)
        self._words[word] = int(value)

    def peek(self, word: int) -> int:
        return self._words[word]

    def poke(self, word: int, value: int) -> None:
        self._words[word] = value


class _Lock:
    """The gate's lock. A thread that must wait for it lets the other run, and gets it as soon as it is free."""

    def __init__(self, game: _Game) -> None:
        self._game = game
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._game.blocked()
            if not self._lock.acquire(timeout=TIMEOUT_S):
                raise Wrong("the lock is never given back")

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._lock.release()
        self._game.released()


def _is_looked_at(file: str) -> bool:
    """Return True for the wrapper and the programs. This file, and what the interpreter runs in between, is left out."""
    return "inprocess" in file or file.startswith("<attrs")


class _Game:
    """The two threads of one run."""

    def __init__(
        self, make: Make, at: int | None, asker: Asker, signal_at: int | None, signum: signal.Signals = SIGNUM
    ) -> None:
        self.played = Played()
        self._at, self._asker, self._signal_at, self._signum = at, asker, signal_at, signum
        self._words = _Words(self._accessed)
        page = Page.new()
        self.gate = make(page, self._posted)
        page.close()
        page.bell = -1
        page.words = cast(Any, self._words)
        cast(Any, self.gate)._lock = _Lock(self)
        self._main = threading.get_ident()
        self._driver: threading.Thread | None = None
        self._turn = threading.Event()  # of the main thread
        self._resume = threading.Event()  # of the driver
        self._driver_waits = False
        self._ended: list[SpanEnd] = []
        self._wrong: list[str] = []

    def play(self, program: Program) -> Played:
        order = Order(TOKEN, 0, Span.FUNCTION, lambda: program(self.gate, self.played.log))
        sys.settrace(self._trace)
        try:
            self.gate.run(order)
        except BaseException as error:
            raise Wrong(f"{error!r} came out of the wrapper") from error
        finally:
            sys.settrace(None)
            self._finish_driver()
        self._judge()
        return self.played

    # --- the main thread

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if not _is_looked_at(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.played.bytecodes += 1
            if self.played.bytecodes == self._signal_at:
                self._signal(frame)
        return self._trace

    def _signal(self, frame: FrameType) -> None:
        if self._signum is not SIGNUM:
            self.gate.signalled(self._signum, frame)
            return
        armed, depth, *wants = (self._words.peek(word) for word in (ARMED, DEPTH, WANT, WANT_MONITOR))
        try:
            self.gate.injected(self._signum, frame)
        except Injected:
            users = frame.f_code is USERS or frame.f_code.co_name.startswith("program_")
            if users and not depth and armed == TOKEN and TOKEN in wants:
                self.played.log.append("raised")
                raise
            self._wrong.append(f"raised in {frame.f_code.co_qualname}, depth {depth}, armed {armed}, wanted {wants}")

    def _accessed(self, word: int, written: bool) -> None:
        if threading.get_ident() != self._main:
            if self._asker is Asker.TORN and word == DEPTH:
                self._pause_driver()
            return
        if self.played.accesses == self._at and self.played.wanted_at is None:
            self.played.wanted_at = self.played.bytecodes
            if self._asker is Asker.MONITOR:
                self._words.poke(WANT_MONITOR, TOKEN)
            else:
                self._begin_driver()
        self.played.accesses += 1

    def _posted(self, event: FromGate) -> None:
        self.played.log.append(type(event).__name__)
        if isinstance(event, SpanEnd):
            self._ended.append(event)
            self.played.how = event.how
            if self._words.peek(ARMED):
                self._wrong.append("told that the span has ended while the gate is armed")

    # --- the driver

    def _begin_driver(self) -> None:
        self._driver = threading.Thread(target=self._want)
        self._driver.start()
        self._give_turn()

    def _want(self) -> None:
        depth = self.gate.want(TOKEN)
        self.played.log.append("pending" if depth else "abort")
        self._turn.set()

    def _pause_driver(self) -> None:
        self._turn.set()
        if not self._resume.wait(TIMEOUT_S):
            raise Wrong("the driver is never resumed")

    def _give_turn(self) -> None:
        """Let the driver run until it ends, waits for the lock, or stops between its two accesses."""
        if not self._turn.wait(TIMEOUT_S):
            raise Wrong("the driver does not come back")
        self._turn.clear()

    def blocked(self) -> None:
        """A thread finds that the other one has the lock."""
        if threading.get_ident() == self._main:
            self._finish_driver()
        else:
            self._driver_waits = True
            self._turn.set()

    def released(self) -> None:
        if threading.get_ident() == self._main and self._driver_waits:
            self._driver_waits = False
            self._give_turn()

    def _finish_driver(self) -> None:
        if self._driver is not None:
            self._resume.set()
            self._driver.join(TIMEOUT_S)

    # --- what must hold

    def _judge(self) -> None:
        log = self.played.log
        if self._wrong:
            raise Wrong(self._wrong[0])
        if len(self._ended) != 1 or self._ended[0].token != TOKEN or self._words.peek(ARMED):
            raise Wrong(f"ended {len(self._ended)} times: {log}")
        if log.count("in") != log.count("out") and self._signum is not signal.SIGINT:
            raise Wrong(f"half a section: {log}")
        if "abort" in log and "in" in log[log.index("abort") :]:
            raise Wrong(f"a section after the abort began: {log}")
        if "pending" in log:
            after = log[log.index("pending") :]
            if "LeftAtomic" not in log or after.count("in") > 1:
                raise Wrong(f"the driver waits for the section's end, in vain or too long: {log}")


def play(
    make: Make, program: Program, at: int | None = None, asker: Asker = Asker.DRIVER, signal_at: int | None = None
) -> Played:
    return _Game(make, at, asker, signal_at).play(program)


def interrupted(make: Make, program: Program, signum: signal.Signals, stride: int = 1) -> Iterator[Played]:
    """Yield every run in which one such signal arrives and nobody asks for the end."""
    for signal_at in range(1, play(make, program).bytecodes + 1, stride):
        yield _Game(make, None, Asker.DRIVER, signal_at, signum).play(program)


def explore(make: Make, program: Program, stride: int = 1) -> Iterator[Played]:
    """Yield every run. A larger `stride` sends signals at every so many bytecodes only, at other ones for each `at`."""
    yield (plain := play(make, program))
    for signal_at in range(1, plain.bytecodes + 1, stride):
        yield play(make, program, signal_at=signal_at)
    for at in range(plain.accesses):
        for asker in Asker:
            yield (run := play(make, program, at, asker))
            first = run.wanted_at or 0
            for signal_at in range(first + at % stride, run.bytecodes + 1, stride):
                yield play(make, program, at, asker, signal_at)
