"""What all tests share: how hard Hypothesis looks (profiles.py), that nothing stays behind (leftovers.py), a port."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import profiles  # noqa: F401
import pytest
from leftover_processes import nothing_left  # noqa: F401 a fixture
from ports import reserved

from elastic.adapters import bounded_server
from elastic.adapters.disk import Disk

pytest.register_assert_rewrite("conformance", "leased", "narration")

# torch asks a name server for the name of each peer that it connects to or accepts. A question that is lost would cost 5 s.
os.environ.setdefault("RES_OPTIONS", "timeout:1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell has put the run into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # the run is under nohup, and so would each launcher be
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """The disk of what the test makes, which is closed after it."""
    disk = Disk()
    yield disk
    disk.close()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers for browsers and probes hang up on no client while this machine stands still."""
    monkeypatch.setattr(bounded_server, "REQUEST_S", 90.0)


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a working directory that was removed."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.fixture
def port() -> Iterator[int]:
    """One for the test alone, where nobody listens yet."""
    with reserved() as free:
        yield free
