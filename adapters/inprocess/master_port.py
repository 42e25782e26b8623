"""The port of an iteration in this process's environment: another one each time, for as long as there are iterations.

The C library keeps every string that was ever set there, since somebody may hold it, so each new port would stay for good.
What is put there by `putenv` is the caller's own string, which can be written over.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

NAME = "MASTER_PORT"

_libc = ctypes.CDLL(None)
_own = ctypes.create_string_buffer(f"{NAME}=65535".encode())


def tell(port: int) -> None:
    """MASTER_PORT is this from now on: for Python, for C, and for whatever this process starts."""
    _own.value = f"{NAME}={port}".encode()
    _libc.putenv(_own)
    python_s: Any = os.environ
    python_s._data[NAME.encode()] = str(port).encode()  # to set it the usual way would set the C library's too
