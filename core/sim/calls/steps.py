"""What becomes of a world of calls by a move: each is one step of one thread, one fault, or one limit that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, assert_never

from ...caller import wished
from ...evolving import evolve
from ...inprocess import Call, Command, Phase, begin, deadlines, transition, verify, verify_step, words
from ...inprocess.words import (
    Abort,
    AbortEnded,
    AtomicLeft,
    Close,
    Deadline,
    Elapsed,
    Event,
    Finish,
    GateRead,
    How,
    Inject,
    Interrupted,
    Join,
    Kill,
    MarkDone,
    MarkReserve,
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
from ...rendezvous.agenda import Agenda, submitted
from ...world import Why
from . import gate, laws
from .moves import Move
from .ranks import PROFILE, At, Broken, Hang, Main, Note, Rank, Shape, World, born, settings_of
from .register import When, answer, asked, edited


def beginning(shape: Shape) -> World:
    """A world before its first step."""
    settings = settings_of(shape)
    ranks = [_started(born(str(slot), 1, settings, shape.terms, shape.calls)) for slot in range(shape.ranks)]
    return World(None, tuple(ranks), shape.terms, shape.budget, shape.kinds, shape.calls)


def _started(rank: Rank) -> Rank:
    call, commands = begin(rank.call)
    return evolve(rank, call=call, agenda=reduce(_submitted, commands, rank.agenda))


def _submitted(agenda: Agenda, command: Command) -> Agenda:
    request = wished(command, PROFILE)
    return submitted(agenda, request) if request else agenda


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


def _ends(world: World, move: Move, note: Note, how: How = How.RETURNED, mark: str = "") -> World:
    rank = world.ranks[move.rank]
    return _set(world, move.rank, main=evolve(rank.main, at=At.OVER, how=how, mark=mark, hang=Hang.NO))


def _disarms(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    return _set(world, move.rank, page=gate.disarmed(rank.page), main=evolve(rank.main, at=At.DISARMED))


def _tells(world: World, move: Move, note: Note) -> World:
    main = world.ranks[move.rank].main
    event = SpanEnded(main.token, main.how or How.RETURNED, main.mark)
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
    world = _set(world, place, alike=_alike(world.ranks[place].alike, before, event))
    kept = world.ranks[place].passed & frozenset(deadlines(after))
    world = _set(world, place, call=after, passed=kept)
    for command in commands:
        world = _carried_out(world, place, command, note)
    want = next((command.token for command in commands if isinstance(command, Want)), None)
    rank = world.ranks[place]
    return world if want is None or not rank.runs else _told(world, place, GateRead(want, rank.page.depth), note)


def _alike(alike: tuple[str, int], before: Call, event: Event) -> tuple[str, int]:
    """How often in a row a failure of this mark has ended a round, as one counts who reads the rank's log."""
    match event:
        case Elapsed(Deadline(timer=Timer.STEADY | Timer.SOFT)):
            return "", 0
        case SpanEnded(how=How.RETURNED) if before.phase is Phase.RUNNING:
            return "", 0
        case SpanEnded(how=How.FAILED, mark=mark) if before.phase in (Phase.STARTING, Phase.RUNNING) and before.active:
            return mark, alike[1] + 1 if mark == alike[0] else 1
        case _:
            return alike


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
    match command:
        case Join() | words.End() | MarkDone() | MarkReserve() | words.Leave() | Close():
            return _set(world, place, agenda=_submitted(rank.agenda, command))
        case Run(span, token):
            laws.ordered(rank, command)
            laws.goes_on(world, rank, command)
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
            assert_never(other)


def _asks(world: World, move: Move, note: Note, when: When = When.NOW) -> World:
    rank = world.ranks[move.rank]
    question = asked(world, rank, when)
    if question is None:
        return world
    before = world.register
    world, rank, event = answer(world, rank, question, when)
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


def _fails(world: World, move: Move, note: Note) -> World:
    """The same way whenever it is the same move."""
    note(f"fault: {move.what}")
    return _ends(_paid(world), move, note, How.FAILED, move.what)


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
    return _put(world, move.rank, _started(born(slot, incarnation + 1, dead.held.settings, world.terms, world.calls)))


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
    "fails here": _fails,
    "fails there": _fails,
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
