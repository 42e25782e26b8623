"""The values of a world of calls: one rank's process and all that runs in it, and the register that they share."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from attrs import field, frozen

from ...caller import Terms, signature
from ...evolving import evolve
from ...inprocess import Call, Event
from ...inprocess import Settings as CallSettings
from ...inprocess.words import Deadline, How, Outcome, Span
from ...rendezvous import Held, Limits, RendezvousState, Settings
from ...rendezvous.agenda import Agenda
from ...world import Endpoint, Life, Node, Profile
from .gate_words import Page


class At(Enum):
    """Where the main thread is."""

    WAITS = "waits"
    ORDERED = "ordered, not armed"
    USER = "user code"
    OVER = "user code over, not disarmed"
    DISARMED = "disarmed, not told"


class Hang(Enum):
    NO = "no"
    YES = "until a signal's handler raises"
    STUCK = "until the process is killed"


@frozen
class Main:
    """The main thread."""

    at: At = At.WAITS
    span: Span | None = None
    token: int = 0
    how: How | None = None
    mark: str = ""
    """Of the failure by which it ended."""
    hang: Hang = Hang.NO


@frozen
class Rank:
    """One incarnation of a rank: a process (M, T, the abort thread) and its monitor process (P)."""

    node: Node
    held: Held
    call: Call
    agenda: Agenda = Agenda()
    inbox: tuple[Event, ...] = ()
    main: Main = Main()
    page: Page = Page()
    signalled: bool = False
    """A signal is on its way to M, or waits for M's next step."""
    aborts: bool = False
    abort_hangs: bool = False
    starved: bool = False
    """T and all other threads but M get no turn: M holds the lock of the interpreter."""
    cut_off: bool = False
    """The store is out of reach for T."""
    alive: bool = True
    monitor: bool = True
    """P lives."""
    called_in: int = -1
    """The round in which the function was called last."""
    limited: int = 0
    """The token of the span of which a limit has passed."""
    alike: tuple[str, int] = ("", 0)
    """The mark of the last failure that ended a round, and how often it came in a row without any getting on in between."""
    passed: frozenset[Deadline] = frozenset()
    returned: Outcome | None = None
    """How the call ended."""
    answered: Any = field(default=None, eq=False, repr=False)
    """What it would ask of the register now, and what that was worked out from: it is looked for at every step of all."""

    @property
    def runs(self) -> bool:
        """Its call goes on in a living process."""
        return self.alive and self.returned is None


@frozen
class Budget:
    """What may still happen that need not."""

    faults: int = 0
    sections: int = 0
    """Atomic sections entered."""
    respawns: int = 0


@frozen
class World:
    register: RendezvousState | None
    ranks: tuple[Rank, ...]
    terms: Terms = Terms()
    budget: Budget = Budget()
    kinds: frozenset[str] = frozenset()
    """Which faults there may be; none named: all."""
    calls: CallSettings = CallSettings()
    clean: bool = True
    """No fault has happened."""
    rings: int = 0
    """Timers that have passed."""
    unseated: frozenset[Node] = frozenset()
    """Who left and has no seat any longer."""


Note = Callable[[str], None]
"""Told what has happened that should happen sometimes."""


@frozen
class Shape:
    """What a world begins with."""

    ranks: int = 2
    min_ranks: int = 1
    max_restarts: int = 3
    terms: Terms = field(factory=Terms)
    budget: Budget = Budget()
    kinds: frozenset[str] = frozenset()
    calls: CallSettings = CallSettings()
    last_call_s: float = 0.0
    """As long as a round after the first waits for more than it needs."""
    upscale: bool = True
    """A rank that comes later is let in at once."""


LIFE = Life("calls")
PROFILE = Profile(Endpoint("h", 1))
JITTER = 0.0


def born(slot: str, incarnation: int, settings: Settings, terms: Terms, calls: CallSettings) -> Rank:
    """A rank whose process has just started."""
    node = Node(slot, incarnation)
    return Rank(node, Held(node, PROFILE, settings, LIFE, policy=partial(signature, terms)), Call(calls))


FIRST_CALL_S = 90.0
NEVER_S = 1e9


def settings_of(shape: Shape) -> Settings:
    """Of the register, as the wrapper makes them."""
    return Settings(
        limits=Limits(shape.min_ranks, shape.ranks, shape.max_restarts),
        last_call_timeout=shape.last_call_s,
        first_call_timeout=FIRST_CALL_S,
        upscale_after=1.0 if shape.upscale else NEVER_S,
    )


# --- a world with one rank changed


def changed(world: World, place: int, **changes: Any) -> World:
    """Something of this rank is another."""
    return put(world, place, evolve(world.ranks[place], **changes))


def put(world: World, place: int, rank: Rank) -> World:
    return evolve(world, ranks=(*world.ranks[:place], rank, *world.ranks[place + 1 :]))


def posted(world: World, place: int, event: Event, **changes: Any) -> World:
    """Into the inbox of its T."""
    return changed(world, place, inbox=(*world.ranks[place].inbox, event), **changes)
