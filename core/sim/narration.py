"""The lines that tell what happens in a simulated world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from ..group import Outcome
from ..group.state import Drained, Refused, Stopped, Unawaited
from ..rendezvous import (
    Arrive,
    Close,
    Complete,
    Deed,
    Done,
    Drain,
    End,
    Evict,
    Leave,
    Overdue,
    Proceed,
    RendezvousState,
    Reserve,
    Restore,
    Together,
)
from ..world import Verdict
from .story import name

Narrator: TypeAlias = Callable[[float, str, str], None]
"""A function of (true time, node, what the node does)."""


def sentence(edit: Deed, after: RendezvousState) -> str:
    """Say what a write did, and what the register holds now."""
    return f"{verb(edit)} → {after.version}: {standing(after)}"


def standing(state: RendezvousState) -> str:
    """Say the register's round and who is seated."""
    seats = " ".join(f"{name(node)}:{seat.status.value}" for node, seat in state.seats.items())
    closed = f", closed {state.closed.ending.name}" if state.closed else ""
    return f"round {state.round} {'complete' if state.complete else 'open'}{closed} [{seats}]"


def verb(edit: Deed) -> str:
    match edit:
        case Restore(held):
            return f"restores version {held.version} of epoch {held.life.epoch}"
        case Arrive():
            return "arrives"
        case Leave():
            return "leaves"
        case End(round, why):
            return f"ends round {round} ({why.value})"
        case Done(round):
            return f"is done in round {round}"
        case Reserve(round):
            return f"is a reserve in round {round}"
        case Evict(gone):
            return f"evicts {', '.join(name(node) for node in sorted(gone))}"
        case Complete(round):
            return f"completes round {round}"
        case Overdue(round):
            return f"waits no longer in round {round}"
        case Proceed(round):
            return f"says that round {round} makes progress"
        case Together(proposals):
            return f"writes for {', '.join(map(name, proposals))}"
        case Close(verdict):
            return f"closes {verdict.ending.name}"
        case Drain(node, notice):
            return f"gives {name(node)} {notice.deadline_s:g} s notice"
        case other:
            assert_never(other)


def outcome(how: Outcome) -> str:
    match how:
        case Verdict(ending):
            return ending.value
        case Refused(why):
            return f"refused ({why.value})"
        case Unawaited():
            return "waits no longer"
        case Drained():
            return "drained"
        case Stopped(signum):
            return f"stopped by signal {signum}"
        case other:
            assert_never(other)
