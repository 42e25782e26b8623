"""Histories of a register: programs with clients of a real store, what goes wrong with both, and the check.

The programs run on hosts of their own (netlab.py), and so do the three members of an etcd. A TCPStore is served by this
process.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from uuid import uuid4

import etcds
import linearizability
import register_client
from attrs import define, field, frozen
from etcd_members import wait_until
from faults import Break, Breaks, Chaos, cut, deafen, nothing, of_member, then
from linearizability import Loss, Operation, Refused, Write
from netlab import MINE, Host, Network, network
from ports import reserved
from processes import comes_true, is_stopped
from tcpstores import own_store

PROGRAMS = ("p", "q", "r")
QUOTA = 4 * 2**20
"""Bytes. A quota that is soon used up."""
FILLINGS = (2**19, 2**16)
"""Bytes. The space is filled with the large ones first, until there is no room for two more small ones."""


@define(eq=False)
class TCPStore:
    """A TCPStore, which is paused, and killed with all that it holds."""

    network: Network
    port: int
    stack: ExitStack
    losses: list[Operation] = field(factory=list)
    kind: str = "tcpstore"
    pid: int = 0

    @property
    def hosts(self) -> Sequence[Host]:
        return (Host("tests", "", f"{self.network.net}.{MINE}"),)

    @property
    def addresses(self) -> str:
        return f"{self.hosts[0].address}:{self.port}"

    def start(self) -> None:
        host, _ = self.stack.enter_context(own_store(self.port))
        self.pid = host.pid

    def victims(self) -> Sequence[str]:
        """Return the names of what can be broken."""
        return ("store",)

    def breaks(self, victim: str, callers: Sequence[Host]) -> Breaks:
        yield "pause", lambda: then(lambda: _pause(self.pid), lambda: os.kill(self.pid, signal.SIGCONT))
        yield "kill", lambda: then(self._kill, self.start)

    def mend(self) -> None:
        """Its faults mend it."""

    def account(self) -> str:
        return ""

    def _kill(self) -> None:
        began_at = time.monotonic_ns()
        self.stack.close()
        self.losses.append(Operation("store", "store", Loss(), began_at, time.monotonic_ns()))


@define(eq=False)
class Etcd:
    """Three members of an etcd, each on a host of its own. Its quota is small."""

    network: Network
    cluster: etcds.Cluster
    losses: Sequence[Operation] = ()
    kind: str = "etcd"

    @property
    def hosts(self) -> Sequence[Host]:
        return [self.network.hosts[name] for name in self._members]

    @property
    def addresses(self) -> str:
        return self.cluster.endpoints

    @property
    def _members(self) -> list[str]:
        return [name for name in self.network.hosts if name.startswith("m")]

    def victims(self) -> Sequence[str]:
        return (*self._members, "cluster")

    def breaks(self, victim: str, callers: Sequence[Host]) -> Breaks:
        if victim != "cluster":
            return of_member(self.network, self.cluster, victim, callers)
        return [("fill", lambda: then(self._fill, self._empty)), ("move the leader", self._move_leader)]

    def mend(self) -> None:
        """Make it whole, whatever happened to it."""
        for member in self.cluster.members:
            if not member.is_up:
                member.start()
        self.cluster.leader()
        self._empty()
        self.cluster.mend()

    def account(self) -> str:
        return self.cluster.account()

    def _fill(self) -> None:
        """Use the quota up, but for a little that the programs use up."""
        if self._is_able:
            with suppress(CalledProcessError):
                for size in FILLINGS:
                    while max(map(_size, self.cluster.members)) + 2 * size < QUOTA:
                        self.cluster.etcdctl("put", f"filling/{uuid4()}", given="x" * size)

    def _empty(self) -> None:
        """As an operator makes room again."""
        if self._is_able:
            with suppress(CalledProcessError):
                self.cluster.etcdctl("del", "filling/", "--prefix")
                self.cluster.compact()
                for member in self.cluster.members:
                    self.cluster.etcdctl("defrag", member=member)
                self.cluster.etcdctl("alarm", "disarm")

    @property
    def _is_able(self) -> bool:
        """All members run, and one leads. etcdctl would wait long for those that do not."""
        members = self.cluster.members
        return all(member.is_up for member in members) and sum(member.is_leader() for member in members) == 1

    def _move_leader(self) -> Callable[[], object]:
        if self._is_able:
            with suppress(CalledProcessError):
                self.cluster.move_leader(self.cluster.followers()[0])
        return nothing


Store = TCPStore | Etcd


@frozen
class Recording:
    """What came of a run."""

    history: Sequence[Operation]
    found: linearizability.Contradiction | None

    def __str__(self) -> str:
        counted = Counter(_kind(each) for each in self.history)
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counted.items()))


@define(eq=False)
class Recorder:
    """The programs of one run."""

    store: Store
    network: Network
    folder: Path
    seed: int
    run_id: str = field(factory=lambda: uuid4().hex)
    running: dict[str, subprocess.Popen[bytes]] = field(factory=dict)
    written: list[Path] = field(factory=list)

    def start(self, name: str) -> None:
        """Start a program, on the same host if it was killed."""
        host = self.network.hosts.get(name) or self.network.host(name)
        session = f"{name}{len(self.written)}"
        path = self.folder / f"{session}.history"
        path.touch()
        self.written.append(path)
        given = path, self.store.kind, self.store.addresses, self.run_id, session, self.seed
        command = [*host.under, sys.executable, register_client.__file__, *map(str, given)]
        self.running[name] = subprocess.Popen(command, stdin=subprocess.PIPE)

    def kill(self, name: str) -> None:
        """Kill a program that runs."""
        program = self.running.pop(name)
        has_ended = program.poll()
        program.kill()
        program.communicate()
        assert has_ended is None, f"{name} ended by itself: {has_ended}"

    def breaks(self, victim: str) -> Breaks:
        """Return what can happen to a part of the store, or to a program."""
        hosts = [self.network.hosts[name] for name in PROGRAMS]
        return self._of_program(victim) if victim in PROGRAMS else self.store.breaks(victim, hosts)

    def _of_program(self, name: str) -> Iterator[tuple[str, Break]]:
        program, host = self.running[name], self.network.hosts[name]
        yield "pause", lambda: then(lambda: _pause(program.pid), lambda: program.send_signal(signal.SIGCONT))
        yield "kill", lambda: then(lambda: self.kill(name), lambda: self.start(name))
        yield "cut from the store", lambda: cut(self.network, host, *self.store.hosts)
        yield "cut from one member", lambda: cut(self.network, host, self.store.hosts[-1])
        yield "deafen to the store", lambda: deafen(self.network, host, *self.store.hosts)

    def wait_for_answers(self) -> None:
        """Wait until each program writes again."""
        latest = [[path for path in self.written if path.name.startswith(name)][-1] for name in PROGRAMS]
        sizes = {path: path.stat().st_size for path in latest}

        def writes(path: Path) -> bool:
            return b'["ended"' in path.read_bytes()[sizes[path] :]

        wait_until(lambda: all(map(writes, sizes)), "answers", self.store.account)

    def stop(self) -> None:
        """End the programs, and wait for them. Each must have met nothing that it does not know."""
        for program in self.running.values():
            program.communicate()
        assert {program.returncode for program in self.running.values()} <= {0}

    def recorded(self) -> Recording:
        history = [*self.store.losses]
        for path in self.written:
            with path.open() as lines:
                history += register_client.read(lines)
        return Recording(history, linearizability.contradiction(history))


@contextmanager
def tcpstore() -> Iterator[tuple[Store, Network]]:
    with network() as joined, reserved() as port, ExitStack() as stack:
        store = TCPStore(joined, port, stack)
        store.start()
        yield store, joined


@contextmanager
def etcd(folder: Path) -> Iterator[tuple[Store, Network]]:
    with network() as joined, ExitStack() as stack:
        hosts = [joined.host(f"m{count}") for count in range(3)]
        places = [etcds.Place(host.address, 2379, 2380, 2381, host.under) for host in hosts]
        cluster = etcds.assembled(folder / "etcd", places, None, stack)
        for member in cluster.members:
            member.joins += (f"--quota-backend-bytes={QUOTA}",)
        cluster.start()
        yield Etcd(joined, cluster), joined


def record(
    stage: AbstractContextManager[tuple[Store, Network]], folder: Path, seed: int, steps: int
) -> tuple[Recording, Chaos]:
    """Let the programs ask a store while so many random faults happen."""
    folder.mkdir(parents=True)
    with stage as (store, joined):
        recorder = Recorder(store, joined, folder, seed)
        chaos = Chaos(Random(seed), lambda: (*store.victims(), *PROGRAMS), recorder.breaks)
        try:
            for name in PROGRAMS:
                recorder.start(name)
            recorder.wait_for_answers()
            for _ in range(steps):
                chaos.step()
            chaos.mend()
            joined.heal()
            store.mend()
            recorder.wait_for_answers()
            recorder.stop()
        finally:
            for program in recorder.running.values():
                program.kill()
                program.communicate()
        return recorder.recorded(), chaos


def _size(member: etcds.Member) -> int:
    """Return the bytes that count against the quota; 0 if it does not say."""
    found = re.search(rb"\netcd_mvcc_db_total_size_in_bytes (\S+)\n", member.asked("/metrics"))
    return int(float(found[1])) if found else 0


def _kind(operation: Operation) -> str:
    match operation.effect:
        case Write():
            return "doubtful" if operation.ended_at is None else "landed"
        case Refused():
            return "refused"
        case Loss():
            return "losses"
        case _:
            return "pushed" if operation.pushed else "read"


def _pause(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    assert comes_true(lambda: is_stopped(pid))
