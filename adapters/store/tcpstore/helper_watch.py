"""The agent's end of the helper that serves its store: a thread that watches it, and starts the next one.

The agent keeps the listening socket. While no helper serves, the kernel takes connections into its backlog, and the next
helper finds them there: a client waits, and is not refused. A store that is served again is empty. The agents then write
back the register that they remember, as after any loss of a store (core/rendezvous/lives.py).

The helper serves the store of the round too, and so does the next helper. That store begins empty, and nobody gives back
what workers had written: those that have met run on without it, and one that asks it for something fails, or waits for its
time-out.

A helper loads a part of torch. The one that follows a helper that has died without an answer imports all of it.

`core/store_helper.py` decides when a helper is started and when it is killed. The thread only says what happened: the pidfd
tells of a death, and a connection of its own asks for an answer.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from ....core.store_helper import Answered, Command, Ended, Event, Helper, Passed, Started, Stirred, transition
from ....core.values import frozen
from ... import pidfds, threads
from ...clock import Clock, poll_ms
from ...process_stat import stat
from ...terminal import why
from .serving import CannotServe, StoreHost, claimed, claimed_alone, is_own, served
from .wire import MAGIC, PING, VALIDATE, Address

_LOOPBACK = "127.0.0.1"
_CONNECT_TIMEOUT_S = 0.5
"""The helper is on this host. Only a backlog that is full makes a connection wait."""


@frozen
class Watching:
    """How an agent watches its helper."""

    clock: Clock
    still_s: float
    """A helper that does not answer for this long is killed."""
    warn: Callable[[str], None]
    """This is called with a sentence for each death, from the thread."""
    end: Callable[[int], str]
    """Return how a process ended, in words, from subprocess's exit code."""
    is_alone: bool = False
    """The job has one node, which can do without the store."""
    served: Callable[[], None] = lambda: None
    """This is called from the thread when a helper answers for the first time."""
    gave_up: Callable[[], None] = lambda: None
    """The same when the store is served no longer."""


class HelperWatch:
    """A store that is served until this object is closed, by one helper after the other."""

    def __init__(self, address: Address, listening: socket.socket, host: StoreHost, watching: Watching) -> None:
        """The caller gives the socket away, and the helper that serves on it. Raises OSError, and ends both then."""
        self._address = address
        self._listening = listening
        self._watching = watching
        self._helper = Helper(watching.still_s, watching.clock.now())
        self._host = host
        self._pidfd = self._wake = -1
        self._round: socket.socket | None = None
        """It listens for the workers of the last round that was told."""
        self._probe = _Probe(address.port)
        self._cpu: bytes | None = None
        self._is_killed = self._is_closed = False
        self._said = ""
        """The last trouble since a helper answered. The same trouble once more is said when it is the last time."""
        self._lock = threading.Lock()
        """Held while the helper is another one soon."""
        self._thread = threading.Thread(target=self._run, name="elastic-store", daemon=True)
        try:
            self._pidfd = pidfds.opened(host.pid)
            self._wake = os.eventfd(0)
            threads.start(self._thread)
        except OSError:
            self.close()
            raise

    @contextmanager
    def children(self) -> Iterator[Collection[int]]:
        """Yield the process ids of the helper. None is started meanwhile."""
        with self._lock:
            yield (self._host.pid,)

    @property
    def has_given_up(self) -> bool:
        """True if it serves no longer, since no helper can be started. Any thread may ask."""
        return self._helper.given_up

    @property
    def is_hopeless(self) -> bool:
        """True if it has given up, and no helper has ever answered. Any thread may ask."""
        return self._helper.given_up and not self._helper.has_served

    @property
    def remedy(self) -> str:
        """Return the sentence about this store while it does not answer. Any thread may ask."""
        helper = self._helper
        if helper.given_up:
            return "this node serves it no longer; start its agent again"
        if helper.is_starting or not helper.runs:
            return "this node serves it, and its helper is being started"
        return f"this node serves it, and kills its helper after {self._watching.still_s:g} s without an answer"

    def serve_round(self, listening: socket.socket) -> None:
        """Serve the store of a round on this socket, which the caller gives away, and the last round's no longer."""
        with self._lock:
            self._let_round_go()
            if self.has_given_up:
                _refuse(listening)
            else:
                self._round = listening
                self._host.hand(listening)

    def _let_round_go(self) -> None:
        if self._round:
            self._round.close()
            self._round = None

    def release(self, is_needed: bool) -> None:
        """End the use of the store, which ends with its agent, whoever needs it. Idempotent."""
        self.close()

    def close(self) -> None:
        """Serve no longer. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._thread.ident is not None:
            os.eventfd_write(self._wake, 1)
            self._thread.join()
        self._probe.close()
        for descriptor in (self._pidfd, self._wake):
            if descriptor >= 0:
                os.close(descriptor)
        self._host.close()
        self._listening.close()
        self._let_round_go()

    # --- the thread

    def _run(self) -> None:
        while event := self._next():
            self._helper, command = transition(self._helper, event)
            if command and (consequence := self._carried_out(command)):
                self._helper, _ = transition(self._helper, consequence)

    def _next(self) -> Event | None:
        """Wait for what happens next; None at the end."""
        ready = self._ready()
        now = self._watching.clock.now()
        if self._wake in ready:
            return None
        if self._pidfd in ready:
            return self._buried(now)
        if self._probe.descriptor in ready:
            self._probe.hear()
            self._said = ""
            if self._helper.is_starting:
                self._watching.served()
            return Answered(now)
        if self._helper.is_starting and now >= self._helper.at and self._has_stirred():
            return Stirred()
        return Passed(now)

    def _ready(self) -> set[int]:
        poll = select.poll()
        for descriptor in (self._wake, self._pidfd, self._probe.descriptor):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll(poll_ms(self._helper.at - self._watching.clock.now()))}

    def _buried(self, now: float) -> Ended:
        """Reap the helper, and say how it ended."""
        with self._lock:
            code = self._host.wait()
            self._host.close()
        os.close(self._pidfd)
        self._pidfd = -1
        self._probe.close()
        how = f"was killed: no answer for {self._watching.still_s:g} s" if self._is_killed else self._watching.end(code)
        return self._failed(now, f"the store's helper {how}")

    def _failed(self, now: float, what: str) -> Ended:
        """Say what went wrong, and what follows."""
        event = Ended(now)
        after, _ = transition(self._helper, event)
        wait_s = after.at - now
        follows = f"this node serves store {self._address} again{f' in {wait_s:.0f} s' if wait_s >= 1 else ''}"
        if after.given_up:
            what_then = "its job goes on without one" if self._watching.is_alone else "start its agent again"
            follows = f"{after.mute} in a row, so this node serves store {self._address} no longer; {what_then}"
        if what != self._said or after.given_up:
            self._said = what
            self._watching.warn(f"{what}; {follows}")
        return event

    def _carried_out(self, command: Command) -> Event | None:
        match command:
            case Command.START:
                return self._started()
            case Command.LOOK:
                self._probe.ask()
            case Command.KILL:
                self._is_killed = True
                self._host.kill()
            case Command.GIVE_UP:
                with self._lock:  # a client is refused, and does not wait in vain
                    self._listening.close()
                    if self._round:
                        _refuse(self._round)
                    self._let_round_go()
                self._watching.gave_up()
        return None

    def _started(self) -> Event:
        self._is_killed, self._cpu = False, None
        with self._lock:
            try:
                self._host = StoreHost(self._listening.dup(), whole=not self._helper.has_served)
                self._pidfd = pidfds.opened(self._host.pid)
                if self._round:
                    self._host.hand(self._round)
            except OSError as error:
                self._host.close()
                return self._failed(self._watching.clock.now(), f"the store's helper cannot be started: {why(error)}")
        return Started(self._watching.clock.now())

    def _has_stirred(self) -> bool:
        """Return True if the helper has used CPU time since the last look."""
        before, self._cpu = self._cpu, _cpu_time(self._host.pid)
        return before != self._cpu


def _refuse(listening: socket.socket) -> None:
    """Close this socket and listen no longer, though the port's reservation holds the same socket by another descriptor."""
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RD)
    listening.close()


def serve_watched(address: Address, told: bool | None, watching: Watching) -> tuple[HelperWatch | None, Address]:
    """Serve the store at `address` if this host should, as `serve` has the rule, and again when its helper dies. Returns the
    watch, and where this host reaches the store, with its real port: not by an address that is translated, because few
    networks lead that back to where it came from. Raises CannotServe."""
    listening = claimed(address, told)
    if listening is None:
        return None, address
    watch, at = _watched(address, listening, watching)
    if not told or is_own(address):
        return watch, at
    watching.warn(
        f"this node serves store {at}, which no interface here has as an address (is_host=true): right on the one node "
        "behind it; on any other the job falls into two"
    )
    return watch, Address(_LOOPBACK, at.port)


def watch_alone(address: Address, watching: Watching) -> tuple[HelperWatch, Address]:
    """Serve the store at `address` in the same way without an agent. Raises CannotServe."""
    return _watched(address, claimed_alone(address), watching)


def _watched(address: Address, listening: socket.socket, watching: Watching) -> tuple[HelperWatch, Address]:
    try:
        kept = listening.dup()
    except OSError as error:
        listening.close()
        raise CannotServe(f"{address}: {why(error)}; see ulimit -n") from error
    try:
        host, bound = served(address, listening)
        return HelperWatch(bound, kept, host, watching), bound
    except CannotServe:
        kept.close()
        raise
    except OSError as error:
        raise CannotServe(f"{address}: the store's process cannot be watched: {why(error)}") from error


class _Probe:
    """A connection to the helper, and at most one question on it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._is_asked = False

    @property
    def descriptor(self) -> int:
        """The descriptor that becomes readable with the answer; -1 if no question is out."""
        return self._socket.fileno() if self._socket and self._is_asked else -1

    def ask(self) -> None:
        """Ask, if no question is out. A helper that cannot be asked has not answered."""
        if not self._is_asked:
            with suppress(OSError):
                self._asked().send(struct.pack("<BI", PING, 0))
                self._is_asked = True

    def hear(self) -> None:
        """Take the answer. A helper that hangs up, since it has no descriptor left, answers too."""
        self._is_asked = False
        try:
            heard = self._socket.recv(64) if self._socket else b""
        except OSError:
            heard = b""
        if not heard:
            self.close()

    def close(self) -> None:
        self._is_asked = False
        if self._socket:
            self._socket.close()
            self._socket = None

    def _asked(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection((_LOOPBACK, self._port), timeout=_CONNECT_TIMEOUT_S)
            self._socket.send(struct.pack("<BI", VALIDATE, MAGIC))
        return self._socket


def _cpu_time(pid: int) -> bytes | None:
    """Return the CPU time that a process has used, as the kernel spells it."""
    try:
        return b" ".join(stat(pid)[11:13])
    except OSError:
        return None
