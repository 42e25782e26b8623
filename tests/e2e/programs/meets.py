"""meets.py ROUNDS [wrapped]: meet the other ranks at MASTER_ADDR:MASTER_PORT, and tell the port.

The agent of rank 0 serves a store there, or rank 0 listens, and ends all connections first, so its kernel remembers them.
Rank 0 fails in ROUNDS rounds, or iterations of a function, each time after the others have told."""

from __future__ import annotations

import os
import socket
import sys
import time

import stage

from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.inprocess import CallWrapper, Wrapper

ROUNDS = int(sys.argv[1])


def meet() -> None:
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True":
        with WireClient(Address(address, port), 60.0, 1_000) as store:
            store.greet()
            meet_in(store, "come")
            stage.tell(port)
            meet_in(store, "told")
        return
    if stage.rank == 0:
        with socket.create_server(("", port)) as server:
            clients = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
            for client in clients:
                client.sendall(b".")
                client.shutdown(socket.SHUT_WR)
            for client in clients:
                with client:
                    client.recv(1)
        stage.tell(port)
    else:
        while not has_met(address, port):
            time.sleep(0.05)


def meet_in(store: WireClient, key: str) -> None:
    """Wait until all ranks are there; rank 0, with which the store may go, until the others know it too."""
    size = int(os.environ["WORLD_SIZE"])
    store.add(key, 1)
    while store.add(key, 0) < size:
        time.sleep(0.05)
    known = store.add(f"{key} known", 1)
    while stage.rank == 0 and known < size:
        known = store.add(f"{key} known", 0)


def has_met(address: str, port: int) -> bool:
    """Meet rank 0, and tell before the connection ends: rank 0 waits for that, and its failure calls this rank back."""
    try:
        with socket.create_connection((address, port), 60.0) as client:
            met = client.recv(1) == b"." and client.recv(1) == b""
            if met:
                stage.tell(port)
            return met
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
