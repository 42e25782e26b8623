"""A trace taken again: every step through the core's own functions, from what the trace says went in.

What the node remembers (`Held`), its agenda and its group are derived here as the agent derived them. Where the core decides
something else than the trace says, or where the trace's two halves do not fit (the group hears what no operation answered, a
wish is submitted that no command wished), the trace was not written by this core: that step is the first that `Differs`, and
nothing after it can be judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar, assert_never

import msgspec
from attrs import frozen

from ..agent import farewell, wished
from ..agent import heard as heard_by_the_group
from ..evolving import evolve
from ..group import Group, Phase, begin, transition
from ..group.state import Closed, Command, Event, Gone, Over, Ready, Record, RecordUnstartable, Refused
from ..rendezvous import (
    Ask,
    Held,
    Raise,
    Return,
    gathered,
    heard,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    unreadable,
    woke,
)
from ..rendezvous.agenda import Agenda, Errand, Request, answered, begun, submitted
from ..rendezvous.codec import encode
from .plain import plain
from .trace import (
    Begun,
    Gathered,
    Header,
    Heard,
    Proposed,
    Saw,
    Silent,
    Started,
    Step,
    Stepped,
    Submitted,
    Trace,
    Turned,
    Unanswered,
    Unreadable,
    Woke,
    registers,
    step_at,
)

Wish: TypeAlias = Request | Errand
Value = TypeVar("Value")


class Differs(Exception):
    """What the trace says and what the core says are not the same."""

    def __init__(self, what: str, traced: str, core: str) -> None:
        super().__init__(f"{what}: traced {traced}, the core says {core}")
        self.what = what
        self.traced = traced
        self.core = core


@frozen
class Replica:
    """One agent between two steps, and the words that are on their way between its two machines."""

    held: Held
    group: Group
    agenda: Agenda = Agenda()
    wishes: tuple[Wish, ...] = ()
    """What the group wished for and the rendezvous has not been given yet."""
    told: tuple[Event, ...] = ()
    """What the rendezvous answered and the group has not heard yet."""


@frozen
class Moment:
    """A step that was taken again, as on this line of its file, at this point of the agent's clock."""

    line: int
    at: float
    step: Step
    before: Replica
    after: Replica


@frozen
class Replayed:
    """A trace, the moments up to its end or to the first step that differs, and that one."""

    trace: Trace
    moments: tuple[Moment, ...]
    differs: tuple[int, Differs] | None = None
    """The line, and in what."""

    @property
    def ended(self) -> bool:
        """The agent came to its end, and its trace tells."""
        return bool(self.moments) and self.moments[-1].after.group.phase is Phase.ENDED

    @property
    def ended_at(self) -> float:
        """The agent's clock at the last of the moments."""
        return self.moments[-1].at if self.moments else self.trace.header.now


def replayed(trace: Trace) -> Replayed:
    """Take all steps again, up to the first that differs."""
    replica, at, moments = _newborn(trace.header), trace.header.now, list[Moment]()
    for line, step in zip(trace.lines, trace.steps, strict=True):
        try:
            after = taken(replica, step)
        except Differs as differs:
            return Replayed(trace, tuple(moments), (line, differs))
        told = step_at(step)
        at = at if told is None else told
        moments.append(Moment(line, at, step, replica, after))
        replica = after
    return Replayed(trace, tuple(moments))


def _newborn(header: Header) -> Replica:
    held = Held(header.node, header.profile, header.rendezvous, header.nonce)
    return Replica(held, Group(header.node, header.group))


def taken(replica: Replica, step: Step) -> Replica:
    """The agent after a step. Raises Differs if the core would have taken another one."""
    held = replica.held
    match step:
        case Submitted(wish):
            return _submitted(replica, wish)
        case Begun():
            return _begun(replica, step)
        case Turned(now, ask):
            return _turned(replica, now, ask)
        case Saw(state, sent_at, now, here):
            return evolve(replica, held=saw(held, state, sent_at, now, here))
        case Heard(counters, sent_at, now, life):
            return evolve(replica, held=heard(held, counters, sent_at, now, life))
        case Proposed(wish, count, now):
            return evolve(replica, held=proposed(held, wish, count, now))
        case Gathered(wishes, now):
            return evolve(replica, held=gathered(held, wishes, now))
        case Woke(now):
            return evolve(replica, held=woke(held, now))
        case Unanswered(based_on, now):
            return evolve(replica, held=unanswered(held, based_on, now))
        case Silent(now):
            return evolve(replica, held=silent(held, now))
        case Unreadable(text):
            return evolve(replica, held=unreadable(held, text))
        case Stepped():
            return _stepped(replica, step)
        case Started(round):
            standing = replica.group.world.round if replica.group.world and replica.group.running else None
            _same("workers started in round", round, standing, int | None)
            return replica
        case other:
            assert_never(other)


def _submitted(replica: Replica, wish: Wish) -> Replica:
    first, *rest = replica.wishes or (None,)
    # each round has an endpoint of its own, which the agent drew
    if isinstance(first, Request) and isinstance(wish, Request) and first.profile:
        first = evolve(first, profile=wish.profile)
    _same("what the agent wishes for", wish, first, Request | Errand | None)
    agenda = submitted(replica.agenda, wish)
    return evolve(replica, agenda=agenda, wishes=tuple(rest))


def _begun(replica: Replica, step: Begun) -> Replica:
    if not replica.agenda.due:
        raise Differs("what begins", _spelled(step, Begun), "nothing is due")
    agenda, held, _ = begun(replica.agenda, replica.held, step.now, step.jitter)
    _same("what begins", step, evolve(step, handler=agenda.operation.handler if agenda.operation else None), Begun)
    return evolve(replica, agenda=agenda, held=held)


def _turned(replica: Replica, now: float, ask: Ask) -> Replica:
    under_way = replica.agenda.operation
    if under_way is None:
        raise Differs("what is asked for", _spelled(ask, Ask), "nothing is under way")
    _same("what is asked for", ask, turn(under_way, replica.held, now), Ask)
    match ask:
        case Return(answer) | (Raise() as answer):
            agenda, held = answered(replica.agenda, replica.held, answer)
            event = heard_by_the_group(under_way.handler, answer, now)
            return evolve(replica, agenda=agenda, held=held, told=(*replica.told, *([event] if event else [])))
        case _:
            return replica


def _stepped(replica: Replica, step: Stepped) -> Replica:
    event, told = step.event, replica.told
    if isinstance(event, Ready | Over | Closed | Refused | Gone):
        first, *rest = told or (None,)
        _same("what the group hears", event, evolve(first, at=event.at) if first else None, Event | None)
        told = tuple(rest)
    group, commands = transition(replica.group, event) if event else begin(replica.group, step.at)
    _same("what the group commands", step.commands, commands, tuple[Command, ...])
    wishes = tuple(wish for command in commands if (wish := _wish(command, replica)))
    ends = group.outcome if group.phase is Phase.ENDED and replica.group.phase is not Phase.ENDED else None
    if ends and (last := farewell(ends)):
        wishes = (*wishes, last)
    return evolve(replica, group=group, told=told, wishes=(*replica.wishes, *wishes))


def _wish(command: Command, replica: Replica) -> Wish | None:
    if isinstance(command, Record | RecordUnstartable):
        return Errand(None)
    return wished(command, replica.held.profile)


# --- what differs, for people


def _same(what: str, traced: object, core: object, kind: Any) -> None:
    """Raises Differs, with the first place in which two values do."""
    if traced != core and (found := _first_difference("", _open(traced, kind), _open(core, kind))):
        place, one, other = found
        raise Differs(f"{what}{f' ({place[1:]})' if place else ''}", json.dumps(one), json.dumps(other))


def _spelled(value: object, kind: Any) -> str:
    return json.dumps(_open(value, kind))


def _open(value: object, kind: Any) -> Any:
    """As JSON has it, the register too."""
    data = plain(value, kind)
    for place, key in registers(data) if isinstance(data, dict) else ():
        place[key] = msgspec.Raw(encode(place[key]))
    return msgspec.json.decode(msgspec.json.encode(data))


def _first_difference(place: str, one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """Where, and what stands there; None if all is the same."""
    if one == other:
        return None
    inner: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        inner = ((f"{place}.{key}", one[key], other[key]) for key in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        inner = ((f"{place}.{index}", *pair) for index, pair in enumerate(zip(one, other, strict=True)))
    return next((found for each in inner if (found := _first_difference(*each))), (place, one, other))
