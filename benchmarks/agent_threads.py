"""Agents as threads that rendezvous with real clients of a real store: ours, torch's, and the least that anybody must do.

A fleet gathers once, and then any number of times after a break. Each of its agents says when it knew of the break and when
it held the new world; nothing is measured by polling, and no worker runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Protocol
from uuid import uuid4

from attrs import define, field, frozen

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.heart import Heart
from elastic.adapters.rendezvous.loop import RendezvousLoop
from elastic.adapters.report.news import LoopNotice, Seen, Told
from elastic.adapters.store.port import Backend
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import Held, Limits, Settings, Who, end, join
from elastic.core.rendezvous.agenda import Request
from elastic.core.world import Endpoint, Life, Node, Profile, Why, World

MONITOR_INTERVAL_S = 0.1
"""How often torchrun's agents look for waiting nodes, by default."""
RESTARTS = 1_000
TIMEOUT_S = 60.0
"""What has not gathered by then does not."""


@frozen
class Gathered:
    """Seconds from the break until the last agent knew of it, and until the last one held the new world."""

    known: float
    whole: float


class Fleet(Protocol):
    def gather(self) -> Gathered:
        """The first time."""

    def again(self) -> Gathered:
        """One agent breaks the world, and all gather anew."""

    def close(self) -> None: ...


@define(eq=False)
class Stamps:
    """What the agents say, as they say it."""

    agents: int
    said: SimpleQueue[tuple[str, int, float]] = field(factory=SimpleQueue)

    def say(self, what: str, round: int) -> None:
        self.said.put((what, round, time.monotonic()))

    def gathered(self, round: int, since: float, known: str = "known") -> Gathered:
        """Once all have said that they hold the world of this round. Raises queue.Empty."""
        last, left = {"known": since, "whole": since}, {known: self.agents, "whole": self.agents}
        while any(left.values()):
            what, of, at = self.said.get(timeout=TIMEOUT_S)
            if of == round and left.get(what):
                left[what] -= 1
                last[what] = at
        return Gathered(last["known"] - since, last["whole"] - since)


# --- ours


def _fails(error: BaseException) -> None:
    raise error


class ElasticAgent:
    """The rendezvous and the heart of one agent, as `adapters/agent/agent.py` runs them; its workers need no time to end."""

    def __init__(self, backend: Backend, number: int, agents: int, stamps: Stamps) -> None:
        clock = SystemClock()
        settings = Settings(Limits(agents, agents, RESTARTS), leased=backend.lease_s is not None)
        node = Node(f"n{number}", 1)
        self._profile = Profile(Endpoint("localhost", 20_000 + number))
        self._stamps = stamps
        self._round = -1
        held = Held(Who(node, self._profile, settings, Life(os.urandom(8).hex())))
        self.rendezvous = RendezvousLoop(backend, held, clock, self._hear, _fails)
        interval_s = settings.keep_alive_interval
        self._heart = Heart(backend.clone(), node, interval_s, clock, lambda *beaten: None, _fails)

    def start(self) -> None:
        self.rendezvous.start()
        self._heart.start()
        self._heart.beat()
        self._join()

    def stop(self) -> None:
        self.rendezvous.stop()
        self._heart.stop()

    def _join(self) -> None:
        self.rendezvous.submit(Request(join, profile=self._profile))

    def _hear(self, notice: LoopNotice) -> None:
        match notice:
            case Seen(state) if state.round > self._round:
                self._round = state.round
                self._stamps.say("known", state.round)
            case Told(handler, World() as world) if handler is join:
                self._stamps.say("whole", world.round)
            case Told():
                self._join()
            case _:
                pass


class ElasticFleet:
    """Our agents, each with a backend of its own."""

    def __init__(self, backend: Callable[[], Backend], agents: int) -> None:
        self._stamps = Stamps(agents)
        self._round = 0
        self._agents = [ElasticAgent(backend(), number, agents, self._stamps) for number in range(agents)]

    def gather(self) -> Gathered:
        since = time.monotonic()
        for agent in self._agents:
            agent.start()
        return self._stamps.gathered(0, since)

    def again(self) -> Gathered:
        self._round += 1
        since = time.monotonic()
        self._agents[-1].rendezvous.submit(Request(end, Why.FAILED))
        return self._stamps.gathered(self._round, since)

    def close(self) -> None:
        with ThreadPoolExecutor(len(self._agents)) as together:
            list(together.map(ElasticAgent.stop, self._agents))


# --- torch's


class TorchFleet:
    """torch's dynamic rendezvous on its c10d backend, driven as torchrun's agent drives it."""

    def __init__(self, address: Address, run_id: str, agents: int) -> None:
        self._address, self._run_id, self._size = address, run_id, agents
        self._stamps = Stamps(agents)
        self._round, self._broken, self._over = 0, threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=self._run, args=[number]) for number in range(agents)]

    def gather(self) -> Gathered:
        since = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self._stamps.gathered(0, since, known="whole")

    def again(self) -> Gathered:
        self._round += 1
        since = time.monotonic()
        self._broken.set()
        return self._stamps.gathered(self._round, since)

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]
        from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend, dynamic_rendezvous

        store = TCPStore(self._address.host, self._address.port, is_master=False, timeout=timedelta(seconds=TIMEOUT_S))
        handler = dynamic_rendezvous.DynamicRendezvousHandler.from_backend(
            self._run_id,
            store,
            c10d_rendezvous_backend.C10dRendezvousBackend(store, self._run_id),
            self._size,
            self._size,
            "localhost",
        )
        round = 0
        while not self._over.is_set():
            handler.next_rendezvous()
            self._stamps.say("whole", round)
            round += 1
            while not self._over.is_set() and not self._breaks(number):
                if handler.num_nodes_waiting() > 0:
                    break
                self._over.wait(MONITOR_INTERVAL_S)
            self._stamps.say("known", round)
        handler._stop_heartbeats()

    def _breaks(self, number: int) -> bool:
        """One of them is told, and tells nobody: the others find a node waiting."""
        told = number == self._size - 1 and self._broken.is_set()
        if told:
            self._broken.clear()
        return told


# --- the floor


class BareClient(Protocol):
    """One connection to a store. Raises OSError when the store ends."""

    def put(self, key: str) -> None: ...

    def wait(self, keys: Sequence[str]) -> None:
        """Until all of them are there; pushed."""


class BareFleet:
    """The same number of clients, puts and watches, with nothing decided: all wait for the break, each puts a key of its
    own, and all wait for all of these."""

    def __init__(self, client: Callable[[str], BareClient], agents: int) -> None:
        self._name = f"bare/{uuid4().hex}/"
        self._client, self._size, self._stamps = client, agents, Stamps(agents)
        self._own, self._round = client(self._name), -1
        self._ready: SimpleQueue[None] = SimpleQueue()

    def gather(self) -> Gathered:
        for number in range(self._size):
            threading.Thread(target=self._run, args=[number], daemon=True).start()
        return self.again()

    def again(self) -> Gathered:
        self._round += 1
        for _ in range(self._size):
            self._ready.get(timeout=TIMEOUT_S)
        since = time.monotonic()
        self._own.put(f"{self._name}{self._round}")
        return self._stamps.gathered(self._round, since)

    def close(self) -> None:
        """Its threads end with the store."""

    def _run(self, number: int) -> None:
        client, round = self._client(self._name), 0
        with suppress(OSError):
            while True:
                self._ready.put(None)
                client.wait([f"{self._name}{round}"])
                self._stamps.say("known", round)
                client.put(f"{self._name}{round}/{number}")
                client.wait([f"{self._name}{round}/{each}" for each in range(self._size)])
                self._stamps.say("whole", round)
                round += 1
