"""The steps of a rank's driver: it holds the call, hears events, carries out commands, and asks the register."""

from __future__ import annotations

from functools import partial, reduce
from typing import assert_never

from ...caller import requested
from ...inprocess import Call, Command, Phase, begin, deadlines, transition, verify, verify_step, words
from ...inprocess.words import (
    Abort,
    AbortEnded,
    Close,
    Deadline,
    Elapsed,
    Event,
    Finish,
    GateRead,
    How,
    Inject,
    Join,
    Kill,
    MarkDone,
    MarkReserve,
    Raised,
    Record,
    Run,
    SpanEnded,
    Timer,
    Want,
)
from ...rendezvous import Done, RendezvousState, Restore, Together, Write
from ...rendezvous.agenda import Agenda, submitted
from ...values import evolve
from ...world import Profile
from . import laws
from .call_world import At, Main, Note, Rank, World, changed, posted, put
from .main_thread_steps import hears_sigterm, terminated
from .moves import Move
from .register import When, answer, asked, landed, lands


def started(rank: Rank) -> Rank:
    call, commands = begin(rank.call)
    return evolve(rank, call=call, agenda=reduce(partial(_submitted, rank.held.who.profile), commands, rank.agenda))


def _submitted(profile: Profile, agenda: Agenda, command: Command) -> Agenda:
    request = requested(command, profile)
    return submitted(agenda, request) if request else agenda


def hears(world: World, move: Move, note: Note) -> World:
    first, *rest = world.ranks[move.rank].inbox
    return told(changed(world, move.rank, inbox=tuple(rest)), move.rank, first, note)


def told(world: World, place: int, event: Event, note: Note) -> World:
    before = world.ranks[place].call
    after, commands = transition(before, event)
    verify(after)
    verify_step(before, event, after, commands)
    _noted(before, event, after, note)
    world = changed(world, place, alike=_alike(world.ranks[place].alike, before, event))
    kept = world.ranks[place].passed & frozenset(deadlines(after))
    world = changed(world, place, call=after, passed=kept)
    for command in commands:
        world = _carried_out(world, place, command, note)
    want = next((command.token for command in commands if isinstance(command, Want)), None)
    rank = world.ranks[place]
    return world if want is None or not rank.runs else told(world, place, GateRead(want, rank.page.depth), note)


def _alike(alike: tuple[str, int, int], before: Call, event: Event) -> tuple[str, int, int]:
    """Count how often in a row a failure of this mark has ended a round, as a reader of the rank's log would."""
    last, often, barren = alike
    match event:
        case Elapsed(Deadline(timer=Timer.SOFT) as deadline) if before.active and deadline in deadlines(before):
            return "hangs", 0, 1 + (barren if last == "hangs" else 0)
        case Elapsed(Deadline(timer=Timer.STEADY | Timer.MOVING | Timer.SOFT)):
            return "", 0, 0
        case SpanEnded(how=How.RETURNED) if before.phase is Phase.RUNNING:
            return "", 0, 0
        case SpanEnded(how=How.FAILED, mark=mark) if before.phase in (Phase.STARTING, Phase.RUNNING) and before.active:
            if event.is_echo:
                return alike
            often, barren = (often, barren) if mark == last else (0, 0)
            return mark, often + 1, 0 if event.got_on else barren + 1
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
            return changed(world, place, agenda=_submitted(rank.held.who.profile, rank.agenda, command))
        case Record():
            return world  # records are no part of the register
        case Run(span, token):
            laws.ordered(rank, command)
            laws.I18.judge(world, rank, command)
            return changed(world, place, main=Main(At.ORDERED, span, token))
        case Want(token):
            return changed(world, place, page=evolve(rank.page, want=token))
        case Inject():
            return changed(world, place, signalled=True)
        case Abort():
            laws.I6.judge(rank, enters=False)
            return changed(world, place, aborts=True, abort_hangs=False)
        case Kill():
            note("killed at a limit")
            ends = hears_sigterm(rank) and not rank.page.hung  # else SIGKILL follows
            return terminated(world, place, note) if ends else changed(world, place, alive=False)
        case Finish(outcome):
            laws.finished(world, rank, outcome)
            note(f"returned {outcome.round is not None}" if not isinstance(outcome, Raised) else outcome.reason.value)
            if rank.call.replaced:
                note("a rank ends to be replaced")
            return changed(world, place, returned=outcome, alive=not rank.call.replaced)
        case other:
            assert_never(other)


def asks(world: World, move: Move, note: Note, when: When = When.NOW) -> World:
    rank = world.ranks[move.rank]
    question = asked(world, rank, when)
    if question is None:
        return world
    before = world.register
    if isinstance(question.ask, Write) and rank.unheard is not None:
        note(f"a write, and {rank.unheard.value}")
    world, rank, event = answer(world, rank, question, when)
    after = world.register
    if isinstance(question.ask, Write) and isinstance(question.ask.edit, Together) and after is not before:
        is_return = any(isinstance(each.edit, Done) for each in question.ask.edit.proposals.values())
        note(f"one writes for all that {'returned' if is_return else 'come'}")
    if isinstance(question.ask, Write) and isinstance(question.ask.edit, Restore) and after is not before:
        note("restored over a forming job" if before else "restored by a rank")
    elif after is not before and after is not None:
        _told_of(before.round if before else 0, world, note)
        if before and rank.held.who.settings.replace_timeout and _replaced(before, after):
            note("replaced in time")
    world = put(world, move.rank, rank)
    return posted(world, move.rank, event) if event else world


def _replaced(before: RendezvousState, after: RendezvousState) -> bool:
    """Return True if a later incarnation takes a seat that was kept for it."""
    kept = {node.slot for node in before.expected if node not in after.seats}
    return any(node.slot in kept for node in after.seats)


def _told_of(round: int, world: World, note: Note) -> None:
    register = world.register
    if register and register.closed:
        note(f"closed {register.closed.ending.name}")
    elif register and register.round > round and register.ended:
        note(f"end by {register.ended.why.value}")


def write_arrives(world: World, move: Move, note: Note) -> World:
    """A write arrives whose rank has given up waiting for the outcome."""
    write, waited = world.ranks[move.rank].under_way or (None, False)
    world = changed(world, move.rank, under_way=None)
    if write is None or not lands(world, write):
        note("a late write is refused")
        return world
    note("a late write lands")
    return landed(world, write, waited)


def abort_ends(world: World, move: Move, note: Note) -> World:
    return posted(world, move.rank, AbortEnded(), aborts=False)
