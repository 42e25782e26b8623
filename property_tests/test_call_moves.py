"""Exhaustive: the code makes all moves of the table of a call, and no others. No call and no step breaks an invariant."""

from __future__ import annotations

from collections import defaultdict

from calls import Move, calls, moves

from elastic.core.inprocess import MOVES, Phase, verify, verify_step
from elastic.core.inprocess.words import Command, Event


def _key(move: Move) -> tuple[Phase, type[Event]]:
    return move.before.phase, type(move.event)


def test_every_event_leaves_the_phase_or_makes_a_listed_move() -> None:
    unlisted = [move for move in moves() if move.after.phase not in (move.before.phase, *MOVES.get(_key(move), ()))]
    assert unlisted == []


def test_every_listed_move_is_made() -> None:
    made = {(*_key(move), move.after.phase) for move in moves()}
    listed = {(phase, kind, target) for (phase, kind), targets in MOVES.items() for target in targets}
    assert listed - made == set()


def test_every_phase_event_and_command_is_met() -> None:
    assert {move.before.phase for move in moves()} == set(Phase)
    assert {type(move.event) for move in moves()} == set(Event.__args__)
    assert {type(command) for move in moves() for command in move.commands} == set(Command.__args__)


def test_no_call_and_no_step_breaks_a_rule() -> None:
    for call in calls():
        verify(call)
    for move in moves():
        if move.after is not move.before:
            verify(move.after)
        verify_step(move.before, move.event, move.after, move.commands)


def test_the_number_of_calls_is_pinned() -> None:
    """A new number means that the rules have changed. Find out why before you pin it."""
    assert (len(set(calls())), len(calls()), len(moves())) == (5914, 5914, 333401)


def test_no_event_moves_a_call_that_has_ended() -> None:
    assert not [pair for pair in MOVES if pair[0] is Phase.ENDED]
    assert not [
        move for move in moves() if move.before.phase is Phase.ENDED and (move.commands or move.after != move.before)
    ]


def test_from_every_call_the_end_can_be_reached() -> None:
    leads = defaultdict[int, set[int]](set)
    for move in moves():
        leads[id(move.known)].add(id(move.before))
    todo = [id(call) for call in calls() if call.phase is Phase.ENDED]
    reaches = set(todo)
    while todo:
        more = leads[todo.pop()] - reaches
        reaches |= more
        todo += more
    assert [call for call in calls() if id(call) not in reaches] == []
