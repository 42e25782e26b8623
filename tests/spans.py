"""One wrapped process for a test: this process's main thread runs user code, a thread is the driver, and every event of the
gate is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue

from elastic.adapters.inprocess.gate.gate import Gate
from elastic.adapters.inprocess.gate.signal_handlers import installed
from elastic.adapters.inprocess.shared_page import NS, Page
from elastic.adapters.inprocess.thread_events import FromGate, Order, SpanEnd
from elastic.core.inprocess.words import Span

PAUSE_S = 0.002
"""Between two sendings of the signal."""
TIMEOUT_S = 90.0


class Stage:
    """A gate and its page."""

    def __init__(self) -> None:
        self.page = Page.new()
        self.events: SimpleQueue[FromGate] = SimpleQueue()
        self.gate = Gate(self.page, self.events.put)
        self._tokens = count(1)
        self.clean_s = 0.0
        """How long the code has to handle what was raised in it."""

    def order(self, code: Callable[[], object], round: int = 0) -> Order:
        return Order(next(self._tokens), round, Span.FUNCTION, code, clean=int(self.clean_s * NS))

    def run(self, code: Callable[[], object]) -> SpanEnd:
        """Run it to its end, whatever that is; other events before its end are passed over."""
        self.gate.run(self.order(code))
        return self.end()

    def end(self) -> SpanEnd:
        while not isinstance(event := self.events.get(timeout=TIMEOUT_S), SpanEnd):
            pass
        return event

    def ended(
        self, code: Callable[[], object], begun: Callable[[], bool] = lambda: True, *, once: bool = False
    ) -> SpanEnd:
        """Run it, and have the driver end it once `begun`; the driver sends the signal `once`, or until it is over."""
        order, over = self.order(code), threading.Event()

        def decide() -> None:
            while not (self.page.words[0] == order.token and begun()):
                if over.wait(PAUSE_S):
                    return
            self.gate.want(order.token)
            while not over.wait(PAUSE_S):
                self.gate.inject()
                if once:
                    over.wait(TIMEOUT_S)

        driver = threading.Thread(target=decide)
        driver.start()
        try:
            self.gate.run(order)
        finally:
            over.set()
            driver.join()
        return self.end()


@contextmanager
def stage() -> Iterator[Stage]:
    made = Stage()
    with installed(made.gate, made.page):
        yield made
    made.page.close()
