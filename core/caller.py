"""The events and requests between one rank's call and its rendezvous.

The two machines do not know each other, nor do they know the rank policy. The wrapper, or the simulator, runs them and
passes their words on by these functions, as `node` does for a node whose workers are processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import assert_never

from .causes import choose, echo
from .inprocess import words
from .policies import Placing, Policy, chain, digest, place
from .rendezvous import Ended, Fail, Held, Outcome, Over, Raise, Settled, Status, handlers
from .rendezvous.agenda import Request
from .rendezvous.context import Handler
from .values import frozen
from .world import Fault, Node, Profile, Verdict, Why, World

HELPING_ABOVE = 2
"""More ranks than this that come back, or return, propose it, and the last of them writes for all. Each write wakes all
ranks of a host."""
HELPING_PATIENCE_S = 0.025
"""How long a rank that has proposed waits for the last one. Where a new process replaces a rank, nobody is the last: it
writes its own arrival."""


@frozen
class Terms:
    """The conditions of a world: how large it must be to start in, and the policy that says who is active there."""

    policy: Policy = chain()
    min_world_size: int = 1
    min_active_world_size: int = 1


def signature(terms: Terms, world: World) -> str:
    """Return what the completer of a world says of it (`Held.policy`); nothing if its policy raises."""
    try:
        return digest(terms.policy, place(terms.policy, world))
    except BaseException:  # noqa: BLE001 - whatever a user's policy raises, a RestartAbort too
        return ""


def entered(terms: Terms, world: World, me: Node, placing: Placing | None = None) -> words.Ready:
    """Return the event by which a member hears of its world. `placing`: what its policy made of the world."""
    placing = placing or place(terms.policy, world)
    active = placing.active_world_size
    enough = placing.world_size >= terms.min_world_size and active >= terms.min_active_world_size
    agreed = world.policy in ("", digest(terms.policy, placing))
    return words.Ready(world.round, placing.places[me].active, enough, agreed)


WHY_OVER: Mapping[Why, str] = {
    Why.FAILED: "it went wrong on a rank",
    Why.LOST: "a rank was lost",
    Why.LEFT: "a rank left",
    Why.UPSCALE: "a rank waited and there was room",
}
"""The reasons for the end of an iteration, for people."""


def heard(handler: Handler, answer: Outcome | Raise, terms: Terms, held: Held) -> words.Event | None:
    """Return the event of the call that follows from an answer; None for what the call already knows. `held` is the memory
    after the answer.

    A node that has ended its round watches it no longer. The confirmation of its own write is all that it hears of the end.
    """
    match answer:
        case World() as world:
            return entered(terms, world, held.who.node)
        case Over(round):
            return words.Over(round)
        case Verdict() as verdict:
            return _closed(verdict, held)
        case Settled() if handler is handlers.leave:
            return words.Left()
        case Settled() if handler is handlers.end and (mine := held.past.mine):
            closed = held.view.state.closed if held.view.state else None
            return _closed(closed, held) if closed else words.Over(mine.round)
        case Settled():
            return None
        case Raise(Fail(Why.CLOSED, Verdict() as verdict)):
            return _closed(verdict, held)
        case Raise(failure):
            return words.Refused(failure.why)
        case other:
            assert_never(other)


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the failures on record by iteration: of each the cause first, and echoes of other ranks' failures last."""
    by_round = groupby(sorted(faults, key=lambda fault: fault.round), key=lambda fault: fault.round)
    return tuple(fault for _, of_one in by_round for fault in _cause_first(list(of_one)))


def _cause_first(faults: Sequence[Fault]) -> Sequence[Fault]:
    cause = choose(faults, None)
    return sorted(faults, key=lambda fault: (cause is None or fault is not cause.fault, bool(echo(fault))))


def is_open(faults: Iterable[Fault], round: int) -> bool:
    """Return True if no failure of this iteration is on record, or nothing but echoes."""
    cause = choose([fault for fault in faults if fault.round == round], None)
    return cause is None or not cause.is_sure


def culprits(faults: Iterable[Fault], ended: Ended) -> tuple[Node, ...]:
    """Return the rank that failed first in the iteration that ended so; several where all on record are echoes. The rank
    whose write has ended it may have failed for another one's failure."""
    cause = choose([fault for fault in faults if fault.round == ended.round], ended.by)
    return (cause.fault.node, *(other.node for other in cause.others)) if cause else (ended.by,)


def _closed(verdict: Verdict, held: Held) -> words.Closed:
    """Return the event of a closed job. `counted`: this rank's function had returned in the round in which the job ended."""
    state, me = held.view.state, held.who.node
    seat = state.seats.get(me) if state and state.closed == verdict and state.round == verdict.round else None
    return words.Closed(verdict, seat is not None and seat.status in (Status.DONE, Status.GONE))


def requested(command: words.Command, profile: Profile) -> Request | None:
    """Return the request that follows from a command of the call; None for a command to another part. `profile` is what the
    rank says of itself when it joins."""
    match command:
        case words.Join():
            return Request(handlers.join, profile=profile)
        case words.End():
            return Request(handlers.end, Why.FAILED)
        case words.MarkDone():
            return Request(handlers.done)
        case words.MarkReserve():
            return Request(handlers.reserve)
        case words.Leave():
            return Request(handlers.leave)
        case words.Close(ending):
            return Request(handlers.close, Why.ASKED, ending)
        case _:
            return None
