"""The program that serves a TCPStore: torch's library is loaded here and not in an agent.

    python store_host.py FD [outlives] [whole]

FD is an inherited socket that listens; clients that connect before the library is loaded wait in its backlog. Its stdin is a
socket too. Each message there brings one more socket that listens: the program serves the store of a round on it, beside
its own, and drops that of the round before. A round's store begins empty, and its clients are the workers.

The program serves until its stdin closes, so it ends with the process that started it. With `outlives` it then serves on,
until no client has been connected for a while: the others of a job lose no store when the process that started it is killed.

Of torch only the library with the server is loaded, which takes a fifth of the time of `import torch`, and two thirds of the
memory. Where that fails, the program executes itself again with `whole`, and imports torch as everybody does.

Each client is a descriptor here: an agent has three, each register of its wrapped ranks another three, and a worker one or
more. So the program takes all descriptors that the hard limit allows, and says on stderr when nearly all of them are in use.
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
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from queue import SimpleQueue
from types import ModuleType
from typing import NoReturn

_LOOK_S = 2.0
"""How often the program counts its descriptors."""
_FEW = 16
"""So few descriptors left are too few for one more node."""
_IDLE_LOOKS = 2
"""Without a client in this many looks in a row, a program that outlived its parent ends."""

_handed: SimpleQueue[int] = SimpleQueue()
"""The sockets of rounds."""
_serves = threading.Event()
"""Set once the server takes the clients out of the backlog."""


def main(descriptor: int, outlives: bool, whole: bool) -> None:
    """Serve until stdin closes. Signals of a terminal or a scheduler are for the agent, which then closes that."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    _start(threading.Thread(target=_end_with_stdin, args=(outlives,), daemon=True))
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # torch's server asks for the name of each peer that connects, for its log, in the one thread that serves them all: a
    # name server that takes 5 s to answer once held every agent up for this long. It needs no names, so it asks for none.
    os.environ["RES_OPTIONS"] = "attempts:0"
    make = _imported() if whole or "torch" in sys.modules else _loaded() or _again_whole()

    def served(listening: int) -> object:
        # torch's constructor raises, minutes later, if its own client cannot connect. All addresses of this host are
        # served, but a host that listens on "::" may have no address of IPv6.
        where = "127.0.0.1", _port(listening)
        try:
            return make(*where, is_master=True, wait_for_workers=False, master_listen_fd=listening)
        except NotImplementedError:
            version = import_module("torch.version").__version__
            _say(f"store: torch {version} cannot serve on the agent's socket: install torch 2.8 or later")
            sys.exit(1)

    _served = served(descriptor)
    _serves.set()
    _serve_rounds(served)


def _loaded() -> Callable[..., object] | None:
    """Return the class of torch's store from its library alone, or None if this torch does not let it be loaded so.

    Python finds the library in an empty module that has torch's name and place. numpy would be imported for tensors; torch
    does without it.
    """
    found = find_spec("torch")
    if not found or not found.submodule_search_locations:
        return None
    for name, places in (("torch", found.submodule_search_locations), ("torch.distributed", ())):
        sys.modules[name] = module = ModuleType(name)
        module.__path__ = list(places)
    sys.modules["numpy"] = None  # type: ignore[assignment]
    try:
        library = import_module("torch._C")
        library._c10d_init()
        made: Callable[..., object] = library._distributed_c10d.TCPStore
    except (ImportError, AttributeError, RuntimeError, TypeError):
        return None
    return made


def _imported() -> Callable[..., object]:
    """Return the same class from the whole of torch; end this program if torch cannot be imported."""
    try:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]
    except ImportError as error:
        _say(f"store: torch cannot be imported here: {error}")
        sys.exit(1)
    made: Callable[..., object] = TCPStore
    return made


def _again_whole() -> NoReturn:
    """Become a fresh process of the same program, since this one has a half of torch.

    No round's socket is lost: an agent has one when a helper has answered, and the next helper loads what that one has.
    """
    os.execv(sys.executable, [*sys.orig_argv, "whole"])


def _start(thread: threading.Thread) -> None:
    """Start the thread, as soon as the host has one to give."""
    while True:
        try:
            return thread.start()
        except RuntimeError:
            time.sleep(0.05)


def _serve_rounds(served: Callable[[int], object]) -> NoReturn:
    """Serve the store of the last round, until the program ends. The job's store is served also when that fails."""
    store = None
    while True:
        listening = _handed.get()
        del store  # its port may be the next one's
        try:
            store = served(listening)
        except RuntimeError as error:
            store = None
            _say(f"store: the workers' store cannot be served: {error}")


def _port(listening: int) -> int:
    borrowed = socket.socket(fileno=listening)
    try:
        return int(borrowed.getsockname()[1])
    finally:
        borrowed.detach()


def _end_with_stdin(outlives: bool) -> None:
    """End this program when stdin closes, also while torch is being imported; if it `outlives` that, when it is idle."""
    agent, poll = socket.socket(fileno=0), select.poll()
    poll.register(agent, select.POLLIN)
    was_short = False
    while not poll.poll(_LOOK_S * 1_000) or _hears(agent):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        is_short = _descriptors(limit) > limit - _FEW
        if is_short and not was_short:
            _say(f"store: its {limit:,} descriptors are in use, and no other node can connect; raise ulimit -Hn here")
        was_short = is_short
    if outlives:
        _wait_until_idle()
    os._exit(0)


def _hears(agent: socket.socket) -> bool:
    """Take the socket of a round; return False if stdin has closed."""
    data, descriptors, *_ = socket.recv_fds(agent, 1, 1)
    for each in descriptors:
        _handed.put(each)
    return bool(data)


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
    main(int(sys.argv[1]), "outlives" in sys.argv, "whole" in sys.argv)
