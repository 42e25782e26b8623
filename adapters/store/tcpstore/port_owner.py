"""Which program has the port of a store on this host, where it is no store: a name for people, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...terminal import printable
from .serving import ANSWER_S, answers, is_own
from .wire import Address

AT_ONCE_S = 0.1
"""One that is idle answers in this time, and the processes of this host are not looked at."""
HIDDEN = "another program"
"""The owner's process cannot be seen: it is another user's, or in another container."""
_LISTENS = "0A"
_LAUNCHERS = ("elastic", "torchrun", "torch.distributed", "torch/distributed", "store_host.py")
"""A command with one of these words may be about to serve a store."""
_COMMAND_MAX = 80


def stranger(address: Address) -> str:
    """Return the program of this host that has the port and serves no store: `pid 123 (python3 -m http.server)`, or
    `another program` where its process cannot be seen. Empty: nobody has the port, or a store, or a launcher that may be
    starting one; or the address is another host's."""
    sockets = set(_listening(address.port))
    if not sockets or not is_own(address) or answers(address, AT_ONCE_S):
        return ""
    commands = dict(_owners(sockets))
    if any(word in command for command in commands.values() for word in _LAUNCHERS) or answers(address, ANSWER_S):
        return ""
    owners = [f"pid {pid} ({printable(command[:_COMMAND_MAX])})" for pid, command in sorted(commands.items())]
    return ", ".join(owners) or HIDDEN


def _listening(port: int) -> Iterator[str]:
    """Yield the links of the sockets that listen at this port, as /proc/PID/fd shows them."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):  # no IPv6, or no /proc
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and fields[1].endswith(f":{port:04X}"):
                    yield f"socket:[{fields[9]}]"


def _owners(sockets: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the processes that have one of these sockets, and their commands. Those of other users may be hidden."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if any(_link(f"/proc/{pid}/fd/{each}") in sockets for each in os.listdir(f"/proc/{pid}/fd")):
                command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield int(pid), " ".join(command.split())


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
