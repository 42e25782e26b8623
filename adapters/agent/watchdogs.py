"""The watchdogs that run only when a variable asks for them: file timers, workers stuck in the kernel, the health port.

Each has its own thread, which starts with the agent, and a module that is imported only then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.values import frozen
from ..clean_up import run_all
from ..launch_settings import WatchdogSettings
from ..workers.start_up import StackHandler

if TYPE_CHECKING:
    from ..workers.messages.file_timers import FileTimers
    from ..workers.watch.unkillable import StuckWatch
    from .health_port import HealthServer

TIMER_FILE = "TORCHELASTIC_TIMER_FILE"
HEALTH_PORT = "TORCHELASTIC_HEALTH_CHECK_PORT"


@frozen
class WatchedWorker:
    """A worker as the watchdogs know it."""

    local_rank: int
    error_file: Path | None


class CannotWatch(Exception):
    """A watchdog has no pipe or port. The text names the variable, and says what to do."""


class Watchdogs:
    """The watchdogs of one agent. They call `stuck(local_rank, pid, text)`, `ask(answer)` and
    `told(name, timer)` from their threads, and `failed` with an error that ends a thread, the health
    port's aside: who asks there hears nothing then, as of an agent that is dead."""

    def __init__(
        self,
        asked: WatchdogSettings,
        stuck: Callable[[int, int, str], None],
        ask: Callable[[Callable[[], None]], None],
        told: Callable[[str, Mapping[str, str]], None],
        failed: Callable[[BaseException], object],
        handler: StackHandler | None = None,
    ) -> None:
        """`handler` is what the workers write their stacks by."""
        self._handler = handler
        self._asked = asked
        self._tell_stuck = stuck
        self._ask = ask
        self._told = told
        self._failed = failed
        self._timers: FileTimers | None = None
        self._stuck: StuckWatch | None = None
        self._health: HealthServer | None = None

    def start(self) -> None:
        """Start those that were asked for. Raises CannotWatch; `close` ends those that were started."""
        asked = self._asked
        if asked.timer_file is not None:
            self._timers = self._made_timers(asked.timer_file)
        if asked.health_port is not None:
            self._health = _health(asked.health_host, asked.health_port, self._ask)
        if asked.stuck_after is not None:
            from ..workers.watch.unkillable import StuckWatch

            self._stuck = StuckWatch(asked.stuck_after, self._tell_stuck, self._failed)

    def _made_timers(self, file: str) -> FileTimers:
        from ..workers.messages.file_timers import FileTimers

        try:
            return FileTimers(Path(os.path.abspath(file)), self._failed, self._told, self._callstack)
        except OSError as error:
            raise CannotWatch(f"{TIMER_FILE}={file}: {_why(error)}; name a new file") from error

    def _callstack(self, pid: int) -> str:
        if self._handler is None:
            return ""
        try:
            from ..workers.watch.stacks import last_sight
        except (ImportError, OSError):  # a host that lacks what this takes shows nothing
            return ""
        seen = last_sight(pid, self._handler)
        return seen.callstack if seen else ""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that tell workers of the watchdogs."""
        return {TIMER_FILE: str(self._timers.path)} if self._timers else {}

    def follow(self, workers: Mapping[int, WatchedWorker]) -> None:
        """Watch these workers, by process id, and no others from now on."""
        if self._timers:
            self._timers.follow({pid: worker.error_file for pid, worker in workers.items()})
        if self._stuck:
            self._stuck.follow({pid: worker.local_rank for pid, worker in workers.items()})

    def close(self) -> None:
        closing = [each.close for each in (self._timers, self._stuck, self._health) if each]
        self._timers = self._stuck = self._health = None
        run_all(*closing)


def _health(host: str, port: int, ask: Callable[[Callable[[], None]], None]) -> HealthServer:
    from .health_port import HealthServer

    try:
        return HealthServer(port, ask, host=host)
    except OSError as error:
        raise CannotWatch(f"{HEALTH_PORT}={port}: {_why(error)}; name another port") from error


def _why(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
