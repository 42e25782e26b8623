"""The gate through every interleaving of its threads and every place of the signal; and gates that lack one thing, each of
which this must find."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from itertools import chain
from types import FrameType

import pytest
from attrs import evolve
from interleavings import Program, Wrong, explore, interrupted

from elastic.adapters.inprocess.gate.gate import Gate, Post
from elastic.adapters.inprocess.shared_page import DEPTH, WANT, WANT_MONITOR, Page
from elastic.adapters.inprocess.thread_events import Injected, Order, SpanEnd
from elastic.adapters.inprocess.user_stack import own
from elastic.adapters.inprocess.wrapper.sections import Atomic
from elastic.core.inprocess.words import How

STRIDE = int(os.environ.get("ELASTIC_GATE_STRIDE", "29"))
"""1: a signal at every bytecode."""


def program_returns(gate: Gate, log: list[str]) -> int:
    log.append("step")
    return 1


def program_fails(gate: Gate, log: list[str]) -> None:
    raise ValueError("mine")


def program_saves(gate: Gate, log: list[str]) -> None:
    with Atomic(gate):
        log.append("in")
        log.append("out")


def program_saves_twice(gate: Gate, log: list[str]) -> None:
    for _ in range(2):
        with Atomic(gate):
            log.append("in")
            log.append("out")


def program_nests(gate: Gate, log: list[str]) -> None:
    with Atomic(gate):
        log.append("in")
        with Atomic(gate):
            log.append("nested")
        log.append("out")


def program_swallows_and_saves(gate: Gate, log: list[str]) -> None:
    try:
        gate.ping()
    except Injected:
        log.append("swallowed")
    with Atomic(gate):
        log.append("in")
        log.append("out")


PROGRAMS: tuple[Program, ...] = (
    program_returns,
    program_fails,
    program_saves,
    program_saves_twice,
    program_nests,
    program_swallows_and_saves,
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_interleaving_makes_the_gate_wrong(program: Program) -> None:
    seen: Counter[str] = Counter()
    for played in explore(Gate, program, STRIDE):
        seen.update(set(played.log))
    assert seen["raised"] and seen["abort"], "nothing happened"
    assert bool(seen["pending"]) == bool(seen["in"]), "no section was ever waited for"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_no_interrupt_is_lost_or_breaks_the_wrapper(program: Program, signum: signal.Signals) -> None:
    raised = {signal.SIGINT: How.INTERRUPTED, signal.SIGTERM: How.EXITED}[signum]
    seen: Counter[bool] = Counter()
    for played in interrupted(Python, program, signum):
        told = "Signalled" in played.log
        assert told != (played.how is raised), played
        seen[told] += 1
    assert seen[True] and seen[False]


class Python(Gate):
    """In a process in which Python handles SIGINT, and nobody SIGTERM."""

    def __init__(self, page: Page, post: Post) -> None:
        super().__init__(page, post)
        self.theirs = {signal.SIGINT: signal.default_int_handler}


class NoDepth(Gate):
    @own
    def injected(self, signum: int, frame: FrameType | None) -> None:
        words = self._page.words
        words[DEPTH], depth = 0, words[DEPTH]
        try:
            super().injected(signum, frame)
        finally:
            words[DEPTH] = depth


class NoFrame(Gate):
    @own
    def injected(self, signum: int, frame: FrameType | None) -> None:
        super().injected(signum, None)


class AnyToken(Gate):
    """Armed or not, and whichever span is meant."""

    @own
    def _wanted(self, words: memoryview[int]) -> bool:
        return bool(words[WANT] or words[WANT_MONITOR])


class NoLook(Gate):
    """Enters an atomic section without a look at the request."""

    @own
    def enter(self) -> None:
        with self._lock:
            self._page.words[DEPTH] += 1


class LookFirst(Gate):
    """Looks at the request, and then says that it is in."""

    @own
    def enter(self) -> None:
        self.check()
        with self._lock:
            self._page.words[DEPTH] += 1


class Blind(Gate):
    """The driver does not ask if the main thread is in an atomic section."""

    def want(self, token: int) -> int:
        super().want(token)
        return 0


class Mute(Gate):
    """The main thread does not say that it has left."""

    @own
    def leave(self, may_raise: bool = True) -> None:
        self._page.words[DEPTH] -= 1


class TellsFirst(Gate):
    """Tells the end, and then disarms."""

    @own
    def _armed(self, order: Order) -> SpanEnd:
        def told() -> None:
            self._post(SpanEnd(order.token, How.RETURNED, order.code(), None))

        return super()._armed(evolve(order, code=told))


BROKEN: tuple[tuple[type[Gate], Program], ...] = (
    (NoDepth, program_saves),
    (NoFrame, program_saves),
    (NoFrame, program_returns),
    (AnyToken, program_saves),
    (NoLook, program_saves),
    (LookFirst, program_saves),
    (Blind, program_saves),
    (Mute, program_saves),
    (TellsFirst, program_returns),
)


@pytest.mark.parametrize(("broken", "program"), BROKEN, ids=lambda it: getattr(it, "__name__", ""))
def test_a_gate_that_lacks_one_thing_is_found(broken: type[Gate], program: Callable[[Gate, list[str]], object]) -> None:
    """Few runs find most of them."""
    with pytest.raises(Wrong):
        for _ in chain(explore(broken, program, STRIDE), explore(broken, program)):
            pass
