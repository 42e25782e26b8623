"""What may happen next in a world of calls, and what becomes of it.

Three kinds of moves. Prompt ones: a thread takes its next step. Faults, and what may be drawn instead of the usual: paid for
from a budget. Timed ones: something takes so long that a limit passes; they come when nothing else can move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import Any

from attrs import frozen

from ...caller import wished
from ...evolving import evolve
from ...inprocess import Call, Command, begin, deadlines, transition, verify, verify_step
from ...inprocess.words import (
    Abort,
    AbortEnded,
    AtomicLeft,
    Deadline,
    Elapsed,
    Event,
    Finish,
    GateRead,
    How,
    Inject,
    Interrupted,
    Kill,
    Raised,
    Refused,
    Run,
    Span,
    SpanEnded,
    StoreBack,
    StoreLost,
    Terminated,
    Timer,
    Want,
)
from ...rendezvous import End, Evict, Leave
from ...rendezvous.agenda import submitted
from ...rendezvous.state import AWAY
from ...world import Why
from . import gate, laws
from .ranks import PROFILE, At, Broken, Hang, Main, Note, Rank, Shape, World, born, settings_of
from .register import When, answer, asked, edited

AGAIN_MAX = 2
"""Signals that are sent again before the last limit passes."""
GUARDED = (Span.INITIALIZE, Span.FUNCTION)


@frozen
class Move:
    what: str
    rank: int
    how: How | Deadline | None = None

    def __str__(self) -> str:
        how = (
            ""
            if self.how is None
            else f" ({self.how.timer.value if isinstance(self.how, Deadline) else self.how.value})"
        )
        return f"{self.rank} {self.what}{how}"


def beginning(shape: Shape) -> World:
    """A world before its first step."""
    settings = settings_of(shape)
    ranks = [_started(born(str(slot), 1, settings, shape.terms)) for slot in range(shape.ranks)]
    return World(None, tuple(ranks), shape.terms, shape.budget, shape.kinds)


def _started(rank: Rank) -> Rank:
    call, commands = begin(rank.call)
    requests = [request for command in commands if (request := wished(command, PROFILE))]
    return evolve(rank, call=call, agenda=reduce(submitted, requests, rank.agenda))


# --- what may happen --------------------------------------------------------------------------------------------------


def prompt(world: World) -> list[Move]:
    """The next steps of all threads."""
    return [move for place in range(len(world.ranks)) for move in prompt_of(world, place)]


def prompt_of(world: World, place: int) -> list[Move]:
    """Those of one rank."""
    return [Move(what, place) for what in _prompt(world, world.ranks[place])]


def _prompt(world: World, rank: Rank) -> Iterator[str]:
    if not rank.runs:
        if rank.monitor and _speaks(world, rank):
            yield "P speaks"
        return
    yield from _of_main(rank)
    if rank.starved:
        yield from _of_monitor(world, rank)
        return
    if rank.inbox:
        yield "T hears"
    if not rank.cut_off and asked(world, rank):
        yield "T asks"
    if rank.aborts and not rank.abort_hangs:
        yield "abort ends"
    if not rank.monitor:
        yield "P starts again"


def _of_main(rank: Rank) -> Iterator[str]:
    match rank.main.at:
        case At.ORDERED:
            yield "M arms"
        case At.USER if rank.main.hang is Hang.NO:
            yield "M leaves the section" if rank.page.depth else "M ends"
        case At.OVER:
            yield "M disarms"
        case At.DISARMED:
            yield "M tells"
        case _:
            pass
    if rank.signalled:
        yield "M is signalled"


def _of_monitor(world: World, rank: Rank) -> Iterator[str]:
    """While T is silent."""
    page = rank.page
    over = page.armed and laws.is_over(world.register, rank.node, page.armed_round)
    if rank.monitor and over and page.want_p != page.armed and rank.main.span in GUARDED:
        yield "P wants"
    if rank.monitor and rank.call.leaving and not rank.call.left and _seated(world, rank):
        yield "P leaves"


def _seated(world: World, rank: Rank) -> bool:
    register = world.register
    seat = register.seats.get(rank.node) if register and not register.closed else None
    return seat is not None and seat.status not in AWAY


def _speaks(world: World, rank: Rank) -> bool:
    """For a dead rank, and for one that went without the register's knowing."""
    return _seated(world, rank) and (not rank.alive or isinstance(rank.returned, Raised))


def faults(world: World) -> list[Move]:
    """What else may happen now."""
    found = []
    for place, rank in enumerate(world.ranks):
        if world.budget.sections and _may_enter(rank):
            found.append(Move("M enters a section", place))
        if world.budget.respawns and not rank.alive:
            found.append(Move("starts again", place))
        if world.budget.faults:
            found += [
                Move(what, place, how) for what, how in _faults(world, rank) if not world.kinds or what in world.kinds
            ]
    return found


FAULTS = (
    *("user code ends", "hangs", "is stuck", "swallows", "dies", "is lost", "is told to stop", "is interrupted"),
    *("abort hangs", "starves", "is cut off", "P dies", "is suspected"),
)
"""All kinds."""


def _may_enter(rank: Rank) -> bool:
    main = rank.main
    return rank.runs and main.at is At.USER and main.hang is Hang.NO and main.span in GUARDED and not rank.page.depth


def _faults(world: World, rank: Rank) -> Iterator[tuple[str, How | None]]:
    if not rank.runs:
        return
    main = rank.main
    if main.at is At.USER and main.hang is Hang.NO:
        for how in (How.FAILED, How.EXITED, How.INTERRUPTED, How.GAVE_UP):
            yield "user code ends", how
        yield from (("hangs", None), ("is stuck", None))
    if rank.signalled and gate.raises(rank.page, main.at is At.USER):
        yield "swallows", None
    yield from (("dies", None), ("is lost", None), ("is told to stop", None))
    if main.at is not At.USER:
        yield "is interrupted", None
    if rank.aborts and not rank.abort_hangs:
        yield "abort hangs", None
    if not rank.starved:
        yield "starves", None
    if not rank.cut_off:
        yield "is cut off", None
    if rank.monitor:
        yield "P dies", None
    if _seated(world, rank) and any(other.runs for other in world.ranks if other is not rank):
        yield "is suspected", None


def timed(world: World) -> list[Move]:
    """What happens when nothing else does."""
    found = []
    for place, rank in enumerate(world.ranks):
        if not rank.runs:
            continue
        if rank.starved:
            found.append(Move("has time again", place))
            found += [Move(what, place) for what in _late_monitor(world, rank)]
            continue
        due = [each for each in deadlines(rank.call) if each not in rank.passed and not _too_often(each)]
        if due:
            found.append(Move("time passes", place, min(due, key=lambda each: each.after_s)))
        if rank.cut_off:
            found.append(Move("is reached again", place))
            if rank.agenda.operation or rank.agenda.queue:
                found.append(Move("gives the store up", place))
        elif asked(world, rank, When.LATE):
            found.append(Move("T asks late", place))
        elif asked(world, rank, When.TOO_LATE):
            found.append(Move("T is too late", place))
    return found


def _too_often(deadline: Deadline) -> bool:
    return deadline.timer is Timer.AGAIN and deadline.tries >= AGAIN_MAX


def _late_monitor(world: World, rank: Rank) -> Iterator[str]:
    if not rank.monitor or rank.main.at is not At.USER or rank.main.hang is Hang.NO:
        return
    if gate.wanted(rank.page) and not rank.signalled and rank.main.hang is Hang.YES and not rank.page.depth:
        yield "P signals again"
    if rank.main.span in GUARDED and not laws.is_over(world.register, rank.node, rank.page.armed_round):
        yield "P ends"
    yield "P kills"


# --- what becomes of it -----------------------------------------------------------------------------------------------


def step(world: World, move: Move, note: Note) -> World:
    """After this move. Raises Broken, or a Violation, when it breaks a law."""
    return STEPS[move.what](world, move, note)


def _set(world: World, place: int, **changes: Any) -> World:
    return _put(world, place, evolve(world.ranks[place], **changes))


def _put(world: World, place: int, rank: Rank) -> World:
    return evolve(world, ranks=(*world.ranks[:place], rank, *world.ranks[place + 1 :]))


def _posted(world: World, place: int, event: Event, **changes: Any) -> World:
    return _set(world, place, inbox=(*world.ranks[place].inbox, event), **changes)


def _paid(world: World) -> World:
    return evolve(world, budget=evolve(world.budget, faults=world.budget.faults - 1), clean=False)


# M


def _arms(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    main, round = rank.main, rank.call.round if rank.call.round is not None else -1
    page = gate.armed(rank.page, main.token, round)
    if main.span is not Span.FUNCTION:
        return _set(world, move.rank, page=page, main=evolve(main, at=At.USER))
    if not gate.wanted(page):
        laws.called(world, rank, round)
    if rank.called_in >= 0:
        note("the function is called again")
    return _set(world, move.rank, page=page, main=evolve(main, at=At.USER), called_in=round)


def _ends(world: World, move: Move, note: Note, how: How = How.RETURNED) -> World:
    rank = world.ranks[move.rank]
    return _set(world, move.rank, main=evolve(rank.main, at=At.OVER, how=how, hang=Hang.NO))


def _disarms(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    return _set(world, move.rank, page=gate.disarmed(rank.page), main=evolve(rank.main, at=At.DISARMED))


def _tells(world: World, move: Move, note: Note) -> World:
    main = world.ranks[move.rank].main
    event = SpanEnded(main.token, main.how or How.RETURNED)
    return _posted(world, move.rank, event, main=Main(token=main.token))


def _enters(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    world = evolve(world, budget=evolve(world.budget, sections=world.budget.sections - 1))
    page = gate.entered(rank.page)
    if page is None:
        note("atomic refused")
        return _ends(world, move, note, How.INJECTED)
    laws.sheltered(rank)
    return _set(world, move.rank, page=page)


def _leaves_section(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    page = gate.left(rank.page)
    world = _posted(world, move.rank, AtomicLeft(page.armed), page=page)
    if page.depth or not gate.wanted(page):
        return world
    note("raised at the end of atomic")
    return _ends(world, move, note, How.INJECTED)


def _signalled(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    world = _set(world, move.rank, signalled=False)
    if not gate.raises(rank.page, rank.main.at is At.USER):
        where = "atomic" if rank.page.depth else rank.main.at.value
        note(f"declined in: {where}")
        return world
    laws.raised(world, rank)
    if rank.main.hang is Hang.STUCK:
        return world
    note("injected by P" if rank.page.want != rank.page.armed else "injected")
    return _ends(world, move, note, How.INJECTED)


# T


def _hears(world: World, move: Move, note: Note) -> World:
    first, *rest = world.ranks[move.rank].inbox
    return _told(_set(world, move.rank, inbox=tuple(rest)), move.rank, first, note)


def _told(world: World, place: int, event: Event, note: Note) -> World:
    before = world.ranks[place].call
    after, commands = transition(before, event)
    verify(after)
    verify_step(before, event, after, commands)
    _noted(before, event, after, note)
    kept = world.ranks[place].passed & frozenset(deadlines(after))
    world = _set(world, place, call=after, passed=kept)
    for command in commands:
        world = _carried_out(world, place, command, note)
    want = next((command.token for command in commands if isinstance(command, Want)), None)
    rank = world.ranks[place]
    return world if want is None or not rank.runs else _told(world, place, GateRead(want, rank.page.depth), note)


def _noted(before: Call, event: Event, after: Call, note: Note) -> None:
    note(f"{before.phase.value} → {after.phase.value}")
    if isinstance(event, GateRead) and event.depth:
        note("gate busy")
    if before.result is not None and after.result is None:
        note(f"result dropped when {before.phase.value}")
    if before.leaving is None and after.leaving is not None:
        note(f"leaves: {after.leaving.value}")


def _carried_out(world: World, place: int, command: Command, note: Note) -> World:
    rank = world.ranks[place]
    request = wished(command, PROFILE)
    if request:
        return _set(world, place, agenda=submitted(rank.agenda, request))
    match command:
        case Run(span, token):
            laws.ordered(rank, command)
            return _set(world, place, main=Main(At.ORDERED, span, token))
        case Want(token):
            return _set(world, place, page=evolve(rank.page, want=token))
        case Inject():
            return _set(world, place, signalled=True)
        case Abort():
            laws.aborted(rank)
            return _set(world, place, aborts=True, abort_hangs=False)
        case Kill():
            note("killed at a limit")
            return _set(world, place, alive=False)
        case Finish(outcome):
            laws.finished(world, rank, outcome)
            note(f"returned {outcome.round is not None}" if not isinstance(outcome, Raised) else outcome.reason.value)
            return _set(world, place, returned=outcome)
        case other:
            raise Broken("wiring", f"nobody carries out {other}")


def _asks(world: World, move: Move, note: Note, when: When = When.NOW) -> World:
    rank = world.ranks[move.rank]
    question = asked(world, rank, when)
    if question is None:
        return world
    before = world.register
    world, rank, event = answer(world, rank, question)
    after = world.register
    if after is not before and after is not None:
        _told_of(before.round if before else 0, world, note)
    world = _put(world, move.rank, rank)
    return _posted(world, move.rank, event) if event else world


def _told_of(round: int, world: World, note: Note) -> None:
    register = world.register
    if register and register.closed:
        note(f"closed {register.closed.ending.name}")
    elif register and register.round > round and register.ended:
        note(f"end by {register.ended.why.value}")


def _abort_ends(world: World, move: Move, note: Note) -> World:
    return _posted(world, move.rank, AbortEnded(), aborts=False)


# P


def _speaks_now(world: World, move: Move, note: Note) -> World:
    note("P speaks for a dead rank")
    rank = world.ranks[move.rank]
    return edited(world, Evict(frozenset((rank.node,))), rank.node)


def _p_wants(world: World, move: Move, note: Note) -> World:
    note("P injects")
    page = world.ranks[move.rank].page
    return _set(world, move.rank, page=evolve(page, want_p=page.armed), signalled=True)


def _p_leaves(world: World, move: Move, note: Note) -> World:
    note("P leaves for T")
    return edited(world, Leave(), world.ranks[move.rank].node)


def _p_ends(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    if not rank.call.active:
        note("P leaves for T")
        return edited(world, Leave(), rank.node)
    note("P ends for T")
    return edited(world, End(rank.page.armed_round, Why.FAILED), rank.node)


def _dies(world: World, move: Move, note: Note) -> World:
    return _set(world, move.rank, alive=False)


# faults and time


def _fault(world: World, move: Move, note: Note, **changes: Any) -> World:
    note(f"fault: {move.what}")
    return _set(_paid(world), move.rank, **changes)


def _user_code_ends(world: World, move: Move, note: Note) -> World:
    if not isinstance(move.how, How):
        raise Broken("wiring", f"no way in which user code ends: {move}")
    note(f"fault: {move.how.value}")
    return _ends(_paid(world), move, note, move.how)


def _hangs(world: World, move: Move, note: Note, hang: Hang) -> World:
    return _fault(world, move, note, main=evolve(world.ranks[move.rank].main, hang=hang))


def _swallows(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    laws.raised(world, rank)
    return _fault(world, move, note, signalled=False, main=evolve(rank.main, hang=Hang.NO))


def _event(world: World, move: Move, note: Note, event: Event) -> World:
    return _posted(_fault(world, move, note), move.rank, event)


def _cut_off(world: World, move: Move, note: Note) -> World:
    return _posted(_fault(world, move, note, cut_off=True), move.rank, StoreLost())


def _reached(world: World, move: Move, note: Note) -> World:
    return _posted(_set(world, move.rank, cut_off=False), move.rank, StoreBack())


def _suspected(world: World, move: Move, note: Note) -> World:
    """Somebody else holds it for dead."""
    other = next(rank for place, rank in enumerate(world.ranks) if place != move.rank and rank.runs)
    return edited(_fault(world, move, note), Evict(frozenset((world.ranks[move.rank].node,))), other.node)


def _starts_again(world: World, move: Move, note: Note) -> World:
    """Its launcher starts the rank again, as the slot's next incarnation."""
    note("starts again")
    dead = world.ranks[move.rank]
    slot, incarnation = dead.node
    world = evolve(world, budget=evolve(world.budget, respawns=world.budget.respawns - 1))
    return _put(world, move.rank, _started(born(slot, incarnation + 1, dead.held.settings, world.terms)))


def _time_passes(world: World, move: Move, note: Note) -> World:
    rank, deadline = world.ranks[move.rank], move.how
    if not isinstance(deadline, Deadline):
        raise Broken("wiring", f"no deadline passes: {move}")
    note(f"timer: {deadline.timer.value}")
    limited = deadline.of if deadline.timer in (Timer.SOFT, Timer.LIMIT) else rank.limited
    world = _set(world, move.rank, passed=rank.passed | {deadline}, limited=limited)
    return _told(evolve(world, rings=world.rings + 1), move.rank, Elapsed(deadline), note)


def _gives_up(world: World, move: Move, note: Note) -> World:
    """An operation that must be written, and cannot for so long."""
    note("the store is given up")
    agenda = world.ranks[move.rank].agenda
    queue = agenda.queue if agenda.operation else agenda.queue[1:]
    given_up = evolve(agenda, operation=None, watching=False, queue=queue)
    return _posted(world, move.rank, Refused(Why.UNCONFIRMED), agenda=given_up)


STEPS: Mapping[str, Callable[[World, Move, Note], World]] = {
    "M arms": _arms,
    "M ends": _ends,
    "M disarms": _disarms,
    "M tells": _tells,
    "M enters a section": _enters,
    "M leaves the section": _leaves_section,
    "M is signalled": _signalled,
    "T hears": _hears,
    "T asks": _asks,
    "T asks late": partial(_asks, when=When.LATE),
    "T is too late": partial(_asks, when=When.TOO_LATE),
    "abort ends": _abort_ends,
    "P starts again": lambda world, move, note: _set(world, move.rank, monitor=True),
    "P speaks": _speaks_now,
    "P wants": _p_wants,
    "P signals again": lambda world, move, note: _set(world, move.rank, signalled=True),
    "P leaves": _p_leaves,
    "P ends": _p_ends,
    "P kills": _dies,
    "user code ends": _user_code_ends,
    "hangs": partial(_hangs, hang=Hang.YES),
    "is stuck": partial(_hangs, hang=Hang.STUCK),
    "swallows": _swallows,
    "dies": partial(_fault, alive=False),
    "is lost": partial(_fault, alive=False, monitor=False),
    "is told to stop": partial(_event, event=Terminated()),
    "is interrupted": partial(_event, event=Interrupted()),
    "abort hangs": partial(_fault, abort_hangs=True),
    "starves": partial(_fault, starved=True),
    "has time again": lambda world, move, note: _set(world, move.rank, starved=False),
    "is cut off": _cut_off,
    "is reached again": _reached,
    "P dies": partial(_fault, monitor=False),
    "is suspected": _suspected,
    "starts again": _starts_again,
    "time passes": _time_passes,
    "gives the store up": _gives_up,
}
