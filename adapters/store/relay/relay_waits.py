"""The waits of a register's clients, and the thread that answers them.

The thread waits for the register's next change. Then it reads the register once and answers all who wait, so that no answer
is older than its question. If each client had a thread that does so, a change would wake them all, on the cores that the
ranks need for their restart.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection

from ....core.backoff import pause_s
from ....core.rendezvous import FIRST_PAUSE_S, RendezvousState, Token, codec
from ....core.values import define
from ... import threads
from ..port import COPY_PAUSE_S, LONGEST_PAUSE_S, Backend, OutOfReach, Shown, StoreError
from . import relay_protocol as protocol


def failed(error: StoreError) -> protocol.Failed:
    """Return the answer of a store that failed."""
    return protocol.Failed(type(error).__name__, str(error))


class Encoded:
    """The last encoding of a register, because many ask for the same."""

    def __init__(self, saw: Callable[[RendezvousState], None]) -> None:
        """`saw` is called for each register that is encoded, by any thread."""
        self._saw = saw
        self._last: tuple[RendezvousState, bytes] | None = None

    def stands(self, shown: Shown) -> protocol.Stands:
        """Return the answer that shows this register."""
        if shown.state is None:
            return protocol.Stands(None, shown.here)
        last = self._last
        if last is None or last[0] is not shown.state:
            self._saw(shown.state)
            last = self._last = shown.state, codec.encode(shown.state)
        return protocol.Stands(last[1], shown.here)


@define(eq=False)
class Wait:
    """A client that waits until `token` no longer names the register."""

    token: Token | None
    due_at: float
    """It is answered then, whatever stands."""
    rest_s: float
    """It is answered this long after a change."""
    tell: Callable[[bytes], None]
    """This answers the client, from any thread, and hardly waits for it."""
    rests_until: float = math.inf
    """Written by the thread that hears of changes alone."""


class Waits:
    """Those who wait for the next change of one register."""

    def __init__(self, backend: Backend, encoded: Encoded) -> None:
        self._backend = backend
        self._encoded = encoded
        self._lock = threading.Lock()
        self._waits: set[Wait] = set()
        self._watching: Backend | None = None
        self._watched: tuple[Token | None] | None = None
        """The thread waits until this is no longer the register's name; None: the register may have another name by now."""
        self._closed = threading.Event()

    def __contains__(self, wait: object) -> bool:
        """Return True if this wait is not answered yet."""
        return wait in self._waits

    def add(self, wait: Wait, get: Callable[[], Shown]) -> None:
        """Begin this wait. It is answered at once, by what `get` returns, if the register has another name by now. Who has
        added it answers it when it is due. Raises OutOfReach if there is no thread for it."""
        self._watch()
        with self._lock:
            self._waits.add(wait)
            is_watched = self._watched == (wait.token,)
        if not is_watched:
            self.look([wait], get)

    def drop(self, wait: Wait) -> bool:
        """End this wait. Returns False if it has ended."""
        with self._lock:
            is_here = wait in self._waits
            self._waits.discard(wait)
            return is_here

    def look(self, waits: Collection[Wait], get: Callable[[], Shown]) -> None:
        """Read the register by `get`, and answer those of these waits that it ends, or that are due."""
        shown, answer = Shown(None), None
        try:
            shown = get()
        except StoreError as error:
            answer = failed(error)
        token, now = shown.state.token if shown.state else None, time.monotonic()
        data: bytes | None = None
        for wait in waits:
            if answer is None and now < wait.due_at:
                if not shown.here:
                    wait.due_at = min(wait.due_at, now + COPY_PAUSE_S)
                    continue
                if token == wait.token:
                    continue
            if self.drop(wait):
                data = data or protocol.framed(answer or self._encoded.stands(shown))
                wait.tell(data)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        with self._lock:
            watching = self._watching
        if watching:
            watching.close()

    # --- the thread

    def _watch(self) -> None:
        with self._lock:
            if self._watching or self._closed.is_set():
                return
            watching = self._backend.clone()
            run = threads.guarded(lambda: self._follow(watching), self._broke)
            try:
                threads.start(threading.Thread(target=run, name="elastic-relay-watch", daemon=True))
            except threads.NoThread as error:
                watching.close()
                raise OutOfReach(f"the agent's relay cannot wait now ({error.strerror})") from error
            self._watching = watching

    def _broke(self, error: BaseException) -> None:
        """Answer all who wait: an error that nobody foresaw has ended the thread. The next wait starts another one."""
        with self._lock:
            self._watching = self._watched = None
            waits = list(self._waits)
        data = protocol.framed(failed(OutOfReach(f"an error in the agent's relay: {error!r}")))
        for wait in waits:
            if self.drop(wait):
                wait.tell(data)
        threads.shown(error)

    def _follow(self, watching: Backend) -> None:
        """Answer those who wait at each change, and at each failure: they hear of it. Rests end here too."""
        token: Token | None = None
        unanswered, rests_until = 0, math.inf
        while not self._closed.is_set():
            is_news = True
            try:
                shown = watching.wait_for_change(token, rests_until) if token else watching.get()
                if not (token or shown.state):
                    shown = watching.wait_for_change(None, rests_until)
            except StoreError:
                watched, unanswered = None, unanswered + 1
            else:
                before, token, unanswered = token, shown.state.token if shown.state else None, 0
                watched = (token,) if shown.here else None
                is_news = token != before or not shown.here
            rests_until = self._hear(watching, watched, is_news)
            if unanswered:
                self._closed.wait(pause_s(unanswered, FIRST_PAUSE_S, LONGEST_PAUSE_S))
            elif watched is None:
                self._closed.wait(COPY_PAUSE_S)
        watching.close()

    def _hear(self, watching: Backend, watched: tuple[Token | None] | None, is_news: bool) -> float:
        """Answer those who need not rest, or have rested. Returns when the next rest ends."""
        now = time.monotonic()
        with self._lock:
            self._watched = watched
            if is_news:
                for wait in self._waits:
                    wait.rests_until = min(wait.rests_until, now + wait.rest_s)
            ready = [wait for wait in self._waits if wait.rests_until <= now]
        for wait in ready:
            wait.rests_until = math.inf
        if ready:
            self.look(ready, watching.get)
        return min((wait.rests_until for wait in list(self._waits)), default=math.inf)
