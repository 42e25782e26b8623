"""How often each law of calls is armed: by the step that shows what it speaks of, and by no other."""

from __future__ import annotations

from attrs import evolve

from elastic.core.caller import Terms
from elastic.core.inprocess.words import How
from elastic.core.policies import at_most
from elastic.core.properties.law import Strength
from elastic.core.sim.calls import call_strength
from elastic.core.sim.calls.call_world import Budget, Shape, World
from elastic.core.sim.calls.effects import beginning, step
from elastic.core.sim.calls.moves import Move, faults, prompt, timed

RICH = Shape(2, budget=Budget(faults=9, sections=9))


class Counted:
    """A world that goes on, and the laws that its steps have armed."""

    def __init__(self, shape: Shape = RICH) -> None:
        self.world: World = beginning(shape)
        self.strength = Strength()

    def does(self, what: str, rank: int = 0, how: How | None = None) -> set[str]:
        """Make this move, and return the laws that it arms."""
        move = Move(what, rank, how)
        assert move in [*prompt(self.world), *faults(self.world), *timed(self.world)], f"{move} cannot happen now"
        one = Strength()
        before, self.world = self.world, step(self.world, move, lambda word: None)
        call_strength.counts_step(one, before, move, self.world)
        self.strength.armed += one.armed
        self.strength.excused += one.excused
        return set(one.armed)

    def until(self, what: str, rank: int = 0) -> Counted:
        """Let threads move until this move is possible; it is not made."""
        while Move(what, rank) not in (moves := prompt(self.world)):
            moves = [move for move in moves if move.what != "main thread ends"] or moves
            self.does(moves[0].what, moves[0].rank)
        return self

    def rests(self) -> Counted:
        while moves := prompt(self.world):
            self.does(moves[0].what, moves[0].rank)
        return self


def ended(world: World) -> set[str]:
    one = Strength()
    call_strength.counts_end(one, world)
    return set(one.armed)


def test_an_order_and_a_call_of_the_function_arm_their_laws() -> None:
    run = Counted().until("main thread arms")
    assert {"I2", "I3", "C6"} <= run.strength.armed.keys()
    assert run.does("main thread arms") == set()  # initialize
    run.until("main thread ends", 1).does("main thread ends", 1)
    run.until("main thread arms", 1)
    assert run.does("main thread arms", 1) == {"I1", "I4"}


def test_an_injection_a_section_and_an_abort_arm_theirs() -> None:
    run = Counted().until("main thread ends").until("main thread ends", 1)
    assert run.does("main thread enters a section") == {"I6"}
    run.does("main thread leaves the section")
    run.does("user code ends", 1, How.FAILED)
    run.until("main thread is signalled")
    assert {"I6", "C7", "C8", "I10"} <= run.strength.armed.keys()
    assert run.does("main thread is signalled") == {"I5"}


def test_a_success_arms_what_speaks_of_it() -> None:
    run = Counted().rests()
    assert {"I7", "I8", "C2"} <= run.strength.armed.keys()
    assert run.strength.armed["I14"] == 0
    assert ended(run.world) == {"I9", "I15", "I16"}
    assert ended(evolve(run.world, clean=False)) == {"I9", "I16"}
    assert ended(evolve(run.world, register=None)) == {"I15", "I16"}


def test_a_rank_that_left_arms_the_laws_of_those_who_left() -> None:
    run = Counted().until("main thread ends")
    run.does("is told to stop")
    run.rests()
    assert {"I13", "C4", "C9"} <= run.strength.armed.keys()
    assert ended(run.world) == {"I9", "I13", "I16"}


def test_a_first_world_without_a_dead_rank_is_excused() -> None:
    run = Counted(Shape(2, budget=Budget(1)))
    run.does("is lost", 1)
    run.rests().does("driver asks late")
    assert (run.strength.armed["I14"], run.strength.excused["I14"]) == (1, 1)


def test_a_write_while_a_killed_rank_s_place_is_kept_arms_the_law_of_replacements() -> None:
    run = Counted(Shape(2, max_restarts=9, budget=Budget(1, respawns=1), replace_s=0.5)).until("main thread ends", 1)
    run.does("dies")
    assert "I19" not in run.strength.armed
    assert "I19" in run.does("monitor speaks")
    run.does("starts again")
    assert run.rests().strength.armed["I19"] == 1


def test_a_world_with_a_reserve_arms_no_more() -> None:
    run = Counted(Shape(2, terms=Terms(at_most(1)))).rests()
    assert run.strength.armed["I1"] == 1
