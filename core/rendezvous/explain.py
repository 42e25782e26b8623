"""A register's state as one sentence for people: what the round waits for, by name.

The text uses the state and my own spans only. Seconds are written as `mm:ss`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..values import evolve
from ..world import Node, World, name_of
from .state import RendezvousState, Seat, Status, known_as

FRUITLESS_MIN = 3
"""This many fruitless rounds in a row are worth a word."""
NAMES_MAX = 8
"""The most nodes, or segments, that a sentence names."""


Naming = Callable[[Node, str], str]
"""It returns the name of a node that is on record with this host."""


def naming(state: RendezvousState | None, world: World | None = None) -> Naming:
    """Return the function that names nodes as people know them: those of the register, of this world, and of old records."""
    profiles = {node: seat.profile for node, seat in state.seats.items()} if state else {}
    profiles |= dict(zip(world.nodes, world.profiles, strict=True)) if world else {}
    of_slots = {node.slot: name_of(node, its.host, its.labels) for node, its in profiles.items()}
    shared = Counter(of_slots.values())

    def name(node: Node, host: str) -> str:
        found = of_slots.get(node.slot) or name_of(node, host)
        return node.slot if shared[found] > 1 else found

    return name


def explain(state: RendezvousState | None, me: Node | None) -> str:
    """Return what this state means for `me`: "waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2".

    None is somebody who only looks on.
    """
    if state is None:
        return "nobody has arrived yet"
    if state.closed:
        return f"closed: {state.closed.ending.value} in round {state.closed.round} ({state.closed.why.value})"
    seat = state.seats.get(me) if me else None
    if me is not None and seat is not None and state.is_spare(me):
        why = set_aside(seat) if seat.status is Status.ASIDE else _waits_for(state, me)
        return f"round {state.round}: spare, {why}"
    forms = _complete(state) if state.complete else _open(state) + _lost(state)
    return f"round {state.round}: {forms}{_over(state)}{_drained(state)}{_aside(state)}{_fruitless(state)}"


def set_aside(seat: Seat) -> str:
    """Return why a node is set aside, and for how long."""
    failing = seat.failing
    if failing is None:
        return "set aside"
    times = "1 failure" if failing.failures == 1 else f"{failing.failures} failures"
    return f"set aside after {times}, for {clock(failing.cooldown_s)}"


def clock(seconds: float) -> str:
    """Return the seconds as minutes and seconds: 00:14. A difference of two times may lack a hair of a whole second."""
    whole = max(int(seconds + 1e-3), 0)
    return f"{whole // 60:02d}:{whole % 60:02d}"


def hint(state: RendezvousState | None, last_call_timeout: float) -> str:
    """Return advice for a wait for the minimum of nodes; empty if there is none."""
    if state is None or state.complete or state.quorate or state.census[Status.EXPECTED]:
        return ""
    here = state.made
    if here < 1:
        return ""
    over = state.census[Status.IN] > here
    those = "the one that is" if here == 1 else f"{here} of those that are" if over else f"the {here} that are"
    return f"with {evolve(state.limits, min_nodes=here).option} it would start with {those} here in {last_call_timeout:g} s"


def named(state: RendezvousState, nodes: Sequence[Node]) -> str:
    """Return the nodes by the names that people know: the host, or the slot if several slots share a host."""
    return _listed(known_as(state, nodes))


def _listed(texts: Sequence[str]) -> str:
    if len(texts) <= NAMES_MAX:
        return ", ".join(texts)
    return f"{', '.join(texts[:NAMES_MAX])} and {len(texts) - NAMES_MAX} more"


def _complete(state: RendezvousState) -> str:
    running = state.census[Status.IN]
    size = len(state.members) - len(state.those(Status.RESERVE, Status.ABSENT))
    if not state.finishing:
        return f"{_nodes(size)} running"
    return f"{size - running} of {_nodes(size)} done · waiting for {named(state, state.participants)}"


def _open(state: RendezvousState) -> str:
    missing = []
    if state.expected:
        missing.append(f"expected back: {named(state, state.expected)}")
    if state.unseen:
        missing.append(f"not yet seen: {state.unseen}{_of_segments(state)}")
    here = f"here: {named(state, state.participants) or 'nobody'}"
    if not missing:
        size = state.made if state.limits.segment else state.census[Status.IN]
        return f"last call, {size} of up to {_nodes(state.limits.max_nodes)}{_beyond(state)} · {here}"
    return " · ".join((_wanted(state), here, *missing))


def _beyond(state: RendezvousState) -> str:
    """Say how many nodes are in no whole unit of an open round, if there are any, and what the units lack."""
    unit, over = state.limits.node_unit, state.census[Status.IN] - state.made
    if not over:
        return ""
    lack = _of_segments(state) if state.limits.segment else f", as a unit of {unit} lacks {_nodes(unit - over)}"
    return f" · {over} over{lack}"


def _lost(state: RendezvousState) -> str:
    """Name the nodes that were lost and did not come again."""
    here = known_as(state, state.seats)
    lost = [name for name in state.ended.lost if name not in here] if state.ended else []
    return f" · lost: {', '.join(lost)}" if lost else ""


def _over(state: RendezvousState) -> str:
    """Name the spares that are in no whole unit, and say what their units lack."""
    if not state.complete or state.finishing or state.draining:
        return ""
    whose, lacks = dict[str, list[Node]](), state.lacks
    for node in state.redundancy_list:
        if state.seats[node].status is Status.WAITING and (why := _lack(state, state.value(node), lacks)):
            whose.setdefault(why, []).append(node)
    texts = [f"{named(state, spares)} ({why})" for why, spares in whose.items()]
    return f" · spare: {_listed(texts)}" if texts else ""


def _lack(state: RendezvousState, value: str, lacks: Mapping[str, int]) -> str:
    """Say what the unit of nodes with this value lacks; nothing if it lacks nothing."""
    segment = state.limits.segment
    if segment and not value:
        return f"no label {segment}"
    unit = f"{segment} {value}" if segment else f"a unit of {state.limits.node_unit}"
    return f"{unit} lacks {_nodes(lacks[value])}" if value in lacks else ""


def _of_segments(state: RendezvousState) -> str:
    """Say what the segments lack that are not whole, of the nodes that are here or expected, and name those that are in
    none."""
    if not state.limits.segment:
        return ""
    values = state.values(state.those(Status.IN, Status.EXPECTED))
    counts = Counter(filter(None, values.values()))
    parts = {value: -count % state.limits.node_unit for value, count in counts.items()}
    lacks = _listed([_lack(state, value, parts) for value in counts if parts[value]])
    without = named(state, [node for node, value in values.items() if not value])
    texts = filter(None, (lacks, without and f"no label {state.limits.segment}: {without}"))
    return f" ({text})" if (text := "; ".join(texts)) else ""


def _drained(state: RendezvousState) -> str:
    """Name the nodes that are drained and still here."""
    those = [node for node in state.present if state.seats[node].notice]
    return f" · drained: {named(state, those)}" if those else ""


def _aside(state: RendezvousState) -> str:
    """Name the nodes that are set aside."""
    those = state.those(Status.ASIDE) if state.census[Status.ASIDE] else ()
    return f" · set aside: {named(state, those)}" if those else ""


def _fruitless(state: RendezvousState) -> str:
    """Say how many rounds in a row made no progress, once they are a few."""
    rounds, limit = len(state.fruitless), state.limits.give_up_after
    return f" · no progress in {rounds} rounds, the job ends after {limit}" if rounds >= FRUITLESS_MIN else ""


def _wanted(state: RendezvousState) -> str:
    wanted = state.census[Status.IN] + state.census[Status.EXPECTED] + state.unseen
    return f"waiting for {wanted - state.census[Status.IN]} of {_nodes(wanted)}"


def _waits_for(state: RendezvousState, me: Node) -> str:
    """Return what this spare waits for."""
    if state.finishing:
        return f"the running round is finishing ({_nodes(len(state.members))})"
    if state.draining and state.room > 0:
        return f"the running round goes on until its drained nodes leave ({named(state, state.draining)})"
    limits, value = state.limits, state.value(me)
    if limits.segment and not value:
        return f"it has no label {limits.segment}"
    if lacking := state.lacks.get(value, 0):
        of = f" of {limits.segment} {value} to make a segment" if limits.segment else " to make a unit"
        return f"waits for {more(lacking)}{of} of {limits.node_unit}"
    return f"{state.limits.max_nodes} of {state.limits.max_nodes} seats are taken"


def more(count: int) -> str:
    return "1 more node" if count == 1 else f"{count} more nodes"


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
