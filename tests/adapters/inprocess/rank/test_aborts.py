"""Aborts: gloo's on real process groups; NCCL's as far as it can be seen without a GPU, by a torch of ours."""

from __future__ import annotations

import os
import resource
import select
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from spans import stage
from wrapped import needs_torch

from elastic.adapters.inprocess.rank.aborts import AbortTorchDistributed
from elastic.adapters.inprocess.rank.callbacks import State
from elastic.adapters.inprocess.rank.main_thread import serve
from elastic.adapters.inprocess.rank.torch_sockets import shut_gloo, shut_store
from elastic.adapters.inprocess.thread_events import Finished, Release, ToMain
from elastic.adapters.rendezvous.reserved_ports import Reservation

PROGRAM = Path(__file__).parents[1] / "programs" / "collectives.py"
ITERATIONS = 5
TIMEOUT_S = 100.0
STATE = State(0, 2, 0, 2, 0, 2)


@pytest.fixture
def ports() -> Iterator[list[str]]:
    """Free ones, held until the test is over: torch's store can bind them all the same."""
    with ExitStack() as stack:
        held = [stack.enter_context(Reservation("localhost")) for _ in range(ITERATIONS + 1)]
        yield [str(each.endpoint.port) for each in held]


@pytest.mark.usefixtures("nothing_left")
def test_whoever_is_blocked_in_gloo_or_its_store_is_left_and_can_begin_anew(ports: list[str]) -> None:
    with ExitStack() as stack:
        ranks = []
        for rank in range(2):
            command = [sys.executable, "-W", "ignore", str(PROGRAM), str(rank), *ports]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            ranks.append(process)
        for rank, process in enumerate(ranks):
            out, err = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, err
            lines = out.splitlines()
            assert lines[:ITERATIONS] == ["collective: RuntimeError"] * ITERATIONS
            assert lines[ITERATIONS:] == (["store: DistNetworkError"] if rank == 0 else [])


def test_a_process_without_torch_has_nothing_to_shut_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert shut_gloo() == 0
        assert shut_store(1) == 0
        client.send(b"x")  # it lives


def test_connections_to_the_store_s_port_are_shut_down_and_no_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as store, socket.create_server(("127.0.0.1", 0)) as other:
        to_store, to_other = (socket.create_connection(each.getsockname()) for each in (store, other))
        with to_store, to_other:
            assert shut_store(store.getsockname()[1]) == 1
            assert to_store.recv(1) == b""
            assert to_other.send(b"x") == 1


def test_a_look_for_gloo_s_sockets_leaves_no_descriptor_behind() -> None:
    """gloo's epoll instance watches more than sockets."""
    held = os.listdir("/proc/self/fd")
    with socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll, ExitStack() as stack:
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        stack.callback(os.close, writer)
        epoll.register(server)
        epoll.register(reader)
        for _ in range(3):
            assert shut_gloo() == 0
    assert os.listdir("/proc/self/fd") == held


def test_an_abort_at_the_limit_of_descriptors_fails_and_does_not_pass_over_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        with exhausted(), pytest.raises(OSError, match="Too many open files"):
            shut_store(server.getsockname()[1])
        assert shut_store(server.getsockname()[1]) == 1
        assert client.recv(1) == b""


@contextmanager
def exhausted() -> Iterator[None]:
    """No descriptor can be opened for the duration of this block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Group:
    """Something that can be seen to be gone."""


class FakeTorch:
    """A torch.distributed with groups over NCCL, or without; keeps what it was asked for."""

    def __init__(self, initialized: bool, nccl: bool) -> None:
        self._initialized, self._nccl = initialized, nccl
        self.asked: list[str] = []
        self.group = Group()
        self.fails = False

    def is_initialized(self) -> bool:
        return self._initialized

    def has_nccl(self) -> bool:
        return self._nccl

    def groups(self) -> list[object]:
        return [self.group]

    def abort_all(self) -> None:
        self.asked.append("abort")
        if self.fails:
            raise RuntimeError("no communicator")
        self._initialized = False

    def destroy(self) -> None:
        self.asked.append("destroy")
        self._initialized = False


@pytest.mark.parametrize(
    ("initialized", "nccl", "asked"),
    [(True, True, ["abort"]), (True, False, ["destroy"]), (False, False, [])],
)
def test_nccl_is_aborted_and_what_then_still_stands_is_destroyed(
    initialized: bool, nccl: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTER_PORT", raising=False)
    torch = FakeTorch(initialized, nccl)
    AbortTorchDistributed(torch)(STATE)
    assert torch.asked == asked


def test_the_groups_are_destroyed_even_if_the_abort_of_nccl_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_PORT", raising=False)
    torch = FakeTorch(initialized=True, nccl=True)
    torch.fails = True
    with pytest.raises(RuntimeError, match="no communicator"):
        AbortTorchDistributed(torch)(STATE)
    assert torch.asked == ["abort", "destroy"]


def test_a_group_outlives_the_frames_of_its_iteration_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they held may be the last but one that holds it, and must not be the last."""
    monkeypatch.delenv("MASTER_PORT", raising=False)
    torch, orders, seen = FakeTorch(True, False), SimpleQueue[ToMain](), []
    there = weakref.ref(torch.group)

    class Model:
        def __del__(self) -> None:
            seen.append(there() is not None)

    def train() -> None:
        model = Model()
        raise ValueError(model)

    with pytest.raises(ValueError) as failed:
        train()
    AbortTorchDistributed(torch)(STATE)
    del torch.group
    failed.value.args = ()
    orders.put(Release((failed.value,)))
    orders.put(Finished(None, None))
    assert there() is not None
    with stage() as on:
        serve(on.gate, orders)
    assert (seen, there()) == ([True], None)


INTERRUPTED_THEN_ENDED_BY_AN_EXCEPTION = """
from datetime import timedelta
import torch.distributed as dist
from elastic.adapters.inprocess.rank.aborts import forget_groups

def numbered() -> int:
    return dist.distributed_c10d._world.group_count

try:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=2, timeout=timedelta(seconds=0.2))
except (RuntimeError, dist.DistError) as error:
    print(type(error).__name__, numbered(), dist.is_initialized())
forget_groups()
print(numbered())
for _ in range(3):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
    forget_groups()
raise ValueError("the end")
"""


@needs_torch
def test_a_group_whose_making_was_interrupted_is_not_counted_and_past_ones_write_no_rank_before_a_traceback() -> None:
    """torch names a group by its number, and the ranks meet under that name. Each init_process_group puts a hook before the
    last one, which writes its rank once more."""
    program = [sys.executable, "-c", INTERRUPTED_THEN_ENDED_BY_AN_EXCEPTION]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    before, after = ran.stdout.splitlines()
    assert (before.split()[1:], after) == (["1", "False"], "0"), ran.stderr
    assert ran.stderr.endswith("\nValueError: the end\n"), ran.stderr
