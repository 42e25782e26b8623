"""meets.py ROUNDS: meet the other ranks at MASTER_ADDR:MASTER_PORT, where rank 0 listens, and tell the port. Rank 0 closes
all connections first, so its kernel remembers them. It fails in ROUNDS rounds."""

from __future__ import annotations

import os
import socket
import sys
import time

import stage

address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if stage.rank == 0:
    with socket.create_server(("", port)) as server:
        clients = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
        for client in clients:
            client.sendall(b".")
            client.close()
else:
    while True:
        try:
            with socket.create_connection((address, port), 60.0) as client:
                assert client.recv(1) == b"." and client.recv(1) == b""
            break
        except ConnectionRefusedError:  # rank 0 starts later
            time.sleep(0.05)
stage.tell(port)
if stage.round < int(sys.argv[1]):
    sys.exit(1 if stage.rank == 0 else stage.wait_for_signal())
stage.wait_for_gate()
