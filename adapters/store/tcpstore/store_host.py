"""The program that serves a TCPStore: torch is imported here and not in an agent.

    python store_host.py FD

FD is an inherited socket that listens; clients that connect before torch is imported wait in its backlog. The program serves
until its stdin closes, so it ends with the process that started it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading


def main(descriptor: int) -> None:
    """Serve until stdin closes. Signals of a terminal are for the agent, which then closes this program's stdin."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_IGN)
    end = threading.Thread(target=_end_with_stdin, daemon=True)
    end.start()
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # torch's server asks for the name of each peer that connects, for its log, in the one thread that serves them all: a
    # name server that takes 5 s to answer once held every agent up for so long. It needs no names, so it asks for none.
    os.environ["RES_OPTIONS"] = "attempts:0"
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    with socket.socket(fileno=os.dup(descriptor)) as listening:
        host, port = listening.getsockname()[:2]
    _served = TCPStore(host, port, is_master=True, wait_for_workers=False, master_listen_fd=descriptor)
    end.join()


def _end_with_stdin() -> None:
    """End this program when stdin closes, also while torch is being imported. There is nothing here to lose."""
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
