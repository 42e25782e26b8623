"""Random faults of a job on etcd: one after another, some at once, each of a victim that is whole, for a short time.

Everything is drawn from one seed: which fault, of whom, for how long. When the kernel gets to it is not, so a seed says what
was done, and not what came of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from subprocess import CalledProcessError

from attrs import define, field, frozen
from etcdlab import Lab
from netlab import Host

SPANS_S = (0.05, 0.2, 0.5, 1.0, 3.0)
"""How long a fault lasts: the last one outlives a lease."""
GAP_MAX_S = 0.3

Mend = Callable[[], object]


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

    lab: Lab
    chance: Random
    told: list[str] = field(factory=list)
    _broken: list[Fault] = field(factory=list)

    @property
    def killed(self) -> set[str]:
        """Whose agents are not there now."""
        return {fault.victim for fault in self._broken if fault.name == "kill" and fault.victim in self.lab.agents}

    def step(self) -> None:
        """One more fault, and the end of those that have lasted long enough."""
        whole = [name for name in self.lab.network.hosts if name not in {fault.victim for fault in self._broken}]
        if whole:
            victim, span = self.chance.choice(whole), self.chance.choice(SPANS_S)
            faults = dict(self._of_member(victim) if victim.startswith("m") else self._of_agent(victim))
            name = self.chance.choice(sorted(faults))
            self.told.append(f"{len(self.told)}: {name} {victim} for {span} s")
            self._broken.append(Fault(name, victim, time.monotonic() + span, faults[name]()))
        time.sleep(self.chance.uniform(0.0, GAP_MAX_S))
        self._mend(lambda fault: time.monotonic() >= fault.mends_at)
        for agent in self.lab.agents.values():
            agent.keeps_up()

    def mend(self) -> None:
        self._mend(lambda fault: True)

    def _mend(self, is_due: Callable[[Fault], bool]) -> None:
        for fault in [fault for fault in self._broken if is_due(fault)]:
            self._broken.remove(fault)
            fault.mend()

    def _of_member(self, name: str) -> Iterator[tuple[str, Callable[[], Mend]]]:
        host = self.lab.host(name)
        member = next(each for each in self.lab.cluster.members if each.place.host == host.address)
        others = [store for store in self.lab.stores if store is not host]
        agents = [self.lab.host(agent) for agent in self.lab.agents]
        yield "kill", lambda: _then(member.kill, member.start)
        yield "pause", lambda: _then(member.pause, member.resume)
        yield "cut from the members", lambda: self._cut(name, *others)
        yield "cut from the agents", lambda: self._cut(name, *agents)
        yield "deafen to the agents", lambda: self._deafen(name, *agents)
        yield "compact beside", lambda: _then(self._compact, _nothing)

    def _of_agent(self, name: str) -> Iterator[tuple[str, Callable[[], Mend]]]:
        agent, stores = self.lab.agents[name], self.lab.stores
        others = [self.lab.host(other) for other in self.lab.agents if other != name]
        yield "cut from the store", lambda: self._cut(name, *stores)
        yield "cut from a member", lambda: self._cut(name, self.chance.choice(stores))
        yield "deafen to the store", lambda: self._deafen(name, *stores)
        yield "cut from its peers", lambda: self._cut(name, *others)
        yield "pause", lambda: _then(lambda: agent.signal(signal.SIGSTOP), lambda: agent.signal(signal.SIGCONT))
        yield "kill", lambda: _then(lambda: self.lab.lose(name), lambda: self.lab.agent(name))
        yield "fail a worker of", lambda: _then(lambda: self.lab.fail(name), _nothing)

    def _cut(self, name: str, *others: Host) -> Mend:
        host = self.lab.host(name)
        self.lab.network.cut(host, *others)
        return lambda: self.lab.network.heal(host)

    def _deafen(self, name: str, *others: Host) -> Mend:
        host = self.lab.host(name)
        self.lab.network.deafen(host, *others)
        return lambda: self.lab.network.heal(host)

    def _compact(self) -> None:
        """If all members are there, which may be so no longer when they are asked."""
        if all(member.is_healthy() for member in self.lab.cluster.members):
            with suppress(CalledProcessError):
                self.lab.compact()


def _then(done: Callable[[], object], mend: Mend) -> Mend:
    done()
    return mend


def _nothing() -> None:
    """It mends itself."""
