"""Threads that run one at a time, so that code that blocks, such as torch's, runs unchanged in virtual time.

A fibre runs only when it is resumed, and its resumer goes on only when the fibre waits or is over. So `Future` alone orders
the events, and a run is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import ClassVar


class Gone(BaseException):
    """Raised inside a fibre whose process is dead. It unwinds the frames, and nothing that they do has an effect."""


class Fibre:
    """A thread that runs `what` until its next wait, each time it is resumed. `ticket` is the number of the present wait."""

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
        """Run it until it waits or is over. Raises the error that ended it."""
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
        """End it at any point of its run, as the death of its process does."""
        self.gone = True
        if self.over:
            return
        if self._started:
            self.throw(Gone())
            self._thread.join()
        self.over = True

    def wait(self) -> None:
        """Wait until it is resumed. Only the fibre itself calls this."""
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
    """Return the calling fibre. Raises Gone if it was ended: nothing that it does while it unwinds has an effect."""
    fibre = Fibre.current
    if fibre is None:
        raise RuntimeError("torch's code runs outside a fibre: it would block the real world")
    if fibre.gone:
        raise Gone
    return fibre
