"""Judge a simulator of your own by our laws: tell the judge what happens, and it says which law that breaks.

    python examples/simulate/judge_your_own.py
    python examples/simulate/judge_your_own.py --careless   # a store that overwrites what it was not shown

The simulator is the loop of drive_it_yourself.py with chance in it: which node goes on, and when a worker fails. The facts
are values of elastic.core.properties.facts. A law that none of your facts speaks of is not armed, and judges nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from random import Random

from elastic.core import rendezvous as core
from elastic.core.properties.facts import Failed, Reaped, Started, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import handlers
from elastic.core.world import Endpoint, Life, Node, Profile, Why, World

SETTINGS = core.Settings(core.Limits(min_nodes=2, max_nodes=3, max_restarts=5))
JOIN, END = core.Request(handlers.join), core.Request(handlers.end, Why.FAILED)


class Simulator:
    """Three nodes, one register and a clock."""

    def __init__(self, seed: int, careless: bool) -> None:
        self.chance, self.careless, self.now = Random(seed), careless, 0.0
        self.judge = Judge()
        self.register: core.RendezvousState | None = None
        self.clients = {node: core.Client(held(node)) for node in (Node(slot, 1) for slot in "abc")}
        self.asks: dict[Node, core.Ask] = {}
        self.running: dict[Node, World] = {}
        for node in self.clients:
            self.feed(node, core.Passed())
            self.feed(node, core.Submitted((JOIN,)))

    def feed(self, node: Node, fed: core.Input) -> None:
        """Give a node an input, and hear what it tells its owner, which runs the workers."""
        self.clients[node], ask, notices = core.step(self.clients[node], fed, self.now)
        self.asks[node] = ask or self.asks[node]
        for told in notices:
            if isinstance(told, core.Told) and isinstance(told.answer, World):
                self.running[node] = told.answer
                self.judge.saw(Started(node, told.answer))
            elif isinstance(told, core.Told):  # the round is over
                self.stop(node)
                self.feed(node, core.Submitted((JOIN,)))

    def stop(self, node: Node) -> None:
        if self.running.pop(node, None):
            self.judge.saw(Reaped(node))

    def fails(self) -> None:
        """Let a worker fail somewhere: its node ends the round."""
        node = self.chance.choice(sorted(self.running))
        self.judge.saw(Failed(node, self.running[node].id))
        self.stop(node)
        self.feed(node, core.Submitted((END,)))

    def set(self, node: Node, write: core.Write) -> core.Shown:
        """Carry out a write. A careless store does not look which state it follows."""
        if self.careless or write.token == (self.register.token if self.register else None):
            before, self.register = self.register, write.state
            self.judge.saw(Wrote(node, before, write.edit, write.state))
        return core.Shown(self.register)

    def can_go_on(self) -> Iterator[tuple[Node, core.Input | core.Write]]:
        """Yield the nodes that can go on, each with what it is fed, or wants to write."""
        stands = self.register.token if self.register else None
        for node, ask in self.asks.items():
            match ask:
                case core.Write():
                    yield node, ask
                case core.Look():
                    yield node, core.Shown(self.register)
                case core.Observe(nodes):
                    life = self.register.life if self.register else None
                    yield node, core.Heartbeats(dict.fromkeys(nodes, int(self.now)), life)
                case core.Draw():
                    yield node, core.Drawn(self.chance.random())
                case core.Wait(token, until) if token != stands or self.now >= until:
                    yield node, core.Pushed(self.register, self.now) if token != stands else core.Passed()
                case _:
                    pass

    def runs(self, steps: int) -> None:
        for _ in range(steps):
            if moves := list(self.can_go_on()):
                node, fed = self.chance.choice(moves)
                self.feed(node, self.set(node, fed) if isinstance(fed, core.Write) else fed)
            else:
                self.now += 0.1
            if self.running and self.chance.random() < 0.02:
                self.fails()


def held(node: Node) -> core.Held:
    """Return what a new node remembers: who it is, what it says of itself, its settings, and the name that a life of the
    register gets if this node begins it. Draw the name anew for each process: no two may begin the same life."""
    return core.Held(core.Who(node, Profile(Endpoint(node.slot, 1)), SETTINGS, Life(str(node))))


def main(arguments: list[str]) -> int:
    armed = Counter[str]()
    for seed in range(20):
        simulator = Simulator(seed, careless="--careless" in arguments)
        try:
            simulator.runs(1_000)
        except core.Violation as violation:
            print(f"seed {seed}: {violation}")
            return 1
        armed += simulator.judge.strength.armed
    print(f"20 runs and no violation; armed were {' '.join(f'{law} {armed[law]}' for law in sorted(armed))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
