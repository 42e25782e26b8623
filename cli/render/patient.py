"""Standard error that never blocks: the agent's main thread writes here, and must not wait for a reader.

Text that a terminal or a pipe does not take at once is kept, up to KEPT_MAX bytes. A thread writes it out, and lives as long
as there is any. Text beyond that is dropped: nobody reads it. It begins a new line where a worker's prompt is the last one.
"""

from __future__ import annotations

import os
import threading
from typing import TextIO

from ...adapters import threads
from ...adapters.workers.output.console import UNFINISHED, Console, identity

KEPT_MAX = 1 << 18
"""In bytes."""
LOOK_S = 1.0


class PatientText:
    """A text stream to a descriptor. Any thread may write."""

    def __init__(self, out: TextIO) -> None:
        self._descriptor = out.fileno()
        self._encoding = out.encoding
        self._console = Console(self._descriptor)
        self._place = identity(self._descriptor)
        self._changed = threading.Condition()
        self._carried = False

    def write(self, text: str) -> int:
        with self._changed:
            if self._console.pending < KEPT_MAX:
                begins = "\n" if text and UNFINISHED.pop(self._place, None) else ""
                self._console.put(f"{begins}{text}".encode(self._encoding, "backslashreplace"))
            if self._console.pending and not self._carried:
                self._carry_on()
        return len(text)

    def flush(self) -> None:
        """Do nothing: no text is held back."""

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def close(self, timeout_s: float) -> None:
        """Wait this long for the reader. The stream cannot be used afterwards."""
        with self._changed:
            if self._changed.wait_for(lambda: not self._carried, timeout_s):
                self._console.close()

    def _carry_on(self) -> None:
        """Start the thread that carries the rest. A host that has none for now gets another try with the next text."""
        self._carried = True
        try:
            threads.start(threading.Thread(target=self._carry, name="elastic-stderr", daemon=True), 0.0)
        except threads.NoThread:
            self._carried = False

    def _carry(self) -> None:
        while self._carried:
            self._console.wait(LOOK_S)
            with self._changed:
                self._console.flush()
                self._carried = self._console.pending > 0
                self._changed.notify_all()
