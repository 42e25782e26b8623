"""The values of a world of calls: each rank's process and its threads, and the register that the ranks share."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from attrs import Attribute, field

from ...caller import HELPING_ABOVE, HELPING_PATIENCE_S, Terms, signature
from ...inprocess import Call, Event
from ...inprocess import Settings as CallSettings
from ...inprocess.words import Deadline, How, Outcome, Raised, Span
from ...rendezvous import Held, Limits, Proposal, RendezvousState, Settings, Who, Write
from ...rendezvous.agenda import Agenda
from ...rendezvous.state import NODES_MAX
from ...values import evolve, frozen
from ...world import Endpoint, Life, Node, Party, Profile
from .gate_words import Page


class At(Enum):
    """The place of the main thread."""

    WAITS = "waits"
    ORDERED = "ordered, not armed"
    USER = "user code"
    OVER = "user code over, not disarmed"
    DISARMED = "disarmed, not told"


class Hang(Enum):
    NO = "no"
    YES = "until a signal's handler raises"
    STUCK = "until the process is killed"


class Unheard(Enum):
    LOST = "the answer is lost"
    LATE = "the write is late"


@frozen
class Main:
    """The main thread."""

    at: At = At.WAITS
    span: Span | None = None
    token: int = 0
    how: How | None = None
    mark: str = ""
    """The mark of the failure with which the span ended."""
    got_on: bool = False
    """User code has entered a section in this span."""
    hang: Hang = Hang.NO


@frozen
class Rank:
    """One incarnation of a rank: a process (main thread, driver, abort thread) and its monitor process."""

    node: Node
    held: Held
    call: Call
    agenda: Agenda = Agenda()
    inbox: tuple[Event, ...] = ()
    main: Main = Main()
    page: Page = Page()
    signalled: bool = False
    """A signal is on its way to the main thread, or waits for its next step."""
    aborts: bool = False
    abort_hangs: bool = False
    abort_failed: bool = False
    """An abort of this process has failed, and may have left connections open."""
    shown_part: bool = False
    """The next read of heartbeats shows only part of the dead."""
    starved: bool = False
    """Only the main thread gets turns: it holds the interpreter's lock."""
    cut_off: bool = False
    """The driver cannot reach the store."""
    unheard: Unheard | None = None
    """What becomes of its next write, whose outcome it does not hear."""
    under_way: tuple[Write, bool] | None = None
    """A write of its that may still land, though it has given up waiting for the outcome; and True if it had waited for as
    long as any span lasts before it wrote."""
    remembers: RendezvousState | None = None
    """It held this when the store forgot that. It is shown all else in each step, so it keeps nothing else."""
    alive: bool = True
    monitor: bool = True
    """The monitor process lives."""
    called_in: int = -1
    """The round in which the function was called last."""
    limited: int = 0
    """The token of the last span whose limit has passed."""
    alike: tuple[str, int, int] = ("", 0, 0)
    """The mark of the last failure that ended a round; how often in a row it came, and how often of that before any section
    of its span."""
    passed: frozenset[Deadline] = frozenset()
    returned: Outcome | None = None
    """How the call ended; None while it goes on."""

    @property
    def is_spoken_for(self) -> bool:
        """Return True if the rank is gone, and its monitor lives to say so."""
        return self.monitor and (not self.alive or isinstance(self.returned, Raised))

    @property
    def runs(self) -> bool:
        """True if the process lives and its call goes on."""
        return self.alive and self.returned is None


def _no_debt(instance: object, attribute: Attribute[int], value: int) -> None:
    if not value >= 0:
        raise ValueError(f"{attribute.name}: at least 0, not {value}")


@frozen
class Budget:
    """How much may still happen besides the usual course."""

    faults: int = field(default=0, validator=_no_debt)
    sections: int = field(default=0, validator=_no_debt)
    """Atomic sections that may be entered."""
    respawns: int = field(default=0, validator=_no_debt)
    losses: int = field(default=0, validator=_no_debt)
    """How often the store may forget, or leave a rank without the outcome of a write."""


@frozen
class World:
    register: RendezvousState | None
    ranks: tuple[Rank, ...]
    terms: Terms = Terms()
    budget: Budget = Budget()
    kinds: frozenset[str] = frozenset()
    """The kinds of faults that may happen; empty: all."""
    calls: CallSettings = CallSettings(fresh_after=None)
    clean: bool = True
    """True while no fault has happened."""
    rings: int = 0
    """How many timers have passed."""
    forgotten: RendezvousState | None = None
    """The store has forgotten this, and it does not stand again yet."""
    proposals: tuple[tuple[Node, Proposal], ...] = ()
    """Ranks have proposed these in the last era in which one did."""
    unseated: frozenset[Node] = frozenset()
    """The nodes that left and have lost their seats."""
    moving: bool = False
    """True if nodes come and go under these ranks, so that the first world may begin without some that live."""
    lately: dict[tuple[Node, Enum], Any] = field(factory=dict, eq=False, repr=False)
    """A memo beside all worlds that one beginning led to, and no part of any: the last question that each rank would ask of
    the register now, late and too late, and what it follows from. Each step needs the questions of every rank."""

    @property
    def known(self) -> RendezvousState | None:
        """The register that stands. While the store has forgotten it, that is what stood last."""
        return self.register or self.forgotten


Note = Callable[[str], None]
"""Called with each event that runs must show sometimes."""


@frozen
class Shape:
    """The parameters of a new world."""

    ranks: int = 2
    min_ranks: int = 1
    max_restarts: int = 3
    terms: Terms = field(factory=Terms)
    budget: Budget = Budget()
    kinds: frozenset[str] = frozenset()
    calls: CallSettings = CallSettings(fresh_after=None)
    last_call_s: float = 0.0
    """How long a round after the first waits for more ranks than it needs."""
    upscale: bool = True
    """True if a late rank is let in at once."""
    replace_s: float = 0.0
    """How long a killed rank's seat is kept for its next incarnation."""
    lasting: bool = False
    """True if each step takes time, by chance. Else all orders of steps are as likely, and time passes when nothing else
    can happen."""

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.ranks <= NODES_MAX:
            raise ValueError(f"ranks: 1 to {NODES_MAX}, not {self.ranks}")
        least = {"min_ranks": self.min_ranks, "min_world_size": self.terms.min_world_size}
        for name, value in {**least, "min_active_world_size": self.terms.min_active_world_size}.items():
            if value > self.ranks:
                raise ValueError(f"{name}: at most ranks, {self.ranks}, not {value}")
        settings_of(self)  # refused here, not in the middle of a run


PROFILE = Profile(Endpoint("h", 1), party=Party("alone", 1))
JITTER = 0.0


def born(
    slot: str, incarnation: int, settings: Settings, terms: Terms, calls: CallSettings, profile: Profile = PROFILE
) -> Rank:
    """Return a rank whose process has just started."""
    node = Node(slot, incarnation)
    nonce = Life(str(node))  # no two ranks begin the same life
    return Rank(node, Held(Who(node, profile, settings, nonce, policy=partial(signature, terms))), Call(calls))


FIRST_CALL_S = 90.0
NEVER_S = 1e9


def settings_of(shape: Shape) -> Settings:
    """Return the settings of the register, as the wrapper makes them."""
    return Settings(
        limits=Limits(shape.min_ranks, NODES_MAX, shape.max_restarts),
        first_target=shape.ranks,
        last_call_timeout=shape.last_call_s,
        first_call_timeout=FIRST_CALL_S,
        upscale_after=1.0 if shape.upscale else NEVER_S,
        replace_timeout=shape.replace_s,
        helping_above=HELPING_ABOVE,
        helping_patience=HELPING_PATIENCE_S,
    )


# --- a world with one rank changed


def changed(world: World, place: int, **changes: Any) -> World:
    """Return the world with this rank changed."""
    return put(world, place, evolve(world.ranks[place], **changes))


def put(world: World, place: int, rank: Rank) -> World:
    return evolve(world, ranks=(*world.ranks[:place], rank, *world.ranks[place + 1 :]))


def posted(world: World, place: int, event: Event, **changes: Any) -> World:
    """Return the world with this event in the inbox of the rank's driver."""
    return changed(world, place, inbox=(*world.ranks[place].inbox, event), **changes)
