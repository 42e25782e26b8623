"""Threads in strict alternation: code that blocks, such as torch's, runs in virtual time without being changed.

A fibre runs only when it is resumed, and whoever resumed it goes on only when the fibre waits or is over. So there is one
order of events, the one of `Future`, and a run is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import ClassVar


class Gone(BaseException):
    """Raised inside a fibre whose process is no more: its frames are left, and nothing that they do has an effect."""


class Fibre:
    """`what` runs on a thread of its own, a stretch at a time. `ticket` numbers its waits: only the present one is ended."""

    current: ClassVar[Fibre | None] = None

    def __init__(self, what: Callable[[], None]) -> None:
        self._what = what
        self._go, self._back = Lock(), Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = Thread(target=self._runs, daemon=True)
        self._started = False
        self._error: BaseException | None = None
        self._thrown: BaseException | None = None
        self.ticket = 0
        self.over = self.gone = False

    def resume(self) -> None:
        """Until it waits or is over. Raises what it died of."""
        self.ticket += 1
        Fibre.current = self
        if self._started:
            self._go.release()
        else:
            self._started = True
            self._thread.start()
        self._back.acquire()
        Fibre.current = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def throw(self, error: BaseException) -> None:
        """Resume it with this error."""
        self._thrown = error
        self.resume()

    def end(self) -> None:
        """It is no more, wherever it stands."""
        self.gone = True
        if self.over:
            return
        if self._started:
            self.throw(Gone())
            self._thread.join()
        self.over = True

    def wait(self) -> None:
        """Called by itself: until it is resumed."""
        self._back.release()
        self._go.acquire()
        if self._thrown is not None:
            error, self._thrown = self._thrown, None
            raise error

    def _runs(self) -> None:
        try:
            if self._thrown is None:
                self._what()
        except Gone:
            pass
        except BaseException as error:  # noqa: BLE001  it is raised where the fibre was resumed
            self._error = error
        finally:
            self.over = True
            self._back.release()


def this() -> Fibre:
    """The fibre that calls. Raises Gone if it is no more: nothing that it does on its way out has an effect."""
    fibre = Fibre.current
    if fibre is None:
        raise RuntimeError("torch's code runs outside a fibre: it would block the real world")
    if fibre.gone:
        raise Gone
    return fibre
