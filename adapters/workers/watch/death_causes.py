"""Why a process died, as far as its host tells it beyond the exit code: who sent SIGKILL, and where the core dump lies."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from glob import escape, iglob
from pathlib import Path

from .. import cgroups
from ..cgroups import Counter, Kills
from ..messages.error_files import exit_sentence
from ..worker_port import Exit

_KERNEL = Path("/proc/sys/kernel")
NOT_OURS = "sent by another process (not elastic, not the kernel's out-of-memory killer)"
"""The worker itself may have sent it."""
_UNKNOWN = "not sent by elastic; this host does not tell if it was out of memory"
_GUESSES = (NOT_OURS, _UNKNOWN)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def remark(ended: Exit, kernel: Path = _KERNEL, *, explained: bool = False) -> str:
    """Return half a sentence, or nothing, for a worker that the launcher did not stop. `explained`: its error file says why
    it died, as when its monitor or a timer killed it; then nothing is guessed."""
    killer = _killer(ended.code, ended.kills)
    guess = "" if explained and killer in _GUESSES else killer
    parts = (guess, _core(ended, kernel) if ended.dumped else "", ended.killed)
    return " · ".join(part for part in parts if part)


def process_deaths(counting: Callable[[], Counter | None] = cgroups.counter) -> Callable[[int], str]:
    """Return a function that says how a child which is no worker ended: by its exit code, and by the kernel's count of
    processes that were killed since the last death."""
    counter = counting()
    seen = counter.read() if counter else None

    def told(code: int) -> str:
        nonlocal seen
        kills = counter.since(seen) if counter and seen is not None else None
        seen = counter.read() if counter else None
        ended = f"ended with {exit_sentence(code)}" if code >= 0 else f"was {exit_sentence(code)}"
        return ", ".join(part for part in (ended, _killer(code, kills)) if part)

    return told


def _killer(code: int, kills: Kills | None) -> str:
    if kills is None:
        return _UNKNOWN if code == -signal.SIGKILL else ""
    if not kills.count:
        return NOT_OURS if code == -signal.SIGKILL else ""
    where = f"cgroup{_limited(kills.limit)}" if kills.in_cgroup else "this host"
    count = f"({where}, oom_kill +{kills.count})"
    return f"out of memory {count}" if code == -signal.SIGKILL else f"meanwhile a process was killed for memory {count}"


def _limited(limit: int | None) -> str:
    return "" if limit is None else f" limit {_bytes(limit)}"


def _bytes(count: float) -> str:
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:.4g} {unit}"


# --- core dumps


def _core(ended: Exit, kernel: Path) -> str:
    """Say where the kernel's pattern has put the core dump."""
    pattern = _read(kernel / "core_pattern")
    if pattern.startswith("|"):
        program = pattern[1:].split(" ")[0]
        look = f": coredumpctl info {ended.pid}" if "systemd-coredump" in program else ""
        return f"core dumped to {program}{look}"
    if _read(kernel / "core_uses_pid") not in ("", "0") and "%p" not in pattern:
        pattern += ".%p"
    name = re.sub(r"%(.)", lambda found: _filled(found[1], ended), pattern)
    began = time.time() - (time.monotonic() - ended.started_at)
    for file in iglob(name):
        with suppress(OSError):  # it is gone by now
            if os.path.getmtime(file) >= began - 1:
                return f"core dumped: {os.path.abspath(file)}"
    return f"core dumped as {pattern}, where the worker was"


def _filled(letter: str, ended: Exit) -> str:
    """Return the text for a letter of the pattern; one that is not known here may be anything."""
    known = {"p": str(ended.pid), "P": str(ended.pid), "s": str(-ended.code), "%": "%", "u": str(os.getuid())}
    return escape(known[letter]) if letter in known else "*"


def _read(file: Path) -> str:
    try:
        return os.fsdecode(file.read_bytes()).strip()
    except OSError:
        return ""
