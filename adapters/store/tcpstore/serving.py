"""Serve a TCPStore: from the first agent on the endpoint's host that gets the port, or from `elastic store`.

The server binds and listens itself, so of several processes on one host exactly one wins. It hands the socket to a helper
program that loads torch's library and serves. Clients that connect meanwhile wait in the backlog.
"""

from __future__ import annotations

import errno
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

from ... import addresses
from ...clean_up import await_end, end_process
from ...secret_variables import without_secrets
from ...terminal import why
from .wire import Address, Broken, Unsent, WireClient

_BACKLOG = 4_096
ANSWER_S = 0.5
"""A store that runs answers in this time."""
PROGRAM = Path(__file__).with_name("store_host.py")


class CannotServe(OSError):
    """This host should serve the store and cannot. The text says why."""


class StoreHost:
    """The helper process that serves a store until this object is closed. It ends with this process.

    With `outlives` it serves until the end of this process. If the store is needed then, or if this process is killed, it
    serves on, and ends by itself when no client is connected any longer. `whole`: it imports the whole of torch.
    """

    def __init__(self, listening: socket.socket, outlives: bool = False, whole: bool = False) -> None:
        with listening, ExitStack() as opened:
            self._line, line = socket.socketpair()
            opened.enter_context(self._line)
            with line:
                ways = (["outlives"] if outlives else []) + (["whole"] if whole else [])
                self._helper = subprocess.Popen(
                    [sys.executable, "-P", str(PROGRAM), str(listening.fileno()), *ways],
                    env=without_secrets(),
                    stdin=line.fileno(),
                    stdout=subprocess.DEVNULL,
                    pass_fds=(listening.fileno(),),
                    start_new_session=True,
                )
            self._line.setblocking(False)
            opened.pop_all()
        self._outlives = outlives
        self._is_needed = True
        if outlives:
            from multiprocessing.util import Finalize  # no agent needs it

            # A child of multiprocessing runs no atexit. A child that this process forks runs neither for its parent.
            Finalize(None, self._end, exitpriority=0)

    @property
    def pid(self) -> int:
        return self._helper.pid

    def wait(self) -> int:
        """Reap the helper, which is dead. Returns subprocess's exit code: that of SIGKILL if a debugger keeps it."""
        await_end(self._helper)
        return -signal.SIGKILL if self._helper.returncode is None else self._helper.returncode

    @property
    def lives(self) -> bool:
        return self._helper.poll() is None

    def hand(self, listening: socket.socket) -> None:
        """Have the helper serve the store of a round on this socket, which stays the caller's. It drops the last round's."""
        with suppress(OSError):  # the helper has died
            socket.send_fds(self._line, [b"."], [listening.fileno()])

    def release(self, is_needed: bool) -> None:
        """End the use of the store. `is_needed`: others still use it. Idempotent."""
        self._is_needed = is_needed
        if not self._outlives:
            self.close()

    def _end(self) -> None:
        """End with the process."""
        if not self._is_needed:
            self.close()
        else:
            self._line.close()

    def kill(self) -> None:
        """Kill the helper. Somebody waits for it."""
        self._helper.kill()

    def close(self) -> None:
        """Kill the helper: it holds nothing that could be lost, and torch is slow to end. Idempotent."""
        end_process(self._helper)
        self._line.close()


_lasting: dict[Address, StoreHost] = {}
"""The helpers that may outlive this process."""


def serve(address: Address, told: bool | None, outlives: bool = False) -> tuple[StoreHost | None, Address]:
    """Serve the store at `address` if this host should. Returns the helper, and the address with its real port.

    `told` True: this host must, or CannotServe; False: it must not; None: it does if the address is one of its own and
    nobody listens there yet, as torch's c10d decides it. `outlives`: the store may outlive this process, which has one such
    helper for an address.
    """
    if outlives and told is not False and (host := _lasting.get(address)) and host.lives:
        host.release(is_needed=True)
        return host, address
    listening = claimed(address, told)
    return served(address, listening, outlives) if listening else (None, address)


def claimed(address: Address, told: bool | None) -> socket.socket | None:
    """Return the listening socket if this host should serve the store at `address`: `serve` has the rule. Raises
    CannotServe."""
    if told is False:
        return None
    if told is None:
        _check_is_one_host(address)
    try:
        if told and not is_own(address):
            return _listen_behind(address)
        return _listen(address)
    except OSError as error:
        if told:
            raise _refused(address, error) from error
        return None


def check_is_here(address: Address) -> None:
    """Raise CannotServe if a host that was told to serve the store at this address does not have it."""
    try:
        addresses.check_own(*addresses.resolved(address.host, address.port)[0])
    except OSError as error:
        raise _refused(address, error) from error


def _refused(address: Address, error: OSError) -> CannotServe:
    return _told_but(address, f"{_why(error)}; {_remedy(error)}, or is_host=false where another serves it")


def _told_but(address: Address, reason: str) -> CannotServe:
    return CannotServe(f"{address}: this node was told to serve the store there (is_host), but {reason}")


def _listen_behind(address: Address) -> socket.socket:
    """Listen for what comes to an address that is translated to one of this host's: that of a service, or of a host with a
    container. A store that answers there already is another one. Raises OSError and CannotServe."""
    addresses.resolved(address.host, address.port)
    if answers(address, ANSWER_S):
        raise _told_but(address, "a store answers there, and the address is none of this host's; write is_host=false")
    return _listen_everywhere(address.port)


def answers(address: Address, timeout_s: float) -> bool:
    """Return True if a store answers at this address."""
    try:
        with WireClient(address, timeout_s, 1) as client:
            client.greet()
    except (Unsent, Broken):
        return False
    return True


def claimed_alone(address: Address) -> socket.socket:
    """Return the listening socket of a store without an agent. Raises CannotServe."""
    try:
        return _listen(address)
    except OSError as error:
        free = ", or 0 for any that is free" if error.errno == errno.EADDRINUSE else ""
        raise CannotServe(f"{address}: {_why(error)}; {_remedy(error)}{free}") from error


def served(address: Address, listening: socket.socket, outlives: bool = False) -> tuple[StoreHost, Address]:
    """Start the helper that serves on this socket, which is closed here. Returns it, and the address with its real port.
    Raises CannotServe."""
    if find_spec("torch") is None:
        listening.close()
        raise CannotServe(
            f"{address}: this node is to serve the store there, which needs torch; "
            "install elastic-launch as before, with [torch] behind it"
        )
    bound = Address(address.host, listening.getsockname()[1])
    try:
        host = StoreHost(listening, outlives)
    except OSError as error:
        remedy = "see ulimit -n, ulimit -u, and pids.max of the container"
        raise CannotServe(f"{address}: the store's process cannot be started: {why(error)}; {remedy}") from error
    if outlives:
        _lasting[bound] = host
    return host, bound


def _why(error: OSError) -> str:
    return "somebody listens there already" if error.errno == errno.EADDRINUSE else why(error)


def _remedy(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "name another port"
        case errno.EACCES:
            return "name a port above 1023"
        case _:
            return "name an address or name of this host"


def _check_is_one_host(address: Address) -> None:
    """Raise CannotServe if a name leads to this host and to others, as that of a headless service does: each of them would
    serve a store of its own. Only addresses of one family are compared: a host may have a second family that is switched
    off."""
    found: dict[int, dict[str, bool]] = {}
    with suppress(OSError):  # a name that nobody knows yet leads nowhere
        for family, where in addresses.resolved(address.host, address.port):
            own = addresses.is_own(family, where) or addresses.is_loopback(str(where[0]))
            found.setdefault(family, {})[str(where[0])] = own
    for of_family in found.values():
        if len({*of_family.values()}) > 1:
            raise CannotServe(
                f"{address}: {address.host} names several hosts ({', '.join(sorted(of_family))}), and each of them would "
                "serve a store; name one host, or write --rdzv-conf=is_host=true on one of them and is_host=false on the "
                "others"
            )


def is_own(address: Address) -> bool:
    """Return True if the first address of this name is one of this host's."""
    try:
        family, where = addresses.resolved(address.host, address.port)[0]
    except OSError:
        return False
    return addresses.is_own(family, where)


def is_loopback(address: Address) -> bool:
    """Return True if only processes of this host reach this address."""
    try:
        found = addresses.resolved(address.host, address.port)
    except OSError:
        return False
    return all(addresses.is_loopback(str(where[0])) for _, where in found)


def _listen(address: Address) -> socket.socket:
    """Listen on every address of this host. Raises OSError if `address` is none of them, or if the port is taken."""
    addresses.check_own(*addresses.resolved(address.host, address.port)[0])
    return _listen_everywhere(address.port)


def _listen_everywhere(port: int) -> socket.socket:
    return socket.create_server(
        ("::" if socket.has_dualstack_ipv6() else "", port),
        family=socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET,
        dualstack_ipv6=socket.has_dualstack_ipv6(),
        backlog=_BACKLOG,
    )


def has_route(address: Address) -> bool:
    """Return True if this host knows the name in `address`, and a route to it."""
    try:
        return bool(addresses.sources(address.host, address.port or 1))
    except OSError:
        return False


def address_towards(address: Address) -> str:
    """Return the address by which other nodes reach this host: the one from which this host reaches the store. Where that is
    a loopback one, though the store's name is another one (Debian gives a host's own name 127.0.1.1), or where nobody knows
    the name, it is that of the default route, if there is one."""
    try:
        own = addresses.source(address.host, address.port or 1)
    except OSError:
        return next(iter(addresses.outward()), socket.gethostname())
    if not addresses.is_loopback(own):
        return own
    return "localhost" if address.host in ("localhost", own) else next(iter(addresses.outward()), "localhost")
