"""What torch's variables say of file timers, of workers stuck in the kernel and of a health check."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..adapters.agent.watchdogs import HEALTH_PORT, TIMER_FILE
from ..adapters.launch_settings import WatchdogSettings
from . import values
from .mistakes import Mistake

ENABLE_TIMER = "TORCHELASTIC_ENABLE_FILE_TIMER"
STUCK_AFTER = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"


def watchdog_settings(environment: Mapping[str, str]) -> WatchdogSettings:
    """Raises Mistake. Nothing is watched unless a variable says so."""
    return WatchdogSettings(_timer_file(environment), _stuck_after(environment), _health_port(environment))


def _timer_file(environment: Mapping[str, str]) -> str | None:
    if environment.get(ENABLE_TIMER) != "1":
        return None
    folder = environment.get("TMPDIR") or "/tmp"
    return environment.get(TIMER_FILE) or os.path.join(folder, f"watchdog_timer_{os.urandom(8).hex()}")


def _stuck_after(environment: Mapping[str, str]) -> float | None:
    text = environment.get(STUCK_AFTER, "")
    try:
        return (values.seconds(text) or None) if text else None
    except ValueError as reason:
        raise Mistake(f"{STUCK_AFTER}={text}: {reason} (0 for never)") from None


def _health_port(environment: Mapping[str, str]) -> int | None:
    text = environment.get(HEALTH_PORT, "")
    try:
        return values.port(text) if text else None
    except ValueError as reason:
        raise Mistake(f"{HEALTH_PORT}={text}: {reason}") from None
