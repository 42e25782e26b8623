"""The events and requests between a node's worker group and its rendezvous.

The two machines do not know each other. The agent, or the simulator, runs both and passes their words on by these functions.
"""

from __future__ import annotations

from typing import assert_never

from .group import state as group
from .rendezvous import Fail, Held, Over, Raise, RendezvousState, Settled, Told, handlers
from .rendezvous.agenda import Request
from .world import Ending, Life, Profile, Verdict, Why, World

CAME_LATE = "the job had succeeded before this node came"


def heard(told: Told, now: float) -> group.Event | None:
    """Return the event of the group that follows from an answer; None for what the group already knows."""
    handler, answer = told.handler, told.answer
    match answer:
        case World() as world:
            return group.Ready(world, now)
        case Over(round, ended):
            return group.Over(round, ended.why if ended else None, ended.by if ended else None, now)
        case Verdict() as verdict:
            return group.Closed(verdict, now)
        case Settled():
            return group.Gone(now) if handler is handlers.leave else None
        case Raise(Fail(Why.CLOSED, Verdict() as verdict)):
            late = verdict.ending is Ending.SUCCEEDED and not _took_part(told.held)
            return group.Refused(Why.CLOSED, CAME_LATE, now) if late else group.Closed(verdict, now)
        case Raise(failure, text):
            return group.Refused(failure.why, text, now)
        case other:
            assert_never(other)


def _took_part(held: Held) -> bool:
    """Return True if this node had workers in the job, or a seat, or was a spare that lost its seat."""
    seated = held.state is not None and held.node in held.state.seats
    return seated or bool(held.ran) or held.spare_at is not None


def requested(command: group.Command, profile: Profile) -> Request | None:
    """Return the request that follows from a command of the group; None for a command to another part. `profile` is what the
    node says of itself when it joins."""
    match command:
        case group.Join():
            return Request(handlers.join, profile=profile)
        case group.End(why):
            return Request(handlers.end, why)
        case group.MarkDone():
            return Request(handlers.done)
        case group.Leave():
            return Request(handlers.leave)
        case group.Close(ending, why):
            return Request(handlers.close, why, ending)
        case _:
            return None


def follows(event: group.Event, after: group.Group, now: float) -> group.Event | None:
    """Return the event that must follow: when the last worker has exited, no worker lives any longer."""
    return group.Reaped(now) if isinstance(event, group.Exited) and not after.running else None


def acknowledged(named: Life | None, held: RendezvousState | None) -> bool:
    """Return True if the answer to a heartbeat counts: it names the life of the register that this node holds. In a store
    that began anew the heartbeat may be heard by nodes that do not know this one."""
    return held is not None and held.life == named


def farewell(outcome: group.Outcome) -> Request | None:
    """Return the last request of a node whose group has ended: a node that knows the verdict sees to it that the store
    does."""
    return Request(handlers.linger) if isinstance(outcome, Verdict) else None
