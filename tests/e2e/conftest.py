"""Every test here starts the real command, and leaves no process behind; what its agents did is what the core says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from etcdlab import Lab, lab
from etcds import Cluster, single, skip_without_etcd
from jobs import Jobs, jobs
from launches import Launcher, launcher
from replays import complaints, misreported, replays

from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address


@pytest.fixture
def launch(nothing_left: str, tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start
        assert start.left_in_temporary_directory() == []
        assert start.errors_of_accounts() == []
    runs = replays(start.traces)
    assert complaints(runs, start.forged) == []
    assert [*misreported(tmp_path, runs)] == []


@pytest.fixture(scope="session")
def shared_store() -> Iterator[Address]:
    """A store that outlives the jobs that meet there."""
    host, address = serve(Address("localhost", 0), True)
    assert host
    try:
        yield address
    finally:
        host.close()


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster | None]:
    """None where there is no etcd: only the tests that need one are skipped."""
    if not shutil.which("etcd"):
        yield None
        return
    with single(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def tcpstore_job(launch: Launcher, tmp_path: Path, shared_store: Address) -> Iterator[Jobs]:
    """For what is about a TCPStore and its host."""
    with jobs(launch, tmp_path, shared_store) as make:
        yield make


@pytest.fixture(params=["tcpstore", pytest.param("etcd", marks=pytest.mark.long)])
def job(
    request: pytest.FixtureRequest, launch: Launcher, tmp_path: Path, shared_store: Address, shared_etcd: Cluster | None
) -> Iterator[Jobs]:
    """What holds in one store holds in the other. `make test` runs it in the first: both pass the same tests of a store."""
    if request.param == "etcd":
        skip_without_etcd()
    with jobs(launch, tmp_path, shared_store, shared_etcd if request.param == "etcd" else None) as make:
        yield make


@pytest.fixture
def on_etcd(launch: Launcher, tmp_path: Path) -> Iterator[Lab]:
    """Three members, each on a host of its own."""
    with lab(launch, tmp_path) as made:
        yield made
