"""Runs of calls whose steps take time: the laws of time, each by a world that breaks it, and the plan of what comes next."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from elastic.core.inprocess import Phase, Settings
from elastic.core.inprocess.monitoring import Bye, Kill, Quit, SayDead, SayEnd, SayLeave, Terminate, Want, rules_of
from elastic.core.inprocess.state import HANG, Aborting
from elastic.core.inprocess.words import Deadline, Raised, Reason, Span, Timer
from elastic.core.properties.law import Strength
from elastic.core.sim.calls import gate_words as gate
from elastic.core.sim.calls import walk
from elastic.core.sim.calls.call_world import At, Budget, Main, Shape, World
from elastic.core.sim.calls.clockwork import LOOKS_MAX, Clockwork
from elastic.core.sim.calls.effects import beginning, step
from elastic.core.sim.calls.monitor_sight import marks, moves_of, sight
from elastic.core.sim.calls.moves import Move, prompt
from elastic.core.sim.calls.time_laws import TimeLaws
from elastic.core.sim.calls.walk import walked
from elastic.core.sim.chance import seeded
from elastic.core.sim.run import run_seed
from elastic.core.violation import Violation

RULES = rules_of(Settings())


def quietly(word: str) -> None:
    """Note nothing."""


def trains() -> World:
    """Return a world in which both ranks are in the function."""
    world = beginning(Shape(2, budget=Budget(9, 9)))
    while not all(rank.main.span is Span.FUNCTION and rank.main.at is At.USER for rank in world.ranks):
        moves = [
            move
            for move in prompt(world)
            if not (world.ranks[move.rank].main.span is Span.FUNCTION and move.what == "main thread ends")
        ]
        world = step(world, moves[0], quietly)
    return world


TRAINS = trains()


def changed(world: World, place: int = 0, **changes: Any) -> World:
    ranks = [evolve(rank, **changes) if at == place else rank for at, rank in enumerate(world.ranks)]
    return evolve(world, ranks=tuple(ranks))


def broken(number: str, law: Callable[[], object]) -> None:
    with pytest.raises(Violation, match=f"^{number}: "):
        law()


def laws(world: World = TRAINS) -> TimeLaws:
    return TimeLaws(world, RULES, Strength())


def limit(timer: Timer, world: World = TRAINS) -> Deadline:
    (found,) = [each for each in laws(world).memories[0].began_at if each.timer is timer]
    return found


SOFT = Move("time passes", 0, limit(Timer.SOFT))


def test_i20_no_limit_passes_early_or_for_time_in_which_the_host_stood_still() -> None:
    broken("I20", lambda: laws().took(TRAINS, SOFT, TRAINS, 59.0))
    laws().took(TRAINS, SOFT, TRAINS, 60.0)
    marked, still = laws(), laws()
    marked.took(TRAINS, Move("main thread enters a section", 0), TRAINS, 30.0)
    broken("I20", lambda: marked.took(TRAINS, SOFT, TRAINS, 61.0))
    still.stands_still(0, 70.0)
    broken("I20", lambda: still.took(TRAINS, SOFT, TRAINS, 70.0))


def test_i20_user_code_that_hung_before_has_got_on_at_a_mark_alone() -> None:
    hung = changed(TRAINS, call=evolve(TRAINS.ranks[0].call, mark=HANG, barren=1))
    moving = Move("time passes", 0, limit(Timer.MOVING, hung))
    broken("I20", lambda: laws(hung).took(hung, moving, hung, 60.0))
    early, due = laws(hung), laws(hung)
    for judge, marked_at in ((early, 59.0), (due, 60.0)):
        judge.took(hung, Move("main thread enters a section", 0), hung, marked_at)
    broken("I20", lambda: early.took(hung, moving, hung, 60.0))
    due.took(hung, moving, hung, 60.0)


def test_i20_a_signal_that_is_repeated_and_a_limit_that_has_just_ended_are_not_judged() -> None:
    laws().took(TRAINS, Move("time passes", 0, Deadline(Timer.AGAIN, 1, 0.001)), TRAINS, 1.0)
    laws().took(TRAINS, Move("time passes", 0, Deadline(Timer.ABORT, 1, 30.0)), TRAINS, 1.0)


def test_i21_a_limit_that_is_due_passes_and_user_code_ends_after_its_last_limit() -> None:
    other = Move("main thread arms", 1)
    broken("I21", lambda: laws().took(TRAINS, other, TRAINS, 62.0))
    starved = changed(TRAINS, starved=True)
    laws(starved).took(starved, other, starved, 62.0)
    forgiven = laws()
    forgiven.stands_still(0, 61.0)
    forgiven.took(TRAINS, other, TRAINS, 62.0)
    broken("I21", lambda: laws(starved).took(starved, other, starved, 97.0))
    dead = changed(TRAINS, alive=False)
    laws(dead).took(dead, other, dead, 97.0)


STARVED = changed(TRAINS, starved=True)
assert TRAINS.register is not None
OVER = evolve(STARVED, register=evolve(TRAINS.register, round=1, complete=False, completed_in=None, policy=""))
OTHER = Move("main thread arms", 1)


def test_i21_user_code_ends_after_its_round() -> None:
    judge = laws(STARVED)
    judge.took(STARVED, OTHER, OVER, 20.0)
    judge.took(OVER, OTHER, OVER, 55.0)
    broken("I21", lambda: judge.took(OVER, OTHER, OVER, 57.0))


def test_i21_a_monitor_that_was_shown_the_end_of_a_round_knows_it_though_the_store_forgets() -> None:
    """Found by the simulator: the simulated monitor, and not the real one, forgot with the store."""
    forgot, judge = evolve(OVER, register=None), laws(STARVED)
    judge.took(STARVED, OTHER, OVER, 20.0)
    judge.took(OVER, OTHER, forgot, 20.001)
    broken("I21", lambda: judge.took(forgot, OTHER, forgot, 57.0))
    assert walked(899_358).broken is None


def test_i21_a_monitor_that_was_not_shown_the_end_of_a_round_is_not_late() -> None:
    forgot = evolve(OVER, register=None)
    still, new = laws(STARVED), laws(STARVED)
    for place in (0, 1):
        still.stands_still(place, 21.0)
    still.took(STARVED, OTHER, OVER, 20.0)
    new.took(STARVED, OTHER, OVER, 20.0)
    for place in (0, 1):
        new.took(OVER, Move("monitor starts again", place), forgot, 21.0)
    for judge in (still, new):
        judge.took(forgot, OTHER, forgot, 57.0)


def test_i21_a_round_that_stands_again_goes_on() -> None:
    judge = laws(STARVED)
    judge.took(STARVED, OTHER, OVER, 20.0)
    judge.took(OVER, OTHER, STARVED, 20.001)
    judge.took(STARVED, OTHER, STARVED, 57.0)


def test_i22_a_monitor_acts_only_for_a_driver_that_is_late() -> None:
    for what in ("monitor wants", "monitor ends", "monitor leaves", "monitor kills", "monitor quits"):
        broken("I22", lambda what=what: laws().acts(TRAINS, Move(what, 0), 1.0))  # type: ignore[misc]
    laws().acts(TRAINS, Move("monitor ends", 0), 60.02)
    terminated(TRAINS, 90.0)
    reserve = changed(TRAINS, call=evolve(TRAINS.ranks[0].call, active=False))
    laws(reserve).acts(reserve, Move("monitor leaves", 0), 60.02)
    laws().acts(changed(TRAINS, alive=False), Move("monitor quits", 0), 1.0)


def terminated(world: World, at: float, judge: TimeLaws | None = None) -> None:
    """A monitor asks this process to go, not before this time, and kills it not before the grace that follows."""
    judge = judge or laws(world)
    broken("I22", lambda: judge.acts(world, Move("monitor terminates", 0), at - 1.0))
    broken("I22", lambda: judge.acts(world, Move("monitor kills", 0), at + 99.0))
    judge.acts(world, Move("monitor terminates", 0), at)
    broken("I22", lambda: judge.acts(world, Move("monitor kills", 0), at + 4.0))
    judge.acts(world, Move("monitor kills", 0), at + 5.0)


def test_i22_a_process_that_was_asked_to_go_is_killed_whatever_it_still_does() -> None:
    """Found by the simulator: one that ended its span late, and went on, was held for one that is well."""
    judge = laws()
    judge.acts(TRAINS, Move("monitor terminates", 0), 90.0)
    judge.memories[0].stamp = 91.0
    judge.acts(TRAINS, Move("monitor kills", 0), 95.0)
    another = laws()
    another.memories[0].terminated_at = 0.0
    another.took(TRAINS, Move("monitor starts again", 0), TRAINS, 1.0)
    broken("I22", lambda: another.acts(TRAINS, Move("monitor kills", 0), 99.0))


def test_i22_a_span_that_was_asked_to_end_may_be_killed_after_its_time() -> None:
    token = TRAINS.ranks[0].page.armed
    wanted = changed(TRAINS, page=evolve(TRAINS.ranks[0].page, want_monitor=token))
    judge = laws(wanted)
    judge.took(TRAINS, Move("main thread arms", 1), wanted, 5.0)
    terminated(wanted, 35.0, judge)
    unwinding = evolve(TRAINS.ranks[0].call, phase=Phase.UNWINDING, asked=True, over=True, abort=Aborting.RUNNING)
    terminated(changed(TRAINS, call=unwinding), 30.0)


def test_i20_an_atomic_section_has_no_other_limit_than_progress() -> None:
    rank = TRAINS.ranks[0]
    unwinding = evolve(rank.call, phase=Phase.UNWINDING, asked=True, over=True, abort=Aborting.RUNNING)
    inside = changed(TRAINS, call=unwinding, page=evolve(rank.page, depth=1))
    passes = Move("time passes", 0, limit(Timer.UNWIND, inside))
    broken("I20", lambda: laws(inside).took(inside, passes, inside, 30.0))


def test_i22_an_atomic_section_that_a_round_waits_for_keeps_the_limit_of_progress() -> None:
    pending = changed(TRAINS, call=evolve(TRAINS.ranks[0].call, phase=Phase.PENDING, asked=True, over=True))
    terminated(pending, 90.0)


def test_a_leave_that_lasts_may_be_said_by_the_monitor() -> None:
    leaves = changed(TRAINS, call=evolve(TRAINS.ranks[0].call, leaving=Reason.DRAINED))
    judge = laws()
    judge.took(TRAINS, Move("driver hears", 0), leaves, 5.0)
    judge.took(leaves, Move("driver hears", 0), changed(leaves, call=evolve(leaves.ranks[0].call, tries=1)), 5.1)
    broken("I22", lambda: judge.acts(leaves, Move("monitor leaves", 0), 5.9))
    judge.acts(leaves, Move("monitor leaves", 0), 6.0)


# --- what a monitor sees and does


def test_marks_count_while_user_code_runs_and_no_limit_holds_after_it() -> None:
    rank = TRAINS.ranks[0]
    running, over = marks(rank, 7.0), marks(evolve(rank, page=gate.disarmed(rank.page)), 7.0)
    assert running is not None and (running.at, running.limits.soft_s) == (7.0, 60.0)
    assert over is not None and over.limits.soft_s == math.inf
    assert marks(evolve(rank, page=gate.Page(), main=Main(At.ORDERED, Span.FUNCTION, 2)), 7.0) is None


def test_a_sight_shows_how_the_call_ended_and_the_limits_of_a_callback() -> None:
    def seen(**changes: Any) -> Any:
        return sight(changed(TRAINS, **changes), 0, 0.0, laws_timers(), TRAINS.register)

    gone = evolve(TRAINS.ranks[0].call, outcome=Raised(Reason.STORE_LOST), leaving=Reason.STORE_LOST)
    assert (seen().bye, seen(call=gone).bye) == (Bye.NOT_YET, Bye.UNSETTLED)
    assert seen(call=evolve(gone, left=True)).bye is Bye.SETTLED
    callback = seen(main=evolve(TRAINS.ranks[0].main, span=Span.FINALIZE))
    assert (callback.soft_s, callback.hard_s) == (math.inf, 90.0)
    forgot = evolve(TRAINS, register=None)
    assert not sight(forgot, 0, 0.0, laws_timers(), None).over
    assert sight(forgot, 0, 0.0, laws_timers(), OVER.register).over


def laws_timers() -> Any:
    return Clockwork(seeded(1), TRAINS, RULES, Strength()).clocks[0].timers


def test_what_a_monitor_wants_becomes_moves() -> None:
    rank = TRAINS.ranks[0]
    acts = (Want(2), SayEnd(3), SayLeave(), SayDead(), Terminate(), Kill(), Quit())
    whats = [str(move) for move in moves_of(0, rank, acts)]
    assert whats == [
        *("0 monitor wants", "0 monitor ends (round 3)", "0 monitor leaves", "0 monitor terminates", "0 monitor kills"),
        "0 monitor quits",
    ]
    again = evolve(rank, page=evolve(rank.page, want_monitor=rank.page.armed))
    assert [move.what for move in moves_of(0, again, (Want(2),))] == ["monitor signals again"]


# --- whole runs


def test_the_times_of_a_run_never_go_back_and_are_told() -> None:
    walk = walked(3, Shape(2, lasting=True, budget=Budget(3)))
    assert len(walk.times) == walk.steps
    assert list(walk.times) == sorted(walk.times)
    assert walked(3, Shape(2)).times == ()


def test_a_host_that_stands_still_does_nothing_until_it_goes_on() -> None:
    work = Clockwork(seeded(1), TRAINS, RULES, Strength())
    for place in (0, 1):
        pause = work.stands_still(place)
        assert isinstance(pause.how, float) and str(pause) == f"{place} stands still ({pause.how:g} s)"
    assert work.next() is not None
    assert work.now == min(clock.still_until for clock in work.clocks)


def test_a_monitor_keeps_the_seat_of_a_dead_rank_for_the_process_that_replaces_it() -> None:
    world = evolve(changed(TRAINS, alive=False), calls=Settings(replace_wait=0.5, leave_timeout=7.0))
    work = Clockwork(seeded(1), world, rules_of(world.calls), Strength())
    while work.clocks[0].monitor.phase.value != "speak":
        work.next()
    assert work.clocks[0].monitor.next_at - work.now == pytest.approx(7.5, abs=0.01)


def test_monitors_that_only_look_are_a_broken_law() -> None:
    work = Clockwork(seeded(1), changed(changed(TRAINS, alive=False), 1, alive=False), RULES, Strength())
    work.acts = [Move("time passes", 0, limit(Timer.SOFT))] * (LOOKS_MAX + 1)
    broken("I17", work.next)


def test_a_rank_whose_time_is_over_is_forgotten() -> None:
    """A world in which nobody lives any more, and no monitor speaks, comes to rest."""
    gone = changed(changed(TRAINS, alive=False, monitor=False), 1, alive=False, monitor=False)
    assert Clockwork(seeded(1), gone, RULES, Strength()).next() is None


@pytest.mark.parametrize(("seed", "run"), [(0xAD0DA3DD, 5250), (0x101DAB09, 6915)], ids=["I21", "I10"])
def test_an_open_world_of_a_store_that_forgot_neither_says_that_a_round_is_over_nor_is_ended_by_a_restore(
    seed: int, run: int
) -> None:
    """To a monitor it may be what was there before its round began. A restore of a later round replaces it."""
    assert walked(run_seed(seed, run)).broken is None


@pytest.mark.parametrize("seed", [8_118, 78_798, 142_118], ids=["asked already", "a new span", "woken"])
def test_a_monitor_acts_by_the_last_register_that_it_was_shown_while_the_store_shows_none(seed: int) -> None:
    """It goes on to ask for what it has asked for, asks the next span of that round too, and looks when its host goes on."""
    run = walked(seed)
    assert run.broken is None and run.seen["fault: the store forgets"]


def test_a_mark_that_comes_while_the_host_stands_still_has_that_standstill_counted() -> None:
    """Found by the simulator (I22): the judge asked to forgive two."""
    assert walked(1_023_142).broken is None


def test_a_limit_of_user_code_that_is_over_is_not_one_to_forgive() -> None:
    """Found by the simulator (I22): the driver's own limit was what passed, and that just then."""
    assert walked(7_591_991_645_550).broken is None


def test_each_move_has_its_time_also_the_one_that_breaks_a_law_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*of: object) -> None:
        raise Violation("I0", "a law of the test")

    seed = next(seed for seed in range(100) if walked(seed).times)
    monkeypatch.setattr(walk, "step", breaks)
    run = walked(seed)
    assert run.broken == ("I0", "I0: a law of the test") and len(run.times) == len(run.moves) == 1
