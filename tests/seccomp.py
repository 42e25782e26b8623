"""A real seccomp filter that refuses one call of the kernel, as an old kernel or a container's filter does."""

from __future__ import annotations

import platform
import sys

import pytest

NUMBERS = {"x86_64": {"pidfd_open": 434, "eventfd2": 290, "epoll_create1": 291, "setsid": 112}}
FILTER = """
import ctypes, os, struct, sys
number, error = int(sys.argv[1]), int(sys.argv[2])
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("=HBBI", *row) for row in rows)
buffer = ctypes.create_string_buffer(program)
fprog = struct.pack("@HP", len(rows), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(fprog), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Refuse one call, then run a command."""
known = pytest.mark.skipif(platform.machine() not in NUMBERS, reason="the numbers of the calls are not known here")


def refusing(call: str, error: int) -> tuple[str, ...]:
    """Return the words to put before a command that is to run without this call."""
    return (sys.executable, "-c", FILTER, str(NUMBERS[platform.machine()][call]), str(error))
