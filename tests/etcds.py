"""Real etcd for tests: a member alone, or a cluster whose members a test kills, pauses, replaces and restores.

Data lies in memory where the machine has room for it (/dev/shm), since etcd 3.4 cannot be told not to sync. A member takes
128 MB before it is given anything: a log, and the next one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from attrs import define
from certificates import Authority as Authority
from etcd_members import Member as Member
from etcd_members import Place as Place
from etcd_members import etcdctl, wait_until
from ports import reserved

INSTALL = "write: apt-get install etcd-server etcd-client"
MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""For the members of all runners."""


@define(eq=False)
class Cluster:
    """Members that make one cluster. `user` is `name:password` for etcdctl, once authentication is on."""

    members: list[Member]
    folder: Path
    tls: Authority | None
    stack: ExitStack
    user: str | None = None

    @property
    def endpoints(self) -> str:
        """All members' `host:port`, as `--rdzv-endpoint` takes them."""
        return ",".join(member.endpoint for member in self.members)

    def start(self) -> None:
        for member in self.members:
            self.stack.callback(member.kill)
            member.start()
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """All members that run."""
        for member in self.members:
            if member.is_up:
                member.wait_until_healthy()

    def leader(self) -> Member:
        """The member that leads; waited for while there is none."""
        found: list[Member] = []

        def leads() -> bool:
            found[:] = [member for member in self.members if member.is_leader()]
            return len(found) == 1

        wait_until(leads, "one leader", self.account)
        return found[0]

    def followers(self) -> list[Member]:
        leader = self.leader()
        return [member for member in self.members if member is not leader]

    def etcdctl(self, *arguments: str | Path, member: Member | None = None, given: str = "") -> str:
        """What etcdctl prints, asked of this member, or of those that are up. Raises CalledProcessError."""
        asked = [member] if member else [each for each in self.members if each.is_up]
        flags = [f"--endpoints={','.join(each.client_url for each in asked)}"]
        flags += _client_flags(self.tls) if self.tls else []
        flags += [f"--user={self.user}"] if self.user else []
        return etcdctl(*flags, *arguments, given=given)

    def mend(self) -> None:
        """All members run."""
        for member in self.members:
            if member.paused:
                member.resume()
            elif not member.is_up:
                member.start()
        self.wait_until_healthy()

    def compact(self) -> None:
        """All history goes, up to now."""
        asked = self.etcdctl("get", "nothing", "--write-out=json")
        self.etcdctl("compact", str(json.loads(asked)["header"]["revision"]))

    def move_leader(self, to: Member) -> None:
        """Another member leads, by an operator's word. Raises CalledProcessError where it cannot just now."""
        listed = self.etcdctl("member", "list").splitlines()
        identity = next(line.split(",")[0] for line in listed if to.peer_url in line)
        self.etcdctl("move-leader", identity, member=self.leader())

    def snapshot(self, path: Path) -> None:
        self.etcdctl("snapshot", "save", path, member=self.leader())

    def restored(self, path: Path) -> Cluster:
        """End all members, and start a new cluster at the same addresses from a snapshot: its revision goes back, its id is
        another."""
        for member in self.members:
            member.kill()
        token = f"restored-{uuid4().hex}"
        members = [self._emptied(member) for member in self.members]
        for member in members:
            etcdctl(
                *("snapshot", "restore", path, f"--name={member.name}", f"--data-dir={member.data}"),
                *(f"--initial-cluster={_initial(members)}", f"--initial-cluster-token={token}"),
                f"--initial-advertise-peer-urls={member.peer_url}",
            )
        restored = Cluster(members, self.folder, self.tls, self.stack, self.user)
        restored.start()
        return restored

    def replace(self, lost: Member) -> Member:
        """The member's host is gone for good, with its data: another takes its address and its place. Needs a majority."""
        lost.kill()
        listed = self.etcdctl("member", "list").splitlines()
        identity = next(line.split(",")[0] for line in listed if lost.peer_url in line)
        self.etcdctl("member", "remove", identity)
        name = f"m{uuid4().hex[:6]}"
        self.etcdctl("member", "add", name, f"--peer-urls={lost.peer_url}")
        others = [member for member in self.members if member is not lost]
        new = Member(name, lost.place, lost.data.with_name(name), lost.log, self.tls)
        new.joins = (f"--initial-cluster={_initial([*others, new])}", "--initial-cluster-state=existing")
        self.members[self.members.index(lost)] = new
        self.stack.callback(new.kill)
        new.start()
        new.wait_until_healthy()
        return new

    def account(self) -> str:
        return "\n".join(member.account() for member in self.members)

    def _emptied(self, member: Member) -> Member:
        data = member.data.with_name(f"{member.name}-{uuid4().hex[:6]}")
        return Member(member.name, member.place, data, member.log, self.tls)


@contextmanager
def single(folder: Path, tls: Authority | None = None) -> Iterator[Cluster]:
    """A cluster of one."""
    with cluster(folder, 1, tls) as made:
        yield made


@contextmanager
def cluster(folder: Path, size: int = 3, tls: Authority | None = None) -> Iterator[Cluster]:
    """So many members on loopback, healthy; all are killed and their data removed at the end."""
    with ExitStack() as stack:
        places = [_place(stack) for _ in range(size)]
        made = assembled(folder, places, tls, stack)
        made.start()
        yield made


def assembled(folder: Path, places: list[Place], tls: Authority | None, stack: ExitStack) -> Cluster:
    """A cluster whose members run at these places, not started yet. `stack` removes its data."""
    skip_without_etcd()
    folder.mkdir(parents=True, exist_ok=True)
    where = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM else folder
    data = Path(stack.enter_context(TemporaryDirectory(prefix="elastic-etcd-", dir=where)))
    members = [
        Member(name, place, data / name, folder / f"{name}.log", tls)
        for name, place in zip((f"m{count}" for count in range(len(places))), places, strict=True)
    ]
    joins = f"--initial-cluster={_initial(members)}", f"--initial-cluster-token={uuid4().hex}"
    for member in members:
        member.joins = joins
    return Cluster(members, folder, tls, stack)


def skip_without_etcd() -> None:
    if missing := [name for name in ("etcd", "etcdctl") if shutil.which(name) is None]:
        pytest.skip(f"{' and '.join(missing)} not found, so nothing here was tried on a real etcd; {INSTALL}")


def _place(stack: ExitStack) -> Place:
    """On loopback, with ports that are nobody else's for as long as the stack stands."""
    client, peer, metrics = (stack.enter_context(reserved()) for _ in range(3))
    return Place("127.0.0.1", client, peer, metrics)


def _initial(members: list[Member]) -> str:
    return ",".join(f"{member.name}={member.peer_url}" for member in members)


def _client_flags(tls: Authority) -> list[str]:
    made = tls.client
    return [f"--cacert={tls.ca}", f"--cert={made.certificate}", f"--key={made.key}"]
