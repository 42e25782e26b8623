"""MASTER_PORT, set without end: everybody reads the last one, and none before it is kept."""

from __future__ import annotations

import subprocess
import sys

SEEN = """
import ctypes, os, subprocess
from elastic.adapters.inprocess.rank.task import tell_port

def seen():
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    child = subprocess.run(["printenv", "MASTER_PORT"], capture_output=True, text=True).stdout.strip()
    return os.environ["MASTER_PORT"], getenv(b"MASTER_PORT").decode(), child

for port in (65535, 80, 29500):
    tell_port(port)
    assert seen() == (str(port),) * 3, seen()
os.environ["MASTER_PORT"] = "1"
assert seen() == ("1",) * 3, seen()
tell_port(12345)
assert seen() == ("12345",) * 3, seen()
del os.environ["MASTER_PORT"]
assert "MASTER_PORT" not in os.environ and ctypes.CDLL(None).getenv(b"MASTER_PORT") == 0
"""

GROWTH = """
import ctypes, sys
from elastic.adapters.inprocess.rank.task import tell_port

class Held(ctypes.Structure):
    _fields_ = [(each, ctypes.c_size_t) for each in "arena free smblks hblks hblkhd usmblks fsmblks used rest top".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Held
tell_port(1)
before = libc.mallinfo2().used
for port in range(1024, 65536):
    tell_port(port)
print(libc.mallinfo2().used - before)
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout


def test_python_c_and_programs_read_the_port_that_was_told_last() -> None:
    run(SEEN)


def test_no_port_is_kept() -> None:
    assert int(run(GROWTH)) < 65_536
