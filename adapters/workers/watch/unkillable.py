"""Workers that not even SIGKILL ends: in uninterruptible sleep the kernel waits for a device or a file system.

TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT says for how long that is normal. There is no event for a process' state, so a
thread looks at it a few times within that span, and only where the variable is set. It counts looks, not seconds: this
process may have stood still between two of them, and a worker that reads from a disk is often in that state for a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ... import threads
from ...process_stat import stat
from .process_groups import named, tracer

LOOKS = 8
"""The number of looks within the span."""
_LOOK_MAX_S = 1.0
_JOIN_TIMEOUT_S = 5.0
_PROC = Path("/proc")


class StuckWatch:
    """Tells once, `tell(local_rank, pid, text)` from its own thread, about each worker that has slept for `after_s`: was
    seen to at each look. `failed` is called with an error that ends the thread."""

    def __init__(
        self,
        after_s: float,
        tell: Callable[[int, int, str], None],
        failed: Callable[[BaseException], object],
        proc: Path = _PROC,
    ) -> None:
        self.after_s, self.tell, self.proc = after_s, tell, proc
        self._ranks: Mapping[int, int] = {}
        self._looks: dict[int, int] = {}
        """The number of looks in a row at which each worker was in this sleep."""
        self._over = threading.Event()
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-stuck", daemon=True)
        threads.start(self._thread)

    def follow(self, ranks: Mapping[int, int]) -> None:
        """Watch these workers: local ranks by process id."""
        self._ranks = ranks

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._over.set()
        self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        told: set[int] = set()
        every_s = min(self.after_s / LOOKS, _LOOK_MAX_S)
        while not self._over.wait(every_s):
            ranks = dict(self._ranks)
            self._looks = {pid: looks for pid, looks in self._look(ranks).items() if pid not in told}
            for pid, looks in self._looks.items():
                if (looks - 1) * every_s >= self.after_s:
                    told.add(pid)
                    self.tell(ranks[pid], pid, stuck(pid, self.after_s, self.proc))

    def _look(self, ranks: Mapping[int, int]) -> dict[int, int]:
        return {pid: self._looks.get(pid, 0) + 1 for pid in ranks if state(pid, self.proc) == "D"}


def state(pid: int, proc: Path = _PROC) -> str | None:
    """Return the kernel's letter for the process' state; None if there is no such process."""
    try:
        return stat(proc / str(pid))[0].decode()
    except OSError:
        return None


def held_in_exit(pid: int) -> str:
    """Return that a tracer stops this process, which was killed, in its exit (PTRACE_O_TRACEEXIT); else nothing."""
    holder = tracer(pid)
    return (
        f"pid {pid} is held in its exit by {named([holder])}, which traces it" if holder and state(pid) == "t" else ""
    )


def stuck(pid: int, after_s: float, proc: Path = _PROC, what: str = "in uninterruptible sleep (state D)") -> str:
    """Return what is the matter, for the failure's report."""
    try:
        where = (proc / str(pid) / "wchan").read_text().strip("0\n")
    except OSError:
        where = ""
    place = f" in {where}" if where else ""
    return f"pid {pid} was {what}{place} for {after_s:g} s, and was given up"
