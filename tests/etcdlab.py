"""A job on an etcd cluster, every member and every agent on a host of its own, and what must hold when all is mended again.

The agents are the real command, the members real etcd, the network drops real packets. What the agents traced is judged by
the core, as in every test of the command; here the training's sum is, and what is left in etcd.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random

import etcds
import leftovers
import sums
from attrs import define, field
from etcd_clients import addresses, made
from etcd_members import wait_until
from jobs import codes, end, lose
from launches import PROGRAMS, Launch, Launcher, Told
from netlab import Host, Network, network
from processes import children_of

from elastic.adapters.store.port import StoreError

TRAINING = PROGRAMS / "training.py"
CONF = "keep_alive_interval=0.3,keep_alive_max_attempt=6,upscale_after=0.2"
TTL_S = 2.0
"""What etcd grants for it."""
RUN_ID = "lab"
RECORD = [f"elastic/{RUN_ID}/life", f"elastic/{RUN_ID}/register"]
"""What stands for a day, for those who come late; and what was said of workers, standbys and the nodes' time."""
ENDS = tuple(f"elastic/{RUN_ID}/{kind}/" for kind in ("faults", "stacks", "standbys", "time", "unfit"))
RESTARTS = 1_000
"""A training fails whenever it misses a peer for 2 s, so here it may often."""


@define(eq=False)
class Lab:
    """`m0`, `m1`, ... are the members' hosts; each agent's host has the agent's name, which is the node's id too."""

    network: Network
    cluster: etcds.Cluster
    launch: Launcher
    folder: Path
    options: tuple[str, ...] = ()
    conf: str = CONF
    nnodes: str = "1:3"
    agents: dict[str, Launch] = field(factory=dict)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def stores(self) -> list[Host]:
        """The members' hosts."""
        return [self.host_of(member) for member in self.cluster.members]

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    def host_of(self, member: etcds.Member) -> Host:
        return next(host for host in self.network.hosts.values() if host.address == member.place.host)

    def report(self, name: str) -> Path:
        """What this node's agent writes at its end."""
        return self.folder / f"{name}.json"

    def agent(self, name: str) -> Launch:
        """Start this node's agent, again if it was killed."""
        host = self.network.hosts.get(name) or self.network.host(name)
        self.agents[name] = self.launch(
            *(f"--nnodes={self.nnodes}", f"--max-restarts={RESTARTS}", "--last-call=1000", f"--node-id={name}"),
            "--give-up-after=0",  # faults come faster than rounds grow old
            *("--rdzv-backend=etcd", f"--rdzv-endpoint={self.cluster.endpoints}", f"--rdzv-id={RUN_ID}"),
            *(f"--rdzv-conf={self.conf}", *self.options, f"--report={self.report(name)}"),
            *(TRAINING, self.checkpoint),
            under=host.under,
        )
        return self.agents[name]

    def start(self, names: str = "abc") -> list[Told]:
        """One agent per letter; their workers run in one world."""
        for name in names:
            self.agent(name)
        return self.world(names)

    def world(self, names: str) -> list[Told]:
        """The workers of the next world of these nodes and no others, by rank: what they tell once they have met."""
        told = {name: self.agents[name].hears(1)[0] for name in names}
        while len({worker.round for worker in told.values()}) > 1 or f"of {len(names)} " not in told[names[0]].words:
            behind = min(names, key=lambda name: told[name].round)
            told[behind] = self.agents[behind].hears(1)[0]
        return sorted(told.values(), key=lambda worker: worker.rank)

    def lose(self, name: str) -> None:
        """The node is gone without a word."""
        lose(self.agents[name])

    def fail(self, name: str) -> None:
        """The node's worker is killed, if there is one."""
        token, slot = os.environ[leftovers.VARIABLE], f"ELASTIC_NODE_ID={name}".encode()
        those = [each for each in leftovers.alive_with(token) if str(TRAINING) in each.command]
        leftovers.kill([each for each in those if leftovers.carries(each.pid, slot)], token)

    def kill_child(self, name: str, chance: Random) -> None:
        """A child of the node's agent is killed: a worker, a standby or the reaper."""
        if children := children_of(self.agents[name].pid):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(sorted(children)), signal.SIGKILL)

    def has_whole_world(self) -> bool:
        """Every node that there is, and nobody else, is in a complete round."""
        backend = made(addresses(self.cluster), RUN_ID)
        with suppress(StoreError), closing(backend):
            state = backend.get().state
            return (
                state is not None and state.complete and {node.slot for node in state.participants} == set(self.agents)
            )
        return False

    def mend(self) -> None:
        """All hosts reach each other, all members run."""
        self.network.heal()
        self.cluster.mend()

    def ends(self) -> None:
        """The training ends with the right result, on all nodes that there are, and leaves nothing behind in etcd."""
        self.mend()
        assert codes(end(list(self.agents.values()))) == [0] * len(self.agents), self.account()
        kept = sums.load(self.checkpoint)
        assert kept.total == sums.total(kept.steps) and kept.steps > 0
        assert not sums.shared(self.checkpoint).exists()
        wait_until(lambda: len(self.leases) == 1, "all leases to end but the one that keeps the verdict", self.account)
        keys = self.cluster.etcdctl("get", "--prefix", "", "--keys-only").split()
        assert [key for key in keys if not key.startswith(ENDS)] == RECORD

    @property
    def leases(self) -> Sequence[str]:
        return self.cluster.etcdctl("lease", "list").splitlines()[1:]

    def account(self) -> str:
        said = "\n".join(f"=== {name}: {agent.account()}" for name, agent in self.agents.items())
        return f"{said}\n{self.cluster.account()}"


@contextmanager
def lab(launch: Launcher, folder: Path, members: int = 3) -> Iterator[Lab]:
    """The members are up."""
    with network() as joined, ExitStack() as stack:
        hosts = [joined.host(f"m{count}") for count in range(members)]
        places = [etcds.Place(host.address, 2379, 2380, 2381, host.under) for host in hosts]
        cluster = etcds.assembled(folder / "etcd", places, None, stack)
        cluster.start()
        yield Lab(joined, cluster, launch, folder)
