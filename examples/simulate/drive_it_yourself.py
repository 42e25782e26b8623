"""Drive the bare core yourself: three nodes, a dictionary for a store, and a number for a clock.

    python examples/simulate/drive_it_yourself.py

Nothing of the simulator takes part. docs/simulate.md says which function follows which ask.
"""

from __future__ import annotations

from elastic.core import rendezvous as core
from elastic.core.rendezvous import handlers
from elastic.core.world import Endpoint, Life, Node, Profile, Why, World

SETTINGS = core.Settings(core.Limits(min_nodes=2, max_nodes=3, max_restarts=1))
A, B, C = (Node(slot, 1) for slot in "abc")

# who each one is: a node, what it says of itself, its settings, and the name of a life that it may begin
who = {each: core.Who(each, Profile(Endpoint(each.slot, 1)), SETTINGS, Life(str(each))) for each in (A, B, C)}
clients = {each: core.Client(core.Held(who[each])) for each in (A, B, C)}
asks: dict[Node, core.Ask] = {}
store: dict[str, core.RendezvousState] = {}
now = 0.0


def feed(node: Node, fed: core.Input) -> None:
    """Give a node an input, print what it tells its owner, and keep what it asks for now."""
    clients[node], ask, notices = core.step(clients[node], fed, now)
    asks[node] = ask or asks[node]
    for told in notices:
        if isinstance(told, core.Told):
            print(f"{now:4.1f} s  {node.slot} {told.handler.__name__:5} → {spelled(told.answer)}")
            if not isinstance(told.answer, World):  # the round is over: the owner stops its workers, and comes back
                feed(node, core.Submitted((core.Request(handlers.join),)))


def spelled(told: core.Outcome | core.Raise) -> str:
    if isinstance(told, World):
        return f"round {told.round} of {' '.join(member.node.slot for member in told.members)}"
    return type(told).__name__


def answer(ask: core.Ask) -> core.Input | None:
    """Return what follows from an ask; None while there is nothing to say."""
    register = store.get("register")
    stands = register.token if register else None
    match ask:
        case core.Look():
            return core.Shown(register)
        case core.Write(state, token):  # a compare-and-set
            if token == stands:
                store["register"] = state
            return core.Shown(store.get("register"))
        case core.Observe(nodes):  # each node beats once a second
            return core.Heartbeats(dict.fromkeys(nodes, int(now)), register.life if register else None)
        case core.Draw():
            return core.Drawn(0.5)
        case core.Wait(token, until):
            return core.Pushed(register, now) if token != stands else core.Passed() if now >= until else None
        case _:  # Idle; and Pause, Propose, Gather and Errand, which do not come in this small world
            return None


def passes(seconds: float) -> None:
    """Answer every node that can go on; the clock moves when no node can."""
    global now
    until = now + seconds
    while now < until:
        fed = [(node, told) for node, ask in asks.items() if (told := answer(ask))]
        if fed:
            feed(*fed[0])
        else:
            now += 0.1


for each in clients:
    feed(each, core.Passed())
    feed(each, core.Submitted((core.Request(handlers.join),)))
passes(1.0)
print(f"{now:4.1f} s  a worker of b fails")
feed(B, core.Submitted((core.Request(handlers.end, Why.FAILED),)))
passes(1.0)
