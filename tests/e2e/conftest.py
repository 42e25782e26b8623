"""Every test here starts the real command, and leaves no process behind; what its agents did is what the core says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Jobs, jobs
from launches import Launcher, launcher
from replays import complaints, replays

from elastic.adapters.backends.serving import serve
from elastic.adapters.backends.wire import Address


@pytest.fixture
def launch(nothing_left: str, tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start
    assert complaints(replays(start.traces), start.forged) == []


@pytest.fixture(scope="session")
def shared_store() -> Iterator[Address]:
    """A store that outlives the jobs that meet there."""
    host, address = serve(Address("localhost", 0), True)
    assert host
    try:
        yield address
    finally:
        host.close()


@pytest.fixture
def job(launch: Launcher, tmp_path: Path, shared_store: Address) -> Iterator[Jobs]:
    with jobs(launch, tmp_path, shared_store) as make:
        yield make
