"""A rank that is blocked in a collective of gloo, or in waiting for the others, when its abort comes; again and again.

    python collectives.py RANK PORT...

One port for each iteration. Beside the process group there are connections of the program's own, which must live on: a
server and its client in an event loop, and a plain one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from elastic.adapters.inprocess.rank.aborts import AbortTorchDistributed
from elastic.adapters.inprocess.rank.callbacks import State

STATE = State(0, 2, 0, 2, 0, 2)
TIMEOUT = timedelta(minutes=10)


class Bystanders:
    """Connections that are none of torch's."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._echo, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self._client = socket.create_connection(server.sockets[0].getsockname())
        self.live()

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)

    def live(self) -> None:
        self._client.sendall(b"there\n")
        assert self._client.recv(6) == b"there\n"


def left(code: Callable[[], object], name: str) -> None:
    """The code, and an abort beside it, which may come first."""
    aborting = threading.Thread(target=AbortTorchDistributed(), args=(STATE,))
    if name != "collective":  # the connection to the store must be there
        aborting = threading.Thread(target=lambda: (BLOCKED.wait(), AbortTorchDistributed()(STATE)))
    aborting.start()
    try:
        code()
        print(f"{name}: not left")
    except RuntimeError as error:
        print(f"{name}: {type(error).__name__}")
    aborting.join()
    assert not dist.is_initialized()


BLOCKED = threading.Event()


def blocked_in(rank: int, group: dist.ProcessGroup) -> Callable[[], object]:
    """One waits for the other in a reduction, which waits for a message; neither looks up what an abort has undone."""
    if rank == 0:
        return lambda: dist.all_reduce(torch.ones(4), group=group)
    return lambda: dist.recv(torch.ones(4), group=group, group_src=0)


def waits_for_the_other(port: int) -> None:
    store = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    BLOCKED.set()
    store.wait(["never"], TIMEOUT)


def main(rank: int, ports: list[int]) -> None:
    bystanders = Bystanders()
    *iterations, last = ports
    for port in iterations:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
        dist.init_process_group("gloo", timeout=TIMEOUT)
        group = dist.new_group([0, 1], timeout=TIMEOUT)
        dist.barrier()
        left(blocked_in(rank, group), "collective")
        bystanders.live()
    os.environ["MASTER_PORT"] = str(last)
    if rank == 0:
        left(lambda: waits_for_the_other(last), "store")
    bystanders.live()


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]])
