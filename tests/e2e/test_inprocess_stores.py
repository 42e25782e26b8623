"""The store under a wrapped call: an etcd, a TCPStore of the program's own, one that goes away, one that is none."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from etcds import single
from launches import PROGRAMS, TIMEOUT_S, Launch, Launcher
from ports import reserved
from wrapped import FIRST_GATE, comes_to, entered, needs_torch, returned, told

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import StoreError
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address

PROGRAM = PROGRAMS / "behaves.py"


def alone(launch: Launcher, port: int, *arguments: str, ranks: int = 2, before: str = "true") -> Launch:
    """Plain processes, which no launcher offers a store: they are told a port of this host."""
    rank = f"MASTER_ADDR=localhost MASTER_PORT=1 WORLD_SIZE={ranks} RANK=$R {sys.executable} {PROGRAM}"
    each = f"{rank} {' '.join(arguments)} port={port}"
    places = " ".join(map(str, range(ranks)))
    script = (
        f"unset ELASTIC_RELAY; {before}; for R in {places}; do export R; ({each}; echo $R ended by $?) & done; wait"
    )
    return launch("--no-python", "sh", "-c", script)


def test_a_fault_while_an_etcd_stands_still_is_dealt_with_when_it_answers_again(
    launch: Launcher, tmp_path: Path
) -> None:
    with single(tmp_path / "etcd") as etcd:
        meeting = (f"--rdzv-endpoint=etcd://{etcd.endpoints}", "--rdzv-id=wrapped", "--nnodes=1")
        running = launch(*meeting, "--restart-scope=rank", "--nproc-per-node=2", PROGRAM, "fails")
        heard = told(running, 2)
        assert heard == entered(0, 0, 1)
        etcd.members[0].pause()
        running.open_gate(FIRST_GATE)
        running.says("rank 1, iteration 0: function ended by ValueError")
        etcd.members[0].resume()
        comes_to(running, *entered(1, 0, 1), *returned(1, 0, 1))
        assert running.ends().code == 0


@needs_torch
def test_nobody_trains_on_for_ever_when_the_store_is_gone_and_none_says_that_the_job_succeeded(
    launch: Launcher,
) -> None:
    """One has returned, one hangs, one is a reserve."""
    with served() as store:
        limits = ("soft_timeout=2.0", "hard_timeout=4.5", "heartbeat_timeout=3.0", "barrier_timeout=5.0")
        waits = ("completion_timeout=0.5", "confirm_timeout=0.5", "store_timeout=0.5", "leave_timeout=0.5")
        running = alone(launch, store.port, "stays", *limits, *waits, "policy=two", ranks=3)
        assert told(running, 2) == entered(0, 0, 1)
    running.open_gate(FIRST_GATE)
    meet = f"(the ranks meet in the TCPStore at {store})"
    comes_to(
        running,
        f"0 raised OutcomeUnknown rank 0: the outcome is unknown {meet} with 0 in 0",
        f"1 raised Stopped rank 1: the store is out of reach {meet}",
        f"2 raised Stopped rank 2: the store is out of reach {meet}",
    )
    assert set(running.ends().out.splitlines()) == {f"{rank} ended by 72" for rank in range(3)}


def test_a_port_that_is_another_program_s_is_named_and_nobody_waits_for_ever(launch: Launcher) -> None:
    limits = ("soft_timeout=0.3", "hard_timeout=0.5", "heartbeat_timeout=1.1", "barrier_timeout=1.2")
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        running = alone(launch, port, "returns", *limits, "leave_timeout=0.3", "store_timeout=0.3", ranks=1)
        meet = f"(the ranks meet in the TCPStore at localhost:{port})"
        comes_to(running, f"0 raised Stopped rank 0: the store is out of reach {meet}")
        assert running.ends().out == "0 ended by 72\n"


SLOW_TO_START = """
import sys
if any("store_host.py" in each for each in sys.orig_argv):
    import stage
    stage.wait_for_gate(0)
"""


@needs_torch
def test_the_start_of_the_store_takes_nothing_of_the_time_for_the_ranks_to_come(
    launch: Launcher, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_TO_START)
    limits = ("soft_timeout=1.5", "hard_timeout=1.7", "heartbeat_timeout=1.7", "barrier_timeout=1.9")
    with reserved() as port:
        path = f"PYTHONPATH={tmp_path}:$PYTHONPATH; export PYTHONPATH"
        running = alone(launch, port, "returns", *limits, "leave_timeout=0.3", ranks=2, before=path)
        for rank in range(2):  # that takes longer than barrier_timeout
            running.says(f"rank {rank}: the TCPStore at localhost:{port} listens and does not answer yet")
        running.open_gate(0)
        running.open_gate(FIRST_GATE)
        comes_to(running, *entered(0, 0, 1), *returned(0, 0, 1))
        assert set(running.ends().out.splitlines()) == {f"{rank} ended by 0" for rank in range(2)}


@needs_torch
def test_a_rank_whose_place_a_later_process_takes_ends(launch: Launcher, shared_store: Address) -> None:
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "TORCHELASTIC_RUN_ID": uuid4().hex}
    command = (sys.executable, PROGRAM, "sleeps", f"port={shared_store.port}")
    first = launch.command(*command, environment=place)
    assert told(first, 1) == entered(0, 0, of=1)
    first.open_gate(FIRST_GATE)
    second = launch.command(*command, environment=place)
    comes_to(second, *entered(1, 0, of=1), *returned(1, 0))
    assert second.ends().code == 0
    comes_to(first, "0 raised Stopped rank 0: a later incarnation took this rank's place")
    assert first.ends().code == 77


@contextmanager
def served() -> Iterator[Address]:
    """A store that answers."""
    host, address = serve(Address("localhost", 0), True)
    assert host
    try:
        backend, ends_at = TCPStoreBackend(address, "nobody", SystemClock()), time.monotonic() + TIMEOUT_S
        while not _answers(backend):
            assert time.monotonic() < ends_at
        backend.close()
        yield address
    finally:
        host.close()


def _answers(backend: TCPStoreBackend) -> bool:
    """Waits for as long as one question may take."""
    try:
        backend.get()
    except StoreError:
        return False
    return True
