"""What the main thread does between two spans of user code."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest
from attrs import evolve
from spans import TIMEOUT_S, Stage, stage

from elastic.adapters.inprocess.rank.main_thread import serve
from elastic.adapters.inprocess.thread_events import Finished, Order, Release, Signalled, SpanEnd, ToMain
from elastic.core.inprocess.words import How, Span

SIGNUM = signal.SIGUSR1


class Orders(SimpleQueue[ToMain]):
    """Orders. A signal comes before the first one, while the main thread waits."""

    is_quiet = False

    def get(self, block: bool = True, timeout: float | None = None) -> ToMain:
        if not self.is_quiet:
            self.is_quiet = True
            signal.raise_signal(SIGNUM)
        return super().get(block, timeout)


@pytest.fixture
def on() -> Iterator[Stage]:
    with stage() as made:
        yield made


@pytest.fixture
def raising() -> Iterator[Callable[[BaseException], None]]:
    """Install a handler that raises this."""
    before = signal.getsignal(SIGNUM)

    def install(error: BaseException) -> None:
        def handler(*_: object) -> None:
            raise error

        signal.signal(SIGNUM, handler)

    yield install
    signal.signal(SIGNUM, before)


def served(on: Stage, *orders: ToMain) -> Finished:
    queue = Orders()
    for order in orders:
        queue.put(order)
    return serve(on.gate, queue)


def spans(on: Stage, *kinds: Span) -> list[Order]:
    return [evolve(on.order(lambda: "whole"), span=kind) for kind in kinds]


def test_what_a_handler_raises_between_two_spans_is_raised_in_the_next_function(
    on: Stage, raising: Callable[[BaseException], None]
) -> None:
    raising(error := TimeoutError("too slow"))
    last = Finished(7, None)
    assert served(on, *spans(on, Span.FINALIZE, Span.CHECK, Span.INITIALIZE, Span.FUNCTION), last) is last
    ends = [on.end() for _ in range(4)]
    assert [each.how for each in ends] == [How.RETURNED, How.RETURNED, How.FAILED, How.RETURNED]
    assert ends[2].error is error


@pytest.mark.parametrize("raised", [SystemExit(3), TimeoutError()], ids=repr)
@pytest.mark.parametrize("at_last", [None, SystemExit(79)], ids=repr)
def test_if_no_function_follows_the_call_raises_it_unless_the_call_fails_by_itself(
    on: Stage, raising: Callable[[BaseException], None], raised: BaseException, at_last: BaseException | None
) -> None:
    raising(raised)
    error = served(on, Finished(7, at_last)).error
    assert error is (at_last if at_last and isinstance(raised, Exception) else raised)


@pytest.mark.parametrize(
    ("raised", "told"), [(SystemExit(3), signal.SIGTERM), (KeyboardInterrupt(), signal.SIGINT)], ids=repr
)
def test_a_rank_whose_handler_exits_leaves_at_once(
    on: Stage, raising: Callable[[BaseException], None], raised: BaseException, told: signal.Signals
) -> None:
    raising(raised)
    served(on, *spans(on, Span.TERMINATE), Finished(None, None))
    first = on.events.get(timeout=TIMEOUT_S)
    assert first == Signalled(told)
    assert isinstance(on.events.get(timeout=TIMEOUT_S), SpanEnd)


@pytest.fixture
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
@pytest.mark.parametrize("by_program", [False, True])
def test_what_the_program_has_frozen_out_of_the_collector_stays_frozen(on: Stage, by_program: bool) -> None:
    frozen: list[bool] = []

    def train() -> None:
        frozen.append(bool(gc.get_freeze_count()))

    if by_program:
        gc.freeze()
    orders = SimpleQueue[ToMain]()
    for order in (Release(()), on.order(train), Finished(None, None)):
        orders.put(order)
    serve(on.gate, orders)
    assert (frozen, bool(gc.get_freeze_count())) == ([True], by_program)


class Model:
    """What a frame of the function holds."""


def fails(held: list[weakref.ref[Model]], error: Exception) -> Exception:
    """Return the error, raised from a frame with a model."""
    try:
        model = Model()
        held.append(weakref.ref(model))
        raise error
    except (OSError, KeyError, ExceptionGroup) as raised:
        return raised


def test_an_error_s_relations_let_go_of_their_frames_as_it_does(on: Stage) -> None:
    held: list[weakref.ref[Model]] = []
    cause, member = fails(held, OSError()), fails(held, KeyError())
    error = fails(held, ExceptionGroup("of tasks", [member]))
    error.__cause__, error.__context__ = cause, fails(held, TimeoutError())
    assert all(each() for each in held)
    orders = SimpleQueue[ToMain]()
    for order in (Release((error,)), Finished(None, None)):
        orders.put(order)
    serve(on.gate, orders)
    assert [each() for each in held] == [None] * 4


class Elsewhere(SimpleQueue[ToMain]):
    """Orders that come once a signal is heard, which another thread is given while the main thread waits."""

    def __init__(self) -> None:
        self._begins = threading.Event()
        self._thread = threading.Thread(target=self._signalled)
        self._thread.start()

    def _signalled(self) -> None:
        self._begins.wait()
        signal.pthread_kill(threading.get_ident(), SIGNUM)

    def get(self, block: bool = True, timeout: float | None = None) -> ToMain:
        self._begins.set()  # the other thread goes on once this one lets it, which waits then
        return super().get(block, timeout)


def test_a_handler_is_called_while_the_main_thread_waits_whichever_thread_is_given_the_signal(on: Stage) -> None:
    queue = Elsewhere()
    rescue = threading.Timer(TIMEOUT_S, queue.put, [Finished("not heard", None)])
    rescue.start()
    before = signal.signal(SIGNUM, lambda *_: queue.put(Finished("heard", None)))
    try:
        finished = serve(on.gate, queue)
    finally:
        rescue.cancel()
        signal.signal(SIGNUM, before)
    assert finished.value == "heard"
