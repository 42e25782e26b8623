"""The stacks of Python processes that write none themselves, read by py-spy (extra `stacks`) where the kernel allows it.

py-spy reads another process's memory and neither stops nor changes it, so a text may be torn: what cannot be read is left
out. It prints no arguments and no values, unless it is told to. Its output becomes the text that Python itself would write.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...clean_up import end_process
from ...secret_variables import without_secrets

_NAME = "py-spy"
_BYTES_MAX = 2**22
_THREADS_MAX = _FRAMES_MAX = 100
"""So much is told, as by Python itself."""
_NAME_MAX = 512
_PAUSE_S = 0.005
_EXPENDABLE = 1000
"""The `oom_score_adj` of a process that the kernel kills first when memory is short."""


def py_spy() -> str | None:
    """Return the program: the one of this Python, or that of PATH; None if there is none."""
    own = str(Path(sys.executable).with_name(_NAME))
    return shutil.which(own) or shutil.which(_NAME)


def texts_of(pids: Collection[int], timeout_s: float) -> Mapping[int, str]:
    """Return the texts of those of these processes that can be read in time."""
    pythons = [pid for pid in pids if _is_python(pid)]
    program = py_spy() if pythons else None
    if program is None:
        return {}
    running: dict[int, tuple[subprocess.Popen[bytes], int]] = {}
    try:
        for pid in pythons:
            file = os.memfd_create("elastic-py-spy", os.MFD_CLOEXEC)
            try:
                running[pid] = _started(program, pid, file), file
            except OSError:
                os.close(file)
                break
        waited_s = 0.0  # a pause counts twice its length at most: a machine may have stood still meanwhile
        while waited_s < timeout_s and any(process.poll() is None for process, _ in running.values()):
            began = time.monotonic()
            time.sleep(_PAUSE_S)
            waited_s += min(time.monotonic() - began, 2 * _PAUSE_S)
        ended = {pid: file for pid, (process, file) in running.items() if process.poll() is not None}
        texts = {pid: text_of(pid, os.pread(file, _BYTES_MAX, 0)) for pid, file in ended.items()}
        return {pid: text for pid, text in texts.items() if text}
    finally:
        for process, file in running.values():
            if process.poll() is None:
                end_process(process)
            os.close(file)


def _is_python(pid: int) -> bool:
    """Return False for a process that has no file of Python in its memory: a look by py-spy would be spent in vain."""
    with suppress(OSError):
        return b"ython" in Path(f"/proc/{pid}/maps").read_bytes()
    return False


def _started(program: str, pid: int, file: int) -> subprocess.Popen[bytes]:
    words = [program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=null, stdout=file, stderr=null, env=without_secrets())
    with suppress(OSError):  # it is never spared as the agent is, whose score it inherits
        Path(f"/proc/{process.pid}/oom_score_adj").write_text(f"{_EXPENDABLE}\n")
    return process


def text_of(pid: int, data: bytes) -> str:
    """Return as Python's own text what py-spy says of this process, the main thread last; nothing if it says nothing."""
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        threads = sorted(json.loads(data), key=lambda thread: thread["os_thread_id"] == pid)
        return "\n\n".join(_thread(thread) for thread in threads[-_THREADS_MAX:])
    return ""


def _thread(thread: Mapping[str, Any]) -> str:
    lines = [_frame(frame) for frame in thread["frames"][:_FRAMES_MAX]]
    return "\n".join((f"Thread 0x{int(thread['thread_id']):016x} (most recent call first):", *lines))


def _frame(frame: Mapping[str, Any]) -> str:
    """Return a frame. Python names a function without its class."""
    file, name = (str(frame[each])[-_NAME_MAX:].replace("\n", "?") for each in ("filename", "name"))
    return f'  File "{file}", line {int(frame["line"])} in {name.rpartition(".")[2]}'
