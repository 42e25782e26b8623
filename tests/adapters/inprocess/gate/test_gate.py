"""The gate on real signals: what hangs is left, what is not the user's is not touched."""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import importlib.util
import logging
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

import pytest
from processes import cut_name
from spans import TIMEOUT_S, Stage, stage

from elastic.adapters.inprocess.gate.alarm import Alarm
from elastic.adapters.inprocess.gate.gate import SIGNUM, Gate
from elastic.adapters.inprocess.rank.main_thread import serve
from elastic.adapters.inprocess.shared_page import ARMED, DEPTH, NS, WANT_MONITOR, Page
from elastic.adapters.inprocess.thread_events import Drained, Finished, Injected, LeftAtomic, PutOff, Signalled, ToMain
from elastic.adapters.inprocess.user_stack import own
from elastic.adapters.inprocess.wrapper.sections import Atomic, Limited
from elastic.core.inprocess.words import How

FOR_EVER_S = 3600
MICROSECONDS = FOR_EVER_S * 1_000_000

Code: TypeAlias = Callable[[], object]


@pytest.fixture
def on() -> Iterator[Stage]:
    with stage() as made:
        yield made


def compute() -> None:
    while True:
        pass


def in_c_without_the_gil() -> None:
    ctypes.CDLL(None).usleep(MICROSECONDS)


def in_c_with_the_gil() -> None:
    ctypes.PyDLL(None).usleep(MICROSECONDS)


@contextmanager
def receiving() -> Iterator[Code]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield lambda: ours.recv(1)


@contextmanager
def reading() -> Iterator[Code]:
    ours, theirs = os.pipe()
    try:
        yield lambda: os.read(ours, 1)
    finally:
        os.close(ours)
        os.close(theirs)


def acquire() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@contextmanager
def joining() -> Iterator[Code]:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        yield other.join
    finally:
        done.set()
        other.join()


@contextmanager
def waiting_for_a_program() -> Iterator[Code]:
    with subprocess.Popen(["sleep", str(FOR_EVER_S)]) as sleeping:
        try:
            yield sleeping.wait
        finally:
            sleeping.kill()


def swallow_twice() -> None:
    for _ in range(2):
        try:
            compute()
        except Injected:
            pass
    compute()


def loop_first_in_a_try() -> None:
    """CPython 3.11 and 3.12 pass over both handlers."""
    try:
        while True:
            pass
    except Injected:
        compute()
    finally:
        time.sleep(0)


HANGS: dict[str, AbstractContextManager[Code]] = {
    "computing": nullcontext(compute),
    "sleeping": nullcontext(lambda: time.sleep(FOR_EVER_S)),
    "in C without the GIL": nullcontext(in_c_without_the_gil),
    "recv": receiving(),
    "read": reading(),
    "select": nullcontext(lambda: select.select([], [], [])),
    "Lock.acquire": nullcontext(acquire),
    "Event.wait": nullcontext(lambda: threading.Event().wait()),
    "Thread.join": joining(),
    "queue.get": nullcontext(lambda: queue.Queue[None]().get()),
    "Popen.wait": waiting_for_a_program(),
    "swallowing": nullcontext(swallow_twice),
    "in a try that begins with a loop": nullcontext(loop_first_in_a_try),
}
"""What they need is made before, and let go of after: a raise may land at once."""


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_a_function_that_hangs_is_left(on: Stage, hang: AbstractContextManager[Code]) -> None:
    with hang as code:
        assert on.ended(code).how is How.INJECTED
    assert on.page.words[ARMED] == 0


CLEAN_UPS_S = 0.2
"""A clean-up takes a hundred sendings of the signal."""


@contextmanager
def lock_file(done: list[str]) -> Iterator[None]:
    try:
        yield
    finally:
        time.sleep(CLEAN_UPS_S)
        done.append("removed")


def in_finally(done: list[str]) -> None:
    try:
        compute()
    finally:
        time.sleep(CLEAN_UPS_S)
        done.append("removed")


def in_with(done: list[str]) -> None:
    with lock_file(done):
        compute()


def in_except(done: list[str]) -> None:
    try:
        compute()
    except BaseException:
        try:
            raise KeyError
        except KeyError:
            time.sleep(CLEAN_UPS_S)  # on top of the first one
        done.append("removed")
        raise


class Loader:
    """An iterator that its loop is the last to hold, as those of torch's loaders are."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def __iter__(self) -> Loader:
        return self

    def __next__(self) -> None:
        pass

    def __del__(self) -> None:
        time.sleep(CLEAN_UPS_S)
        self._done.append("removed")


def generated(done: list[str]) -> Iterator[None]:
    with lock_file(done):
        while True:
            yield


def in_a_destructor(done: list[str]) -> None:
    for _ in Loader(done):
        compute()


def in_a_generator(done: list[str]) -> None:
    for _ in generated(done):
        compute()


CLEAN_UPS = [in_finally, in_with, in_except, in_a_destructor, in_a_generator]


@pytest.mark.parametrize("code", CLEAN_UPS)
def test_clean_up_is_not_broken_off(on: Stage, code: Callable[[list[str]], None]) -> None:
    on.clean_s = FOR_EVER_S
    done = list[str]()
    assert on.ended(lambda: code(done)).how is How.INJECTED
    assert done == ["removed"]


def test_a_group_of_tasks_is_left(on: Stage) -> None:
    """By one signal, while its task computes: a signal within asyncio leaves a loop open, and pytest reports that."""
    on.clean_s, done, computing = FOR_EVER_S, list[str](), threading.Event()

    async def task() -> None:
        computing.set()
        compute()

    async def train() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(task())

    def code() -> None:
        try:
            asyncio.run(train())
        finally:
            time.sleep(CLEAN_UPS_S)
            done.append("removed")

    assert on.ended(code, computing.is_set, once=True).how is How.INJECTED
    assert done == ["removed"]


def test_a_safe_point_in_a_clean_up_breaks_nothing_off(on: Stage) -> None:
    on.clean_s, done = FOR_EVER_S, list[str]()

    def code() -> None:
        try:
            compute()
        finally:
            on.gate.ping()
            done.append("removed")

    assert on.ended(code).how is How.INJECTED
    assert done == ["removed"]


def test_who_swallows_what_was_raised_is_not_cleaning_up(on: Stage) -> None:
    on.clean_s = FOR_EVER_S
    assert on.ended(swallow_twice).how is How.INJECTED


def test_a_clean_up_that_goes_on_for_too_long_is_broken_off(on: Stage) -> None:
    on.clean_s = CLEAN_UPS_S

    def code() -> None:
        try:
            compute()
        except Injected:
            compute()

    assert on.ended(code).how is How.INJECTED


def test_a_thread_that_pings_is_not_ended(on: Stage) -> None:
    begins, over, pings, went_on = threading.Event(), threading.Event(), [0], list[bool]()

    def ping() -> None:
        begins.wait()
        while not over.is_set():
            on.gate.ping()
            pings[0] += 1

    thread = threading.Thread(target=ping)

    def code() -> None:
        try:
            begins.set()
            compute()
        finally:
            before = pings[0]
            while thread.is_alive() and pings[0] == before:
                time.sleep(0)
            went_on.append(thread.is_alive())

    on.clean_s = FOR_EVER_S
    thread.start()
    try:
        assert on.ended(code, begins.is_set).how is How.INJECTED
    finally:
        over.set()
        begins.set()
        thread.join()
    assert went_on == [True]


SLOW_MODULE = """
import time
whole = False
time.sleep(0.3)
whole = True
"""


def by_statement() -> None:
    import slow_to_load  # type: ignore[import-not-found]  # noqa: F401


def by_function() -> None:
    importlib.import_module("slow_to_load")


def by_loader() -> None:
    found = importlib.util.find_spec("slow_to_load")
    assert found and found.loader
    sys.modules["slow_to_load"] = module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)


@pytest.mark.parametrize("load", [by_statement, by_function, by_loader])
def test_an_import_is_not_broken_off_but_what_follows_it(
    on: Stage, load: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that was left in the midst of its code is broken for the rest of the process's life."""
    (tmp_path / "slow_to_load.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_to_load", raising=False)

    def train() -> None:
        load()
        compute()

    ended = on.ended(train, begun=lambda: hasattr(sys.modules.get("slow_to_load"), "whole"))
    assert ended.how is How.INJECTED
    assert sys.modules.pop("slow_to_load").whole


class Slow(logging.Handler):
    """A handler, and the lock of it: a signal finds it locked, while it does `then`."""

    def __init__(self, then: Code) -> None:
        self._taken, self._then = threading.Lock(), then
        super().__init__()

    def createLock(self) -> None:
        self.lock: Any = types.SimpleNamespace(acquire=self._take, release=self._taken.release)

    def _take(self) -> None:
        self._taken.acquire()
        self._then()

    def write(self) -> None:
        """As `handle` does."""
        self.acquire()
        try:
            assert self.is_locked
        finally:
            self.release()

    @property
    def is_locked(self) -> bool:
        return self._taken.locked()


def test_a_handler_of_a_log_does_not_stay_locked(on: Stage) -> None:
    handler = Slow(lambda: time.sleep(CLEAN_UPS_S))

    def train() -> None:
        handler.write()
        compute()

    assert on.ended(train).how is How.INJECTED
    assert not handler.is_locked


def test_a_drain_that_finds_a_handler_of_a_log_locked_waits_until_it_is_free(on: Stage) -> None:
    handler = Slow(lambda: signal.raise_signal(signal.SIGTERM))

    def train() -> None:
        handler.write()
        on.gate.inject()
        compute()

    assert isinstance(on.run(train).error, Drained)
    assert not handler.is_locked


def test_a_drain_that_comes_in_a_destructor_waits_for_its_end(on: Stage) -> None:
    class Signals:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    def train() -> None:
        Signals()
        on.gate.inject()
        compute()

    assert isinstance(on.run(train).error, Drained)


def test_a_function_that_a_module_calls_while_it_is_imported_can_be_left(
    on: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may be the code of a module: only an import within the function is let through."""
    found: list[How] = []
    wrapper = types.SimpleNamespace(call=lambda: found.append(on.ended(compute).how))
    monkeypatch.setitem(sys.modules, "wrapper_of_it", wrapper)
    (tmp_path / "program_of_its_own.py").write_text("import wrapper_of_it\nwrapper_of_it.call()\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("program_of_its_own")
    del sys.modules["program_of_its_own"]
    assert found == [How.INJECTED]


def test_a_hang_in_c_that_keeps_the_gil_is_left_when_the_signal_comes_from_another_process(on: Stage) -> None:
    order = on.order(in_c_with_the_gil)
    on.gate.want(order.token)
    script = f"sleep 0.3; while kill -URG {os.getpid()}; do sleep 0.01; done"
    with subprocess.Popen(["sh", "-c", script]) as sender:
        on.gate.run(order)
        sender.kill()
    assert on.end().how is How.INJECTED


def test_a_function_that_ends_is_told_as_it_ended(on: Stage) -> None:
    error = ValueError("mine")

    def fail() -> None:
        raise error

    returned, failed = on.run(lambda: 42), on.run(fail)
    assert (returned.how, returned.value, returned.error) == (How.RETURNED, 42, None)
    assert (failed.how, failed.value, failed.error) == (How.FAILED, None, error)
    assert (returned.token, failed.token) == (1, 2)


def test_systemexit_is_neither_a_failure_nor_an_interrupt(on: Stage) -> None:
    assert on.run(lambda: exit(3)).how is How.EXITED


@pytest.mark.parametrize(
    ("members", "how"),
    [
        ((ValueError(), OSError()), How.FAILED),
        ((ValueError(), SystemExit(3)), How.EXITED),
        ((SystemExit(3), BaseExceptionGroup("of a child", [KeyboardInterrupt()])), How.INTERRUPTED),
    ],
)
def test_a_group_of_exceptions_is_as_grave_as_its_gravest_member(
    on: Stage, members: tuple[BaseException, ...], how: How
) -> None:
    def fail() -> None:
        raise BaseExceptionGroup("of tasks", members)

    assert on.run(fail).how is how


def test_a_signal_without_a_wish_changes_nothing(on: Stage) -> None:
    def go_on() -> str:
        on.gate.inject()
        return "whole"

    assert on.run(go_on).value == "whole"


def test_an_old_wish_hits_no_later_span(on: Stage) -> None:
    first = on.ended(compute)

    def go_on() -> str:
        on.gate.want(first.token)
        on.gate.inject()
        on.gate.check()
        return "whole"

    assert on.run(go_on).value == "whole"


def test_an_injection_that_was_kept_and_raised_later_is_a_failure(on: Stage) -> None:
    kept = on.ended(compute).error
    assert kept is not None

    def raise_again() -> None:
        raise kept

    assert on.run(raise_again).how is How.FAILED


def test_no_signal_lands_outside_user_code(on: Stage) -> None:
    ended = on.ended(compute)
    on.gate.want(ended.token)
    for _ in range(100):
        on.gate.inject()
    assert on.run(lambda: 1).value == 1


def test_an_atomic_section_is_carried_out_whole_and_then_left(on: Stage) -> None:
    steps: list[str] = []

    def save() -> None:
        with Atomic(on.gate), Atomic(on.gate):
            steps.append("begun")
            assert on.gate.want(on.page.words[ARMED]) == 2
            on.gate.inject()
            steps.append("finished")
        steps.append("never")

    on.gate.run(on.order(save))
    assert isinstance(on.events.get(), LeftAtomic)
    assert on.end().how is How.INJECTED
    assert steps == ["begun", "finished"]


def test_a_wish_of_the_monitor_s_waits_for_the_end_of_an_atomic_section_too(on: Stage) -> None:
    steps: list[str] = []

    def save() -> None:
        with Atomic(on.gate):
            on.page.words[WANT_MONITOR] = on.page.words[ARMED]
            on.gate.inject()
            steps.append("finished")
        steps.append("never")

    assert on.run(save).how is How.INJECTED
    assert steps == ["finished"]


def test_a_page_that_is_closed_hurts_no_signal_that_comes_later(on: Stage) -> None:
    on.page.close()
    on.gate.inject()
    signal.raise_signal(signal.SIGINT)
    assert on.events.get(timeout=TIMEOUT_S) == Signalled(signal.SIGINT)
    on.page = Page.new()


def test_an_atomic_section_is_not_begun_once_the_span_must_end(on: Stage) -> None:
    steps: list[str] = []

    def save() -> None:
        on.gate.want(on.page.words[ARMED])
        with Atomic(on.gate):
            steps.append("never")

    assert on.run(save).how is How.INJECTED
    assert (steps, on.page.words[DEPTH]) == ([], 0)


def test_an_exit_in_an_atomic_section_stays_an_exit(on: Stage) -> None:
    def save() -> None:
        with Atomic(on.gate):
            on.gate.want(on.page.words[ARMED])
            raise SystemExit(3)

    ended = on.run(save)
    assert (ended.how, str(ended.error)) == (How.EXITED, "3")


@pytest.mark.parametrize(
    ("section", "what"),
    [
        (Atomic, "an atomic section"),
        (lambda gate: Limited(gate, 50, 90, lambda: None), "a section with limits of its own"),
    ],
    ids=["atomic", "limited"],
)
def test_a_section_of_another_thread_is_refused(
    on: Stage, section: Callable[[Gate], AbstractContextManager[None]], what: str
) -> None:
    refused: list[str] = []

    def enter() -> None:
        try:
            section(on.gate).__enter__()
        except RuntimeError as error:
            refused.append(str(error))

    def spawn() -> tuple[int, int]:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return on.gate.limits()

    assert on.run(spawn).value == (0, 0)
    assert refused == [f"{what} belongs to the thread that called the wrapped function"]


@pytest.mark.parametrize("point", ["check", "ping", "section"])
def test_a_span_that_must_end_ends_at_a_safe_point(on: Stage, point: str) -> None:
    points: dict[str, Callable[[], object]] = {
        "check": on.gate.check,
        "ping": on.gate.ping,
        "section": Limited(on.gate, 0, 0, lambda: None).__enter__,
    }

    def train() -> str:
        on.gate.want(on.page.words[ARMED])
        points[point]()
        return "never"

    assert on.run(train).how is How.INJECTED


def test_a_section_has_limits_of_its_own_and_gives_back_the_old_ones(on: Stage) -> None:
    seen: list[tuple[int, int]] = []

    def train() -> None:
        on.gate.limit(5, 9)
        with Limited(on.gate, 50, 90, lambda: None):
            seen.append(on.gate.limits())
            with Limited(on.gate, 0, 0, lambda: None):
                seen.append(on.gate.limits())
        seen.append(on.gate.limits())

    on.run(train)
    assert seen == [(50, 90), (0, 0), (5, 9)]


class Interrupted:
    """A lock. Its `at`-th holder handles a signal as soon as it has the lock."""

    def __init__(self, lock: threading.Lock, at: int, handler: Callable[[], None]) -> None:
        self._lock = lock
        self._left = at
        self._handler = handler

    def __enter__(self) -> None:
        assert self._lock.acquire(blocking=False), "the handler waits for the code that it interrupts"
        self._left -= 1
        if not self._left:
            self._handler()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("kind", ["atomic", "limited"])
def test_a_signal_s_handler_may_enter_a_section_while_its_thread_enters_or_leaves_one(
    on: Stage, kind: str, at: int
) -> None:
    entered: list[tuple[int, int, int]] = []
    alarm = Alarm()
    gate = Gate(on.page, on.events.put, alarm)

    def section() -> AbstractContextManager[None]:
        return Atomic(gate) if kind == "atomic" else Limited(gate, 50 * NS, 90 * NS, lambda: None)

    def handler() -> None:
        with section():
            entered.append((on.page.words[DEPTH], *gate.limits()))

    def train() -> tuple[int, int, int]:
        locked: Any = gate if kind == "atomic" else alarm
        locked._lock = Interrupted(locked._lock, at, handler)
        with section():
            pass
        return (on.page.words[DEPTH], *gate.limits())

    gate.run(on.order(train))
    alarm.close()
    assert on.end().value == (0, 0, 0)
    ((depth, *limits),) = entered
    assert limits == [50 * NS, 90 * NS] if kind == "limited" else depth


# --- SIGINT and SIGTERM


def test_an_interrupt_in_user_code_is_python_s_own(on: Stage) -> None:
    def train() -> None:
        signal.raise_signal(signal.SIGINT)
        compute()

    ended = on.run(train)
    assert (ended.how, type(ended.error)) == (How.INTERRUPTED, KeyboardInterrupt)


def test_a_drain_waits_for_the_end_of_an_atomic_section(on: Stage) -> None:
    steps: list[str] = []

    def save() -> None:
        with Atomic(on.gate):
            signal.raise_signal(signal.SIGTERM)
            steps.append("finished")
        compute()

    ended = on.run(save)
    assert (ended.how, type(ended.error), steps) == (How.EXITED, Drained, ["finished"])


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_wrapper_is_told_and_raises_nothing(on: Stage, signum: signal.Signals) -> None:
    signal.raise_signal(signum)
    assert on.events.get(timeout=TIMEOUT_S) == Signalled(signum)


@own
def in_the_wrapper(on: Stage) -> bool:
    signal.raise_signal(signal.SIGTERM)
    on.gate.inject()
    return on.gate.puts_off()


@pytest.mark.parametrize("section", [nullcontext, Atomic], ids=["at once", "after an atomic section"])
def test_a_signal_in_the_wrapper_s_code_below_the_program_s_is_put_off_until_the_program_s_goes_on(
    on: Stage, section: Callable[[object], AbstractContextManager[None]]
) -> None:
    puts_off: list[bool] = []

    def train() -> None:
        with section(on.gate):
            puts_off.append(in_the_wrapper(on))
            on.gate.inject()
        compute()

    on.gate.run(on.order(train))
    assert on.events.get(timeout=TIMEOUT_S) == PutOff()
    assert isinstance(on.end().error, Drained)
    assert puts_off == [section is nullcontext] and not on.gate.puts_off()


def test_the_program_s_own_handlers_are_called_in_its_code_and_come_back() -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda signum, frame: called.append(signum))
    try:
        with stage() as on:
            on.run(lambda: signal.raise_signal(signal.SIGTERM))
            assert called == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert called == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.getsignal(SIGNUM) == signal.SIG_DFL


# --- what cannot be interrupted says so


def test_nothing_stands_in_the_way(on: Stage) -> None:
    assert on.gate.impediment() is None


def test_a_handler_of_the_program_s_own_is_named(on: Stage) -> None:
    signal.signal(SIGNUM, lambda signum, frame: None)
    assert on.gate.impediment() == "the program has put a handler of its own on SIGURG"


def test_a_blocked_signal_is_named(on: Stage) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [SIGNUM])
    try:
        assert on.gate.impediment() == "the program has blocked SIGURG in its main thread"
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [SIGNUM])


def test_a_process_whose_name_is_cut_in_a_character_is_looked_at_like_any(on: Stage) -> None:
    with cut_name():
        test_a_blocked_signal_is_named(on)


def test_a_function_that_was_not_called_from_the_main_thread_ends_at_its_safe_points() -> None:
    found: list[object] = []

    def elsewhere() -> None:
        with stage() as on:
            found.append(on.gate.impediment())

            def train() -> None:
                on.gate.want(on.page.words[ARMED])
                on.gate.ping()

            found.append(on.run(train).how)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    reason = "the function was not called from the main thread, where alone Python handles signals"
    assert found == [reason, How.INJECTED]


# --- a child that the program forks


def test_a_forked_child_writes_no_word_of_its_parent_s_page_and_has_python_s_handlers(on: Stage) -> None:
    def fork() -> int:
        stamp = on.page.words[5]
        pid = os.fork()
        if not pid:
            on.gate.ping()
            on.gate.enter()
            usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            os._exit(0 if usual and signal.getsignal(SIGNUM) == signal.SIG_DFL else 1)
        _, status = os.waitpid(pid, 0)
        assert on.page.words[5] == stamp
        assert on.page.words[DEPTH] == 0
        return os.waitstatus_to_exitcode(status)

    assert on.run(fork).value == 0


def exits() -> int:
    raise SystemExit(3)


@pytest.mark.parametrize("code", [exits, lambda: 3], ids=["exits", "returns"])
def test_a_forked_child_ends_the_call_for_itself_alone(on: Stage, code: Callable[[], int]) -> None:
    parent, orders, came = os.getpid(), SimpleQueue[ToMain](), object()

    def fork() -> object:
        if not (pid := os.fork()):
            return code()
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), on.page.words[ARMED]

    orders.put(order := on.order(fork))
    orders.put(Finished(None, None))
    try:
        came = serve(on.gate, orders).value
    except SystemExit as error:
        came = error.code
    finally:
        if os.getpid() != parent:
            os._exit(3 if came == 3 else 9)
    assert on.end().value == (3, order.token)


def test_a_page_is_seen_by_whoever_maps_its_descriptor() -> None:
    page = Page.new()
    other = Page(os.dup(page.descriptor), os.dup(page.bell))
    page.words[ARMED] = 2**64 - 1
    assert other.words[ARMED] == 2**64 - 1
    other.close()
    page.close()
