"""The register as it changes, for one that only looks: a thread that waits for each next version."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from ...core.rendezvous import RendezvousState
from ...core.rendezvous.agenda import pause_s
from ..store.port import Backend, StoreError

LONGEST_PAUSE_S = 1.0
"""Between two questions to a store that does not answer."""


class Following:
    """`seen(state)` is called, from this thread, for each version that it sees, the first included."""

    def __init__(
        self, backend: Backend, seen: Callable[[RendezvousState], None], silent: Callable[[], None] = lambda: None
    ) -> None:
        """`silent()` is called for each question that had no answer."""
        self._backend = backend.clone()
        self._seen = seen
        self._silent = silent
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="elastic-following", daemon=True)

    def start(self) -> None:
        self._thread.start()

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
                self._stopped.wait(pause_s(unanswered, LONGEST_PAUSE_S))
                continue
            unanswered = 0
            if shown.state is not None and shown.state is not state:
                state = shown.state
                self._seen(state)
