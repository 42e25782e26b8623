"""Count what a job of thousands of agents costs: requests, bytes, versions of the register and CPU time, on a real store.

Each agent is the rendezvous' client with the adapters of `elastic launch`: real connections, real answers, a waiter of its
own. An event loop drives the agents of a process. No worker runs. benchmarks/README.md says what is counted.
"""

from __future__ import annotations

import argparse
import heapq
import math
import multiprocessing
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from statistics import median
from uuid import uuid4

from attrs import frozen
from counted import Total, client, regularly, total
from measuring import cpu_s, facts, load, short, stop_on_signals
from stores import etcd, tcpstore

from elastic.adapters.store.port import Backend, OutcomeUnknown, StoreError, Unreadable
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import (
    Ask,
    Client,
    Counted,
    Draw,
    Drawn,
    Gather,
    Held,
    Idle,
    Input,
    Limits,
    Linked,
    Look,
    Missed,
    NoState,
    Notice,
    Observe,
    Passed,
    Pause,
    Proposals,
    Propose,
    Pushed,
    Question,
    RendezvousState,
    Request,
    Seen,
    Settings,
    Silent,
    Submitted,
    Token,
    Told,
    Unknown,
    Wait,
    Write,
    codec,
    done,
    end,
    join,
    step,
)
from elastic.core.rendezvous.links import Says, neighbours
from elastic.core.world import Endpoint, Life, Node, Profile, Why, World

PHASES = ("first world", "spread of a failure", "return", "lost node", "end")
PROCESSES = 4
ETCD_MEMBERS = 3
TIMEOUT_S = 180.0
AGENTS_PER_CLOCK = 32
"""For so many agents time passes as it does, for twice as many half as fast. All share a few cores here, and would lose a
patience that lasts on machines of their own."""


@frozen
class SlowClock:
    slowness: float

    def now(self) -> float:
        return time.monotonic() / self.slowness


# --- one agent


def named(number: int) -> Node:
    return Node(f"host-{number:04}", 1)


class Agent:
    """An agent without workers, between two events of the loop."""

    def __init__(self, loop: Loop, backend: Backend, number: int, agents: int) -> None:
        self.node = named(number)
        self.loop, self.number = loop, number
        limits = Limits(max(agents - 1, 1), agents, 1_000)
        self._settings = Settings(limits, leased=backend.lease_s is not None)
        place = Endpoint(f"10.0.{number >> 8}.{number & 255}", 29_500)
        self._profile = Profile(
            place, 8, "default", f"host-{number:04}.cluster.local", (), "train.py", link_port=40_000
        )
        self.client = Client(Held(self.node, self._profile, self._settings, Life(os.urandom(8).hex())))
        self._asks, self._waits, self._regular = backend, backend.clone(), backend.clone()
        self._tokens: SimpleQueue[Token | str | None] = SimpleQueue()
        self._beats = 0
        self._beaten_at: float | None = None
        self.rest: float | None = None
        """When the client is to be asked again."""
        self._question: Question | Draw | None = None
        self.lost = False
        self.cpu_s = self._waited_s = 0.0
        self.round, self.whole = -1, -1
        self._waiter = threading.Thread(target=self._wait_for_changes, daemon=True)
        self._waiter.start()

    @property
    def state(self) -> RendezvousState | None:
        return self.client.held.state

    def spent_s(self) -> float:
        """Return the CPU time of this agent, in the loop and in its waiter."""
        return self.cpu_s + self._waited_s

    def join(self) -> None:
        self.submit(Request(join, profile=self._profile))

    def submit(self, request: Request) -> None:
        self.feed(Submitted((request,)))

    def feed(self, input: Input) -> None:
        self.client, ask, notices = step(self.client, input, self.loop.clock.now())
        for notice in notices:
            self._hear(notice)
        if ask is not None:
            self._take(ask)

    def _take(self, ask: Ask) -> None:
        self.rest, self._question = None, None
        match ask:
            case Wait(token, until, arm):
                if arm:
                    self._tokens.put(token)
                self._rest(until)
            case Pause(until):
                self._rest(until)
            case Idle():
                pass
            case question:
                self._question = question
                self.loop.ready.append(self)

    def _rest(self, until: float) -> None:
        self.rest = until
        if until < math.inf:
            heapq.heappush(self.loop.timers, (until, self.number))

    def carry_out(self) -> None:
        question, self._question = self._question, None
        if question is None:
            return  # what came since then was heard first
        try:
            answer: Input = self._answer(question)
        except OutcomeUnknown as error:
            answer = Unknown() if isinstance(question, Write) else Silent(str(error))
        except Unreadable as error:
            answer = NoState(str(error))
        except StoreError as error:
            answer = Silent(str(error))
        self.feed(answer)

    def _answer(self, question: Question | Draw) -> Input:
        match question:
            case Draw():
                return Drawn(random.random())
            case Look():
                return self._asks.get()
            case Write(state, token):
                return self._asks.set(state, token)
            case Observe(nodes):
                with regularly():
                    return self._regular.heartbeats(nodes)
            case Propose(proposal):
                return Counted(self._asks.put_proposal(self.node, proposal))
            case Gather(nodes, entering):
                return Proposals(self._asks.proposals(nodes, entering))
            case other:
                raise AssertionError(other)

    def _hear(self, notice: Notice) -> None:
        match notice:
            case Seen(state) if state.round > self.round:
                self.round = state.round
            case Told(handler, World() as world) if handler is join:
                self.whole = world.round
            case Told() if self.loop.returns:
                self.loop.soon(self)
            case _:
                pass

    def beat(self) -> None:
        """Say that this agent lives."""
        self._beats, sent_at = self._beats + 1, self.loop.clock.now()
        with regularly(), suppress(StoreError):
            self._regular.heartbeat(self.node, self._beats if self._regular.lease_s is None else 1)
            self._beaten_at = sent_at

    def hear_of_loss(self, node: Node) -> None:
        """Hear from the link to this node, if there is one, that its process is dead."""
        if node in neighbours(self.state, self.node):
            for says in (Says.SUSPECT, Says.GONE):
                self.feed(Linked(node, says, self._beaten_at))

    def _wait_for_changes(self) -> None:
        while not isinstance(token := self._tokens.get(), str):
            sent_at = self.loop.clock.now()
            try:
                shown = self._waits.wait_for_change(token, math.inf)
                told: Input = Pushed(shown.state, sent_at, shown.here)
            except StoreError as error:
                told = Missed(Silent(str(error)))
            self._waited_s = time.thread_time()
            self.loop.inbox.put((self.number, told))

    def stop(self) -> None:
        self._tokens.put("stop")
        for each in (self._asks, self._waits, self._regular):
            each.close()


# --- the agents of one process


@frozen
class Counts:
    """What one process counted in one phase."""

    over_at: float
    traffic: Total
    cpu_s: Sequence[float]
    """Of each of its agents."""
    version: int
    data: bytes
    """The register, as one of its agents holds it."""


class Loop:
    """The event loop of some agents: what came in goes first; then one agent asks one question, each in its turn."""

    def __init__(self, made: Callable[[], Backend], numbers: Sequence[int], agents: int) -> None:
        self.inbox: SimpleQueue[tuple[int, Input]] = SimpleQueue()
        self.ready: deque[Agent] = deque()
        self.timers: list[tuple[float, int]] = []
        self.returns = False
        """The agents come back as soon as they know that their round is over."""
        self._soon: deque[Agent] = deque()
        self._agents = {number: Agent(self, made(), number, agents) for number in numbers}
        self._beats = deque(self._agents.values())
        self.clock = SlowClock(max(agents / AGENTS_PER_CLOCK, 1.0))
        self._beat_at = self.clock.now()
        for agent in self._beats:
            agent.beat()

    def soon(self, agent: Agent) -> None:
        """Let the agent join after what goes on."""
        self._soon.append(agent)

    def phase(self, name: str) -> Counts:
        """Run the agents until this phase is over for all of them. Raises TimeoutError."""
        began, round = total(), max(agent.round for agent in self._agents.values())
        before = {number: agent.spent_s() for number, agent in self._agents.items()}
        give_up_at = time.monotonic() + TIMEOUT_S
        self._begin(name)
        while lacking := [agent for agent in self._agents.values() if not (agent.lost or _is_over(name, agent, round))]:
            for _ in range(len(lacking)):
                self.turn()
            if time.monotonic() > give_up_at:
                raise TimeoutError(
                    f"{name}: {len(lacking)} of {len(self._agents)} agents are not there: {lacking[0].state}"
                )
        alive = [agent for agent in self._agents.values() if not agent.lost]
        state = alive[0].state
        assert state is not None
        spent = [agent.spent_s() - before[agent.number] for agent in alive]
        return Counts(time.monotonic(), total() - began, spent, state.version, codec.encode(state))

    def turn(self) -> None:
        while self._soon:
            agent = self._soon.popleft()
            self._charge(agent, agent.join)
        while not self.inbox.empty():
            self._take(self.inbox.get())
        self._pass()
        if self.ready:
            agent = self.ready.popleft()
            self._charge(agent, agent.carry_out)
        elif not self._soon:
            with suppress(Empty):
                self._take(self.inbox.get(timeout=0.005))

    def stop(self) -> None:
        for agent in self._agents.values():
            agent.stop()

    def _begin(self, name: str) -> None:
        self.returns = name in ("return", "lost node")
        for agent in self._agents.values():
            match name:
                case "first world" | "return":
                    self._charge(agent, agent.join)
                case "spread of a failure" if agent.number == BREAKS:
                    self._charge(agent, agent.submit, Request(end, Why.FAILED))
                case "lost node" if agent.number == LOST:
                    agent.lost = True
                    self._beats.remove(agent)
                case "lost node":
                    self._charge(agent, agent.hear_of_loss, named(LOST))
                case "end":
                    self._charge(agent, agent.submit, Request(done))
                case _:
                    pass

    def _take(self, told: tuple[int, Input]) -> None:
        number, input = told
        self._charge(self._agents[number], self._agents[number].feed, input)

    def _pass(self) -> None:
        """Feed those whose time has come. Let the next agent beat: each once per interval."""
        now = self.clock.now()
        while self.timers and self.timers[0][0] <= now:
            until, number = heapq.heappop(self.timers)
            if self._agents[number].rest == until:
                self._take((number, Passed()))
        if now >= self._beat_at:
            self._beat_at = max(self._beat_at, now - INTERVAL_S) + INTERVAL_S / len(self._beats)
            self._beats[0].beat()
            self._beats.rotate(-1)

    def _charge(self, agent: Agent, call: Callable[..., None], *given: object) -> None:
        """Add the CPU time of this call to that of the agent."""
        if not agent.lost:
            before = time.thread_time()
            call(*given)
            agent.cpu_s += time.thread_time() - before


BREAKS, LOST = 0, 1
"""The agents of which a worker fails, and which is lost."""
INTERVAL_S = Settings().keep_alive_interval


def _is_over(name: str, agent: Agent, round: int) -> bool:
    state = agent.state
    match name:
        case "end":
            return state is not None and state.closed is not None
        case "spread of a failure":
            return agent.round > round
        case "lost node":
            return agent.whole > round
        case _:
            return agent.whole == agent.round >= 0


# --- the processes


def serve(
    kind: str, addresses: Sequence[Address], run_id: str, numbers: Sequence[int], agents: int, told: Connection
) -> None:
    """Run the agents of these numbers in this process, one phase after the other, until the other end closes."""
    threading.stack_size(2**18)
    loop = Loop(lambda: client(kind, addresses, run_id), numbers, agents)
    told.send("ready")
    with suppress(EOFError, BrokenPipeError):
        while True:
            while not told.poll():
                loop.turn()
            told.send(loop.phase(told.recv()))
    os._exit(0)


@contextmanager
def fleet(kind: str, addresses: Sequence[Address], agents: int, run_id: str) -> Iterator[Sequence[Connection]]:
    """Run this many agents in a few processes."""
    spawn, count = multiprocessing.get_context("spawn"), min(PROCESSES, agents)
    processes, ends = [], []
    for first in range(count):
        ours, theirs = spawn.Pipe()
        given = kind, addresses, run_id, range(first, agents, count), agents, theirs
        processes.append(spawn.Process(target=serve, args=given, daemon=True))
        processes[-1].start()
        theirs.close()
        ends.append(ours)
    try:
        for each in ends:
            each.recv()
        yield ends
    finally:
        for each in ends:
            each.close()
        for process in processes:
            process.kill()
            process.join()


# --- the figures


@frozen
class Row:
    """One phase of one fleet, all processes together."""

    phase: str
    agents: int
    requests: int
    bytes: int
    regular: int
    versions: int
    register: int
    """Bytes of the register afterwards."""
    decode_s: float
    """CPU time of the first read of that."""
    agent_s: float
    """The median of the agents' CPU times."""
    busiest_s: float
    store_s: float
    took_s: float

    @property
    def critical_s(self) -> float:
        return self.store_s + self.busiest_s


def measure(kind: str, addresses: Sequence[Address], pids: Sequence[int], agents: int) -> list[Row]:
    rows, version = list[Row](), 0
    with fleet(kind, addresses, agents, uuid4().hex) as ends:
        for phase in PHASES:
            store_s, began_at = sum(map(cpu_s, pids)), time.monotonic()
            for each in ends:
                each.send(phase)
            counted: list[Counts] = [each.recv() for each in ends]
            store_s, last = sum(map(cpu_s, pids)) - store_s, max(counted, key=lambda each: each.version)
            every = [each for counts in counted for each in counts.cpu_s]
            requests, bytes, regular = (
                sum(getattr(each.traffic, name) for each in counted) for name in ("requests", "bytes", "regular")
            )
            row = Row(
                phase,
                agents,
                requests,
                bytes,
                regular,
                last.version - version,
                len(last.data),
                decoding_s(last.data),
                median(every),
                max(every),
                store_s,
                max(each.over_at for each in counted) - began_at,
            )
            version = last.version
            rows.append(row)
            print(line(kind, row), flush=True)
    return rows


COUNTED = ("requests", "bytes")


def decoding_s(data: bytes) -> float:
    """Return the CPU time of the first read of a register, in a process that knows none of its seats."""
    codec._KNOWN._last = {}
    before = time.thread_time()
    codec.decode(data)
    return time.thread_time() - before


HEAD = (
    *("store", "agents", "phase", "requests each", "bytes each", "bytes", "÷ (agents × register)", "versions"),
    *(
        "regular each",
        "register",
        "decode, ms",
        "agent CPU, ms",
        "busiest",
        "store CPU, ms",
        "critical path",
        "took",
    ),
)


def line(kind: str, row: Row) -> str:
    cells = [kind, f"{row.agents}", row.phase, short(row.requests / row.agents), spelled(row.bytes / row.agents)]
    cells += [spelled(row.bytes), short(row.bytes / row.agents / row.register), f"{row.versions}"]
    cells += [short(row.regular / row.agents), spelled(row.register)]
    times = (row.decode_s, row.agent_s, row.busiest_s, row.store_s, row.critical_s, row.took_s)
    return "| " + " | ".join([*cells, *(short(1000 * each) for each in times)]) + " |"


def spelled(size: float) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def growth(rows: Mapping[int, Sequence[Row]]) -> Iterator[str]:
    """Yield the exponents with which the totals grow from one size to the next."""
    for few, many in pairwise(sorted(rows)):
        for less, more in zip(rows[few], rows[many], strict=True):
            told = [f"{name} N^{math.log(of(more, name) / of(less, name), many / few):.2f}" for name in COUNTED]
            cpu = f"an agent's CPU × {more.agent_s / less.agent_s:.2f}"
            yield f"{few} → {many} agents, {less.phase}: {', '.join([*told, cpu])}"


def of(row: Row, name: str) -> int:
    return int(getattr(row, name))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", default="64,256,1024", metavar="N,N", help="numbers of agents")
    parser.add_argument("--stores", default="tcpstore,etcd", metavar="NAME,NAME", help="tcpstore, etcd")
    given = parser.parse_args()
    print(facts())
    for kind in given.stores.split(","):
        print("\n".join(["", "| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"]), flush=True)
        rows = {}
        for agents in map(int, given.agents.split(",")):
            with tcpstore() if kind == "tcpstore" else etcd(ETCD_MEMBERS) as store:
                rows[agents] = measure(kind, store.addresses, store.pids, agents)
        print("\n".join(["", *growth(rows)]), flush=True)
    print(f"\nload afterwards {load()}")
    return 0


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
