"""What all tests share: how hard Hypothesis looks (profiles.py), that nothing stays behind (leftovers.py), a port."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import leftovers
import profiles  # noqa: F401
import pytest
from ports import reserved

from elastic.adapters.disk import Disk

pytest.register_assert_rewrite("conformance", "leased", "narration")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell has put the run into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

SETTLE_S = 90.0
"""How long what a test started may take to end by itself after the test, on a machine that is busy with something else."""


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Fail the test if a process that it started outlives it, and kill that process; yields the token they carry.

    The token stands in os.environ during the test; a test that makes an environment of its own passes it on.
    """
    token = uuid4().hex
    monkeypatch.setenv(leftovers.VARIABLE, token)
    yield token
    left = leftovers.left_after(token, SETTLE_S)
    leftovers.kill(left, token)
    if left:
        pytest.fail("left behind, killed now:\n" + "\n".join(f"  {process}" for process in left), pytrace=False)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """The disk of what the test makes, which is closed after it."""
    disk = Disk()
    yield disk
    disk.close()


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
