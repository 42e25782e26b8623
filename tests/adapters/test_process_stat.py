"""One function reads the kernel's file `stat`, and a process's name breaks nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from processes import cut_name

from elastic.adapters.process_stat import stat

ROOT = Path(__file__).parents[2]
READS = {"adapters/process_stat.py": "this", "adapters/workers/watch/reaper.py": "a program of its own"}


def test_a_name_with_spaces_and_brackets_and_half_a_character_moves_no_field() -> None:
    with cut_name():
        Path("/proc/self/comm").write_bytes(b"a) Z \xc3(")
        state, parent, *_ = stat(os.getpid())
    assert (state, int(parent)) == (b"R", os.getppid())


def test_a_thread_has_one_too_and_a_process_that_is_gone_has_none() -> None:
    assert stat(Path(f"/proc/self/task/{threading.get_native_id()}"))[1] == str(os.getppid()).encode()
    with pytest.raises(OSError, match="No such file"):
        stat(1 << 22)


def test_every_other_file_reads_it_by_that_function() -> None:
    files = [file for room in ("adapters", "cli") for file in (ROOT / room).rglob("*.py")]
    found = {
        str(file.relative_to(ROOT)) for file in files if '/stat"' in file.read_text() or '"stat"' in file.read_text()
    }
    assert found == READS.keys()
