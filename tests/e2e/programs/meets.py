"""meets.py ROUNDS [wrapped]: meet the other ranks at MASTER_ADDR:MASTER_PORT, where rank 0 listens, and tell the port.

Rank 0 closes all connections first, so its kernel remembers them. It fails in ROUNDS rounds, or iterations of a function."""

from __future__ import annotations

import os
import socket
import sys
import time

import stage

from elastic.inprocess import CallWrapper, Wrapper

ROUNDS = int(sys.argv[1])


def meet() -> None:
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if stage.rank == 0:
        with socket.create_server(("", port)) as server:
            clients = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
            for client in clients:
                client.sendall(b".")
                client.close()
    else:
        while not has_met(address, port):
            time.sleep(0.05)
    stage.tell(port)


def has_met(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), 60.0) as client:
            return client.recv(1) == b"." and client.recv(1) == b""
    except ConnectionRefusedError:  # rank 0 starts later
        return False


@Wrapper(soft_timeout=1_000, hard_timeout=2_000, barrier_timeout=5_000, completion_timeout=5_000)
def wrapped(call: CallWrapper | None = None) -> None:
    assert call
    meet()
    if call.iteration < ROUNDS:
        if stage.rank == 0:
            raise RuntimeError("as it was told")
        time.sleep(1_000)


if "wrapped" in sys.argv:
    wrapped()
else:
    meet()
    if stage.round < ROUNDS:
        sys.exit(1 if stage.rank == 0 else stage.wait_for_signal())
stage.wait_for_gate()
