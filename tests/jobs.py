"""One job of several nodes on this host: real agents that meet in a real store, and a test that reads their register.

The store is a TCPStore or an etcd. Importing torch to serve a TCPStore takes seconds, so most jobs meet in one that all
tests share, each under an id of its own; those that are about the store's host let their first agent serve it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from attrs import define, field
from etcd_clients import addresses, made
from etcds import Cluster
from launches import ELASTIC, PROGRAMS, TIMEOUT_S, Ended, Launch, Launcher, Told
from ports import reserved
from processes import children_of, comes_true, command_of, is_alive, is_stopped

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import Backend, OutOfReach
from elastic.adapters.store.tcpstore.seal import UNSEALED, Seal
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.core.rendezvous import RendezvousState, codec

STAY = PROGRAMS / "stay.py"
TTL_S = 3.0
"""Short for a test, long for a machine that is busy with something else."""
CONF = "keep_alive_interval=0.5,keep_alive_max_attempt=6,upscale_after=0.2,"
PATIENT = "keep_alive_interval=0.5,keep_alive_max_attempt=200,upscale_after=0.2,"
"""For what must be so on a machine that stands still for longer than CONF's TTL, too: nobody is taken for dead, and no node
takes itself for one."""

DEFAULT_RESOLVER = ("env", "-u", "RES_OPTIONS")
"""Put before an agent that asks name servers as it does elsewhere, and not as tests do (conftest.py)."""


@define
class Job:
    """Agents are told apart by their node id; what they all are told stands here."""

    launch: Launcher
    folder: Path
    etcd: Cluster | None
    store: Address
    """Where its TCPStore is served, if it does not meet in an etcd."""
    nnodes: str
    options: tuple[str, ...]
    conf: str
    own_store: bool
    seal: Seal
    run_id: str = field(factory=lambda: f"job-{uuid4().hex[:8]}")
    _served: bool = False
    _agents: list[Launch] = field(factory=list)

    def node(
        self,
        name: str,
        *options: str,
        program: Sequence[str | Path] = (STAY,),
        environment: dict[str, str] | None = None,
        under: tuple[str, ...] = (),
    ) -> Launch:
        """Start an agent. In a job with a store of its own the first one serves it."""
        agent = self.launch(
            f"--nnodes={self.nnodes}",
            f"--rdzv-id={self.run_id}",
            *self.endpoint_options(),
            f"--node-id={name}",
            f"--report={self.folder}/{name}.json",
            *self.options,
            *options,
            *program,
            environment=environment,
            under=under,
        )
        self._agents.append(agent)
        return agent

    def endpoint_options(self) -> list[str]:
        """Where the next agent finds the others."""
        if self.etcd:
            return [f"--rdzv-endpoint=etcd://{self.etcd.endpoints}", f"--rdzv-conf={self.conf.rstrip(',')}"]
        host, self._served = self.own_store and not self._served, True
        return [f"--rdzv-endpoint={self.store}", f"--rdzv-conf={self.conf}is_host={'true' if host else 'false'}"]

    def serves_anew(self) -> None:
        """Have the next agent serve the job's own store, since the one that did is gone."""
        self.own_store, self._served = True, False

    def client(self) -> Backend:
        """Of its register."""
        if not self.etcd:
            return TCPStoreBackend(self.store, self.run_id, SystemClock(), seal=self.seal)
        return made(addresses(self.etcd), self.run_id)

    def nodes(
        self, names: str, *options: str, program: Sequence[str | Path] = (STAY,), under: tuple[str, ...] = ()
    ) -> list[Launch]:
        """One agent per letter, seated in this order, so that the first has rank 0."""
        agents = []
        for count, name in enumerate(names, 1):
            agents.append(self.node(name, *options, program=program, under=under))
            if count < len(names) or count == 1:
                self.reaches(lambda state, name=name: name in slots(state))  # type: ignore[misc]
        return agents

    def report(self, name: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        return report

    def reaches(self, claim: Callable[[RendezvousState], bool]) -> RendezvousState:
        """Wait until this holds for the register."""
        ends_at, backend = time.monotonic() + TIMEOUT_S, self.client()
        state: RendezvousState | None = None
        try:
            while time.monotonic() < ends_at:
                try:
                    state = backend.wait_for_change(state.token, ends_at).state if state else backend.get().state
                except OutOfReach:
                    state = None
                if state and claim(state):
                    return state
                if not state:
                    time.sleep(0.05)
        finally:
            backend.close()
        accounts = "\n".join(agent.account() for agent in self._agents)
        raise AssertionError(f"waited in vain for the register, which is {state}\n{accounts}")


Jobs = Callable[..., Job]


def only_in(store: str) -> pytest.MarkDecorator:
    """Run a test in one of the two stores: what it shows does not depend on the store, or the other tests of its file
    show it in the other one."""
    return pytest.mark.parametrize("job", [store], indirect=True)


def in_each(*values: object) -> list[object]:
    """Run a test with each of these values in a TCPStore, and with the last one in an etcd as well. The core decides by the
    value, and reads the same register from either store: both pass the same tests."""
    return [*(("tcpstore", value) for value in values), pytest.param("etcd", values[-1], marks=pytest.mark.long)]


@contextmanager
def jobs(launch: Launcher, folder: Path, shared: Address, etcd: Cluster | None = None) -> Iterator[Jobs]:
    """Makes jobs; one with `own_store` has its port kept free for it until its first agent listens there."""
    stack = ExitStack()

    def make(nnodes: str, *options: str, conf: str = CONF, own_store: bool = False, seal: Seal = UNSEALED) -> Job:
        store = shared
        if own_store:
            store = Address("localhost", stack.enter_context(reserved()))
        return Job(launch, folder, etcd, store, nnodes, options, conf, own_store, seal)

    with stack:
        yield make


def asked(
    job: Job, *options: str, launch: Launcher, run_id: str = "", command: str = "status", **variables: str
) -> subprocess.CompletedProcess[str]:
    """What `elastic status`, or another command for operators, says of this job."""
    place = f"etcd://{job.etcd.endpoints}" if job.etcd else str(job.store)
    return subprocess.run(
        [ELASTIC, command, f"--rdzv-endpoint={place}", f"--rdzv-id={run_id or job.run_id}", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**launch.environment, **variables},
    )


def prefix(job: Job) -> str:
    """Of the job's keys."""
    return f"elastic/{job.run_id}"


@contextmanager
def client_of(job: Job) -> Iterator[WireClient]:
    """Somebody else at the job's store."""
    with WireClient(job.store, 60.0, 2 * codec.BYTES_MAX) as client:
        client.greet()
        yield client


def slots(state: RendezvousState) -> list[str]:
    return [node.slot for node in state.seats]


def run(agents: Iterable[Launch], each: int = 1) -> list[Told]:
    """What the workers of the next world tell, by rank; so many on each of these nodes."""
    return sorted((told for agent in agents for told in agent.hears(each)), key=lambda told: (told.round, told.rank))


def run_from(round: int, agents: Iterable[Launch]) -> list[Told]:
    """As `run`, of one worker on each, from this round on: on a busy machine an earlier world may have begun."""
    told = []
    for agent in agents:
        while (last := agent.hears(1)[0]).round < round:
            pass
        told.append(last)
    return told


def worlds(told: Iterable[Told]) -> set[tuple[int, str]]:
    """The rounds, and what their workers tell, without who: one world if all agree."""
    return {(worker.round, worker.words) for worker in told}


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def store_hosts_of(agent: Launch) -> list[int]:
    """The processes that serve a store for this agent."""
    return [pid for pid in children_of(agent.pid) if "store_host.py" in command_of(pid)]


def lose(agent: Launch) -> None:
    """The node is gone without a word, and the store that it serves goes first. That ends by itself when its agent is dead,
    and beside other work so late that the other nodes would write there meanwhile."""
    agent.signal(signal.SIGSTOP)
    assert comes_true(lambda: agent.has_ended() or is_stopped(agent.pid))
    hosts = store_hosts_of(agent)
    assert hosts or "is_host=true" not in command_of(agent.pid), "the store that this node serves goes first"
    kill(*hosts)
    agent.signal(signal.SIGKILL)
    assert agent.ends().code == -signal.SIGKILL


def end(agents: Sequence[Launch]) -> list[Ended]:
    """Let the workers succeed, and wait for their agents."""
    for agent in agents:
        agent.open_gate()
    return [agent.ends() for agent in agents]


def codes(ended: Iterable[Ended]) -> list[int]:
    return [one.code for one in ended]


def alive(told: Iterable[Told]) -> bool:
    return all(is_alive(worker.pid) for worker in told)
