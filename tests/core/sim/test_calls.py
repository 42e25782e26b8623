"""A world of calls: rare traps, led step by step, and a broken world for each law that it must find."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve
from callworlds import explored

from elastic.core.caller import Terms
from elastic.core.inprocess import Call, Phase, Settings
from elastic.core.inprocess.words import (
    Deadline,
    How,
    Kill,
    Over,
    Raised,
    Reason,
    Returned,
    Run,
    Span,
    SpanEnded,
    Timer,
)
from elastic.core.policies import at_most, multiple_of
from elastic.core.rendezvous import Complete, End, Evict, Leave, RendezvousState, Status, apply, end, join
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.context import Handler
from elastic.core.sim import run_seed
from elastic.core.sim.calls import driver_steps as driver
from elastic.core.sim.calls import gate_words as gate
from elastic.core.sim.calls import laws
from elastic.core.sim.calls.call_world import At, Budget, Hang, Main, Rank, Shape, World
from elastic.core.sim.calls.effects import beginning, step
from elastic.core.sim.calls.moves import Move, faults, prompt, timed
from elastic.core.sim.calls.register import edited
from elastic.core.sim.calls.walk import STEPS_MAX, walked
from elastic.core.violation import Violation
from elastic.core.world import Ending, Life, Verdict, Why

RICH = Shape(2, budget=Budget(faults=9, sections=9, respawns=2))
SEEN: Counter[str] = Counter()


def _note(word: str) -> None:
    SEEN[word] += 1


class Stage:
    """A world that a test leads by hand."""

    def __init__(self, shape: Shape = RICH) -> None:
        self.world = beginning(shape)

    def does(self, *whats: str, rank: int = 0, how: How | Deadline | None = None) -> Stage:
        """Make these moves of one rank, which must be possible now."""
        for what in whats:
            move = Move(what, rank, how if what in ("user code ends", "time passes") else None)
            assert move in [*prompt(self.world), *faults(self.world), *timed(self.world)], f"{move} cannot happen now"
            self.world = step(self.world, move, _note)
        return self

    def rests(self, *without: str) -> Stage:
        """Let threads move until none can. Moves of these names are left out."""
        while moves := [move for move in prompt(self.world) if move.what not in without]:
            self.world = step(self.world, moves[0], _note)
        return self

    def runs(self) -> Stage:
        """Let threads move until all ranks are in the function."""
        while not all(rank.main.span is Span.FUNCTION and rank.main.at is At.USER for rank in self.world.ranks):
            moves = [move for move in prompt(self.world) if not self._in_function(move)]
            self.world = step(self.world, moves[0], _note)
        return self

    def _in_function(self, move: Move) -> bool:
        return self.rank(move.rank).main.span is Span.FUNCTION and move.what == "main thread ends"

    def rings(self, timer: Timer, rank: int = 0) -> Stage:
        (move,) = [
            move
            for move in timed(self.world)
            if move.rank == rank and isinstance(move.how, Deadline) and move.how.timer is timer
        ]
        self.world = step(self.world, move, _note)
        return self

    def rank(self, place: int = 0) -> Rank:
        return self.world.ranks[place]

    @property
    def register(self) -> RendezvousState:
        assert self.world.register is not None
        return self.world.register

    def ends(self) -> Stage:
        """Let threads move and time pass until nothing moves, and judge the end."""
        for _ in range(STEPS_MAX):
            moves = prompt(self.world) or timed(self.world)
            if not moves:
                laws.ended(self.world)
                return self
            self.world = step(self.world, moves[0], _note)
        raise AssertionError("no end")


def test_a_kind_of_faults_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"^kinds: there is no burns, hang; there are user code ends, .*, gave up$"):
        beginning(Shape(kinds=frozenset({"hang", "dies", "burns"})))
    assert beginning(Shape(kinds=frozenset({"hangs", "exited", "the store forgets"}))).kinds


def test_nothing_goes_wrong() -> None:
    stage = Stage().rests()
    assert [rank.returned for rank in stage.world.ranks] == [Returned(0), Returned(0)]
    assert stage.ends().world.clean


# --- the five traps


def test_the_monitor_injects_while_the_driver_is_starved_and_the_main_thread_is_in_an_atomic_section() -> None:
    stage = Stage().runs().does("main thread enters a section", "starves")
    stage.does("user code ends", rank=1, how=How.FAILED)
    stage.rests("main thread leaves the section", "main thread is signalled", "main thread ends")
    assert stage.rank().page.want_monitor == stage.rank().page.armed
    stage.does("main thread is signalled")
    assert (stage.rank().main.at, stage.rank().page.depth) == (At.USER, 1)
    stage.does("main thread leaves the section")
    assert (stage.rank().main.at, stage.rank().main.how) == (At.OVER, How.INJECTED)
    stage.ends()


def test_of_two_atomic_sections_in_a_row_the_second_is_refused_or_asked_about_anew() -> None:
    stage = Stage().runs().does("main thread enters a section")
    stage.does("user code ends", rank=1, how=How.FAILED).rests("main thread leaves the section", "main thread ends")
    assert stage.rank().call.phase is Phase.PENDING
    stage.does("main thread leaves the section")
    assert stage.rank().main.how is How.INJECTED
    stale = Stage().runs().does("main thread enters a section")
    stale.does(
        "user code ends",
        "main thread disarms",
        "main thread tells",
        "driver hears",
        "driver asks",
        rank=1,
        how=How.FAILED,
    )
    stale.does("driver asks", "main thread leaves the section", "main thread enters a section", "driver hears")
    assert (stale.rank().call.phase, stale.rank().page.depth) == (Phase.PENDING, 1)
    stale.does("driver hears")
    assert (stale.rank().call.phase, stale.rank().aborts) == (Phase.PENDING, False)
    stale.ends()


def test_who_is_evicted_and_then_fails_ends_no_round_of_others() -> None:
    stage = Stage().runs().does("is suspected", rank=0)
    while stage.rank(1).called_in < 1:
        stage.does(next(move.what for move in prompt(stage.world) if move.rank == 1), rank=1)
    stage.does(
        "user code ends", "main thread disarms", "main thread tells", "driver hears", "driver asks", how=How.FAILED
    )
    assert (stage.register.round, stage.register.complete, stage.register.failures) == (1, True, 0)
    assert stage.rank().inbox == (Over(0),)
    stage.ends()


def test_a_function_that_swallows_and_makes_progress_is_killed_at_last() -> None:
    stage = Stage(evolve(RICH, budget=Budget(9, 0, 0))).runs().does("hangs")
    stage.rests("main thread ends").rings(Timer.SOFT).rests("main thread ends", "main thread is signalled").does(
        "swallows"
    ).does("hangs")
    for _ in range(2):
        stage.rings(Timer.AGAIN)
        stage.does("swallows").does("hangs")
    stage.rings(Timer.UNWIND)
    assert not stage.rank().alive
    stage.ends()


def test_the_end_of_user_code_is_told_after_the_gate_is_disarmed() -> None:
    stage = Stage().runs().does("main thread ends")
    assert stage.rank().page.armed
    stage.does("main thread disarms")
    assert (stage.rank().page.armed, stage.rank().main.at) == (0, At.DISARMED)
    with pytest.raises(AssertionError, match="cannot happen now"):
        stage.does("main thread disarms")


# --- what else seldom comes


def test_the_monitor_speaks_ends_and_leaves_for_a_rank_that_cannot() -> None:
    hung = Stage().runs().does("hangs", "starves")
    hung.rests("main thread ends").does("monitor ends").rests("main thread ends")
    assert hung.register.ended is not None
    assert hung.register.ended.by == hung.rank().node
    assert hung.ends().rank().alive
    reserve = Stage(Shape(2, terms=Terms(at_most(1)), budget=Budget(9))).rests("main thread ends")
    stuck = next(place for place in (0, 1) if not reserve.rank(place).call.active)
    reserve.does("hangs", "starves", rank=stuck).rests("main thread ends").does("monitor ends", rank=stuck)
    assert reserve.register.seats[reserve.rank(stuck).node].status is Status.ABSENT
    dead = Stage().runs().does("dies").does("monitor speaks")
    assert dead.rank().node not in dead.register.seats


def test_the_monitor_signals_again_and_kills_at_last() -> None:
    stage = (
        Stage()
        .runs()
        .does("hangs", "starves")
        .rests("main thread ends")
        .does("monitor ends")
        .rests("main thread ends", "main thread is signalled")
    )
    stage.does("swallows").does("hangs")
    stage.rests("main thread ends").does("monitor signals again").does("main thread is signalled")
    assert stage.rank().main.how is How.INJECTED
    other = (
        Stage()
        .runs()
        .does("is stuck", "starves")
        .rests("main thread ends")
        .does("monitor ends")
        .rests("main thread ends")
        .does("monitor kills")
    )
    assert not other.rank().alive


def test_a_leaving_rank_that_starves_is_spoken_for() -> None:
    stage = Stage().runs().does("is told to stop").does("driver hears", "starves").does("monitor leaves")
    assert stage.rank().node not in stage.register.seats
    stage.ends()


def test_a_store_that_is_out_of_reach_is_given_up() -> None:
    stage = Stage().does("is cut off").rests().does("gives the store up").ends()
    assert stage.rank().returned == Raised(Reason.STORE_LOST)


def requests(stage: Stage) -> list[Handler]:
    """Return the handlers that the first rank has yet to run."""
    return [each.handler for each in stage.rank().agenda.queue if isinstance(each, Request)]


def test_a_rank_that_gave_up_the_store_does_not_join_when_the_store_is_back() -> None:
    """Found by the simulator (seed 0x5eed0008, run 24,967): the rank was seated though it was leaving."""
    stage = Stage().runs().does("is cut off").does("user code ends", how=How.FAILED)
    while requests(stage) != [end, join]:
        stage.does(next(move.what for move in prompt(stage.world) if move.rank == 0))
    stage.does("gives the store up", "is reached again")
    assert not requests(stage)
    assert stage.ends().rank().returned == Raised(Reason.STORE_LOST)


def test_a_rank_that_waits_alone_is_too_late() -> None:
    stage = Stage(Shape(2, 2, budget=Budget(1))).does("is lost", rank=1).rests().does("driver is too late")
    assert stage.ends().rank().returned == Raised(Reason.TIMED_OUT)


def test_a_dead_rank_starts_again_as_another_incarnation() -> None:
    stage = Stage().runs().does("dies").rests("main thread ends").does("starts again")
    assert stage.rank().node.incarnation == 2
    stage.ends()


REPLACED = Shape(2, max_restarts=9, budget=Budget(1, respawns=1), replace_s=0.5)


def test_a_killed_rank_whose_replacement_comes_in_time_costs_one_round() -> None:
    stage = Stage(REPLACED).runs().does("dies").rests("main thread ends")
    assert stage.rank().node in stage.register.expected
    stage.does("starts again").rests()
    assert (stage.register.round, len(stage.register.members)) == (1, 2)
    assert stage.ends().register.closed == Verdict(Ending.SUCCEEDED, 1, stage.rank(1).node, Why.DONE)
    assert SEEN["replaced in time"]


def test_a_killed_rank_is_missed_when_no_replacement_came_in_time() -> None:
    stage = Stage(REPLACED).runs().does("dies").rests("main thread ends").does("monitor waits no longer").rests()
    assert (stage.register.round, stage.register.members) == (1, (stage.rank(1).node,))
    stage.does("starts again").ends()


LOOPING = Shape(
    2, max_restarts=9, budget=Budget(9), calls=Settings(repeat_window=30.0, max_repeats=1, fresh_after=None)
)


def fails(stage: Stage, *whats: str) -> Stage:
    """Let the first rank's function fail once in each round."""
    for what in whats:
        stage.runs().does(what)
    return stage


def test_the_same_failure_again_and_again_ends_the_job() -> None:
    stage = fails(Stage(LOOPING), "fails here", "fails here", "fails here").ends()
    assert stage.rank(0).returned == Raised(Reason.CRASH_LOOP)
    assert stage.rank(1).returned == Raised(Reason.JOB_LIMIT)
    assert SEEN["leaves: the same failure of this rank again and again"]


def test_another_failure_or_a_while_without_one_begins_the_count_anew() -> None:
    stage = fails(Stage(LOOPING), "fails here", "fails there", "fails here", "fails here").runs()
    assert stage.rank().alike == ("fails here", 2, 2)
    stage.rings(Timer.STEADY)
    assert stage.rank().alike == ("", 0, 0)
    assert fails(stage, "fails here", "fails here").ends().register.closed == Verdict(
        Ending.SUCCEEDED, 6, stage.rank(1).node, Why.DONE
    )


def test_a_callback_that_is_over_when_its_signal_comes_is_not_hit() -> None:
    stage = Stage().runs().does("user code ends", how=How.FAILED).rests("main thread ends")
    assert stage.rank().main.span is Span.FINALIZE
    stage.rests()
    assert stage.ends().rank().returned is not None


# --- walks, and small worlds


@pytest.mark.parametrize(
    ("seed", "shows"),
    [(13, "fault: is suspected"), (22, "no replacement came"), (29, "fault: stands still")],
)
def test_a_walk_of_many_faults_breaks_no_law(seed: int, shows: str) -> None:
    """property_tests/test_calls.py makes 400 walks, and asks what they show."""
    walk = walked(seed)
    assert walk.broken is None
    assert shows in walk.seen and walk.strength.armed["I17"]


def test_every_run_of_the_smallest_world_of_two_ranks_keeps_the_laws() -> None:
    told = explored(Shape(2))
    assert (told.worlds, told.steps, told.ends) == (957, 1732, 8)


def test_the_same_seed_is_the_same_run_of_calls() -> None:
    assert walked(7) == walked(7)
    assert walked(7) != walked(8)
    assert str(Move("time passes", 1, Deadline(Timer.SOFT, 1, 2.0))) == "1 time passes (soft)"
    assert str(Move("user code ends", 0, How.FAILED)) == "0 user code ends (failed)"


# --- laws that are broken


RUNNING = Stage().runs()
ROUND_OVER = (
    Stage().runs().does("user code ends", rank=1, how=How.FAILED).rests("main thread ends", "main thread is signalled")
)


def changed(stage: Stage, place: int = 0, **changes: Any) -> World:
    """Return a world that no step makes."""
    ranks = [evolve(rank, **changes) if at == place else rank for at, rank in enumerate(stage.world.ranks)]
    return evolve(stage.world, ranks=tuple(ranks))


def broken(number: str, law: Callable[[], None]) -> None:
    with pytest.raises(Violation, match=f"^{number}: ") as caught:
        law()
    assert caught.value.number == number


def test_i1_the_function_is_called_once_in_a_round() -> None:
    broken("I1", lambda: laws.called(RUNNING.world, RUNNING.rank(), 0))
    laws.called(changed(RUNNING, 0, called_in=-1), evolve(RUNNING.rank(), called_in=-1), 0)


def test_i2_i3_an_order_is_given_to_a_thread_that_waits_after_abort_has_ended() -> None:
    run = Run(Span.FUNCTION, 9)
    broken("I2", lambda: laws.ordered(RUNNING.rank(), run))
    broken("I3", lambda: laws.ordered(evolve(RUNNING.rank(), main=Main(), aborts=True), run))
    laws.ordered(evolve(RUNNING.rank(), main=Main(), aborts=True), Run(Span.TERMINATE, 9))


def test_i4_no_function_is_called_while_a_member_is_in_an_older_round() -> None:
    late = changed(RUNNING, 1, page=gate.Page(armed=2, armed_round=-1))
    broken("I4", lambda: laws.called(late, evolve(RUNNING.rank(), called_in=-1), 0))


def test_i5_only_user_code_whose_round_is_over_is_hit() -> None:
    broken("I5", lambda: laws.I5.judge(RUNNING.world, RUNNING.rank()))
    broken("I5", lambda: laws.I5.judge(RUNNING.world, evolve(RUNNING.rank(), main=Main(At.ORDERED))))
    deep = evolve(ROUND_OVER.rank(), page=evolve(ROUND_OVER.rank().page, depth=1))
    broken("I5", lambda: laws.I5.judge(ROUND_OVER.world, deep))
    laws.I5.judge(ROUND_OVER.world, ROUND_OVER.rank())


def test_i6_abort_and_atomic_sections_exclude_each_other() -> None:
    inside = evolve(RUNNING.rank(), page=evolve(RUNNING.rank().page, depth=1))
    broken("I6", lambda: laws.I6.judge(inside, enters=False))
    broken("I6", lambda: laws.I6.judge(evolve(RUNNING.rank(), aborts=True), enters=True))


def test_i7_a_call_returns_its_value_or_raises_as_the_job_ended() -> None:
    waits = evolve(RUNNING.rank(), main=Main())
    broken("I7", lambda: laws.finished(RUNNING.world, waits, Returned(0)))
    done = Stage().rests()
    broken("I7", lambda: laws.finished(done.world, done.rank(), Returned(3)))
    laws.finished(done.world, done.rank(), Returned(0))
    laws.finished(RUNNING.world, waits, Raised(Reason.EXITED))


def test_i8_a_job_succeeds_by_all_its_active_ranks() -> None:
    done = Stage().rests()
    forgot = changed(done, 1, returned=None, call=Call())
    broken("I8", lambda: laws.wrote(forgot, RUNNING.register, done.register))
    nobody = evolve(done.world, terms=Terms(multiple_of(3)))
    broken("I8", lambda: laws.wrote(nobody, RUNNING.register, done.register))
    laws.wrote(done.world, RUNNING.register, done.register)


def test_i9_a_rank_that_was_done_returns_its_value() -> None:
    done = Stage().rests()
    broken("I9", lambda: laws.ended(changed(done, 1, returned=Returned(None))))


def test_i10_a_reserve_ends_no_round() -> None:
    stage = Stage(Shape(2, terms=Terms(at_most(1)), budget=Budget(9))).rests("main thread ends")
    before = stage.register
    reserve = next(rank for rank in stage.world.ranks if not rank.call.active)
    after = apply(before, End(0, Why.FAILED), reserve.node)
    broken("I10", lambda: laws.wrote(stage.world, before, after))


def test_i13_a_rank_that_left_is_gone_for_good() -> None:
    seated = evolve(RUNNING.world, unseated=frozenset({RUNNING.rank().node}))
    broken("I13", lambda: laws.wrote(seated, RUNNING.register, RUNNING.register))
    stays = changed(RUNNING, 0, returned=Raised(Reason.EXITED), monitor=True)
    other = evolve(stays.ranks[1], returned=Raised(Reason.EXITED), alive=False)
    broken("I13", lambda: laws.ended(evolve(stays, ranks=(stays.ranks[0], other))))


def test_i14_the_first_world_waits_for_all_that_are_on_their_way() -> None:
    alone = Stage().does("driver asks").register
    assert not alone.complete
    early = apply(alone, Complete(0), RUNNING.rank().node)
    broken("I14", lambda: laws.wrote(RUNNING.world, alone, early))
    laws.wrote(RUNNING.world, alone, early, waited=True)
    laws.wrote(changed(RUNNING, 1, alive=False), alone, early)


def test_i18_only_a_rank_that_fails_the_same_way_too_often_gives_up_the_job() -> None:
    twice = evolve(RUNNING.rank(), main=Main(), alike=("fails here", 2, 0))
    thrice = evolve(RUNNING.rank(), main=Main(), alike=("fails here", 3, 0))
    limited = evolve(RUNNING.world, calls=Settings(max_repeats=1))
    run, gave_up = Run(Span.INITIALIZE, 9), Raised(Reason.CRASH_LOOP)
    broken("I18", lambda: laws.I18.judge(limited, thrice, run))
    broken("I18", lambda: laws.finished(limited, twice, gave_up))
    laws.I18.judge(limited, twice, run)
    laws.I18.judge(limited, thrice, Run(Span.TERMINATE, 9))
    laws.I18.judge(RUNNING.world, thrice, run)
    laws.finished(limited, thrice, gave_up)


def test_i18_only_a_rank_that_fails_the_same_way_before_any_progress_leaves_for_a_fresh_process() -> None:
    once = evolve(RUNNING.rank(), main=Main(), alike=("fails here", 2, 1))
    twice = evolve(RUNNING.rank(), main=Main(), alike=("fails here", 2, 2))
    limited = evolve(RUNNING.world, calls=Settings(fresh_after=2))
    run, stuck = Run(Span.INITIALIZE, 9), Raised(Reason.STUCK)
    broken("I18", lambda: laws.I18.judge(limited, twice, run))
    broken("I18", lambda: laws.finished(limited, once, stuck))
    laws.I18.judge(limited, once, run)
    laws.finished(limited, twice, stuck)


def test_i15_if_nothing_goes_wrong_the_job_succeeds_without_a_timer() -> None:
    ended = Stage().rests().world
    broken("I15", lambda: laws.ended(evolve(ended, rings=1)))
    sad = evolve(ended.ranks[0], returned=Raised(Reason.EXITED))
    broken("I15", lambda: laws.ended(evolve(ended, ranks=(sad, *ended.ranks[1:]))))


def test_i16_no_thread_waits_for_ever() -> None:
    broken("I16", lambda: laws.ended(RUNNING.world))


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        (lambda: Shape(0), "^ranks: 1 to 4096, not 0"),
        (lambda: Shape(4_097), "^ranks: 1 to 4096, not 4097"),
        (lambda: Shape(2, min_ranks=3), "^min_ranks: at most ranks, 2, not 3"),
        (lambda: Shape(2, terms=Terms(min_world_size=3)), "^min_world_size: at most ranks, 2, not 3"),
        (lambda: Shape(2, terms=Terms(min_active_world_size=3)), "^min_active_world_size: at most ranks, 2, not 3"),
        (lambda: Shape(2, last_call_s=math.inf), "^last_call_timeout: a span of 0 or more seconds, not inf"),
        (lambda: Budget(faults=-1), "^faults: at least 0, not -1"),
        (lambda: Budget(losses=-1), "^losses: at least 0, not -1"),
    ],
)
def test_a_shape_in_which_no_world_can_begin_is_refused(shape: Callable[[], object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        shape()


def test_a_walk_names_the_law_that_broke() -> None:
    never_enough = Shape(2, terms=Terms(at_most(1), min_active_world_size=2))
    tale = walked(0, never_enough)
    assert (tale.broken or ("", ""))[0] == "I15"
    assert len(tale.moves) == tale.steps


def test_a_walk_that_does_not_end_breaks_i17() -> None:
    assert (walked(0, steps_max=3).broken or ("", ""))[0] == "I17"


def test_a_command_that_the_simulator_does_not_carry_out_is_its_own_fault() -> None:
    for move in (Move("user code ends", 0), Move("time passes", 0)):
        with pytest.raises(Violation, match="wiring"):
            step(RUNNING.world, move, _note)


def test_a_rank_with_nothing_to_ask_changes_nothing() -> None:
    assert step(RUNNING.world, Move("driver asks", 0), _note) is RUNNING.world
    assert edited(beginning(RICH), Leave(), RUNNING.rank().node).register is None


def test_a_user_s_law_is_judged_at_each_step() -> None:
    told: list[Move] = []

    def calm(before: World, move: Move, after: World) -> Iterator[tuple[str, str]]:
        told.append(move)
        if len(told) == 5:
            yield "calm", f"rank {move.rank} moves {before is not after}"

    walk = walked(1, also=(calm,))
    assert walk.broken == ("calm", f"calm: rank {told[-1].rank} moves True")
    assert list(walk.moves) == told


def test_i19_a_killed_rank_keeps_its_place_for_its_replacement() -> None:
    stage = Stage(REPLACED).runs().does("dies")
    evicted = apply(stage.register, Evict(frozenset({stage.rank().node})), stage.rank().node)
    broken("I19", lambda: laws.wrote(stage.world, stage.register, evicted))
    laws.wrote(stage.world, stage.register, evicted, waited=True)
    kept = stage.does("monitor speaks").register
    gone = apply(kept, Evict(frozenset({stage.rank().node})), stage.rank().node)
    broken("I19", lambda: laws.wrote(stage.world, kept, gone))
    with pytest.raises(Violation, match="nothing to say"):
        step(stage.world, Move("monitor speaks", 0), _note)


# --- an abort that fails, and reads that show only part


def test_i23_a_rank_whose_abort_failed_begins_no_further_round() -> None:
    stage = Stage().runs().does("user code ends", how=How.FAILED)
    stage.does("main thread disarms", "main thread tells", "driver hears", "abort fails")
    assert stage.ends().rank().returned == Raised(Reason.ABORT_FAILED)
    failed = evolve(RUNNING.rank(), main=Main(), abort_failed=True)
    broken("I23", lambda: laws.ordered(failed, Run(Span.FUNCTION, 9)))
    laws.ordered(failed, Run(Span.TERMINATE, 9))


def test_i2_a_call_is_over_only_while_its_main_thread_waits() -> None:
    broken("I2", lambda: laws.finished(RUNNING.world, RUNNING.rank(), Raised(Reason.EXITED)))


def test_a_read_that_shows_part_of_the_dead_is_followed_by_one_that_shows_the_others() -> None:
    stage = Stage(Shape(3, 1, budget=Budget(9))).runs()
    stage.does("is lost", rank=1).does("is lost", rank=2).does("is shown part").rests("main thread ends")
    stage.does("driver asks late")
    assert [node.slot for node in stage.register.seats] == ["0", "2"]
    assert not stage.rank().shown_part
    assert stage.ends().rank().alive


def test_a_monitor_that_terminates_waits_for_the_end() -> None:
    world = step(RUNNING.world, Move("monitor terminates", 0), _note)
    assert world.ranks[0].page.hung and world.ranks[0].main == RUNNING.world.ranks[0].main
    assert not step(RUNNING.world, Move("monitor quits", 0), _note).ranks[0].monitor


# --- a store that forgets, and outcomes that nobody knows

LOSING = Shape(2, max_restarts=9, budget=Budget(faults=9, respawns=2, losses=5))


def test_a_store_that_forgets_a_world_that_runs_costs_nothing() -> None:
    stage = Stage(LOSING).runs().does("the store forgets", rank=0)
    assert stage.world.register is None
    stage.ends()
    assert stage.register.life.epoch == 2
    assert [rank.returned for rank in stage.world.ranks] == [Returned(0), Returned(0)]


def test_a_failure_is_not_forgotten_by_a_store_that_forgets_twice() -> None:
    stage = Stage(LOSING).runs().does("user code ends", how=How.FAILED).runs()
    stage.does("the store forgets").rests("main thread ends").does("the store forgets").ends()
    assert (stage.register.life.epoch, stage.register.failures) == (3, 1)
    assert [rank.returned for rank in stage.world.ranks] == [Returned(1), Returned(1)]


def test_a_new_incarnation_that_finds_an_empty_store_begins_no_other_job() -> None:
    stage = Stage(LOSING).runs().does("dies", rank=1).does("the store forgets").does("starts again", rank=1)
    stage.does("driver asks", rank=1)
    assert [str(node) for node in stage.register.seats] == ["1#2"]
    SEEN.clear()
    stage.rests("main thread ends", "main thread leaves the section")
    assert SEEN["restored over a forming job"] == 1
    assert stage.ends().register.job == "0#1" and stage.register.closed


def test_a_job_that_nobody_remembers_begins_again() -> None:
    stage = Stage(LOSING).runs()
    assert stage.register.life == Life("0#1")
    stage.does("the store forgets").does("dies").does("dies", rank=1)
    stage.does("starts again").does("starts again", rank=1).ends()
    assert (stage.register.life, stage.world.forgotten) == (Life("0#2"), None)
    assert [rank.returned for rank in stage.world.ranks] == [Returned(0), Returned(0)]


def test_an_older_restore_that_comes_late_may_seat_a_rank_again_that_has_left() -> None:
    """Found by the simulator (I13): the judge asked for more than a store without a memory can give."""
    run = walked(1_122_942)
    assert run.broken is None and run.seen["fault: the store forgets"] == 2


def test_who_has_written_an_older_register_back_remembers_a_newer_one_too() -> None:
    """Found by the simulator (I5): a rank that had left, and had run no world, wrote back what it had once written back."""
    assert walked(2_254_785_930_038).broken is None


def test_no_two_lives_have_one_name() -> None:
    """Found by the simulator (seed 0xc1c19ac1, run 2737): two lives had one name, and a proposal for the one seated a rank
    in the other, which it had left."""
    stage = Stage(LOSING).does("driver asks")
    assert stage.rank().held.who.nonce == Life("0#1/2")
    stage.does("driver asks", rank=1).does("the store forgets", "an answer is lost", "driver asks")
    assert (stage.register.life, stage.rank().held.who.nonce) == (Life("0#1/2", 2), Life("0#1/3"))
    assert walked(run_seed(0xC1C19AC1, 2737)).broken is None


def test_a_write_whose_answer_is_lost_is_not_made_twice() -> None:
    stage = Stage(LOSING).runs().does("user code ends", how=How.FAILED).does("an answer is lost")
    assert stage.ends().register.failures == 1
    assert [rank.returned for rank in stage.world.ranks] == [Returned(1), Returned(1)]


def test_a_write_that_comes_late_seats_nobody_who_has_left() -> None:
    stage = Stage(LOSING).does("a write is late", "driver asks", "is told to stop", "driver hears")
    assert stage.rank().under_way is not None
    SEEN.clear()
    stage.rests("a late write arrives", "main thread ends").does("a late write arrives")
    assert SEEN["a late write is refused"] == 1
    assert stage.rank().node not in stage.register.seats


def test_a_write_that_comes_late_may_still_land_after_its_rank_has_died() -> None:
    stage = Stage(LOSING).does("a write is late", "driver asks", "dies").does("a late write arrives")
    assert [str(node) for node in stage.register.seats] == ["0#1"]
    assert stage.ends().rank(1).returned == Returned(0)


def test_of_a_restore_the_answer_may_be_lost_too() -> None:
    stage = Stage(LOSING).runs().does("the store forgets", "an answer is lost", "driver asks")
    assert stage.register.life.epoch == 2
    assert stage.ends().rank().returned == Returned(0)


def test_i24_a_world_that_is_forgotten_stands_again_before_another_one() -> None:
    forgot = Stage(LOSING).runs().does("the store forgets").world
    lost = forgot.forgotten
    assert lost is not None and forgot.known is lost
    broken("I24", lambda: laws.I24.judge(forgot, lost, lost, waited=False))
    laws.I24.judge(forgot, lost, lost, waited=True)
    away = evolve(forgot, ranks=tuple(evolve(rank, cut_off=True) for rank in forgot.ranks))
    laws.I24.judge(away, lost, lost, waited=False)
    with pytest.raises(Violation, match="nothing to forget"):
        step(forgot, Move("the store forgets", 0), _note)


def test_I25_a_rank_that_its_monitor_ends_for_a_hang_leaves_for_that() -> None:
    """One that is in an import hears SIGTERM, in a round with an odd number here."""
    rank = RUNNING.world.ranks[0]
    hung = changed(RUNNING, main=evolve(rank.main, hang=Hang.STUCK), page=evolve(rank.page, armed_round=1))
    ended = step(step(hung, Move("monitor terminates", 0), _note), Move("main thread disarms", 0), _note)
    told = step(ended, Move("main thread tells", 0), _note)
    assert told.ranks[0].inbox[-1] == SpanEnded(told.ranks[0].main.token, How.HUNG)
    laws.finished(told, told.ranks[0], Raised(Reason.HUNG))
    broken("I25", lambda: laws.finished(told, told.ranks[0], Raised(Reason.EXITED)))
    killed = driver._carried_out(hung, 0, Kill(), _note)
    assert killed.ranks[0].alive and killed.ranks[0].main.at is At.OVER
    assert not driver._carried_out(RUNNING.world, 0, Kill(), _note).ranks[0].alive
