"""The program that serves a TCPStore: torch is imported here and not in an agent.

    python store_host.py FD [outlives]

FD is an inherited socket that listens; clients that connect before torch is imported wait in its backlog. The program
serves until its stdin closes, so it ends with the process that started it. With `outlives` it then serves on, until no
client has been connected for a while: the others of a job lose no store when the process that started it is killed.

Each client is a descriptor here: an agent has three, and each register of its wrapped ranks another three. So the program
takes all descriptors that the hard limit allows, and says on stderr when nearly all of them are in use.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import sys
import threading
import time

_LOOK_S = 2.0
"""How often the program counts its descriptors."""
_FEW = 16
"""So few descriptors left are too few for one more node."""
_IDLE_LOOKS = 2
"""Without a client in this many looks in a row, a program that outlived its parent ends."""

_serves = threading.Event()
"""Set once the server takes the clients out of the backlog."""


def main(descriptor: int, outlives: bool) -> None:
    """Serve until stdin closes. Signals of a terminal or a scheduler are for the agent, which then closes that."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    end = _started(threading.Thread(target=_end_with_stdin, args=(outlives,), daemon=True))
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # torch's server asks for the name of each peer that connects, for its log, in the one thread that serves them all: a
    # name server that takes 5 s to answer once held every agent up for this long. It needs no names, so it asks for none.
    os.environ["RES_OPTIONS"] = "attempts:0"
    try:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]
    except ImportError as error:
        _say(f"store: torch cannot be imported here: {error}")
        sys.exit(1)

    with socket.socket(fileno=os.dup(descriptor)) as listening:
        port = listening.getsockname()[1]
    # torch's constructor raises, minutes later, if its own client cannot connect. All addresses of this host are served,
    # but a host that listens on "::" may have no address of IPv6.
    _served = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=descriptor)
    _serves.set()
    end.join()


def _started(thread: threading.Thread) -> threading.Thread:
    """Start the thread, as soon as the host has one to give."""
    while True:
        try:
            thread.start()
        except RuntimeError:
            time.sleep(0.05)
        else:
            return thread


def _end_with_stdin(outlives: bool) -> None:
    """End this program when stdin closes, also while torch is being imported; if it `outlives` that, when it is idle."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    was_short = False
    while not poll.poll(_LOOK_S * 1_000) or os.read(0, 1):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        is_short = _descriptors(limit) > limit - _FEW
        if is_short and not was_short:
            _say(f"store: its {limit:,} descriptors are in use, and no other node can connect; raise ulimit -Hn here")
        was_short = is_short
    if outlives:
        _wait_until_idle()
    os._exit(0)


def _wait_until_idle() -> None:
    _serves.wait()
    idle = 0
    while idle < _IDLE_LOOKS:
        time.sleep(_LOOK_S)
        idle = 0 if _has_clients() else idle + 1


def _has_clients() -> bool:
    """Return True if another process is connected, or if there is no descriptor to find out by."""
    own, peers = set(), set()
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return True
    for name in names:
        try:
            borrowed = socket.socket(fileno=int(name))
        except OSError:
            continue  # no socket
        try:
            if borrowed.family in (socket.AF_INET, socket.AF_INET6):
                own.add(_ends(borrowed.getsockname()))
                peers.add(_ends(borrowed.getpeername()))
        except OSError:
            pass  # not connected
        finally:
            borrowed.detach()
    return bool(peers - own)  # the server has a client of its own


def _ends(name: tuple[str, int]) -> tuple[str, int]:
    return name[0].removeprefix("::ffff:"), name[1]


def _descriptors(limit: int) -> int:
    """Return how many descriptors are in use; all of them, if there is none to count them by."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return limit if error.errno == errno.EMFILE else 0


def _say(text: str) -> None:
    try:
        os.write(2, f"elastic  {text}\n".encode())
    except OSError:
        pass  # nobody reads it any more


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["outlives"])
