"""A follower of the register: a thread that waits for the next version, and writes nothing.

It hears of a version after a rest, or rests after each. A restart makes a version for its end and more for its arrivals,
within milliseconds, and the ranks need the cores meanwhile.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from ....core.backoff import pause_s
from ....core.rendezvous import FIRST_PAUSE_S, RendezvousState
from ... import threads
from ...store.port import Backend, StoreError

LONGEST_PAUSE_S = 1.0
"""The longest pause between two questions to a store that does not answer."""
REST_S = 0.02
"""A relay tells of a change this long after it; where none does, this is the pause from one version to the next question.
A monitor leaves its driver as long to act (`Rules.patience_s`)."""


class RegisterFollower:
    """Follows one register until it is stopped."""

    def __init__(
        self,
        backend: Backend,
        seen: Callable[[RendezvousState], None],
        silent: Callable[[], None],
        failed: Callable[[BaseException], object],
        rest_s: float = REST_S,
    ) -> None:
        """`seen(state)` is called on the follower's thread for the version that is there, and for the newest one after each
        rest; `failed` for an error that ends it."""
        self._backend = backend.clone()
        self._seen = seen
        self._silent = silent
        self._rest_s = rest_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=threads.guarded(self._run, failed), name="elastic-following", daemon=True
        )

    def start(self) -> None:
        """Begin to follow. Raises NoThread."""
        threads.start(self._thread)

    def stop(self) -> None:
        self._stopped.set()
        self._backend.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        state: RendezvousState | None = None
        unanswered = 0
        while not self._stopped.is_set():
            try:
                shown = self._backend.wait_for_change(state.token if state else None, math.inf)
            except StoreError:
                unanswered += 1
                self._silent()
                self._stopped.wait(pause_s(unanswered, FIRST_PAUSE_S, LONGEST_PAUSE_S))
                continue
            unanswered = 0
            before, state = state, shown.state
            if state is not None and state is not before:
                self._seen(state)
                self._stopped.wait(self._rest_s)
