"""The network interface of a node's address, for the libraries that choose one by the host's name.

gloo and TensorPipe take the address to which the host's name resolves. On many hosts that is a loopback one (Debian's
127.0.1.1, a pod without a name), and workers of several nodes then wait for each other for ever. NCCL chooses by itself and
takes no loopback.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...addresses import is_loopback, outward, own_ipv4, resolved

VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def interface_variables(environment: Mapping[str, str], address: str) -> dict[str, str]:
    """Return the variables that name this address's interface to those libraries, where the host's name leads to the
    loopback; none that the user has set."""
    if all(name in environment for name in VARIABLES) or address == "localhost" or not name_is_loopback():
        return {}
    interface = interface_of(address)
    return {name: interface for name in VARIABLES if name not in environment} if interface else {}


def name_is_loopback() -> bool:
    """Return True if this host's name leads to no address, or to a loopback one."""
    try:
        return all(is_loopback(str(where[0])) for _, where in resolved(socket.gethostname()))
    except OSError:
        return True


def interface_of(address: str) -> str:
    """Return the name of the interface that has this address, or the address of this name. Of a name that leads to the
    loopback, as the host's own may, it is the interface of the default route, or the only other one. Empty for none."""
    try:
        wanted = {str(where[0]) for _, where in resolved(address)}
    except OSError:
        wanted = set()
    wanted = {each for each in wanted if not is_loopback(each)} or outward()
    return next((name for names in (own_ipv4(), _of_ipv6()) for name, own in names.items() if own & wanted), "")


def _of_ipv6() -> dict[str, set[str]]:
    found = dict[str, set[str]]()
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            digits, *_, name = line.split()
            found.setdefault(name, set()).add(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)))
    return found
