"""training.py CHECKPOINT: sum numbers up together with all workers, step by step, until the gate of rank 0's node opens.

As a training does: each worker has its share of a step, rank 0 adds the shares up and writes a checkpoint, a new world
goes on from it, and whoever misses a peer for too long fails. The sum after so many steps is the same whatever the worlds
were, so a step lost, or made twice, shows. A worker that meets an older one of its node alive says so beside the checkpoint.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import IO, Any, cast

import stage
import sums

PATIENCE_S = 5.0
"""How long a peer may be silent; one that merely gets no turn is not."""
MEETING_S = 5.0
PACE_S = 0.02


def main(path: Path) -> None:
    alone(path)
    path.touch()
    size = int(os.environ["WORLD_SIZE"])
    peers = lead(size) if stage.rank == 0 else [follow()]
    stage.tell("restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", size, "workers")
    if stage.rank == 0:
        leads(path, peers)
    else:
        follows(peers[0], size)


def leads(path: Path, peers: list[IO[bytes]]) -> None:
    _, steps, total = sums.load(path)
    last = False
    while not last:
        send(peers, {"steps": steps, "last": False})
        total += sums.share(steps, 0, len(peers) + 1) + sum(receive(peer)["share"] for peer in peers)
        steps += 1
        sums.save(path, sums.Checkpoint(stage.round, steps, total))
        time.sleep(PACE_S)
        last = stage.gate_is_open()
    send(peers, {"last": True})


def follows(leader: IO[bytes], size: int) -> None:
    while not (said := receive(leader))["last"]:
        send([leader], {"share": sums.share(said["steps"], stage.rank, size)})


def alone(path: Path) -> None:
    """A lock that this node's worker holds as long as it lives. Somebody else's is a fault that the test must hear of."""
    slot = os.environ["ELASTIC_NODE_ID"]
    descriptor = os.open(path.with_name(f"{path.name}.{slot}"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with sums.shared(path).open("a") as file:
            file.write(f"{slot} in round {stage.round}\n")
        sys.exit("an older worker of this node lives")


def lead(size: int) -> list[IO[bytes]]:
    """The others' connections."""
    with socket.create_server(("", int(os.environ["MASTER_PORT"]))) as server:
        server.settimeout(MEETING_S)
        return [files(server.accept()[0]) for _ in range(size - 1)]


def follow() -> IO[bytes]:
    """The connection to rank 0, once it listens."""
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    ends_at = time.monotonic() + MEETING_S
    while True:
        try:
            return files(socket.create_connection(where, MEETING_S))
        except ConnectionRefusedError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.01)


def files(connection: socket.socket) -> IO[bytes]:
    connection.settimeout(PATIENCE_S)
    return cast(IO[bytes], connection.makefile("rwb", buffering=0))


def send(peers: list[IO[bytes]], said: dict[str, Any]) -> None:
    for peer in peers:
        peer.write(json.dumps(said).encode() + b"\n")


def receive(peer: IO[bytes]) -> dict[str, Any]:
    line = peer.readline()
    if not line:
        sys.exit("a peer has gone")
    said: dict[str, Any] = json.loads(line)
    return said


if __name__ == "__main__":
    main(Path(sys.argv[1]))
