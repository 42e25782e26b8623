"""A port of this host that belongs to a program which serves no store: who is named, and for how long a launcher waits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from launches import PROGRAMS, Launcher

from elastic.adapters.store.tcpstore.port_owner import stranger
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address

LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@contextmanager
def listener(port: int = 0) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """A program that listens, and says nothing to its clients, until its input ends."""
    command = [sys.executable, "-c", LISTENS, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout
            yield program, Address("127.0.0.1", int(program.stdout.readline()))
        finally:
            program.kill()


def test_a_program_that_serves_no_store_is_named_with_its_command() -> None:
    with listener() as (program, address):
        assert stranger(address).startswith(f"pid {program.pid} ({sys.executable} -c import socket, sys")


def test_nobody_and_a_store_are_no_strangers(port: int) -> None:
    assert stranger(Address("127.0.0.1", port)) == ""
    host, at = serve(Address("127.0.0.1", 0), True)
    assert host
    try:
        assert stranger(at) == ""  # also while its helper starts
    finally:
        host.close()


def test_a_port_that_another_program_keeps_is_a_mistake_that_names_it(launch: Launcher) -> None:
    with listener() as (program, address):
        options = ("--nnodes=2", f"--rdzv-endpoint={address}", "--rdzv-conf=join_timeout=1")
        ended = launch(*options, PROGRAMS / "stay.py").ends()
    assert ended.code == 2
    waits, refuses = (line for line in ended.err.splitlines() if "which serves no store" in line)
    assert waits.startswith(f"elastic: --rdzv-endpoint={address}: the port belongs to pid {program.pid} (")
    assert waits.endswith("; waiting for up to 1 s") and refuses.endswith("; name another port, or end that program")


def test_a_port_that_is_free_soon_is_waited_for(launch: Launcher) -> None:
    with listener() as (program, address):
        running = launch("--nnodes=1:2", "--last-call=0", f"--rdzv-endpoint={address}", PROGRAMS / "stay.py")
        running.says("which serves no store; waiting for up to 30 s")
        assert program.stdin
        program.stdin.close()
        running.hears(1)
        running.open_gate()
        assert running.ends().code == 0
