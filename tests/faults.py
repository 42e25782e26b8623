"""Random faults of what a test runs: one after another, some at once, each of a victim that is whole, for a short time.

Everything is drawn from one seed: which fault, of whom, for how long. When the kernel gets to it is not, so a seed says what
was done, and not what came of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from random import Random
from subprocess import CalledProcessError

from attrs import define, field, frozen
from etcdlab import Lab
from etcds import Cluster
from netlab import Host, Network

SPANS_S = (0.05, 0.2, 0.5, 1.0, 3.0)
"""How long a fault lasts: the last one outlives a lease."""
GAP_MAX_S = 0.3
STANDBY = "--standby"

Mend = Callable[[], object]
Break = Callable[[], Mend]
Breaks = Iterable[tuple[str, Break]]
"""What can be done to one victim, by name."""


@frozen
class Fault:
    """Something that is broken until it is mended."""

    name: str
    victim: str
    mends_at: float
    mend: Mend


@define
class Chaos:
    """What it does, step by step. `told` says all of it."""

    chance: Random
    victims: Callable[[], Iterable[str]]
    breaks: Callable[[str], Breaks]
    told: list[str] = field(factory=list)
    broken: list[Fault] = field(factory=list)

    def step(self) -> None:
        """One more fault, and the end of those that have lasted long enough."""
        whole = [name for name in self.victims() if name not in {fault.victim for fault in self.broken}]
        if whole:
            victim, span = self.chance.choice(whole), self.chance.choice(SPANS_S)
            breaks = dict(self.breaks(victim))
            name = self.chance.choice(sorted(breaks))
            self.told.append(f"{len(self.told)}: {name} {victim} for {span} s")
            self.broken.append(Fault(name, victim, time.monotonic() + span, breaks[name]()))
        time.sleep(self.chance.uniform(0.0, GAP_MAX_S))
        self._mend(lambda fault: time.monotonic() >= fault.mends_at)

    def mend(self) -> None:
        self._mend(lambda fault: True)

    def _mend(self, is_due: Callable[[Fault], bool]) -> None:
        for fault in [fault for fault in self.broken if is_due(fault)]:
            self.broken.remove(fault)
            fault.mend()


def chaos_of(lab: Lab, chance: Random) -> Chaos:
    """What can happen to a job on etcd."""

    def breaks(victim: str) -> Breaks:
        if not victim.startswith("m"):
            return _of_agent(lab, victim, chance)
        agents = [lab.host(agent) for agent in lab.agents]
        return of_member(lab.network, lab.cluster, victim, agents)

    return Chaos(chance, lambda: lab.network.hosts, breaks)


def of_member(network: Network, cluster: Cluster, name: str, callers: Sequence[Host]) -> Iterator[tuple[str, Break]]:
    """What can happen to the etcd member on the host of this name. `callers` are the hosts of its clients."""
    host = network.hosts[name]
    member = next(each for each in cluster.members if each.place.host == host.address)
    addresses = {each.place.host for each in cluster.members if each is not member}
    others = [each for each in network.hosts.values() if each.address in addresses]
    yield "kill", lambda: then(member.kill, member.start)
    yield "pause", lambda: then(member.pause, member.resume)
    yield "cut from the members", lambda: cut(network, host, *others)
    yield "cut from the agents", lambda: cut(network, host, *callers)
    yield "deafen to the agents", lambda: deafen(network, host, *callers)
    yield "compact beside", lambda: then(lambda: _compact(cluster), nothing)


def _of_agent(lab: Lab, name: str, chance: Random) -> Iterator[tuple[str, Break]]:
    agent, stores, network, host = lab.agents[name], lab.stores, lab.network, lab.host(name)
    others = [lab.host(other) for other in lab.agents if other != name]
    yield "cut from the store", lambda: cut(network, host, *stores)
    yield "cut from a member", lambda: cut(network, host, chance.choice(stores))
    yield "deafen to the store", lambda: deafen(network, host, *stores)
    yield "cut from its peers", lambda: cut(network, host, *others)
    yield "pause", lambda: then(lambda: agent.signal(signal.SIGSTOP), lambda: agent.signal(signal.SIGCONT))
    yield "kill", lambda: then(lambda: lab.lose(name), lambda: lab.agent(name))
    if STANDBY in lab.options:  # a worker's command is that of a standby
        yield "kill a child of", lambda: then(lambda: lab.kill_child(name, chance), nothing)
    else:
        yield "fail a worker of", lambda: then(lambda: lab.fail(name), nothing)


def cut(network: Network, host: Host, *others: Host) -> Mend:
    network.cut(host, *others)
    return lambda: network.heal(host)


def deafen(network: Network, host: Host, *others: Host) -> Mend:
    network.deafen(host, *others)
    return lambda: network.heal(host)


def then(done: Callable[[], object], mend: Mend) -> Mend:
    done()
    return mend


def nothing() -> None:
    """It mends itself."""


def _compact(cluster: Cluster) -> None:
    """If all members are there, which may be so no longer when they are asked."""
    if all(member.is_healthy() for member in cluster.members):
        with suppress(CalledProcessError):
            cluster.compact()
