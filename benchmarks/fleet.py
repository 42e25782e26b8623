"""Count what a job of thousands of agents costs: requests, bytes, versions of the register and CPU time, on a real store.

Each agent is the rendezvous' client with the adapters of `elastic launch`: real connections and real answers. An event loop
drives the agents of a process. No worker runs. benchmarks/README.md says what is counted.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import math
import multiprocessing
import os
import random
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing.connection import Connection
from queue import SimpleQueue
from statistics import median
from typing import Protocol
from uuid import uuid4

from attrs import define, field, frozen
from counted import CountedWire, Total, client, regularly, total
from measuring import cpu_s, facts, load, short, stop_on_signals
from stores import etcd, tcpstore

from elastic.adapters.store.port import Backend, OutcomeUnknown, Shown, StoreError, Unreadable
from elastic.adapters.store.tcpstore import link
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
    Who,
    Write,
    codec,
    done,
    end,
    join,
    step,
)
from elastic.core.rendezvous.codec import _Known
from elastic.core.rendezvous.links import Says, neighbours
from elastic.core.world import Endpoint, Life, Node, Profile, Why, World

PHASES = ("first world", "spread of a failure", "return", "lost node", "end")
PROCESSES = 4
ETCD_MEMBERS = 3
TIMEOUT_S = 300.0
WHOLE = 8
"""So many agents of each process read every version for themselves, as agents do that have a host of their own. For the
others the process reads a version once: thousands of reads of a large register take minutes on a few cores."""
AGENTS_PER_CLOCK = 32
"""For so many agents time passes as it does, for twice as many half as fast. All share a few cores here, and would lose a
patience that lasts on machines of their own."""


@frozen
class SlowClock:
    slowness: float

    def now(self) -> float:
        return time.monotonic() / self.slowness


# --- one agent


@frozen
class Spent:
    """CPU time of an agent, and the part of it for the reads of registers."""

    all_s: float
    read_s: float

    @property
    def rest_s(self) -> float:
        return self.all_s - self.read_s

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.all_s - other.all_s, self.read_s - other.read_s)


def named(number: int) -> Node:
    return Node(f"host-{number:04}", 1)


class Agent:
    """An agent without workers, between two events of the loop."""

    def __init__(self, loop: Loop, backend: Backend, number: int, agents: int, known: _Known | None) -> None:
        self.node = named(number)
        self.loop, self.number = loop, number
        self.known = known
        """The seats that this agent read last, if it reads for itself."""
        limits = Limits(max(agents - 1, 1), agents, 1_000)
        self._settings = Settings(limits, leased=backend.lease_s is not None)
        place = Endpoint(f"10.0.{number >> 8}.{number & 255}", 29_500)
        self._profile = Profile(
            place, 8, "default", f"host-{number:04}.cluster.local", (), "train.py", link_port=40_000
        )
        self.client = Client(Held(Who(self.node, self._profile, self._settings, Life(os.urandom(8).hex()))))
        self._asks, self._waits, self._regular = backend, backend.clone(), backend.clone()
        self._waiter: Waiter = _WAITERS[backend.lease_s is None](self, self._waits)
        self._beats = 0
        self._beaten_at: float | None = None
        self.rest: float | None = None
        """When the client is to be asked again."""
        self._question: Question | Draw | None = None
        self.lost = False
        self.cpu_s = self.read_s = 0.0
        """CPU time in the loop, and for the reads of registers."""
        self.round, self.whole = -1, -1

    @property
    def state(self) -> RendezvousState | None:
        return self.client.held.view.state

    def spent(self) -> Spent:
        """Return the CPU time of this agent, in the loop and in its waiter."""
        return Spent(self.cpu_s + self._waiter.spent_s, self.read_s)

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
                self._rest(until)
                if arm:
                    self._waiter.wait(token)
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
                return Counted(self._asks.notes.put_proposal(self.node, proposal))
            case Gather(nodes, entering):
                return Proposals(self._asks.notes.proposals(nodes, entering))
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

    def hear(self, told: Shown | StoreError, sent_at: float) -> None:
        """Put what came of a wait into the inbox of the loop."""
        heard = Pushed(told.state, sent_at, told.here) if isinstance(told, Shown) else Missed(Silent(str(told)))
        self.loop.inbox.put((self.number, heard))

    def stop(self) -> None:
        for each in (self._asks, self._waits, self._regular):
            each.close()


# --- the waiter of one agent


class Waiter(Protocol):
    """Waits for the register's next change, and tells the agent."""

    spent_s: float
    """Its CPU time, if it has a thread of its own."""

    def wait(self, token: Token | None) -> None:
        """Wait until the register is no longer what this token names."""


class ThreadedWaiter:
    """A waiter with a thread, for a store whose client has threads itself."""

    def __init__(self, agent: Agent, backend: Backend) -> None:
        self.spent_s = 0.0
        self._agent, self._backend = agent, backend
        self._tokens: SimpleQueue[Token | None] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, token: Token | None) -> None:
        self._tokens.put(token)

    def _run(self) -> None:
        READS.agent = self._agent
        while True:
            token, sent_at = self._tokens.get(), self._agent.loop.clock.now()
            try:
                self._agent.hear(self._backend.wait_for_change(token, math.inf), sent_at)
            except StoreError as error:
                self._agent.hear(error, sent_at)
            self.spent_s = time.thread_time()


class SocketWaiter:
    """A waiter without a thread, for a TCPStore. Its call of the backend is left where it would stand still, and made again
    when the store has answered."""

    spent_s = 0.0

    def __init__(self, agent: Agent, backend: Backend) -> None:
        self._agent, self._backend = agent, backend
        self._token: Token | None = None
        self._sent_at = 0.0

    def wait(self, token: Token | None) -> None:
        self._token, self._sent_at = token, self._agent.loop.clock.now()
        self._call()

    def go_on(self, wire: LeftWire) -> None:
        wire.end_wait()
        self._call()
        wire.ended = False

    def _call(self) -> None:
        agent = self._agent
        try:
            agent.hear(self._backend.wait_for_change(self._token, math.inf), self._sent_at)
        except Waits as waits:
            agent.loop.listen(waits.wire, agent, self)
        except StoreError as error:
            agent.hear(error, self._sent_at)


class Waits(Exception):
    """The store has been asked to wait over this connection, and has not answered."""

    def __init__(self, wire: LeftWire) -> None:
        super().__init__()
        self.wire = wire


class LeftWire(CountedWire):
    """A connection to a TCPStore that is left while the store waits."""

    ended = False
    """The wait that is asked for next has ended already."""

    def wait(self, keys: Sequence[str], timeout_s: float | None) -> bool:
        """Raise Waits unless the wait has ended."""
        ended, self.ended = self.ended, False
        return ended or super().wait(keys, timeout_s)

    def end_wait(self) -> None:
        """Read the answer, which has come."""
        self._read(1)
        self.ended = True

    def fileno(self) -> int:
        return self._socket.fileno()

    def _hears_within(self, timeout_s: float | None) -> bool:
        raise Waits(self)


_WAITERS: Mapping[bool, Callable[[Agent, Backend], Waiter]] = {True: SocketWaiter, False: ThreadedWaiter}


# --- the agents of one process


@frozen
class Counts:
    """What one process counted in one phase."""

    over_at: float
    traffic: Total
    spent: Sequence[Spent]
    """Of each of its agents that reads for itself."""
    busiest_s: float
    """Of its busiest agent."""
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
        self.clock = SlowClock(max(agents / AGENTS_PER_CLOCK, 1.0))
        self._waits = selectors.DefaultSelector()
        whole = numbers[:: max(len(numbers) // WHOLE, 1)]
        self._agents = {
            each: Agent(self, made(), each, agents, _Known() if each in whole else None) for each in numbers
        }
        self._beats = deque(self._agents.values())
        self._beat_at = self.clock.now()
        for agent in self._beats:
            agent.beat()

    def soon(self, agent: Agent) -> None:
        """Let the agent join after what goes on."""
        self._soon.append(agent)

    def phase(self, name: str) -> Counts:
        """Run the agents until this phase is over for all of them. Raises TimeoutError."""
        began, round = total(), max(agent.round for agent in self._agents.values())
        before = {number: agent.spent() for number, agent in self._agents.items()}
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
        spent = {agent: agent.spent() - before[agent.number] for agent in alive}
        whole = [spent[agent] for agent in alive if agent.known]
        busiest_s = max(each.all_s for each in spent.values())
        return Counts(time.monotonic(), total() - began, whole, busiest_s, state.version, codec.encode(state))

    def turn(self) -> None:
        while self._soon:
            agent = self._soon.popleft()
            self._charge(agent, agent.join)
        self._hear(0.0)
        while not self.inbox.empty():
            self._take(self.inbox.get())
        self._pass()
        if self.ready:
            agent = self.ready.popleft()
            self._charge(agent, agent.carry_out)
        elif not self._soon and self.inbox.empty():
            self._hear(0.005)

    def listen(self, wire: LeftWire, agent: Agent, waiter: SocketWaiter) -> None:
        """Let this waiter go on when the store has answered over this connection."""
        self._waits.register(wire, selectors.EVENT_READ, (agent, waiter))

    def _hear(self, timeout_s: float) -> None:
        for key, _ in self._waits.select(timeout_s):
            self._waits.unregister(key.fileobj)
            agent, waiter = key.data
            self._charge(agent, waiter.go_on, key.fileobj)

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
            READS.agent, before = agent, time.thread_time()
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


# --- the reads of one process


class _Reads(threading.local):
    agent: Agent | None = None
    """For which this thread is at work."""


READS = _Reads()


@define
class Reading:
    """What takes the place of `codec.decode`."""

    decode: Callable[[bytes], RendezvousState]
    _known: _Known = field(factory=_Known)
    _last: dict[bytes, RendezvousState] = field(factory=dict)
    _lock: threading.Lock = field(factory=threading.Lock)

    def __call__(self, data: bytes) -> RendezvousState:
        agent = READS.agent
        with self._lock:
            if agent and agent.known:
                began_s = time.thread_time()
                state = self._read(data, agent.known)
                agent.read_s += time.thread_time() - began_s
                return state
            if data not in self._last:
                self._last = {data: self._read(data, self._known)}
            return self._last[data]

    def _read(self, data: bytes, known: _Known) -> RendezvousState:
        codec._KNOWN = known
        return self.decode(data)


# --- the processes


def serve(
    kind: str, addresses: Sequence[Address], run_id: str, numbers: Sequence[int], agents: int, told: Connection
) -> None:
    """Run the agents of these numbers in this process, one phase after the other, until the other end closes."""
    threading.stack_size(2**18)
    gc.disable()  # it would look at the registers of all agents again and again, where an agent has one
    link.WireClient, codec.decode = LeftWire, Reading(codec.decode)  # type: ignore[attr-defined]
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
    rest_s: float
    """The same without the reads of registers."""
    busiest_s: float
    store_s: float
    took_s: float

    @property
    def critical_s(self) -> float:
        """The CPU time of what comes one after the other. The busiest agent may have been spared a read."""
        return self.store_s + self.busiest_s + self.decode_s


def measure(kind: str, addresses: Sequence[Address], pids: Sequence[int], agents: int) -> list[Row]:
    rows, version = list[Row](), 0
    with fleet(kind, addresses, agents, uuid4().hex) as ends:
        for phase in PHASES:
            store_s, began_at = sum(map(cpu_s, pids)), time.monotonic()
            for each in ends:
                each.send(phase)
            counted: list[Counts] = [each.recv() for each in ends]
            store_s, last = sum(map(cpu_s, pids)) - store_s, max(counted, key=lambda each: each.version)
            every = [each for counts in counted for each in counts.spent]
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
                median(each.all_s for each in every),
                median(each.rest_s for each in every),
                max(each.busiest_s for each in counted),
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
    codec._KNOWN = _Known()
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
        "without reads",
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
    times = (row.decode_s, row.agent_s, row.rest_s, row.busiest_s, row.store_s, row.critical_s, row.took_s)
    return "| " + " | ".join([*cells, *(short(1000 * each) for each in times)]) + " |"


def spelled(size: float) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def growth(rows: Mapping[int, Sequence[Row]]) -> Iterator[str]:
    """Yield the exponents with which the totals grow from one size to the next."""
    for few, many in pairwise(sorted(rows)):
        for less, more in zip(rows[few], rows[many], strict=True):
            told = [f"{name} N^{math.log(of(more, name) / of(less, name), many / few):.2f}" for name in COUNTED]
            cpu = f"an agent's CPU × {more.agent_s / less.agent_s:.2f}, without reads × {more.rest_s / less.rest_s:.2f}"
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
