"""Asks the kernel's out-of-memory killer to spare the agent, its reaper and the store's helper.

An agent that is killed with its workers can report nothing. Where a cgroup is killed as one (`memory.oom.group`, as
Kubernetes sets it), only a process with the score -1000 is spared. Lowering a score takes CAP_SYS_RESOURCE; without it a
process may go back to the least value that a privileged one has given it, which is 0 for most.

What the agent starts inherits its score. So the agent lifts the protection while it starts a worker, a standby or a check:
the new process has the value of before. The score belongs to the whole process, so a thread that starts a reaper waits
meanwhile (`kept`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import cgroups

SPARED, ORDINARY = -1000, 0
_SCORE = Path("/proc/self/oom_score_adj")


class Protection:
    """The score of this process; `score` is its file. Any thread may lift it."""

    def __init__(self, score: Path = _SCORE) -> None:
        self._score = score
        self._lock = threading.RLock()
        self._before = self._now = self._read()
        """The score at the start, and the score that this process has now; None if it has none."""

    def begin(self) -> None:
        """Ask for the least score that may be had."""
        with self._lock:
            for wanted in (SPARED, ORDINARY):
                if self._before is not None and self._now == self._before and wanted < self._before:
                    self._set(wanted)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Give what is started meanwhile the score of before."""
        with self._lock:
            outside = self._now
            self._set(self._before)
            try:
                yield
            finally:
                self._set(outside)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Give what is started meanwhile the score of this process: no other thread lifts it."""
        with self._lock:
            yield

    def end(self) -> None:
        """Take the score of before. Idempotent."""
        with self._lock:
            self._set(self._before)

    def warning(self, proc: Path = Path("/proc")) -> str:
        """Return what to say where the agent is killed together with its workers; empty where it is not."""
        if self._now == SPARED or not (folder := cgroups.killed_as_one(proc)):
            return ""
        text = (
            "when its memory is used up, the kernel kills this agent together with its workers, and nobody can say why"
        )
        return f"{folder / 'memory.oom.group'} is 1: {text}"

    def _read(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._score.read_text())
        return None

    def _set(self, score: int | None) -> None:
        if score != self._now:
            with suppress(OSError):
                self._score.write_text(f"{score}\n")
                self._now = score
