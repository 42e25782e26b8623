"""A store that does not answer: the operations that end after a while, and those that never do."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from attrs import evolve
from worlds import but, heard

from elastic.core.rendezvous import (
    Arrive,
    Done,
    Fail,
    Held,
    Limits,
    Observe,
    Operation,
    Raise,
    Reserve,
    Settings,
    Wait,
    Who,
    Write,
    apply,
    blank,
    handlers,
    joined,
    operation,
    saw,
    silent,
    turn,
    unanswered,
)
from elastic.core.rendezvous.actions import Action
from elastic.core.rendezvous.context import Context
from elastic.core.rendezvous.links import Says
from elastic.core.rendezvous.memory import stands_still, told_by_link, unreadable, woke
from elastic.core.world import Endpoint, Life, Node, Profile, Why

A, B = Node("a", 1), Node("b", 1)
LIFE = Life("life")
PROFILE = Profile(Endpoint("localhost", 1))
SETTINGS = Settings(Limits(2, 2, 0), join_timeout=600.0)

Handler = Callable[[Context, float], Action]


def running(done: bool = False, tried_at: float = 608.0) -> Held:
    """Return what A holds in the world of A and B, read at 0, over a store that is silent since 10 and was asked last at
    `tried_at`."""
    state = apply(apply(blank(LIFE, SETTINGS.limits), Arrive(PROFILE), A), Arrive(PROFILE), B)
    held = saw(Held(Who(A, PROFILE, SETTINGS, LIFE)), state, 0.0, 0.0)
    held = joined(held, state.world.id)
    if done:
        held = saw(held, apply(state, Done(0), A), 1.0, 1.0)
    return silent(silent(held, 10.0, 8.0), tried_at + 2.0, tried_at)


def begun(handler: Handler, at: float = 0.0) -> Operation:
    return operation(handler, SETTINGS, at)


def given_up(answer: object) -> bool:
    return isinstance(answer, Raise) and answer.failure.why is Why.UNCONFIRMED


@pytest.mark.parametrize("handler", [handlers.end, handlers.done])
def test_a_write_that_must_be_made_is_tried_for_as_long_as_a_join_may_take(handler: Handler) -> None:
    assert isinstance(turn(begun(handler), running(), 609.9), Write)
    assert given_up(turn(begun(handler), running(), 610.0))
    assert given_up(turn(begun(handler), running(tried_at=9_997.0), 9_999.0))


@pytest.mark.parametrize(
    ("tried_at", "now", "gives_up"),
    [(310.0, 610.0, True), (309.9, 610.0, False), (8.0, 610.0, False), (310.5, 611.0, True), (310.4, 611.0, False)],
)
def test_a_silence_in_whose_second_half_nobody_asked_is_none(tried_at: float, now: float, gives_up: bool) -> None:
    """Found by the simulator: the loop of a spare stood still, and took that for the store's silence."""
    answer = turn(begun(handlers.end), running(tried_at=tried_at), now)
    assert given_up(answer) is gives_up
    assert gives_up or isinstance(answer, Write)


def test_a_silence_in_which_nobody_asked_is_none_whatever_the_clock_says() -> None:
    held = silent(but(running(), silent_since=None, tried_at=-math.inf), -600.0)
    assert isinstance(turn(begun(handlers.end), held, 100.0), Write)


def test_the_exit_barrier_of_a_store_that_is_gone_is_left_in_the_end() -> None:
    assert not given_up(turn(begun(handlers.watch), running(done=True), 609.9))
    assert given_up(turn(begun(handlers.watch), running(done=True), 610.0))


def test_a_spare_beside_a_register_that_it_cannot_read_gives_up_in_its_words() -> None:
    """Found by the simulator: it waited without end, or said that the store had not answered."""
    seated = apply(apply(blank(LIFE, Limits(1, 1, 0)), Arrive(PROFILE), B), Arrive(PROFILE), A)
    settings = evolve(SETTINGS, limits=seated.limits)
    held = unreadable(saw(Held(Who(A, PROFILE, settings, LIFE)), seated, 0.0, 0.0), "format 5", 10.0, 8.0)
    held = unreadable(held, "format 5", 605.0, 605.0)
    assert isinstance(turn(begun(handlers.join), held, 609.9), Wait | Observe)
    assert turn(begun(handlers.join), held, 610.0) == Raise(Fail(Why.ILLEGAL), "format 5")


@pytest.mark.parametrize("reserve", [False, True])
def test_running_workers_and_reserves_are_not_stopped_for_it_however_long_it_lasts(reserve: bool) -> None:
    held = running(tried_at=1e9 - 1.0)
    if reserve:
        assert held.view.state
        held = but(held, state=apply(held.view.state, Reserve(0), A))
    assert not given_up(turn(begun(handlers.watch), held, 1e9))
    assert given_up(turn(begun(handlers.end), held, 1e9))


def stranded(reserve: bool = False, says: tuple[Says, ...] = (Says.SUSPECT, Says.GONE)) -> Held:
    """Return the same, of a node whose only peer is dead by the word of its link, and whose workers stand still since 20."""
    held = running(tried_at=1e9 - 1.0)
    if reserve:
        assert held.view.state
        held = but(held, state=apply(held.view.state, Reserve(0), A))
    for each in says:
        held = told_by_link(held, B, each, None, 15.0)
    return stands_still(held, 20.0)


@pytest.mark.parametrize("reserve", [False, True])
def test_workers_that_stand_still_are_stopped_where_all_others_are_dead(reserve: bool) -> None:
    held = but(stranded(reserve), tried_at=619.0)
    assert not given_up(turn(begun(handlers.watch), held, 619.9))
    answer = turn(begun(handlers.watch), held, 620.0)
    dead = "the other nodes of round 0 are dead (b), and no worker here has made progress for 600 s"
    assert answer == Raise(Fail(Why.UNCONFIRMED), dead)


def test_workers_are_not_stopped_before_the_store_was_silent_for_long() -> None:
    assert not given_up(turn(begun(handlers.watch), but(stranded(), silent_since=9_500.0), 10_000.0))
    assert not given_up(turn(begun(handlers.watch), but(stranded(), silent_since=None), 10_000.0))


@pytest.mark.parametrize("says", [(Says.REFUSES,), (Says.SUSPECT, Says.REFUSES)])
def test_a_port_that_refuses_in_the_silence_is_a_death_for_the_stranded(
    says: tuple[Says, ...],
) -> None:
    assert given_up(turn(begun(handlers.watch), stranded(says=says), 1e9))
    answers = told_by_link(but(running(), suspects={}, silent_since=None), B, Says.REFUSES, 15.0, 15.0)
    assert not answers.view.suspects


@pytest.mark.parametrize("says", [(), (Says.SUSPECT,), (Says.GONE,), (Says.SUSPECT, Says.GONE, Says.ANSWERS)])
def test_workers_that_stand_still_are_not_stopped_while_another_node_may_live(says: tuple[Says, ...]) -> None:
    assert not given_up(turn(begun(handlers.watch), stranded(says=says), 1e9))


def test_workers_that_stand_still_are_not_stopped_while_a_third_node_may_live() -> None:
    held, third = stranded(), Node("c", 1)
    assert held.view.state
    state = evolve(held.view.state, seats={**held.view.state.seats, third: evolve(held.view.state.seats[B], order=2)})
    assert not given_up(turn(begun(handlers.watch), but(held, state=state), 1e9))


def test_workers_that_make_progress_are_not_stopped_though_all_others_are_dead() -> None:
    held = stranded()
    for moves in (stands_still(held, None), stands_still(held, 1e9 - 599.0), woke(held, 30.0)):
        assert not given_up(turn(begun(handlers.watch), but(moves, silent_since=40.0, woke_at=None), 1e9))


def test_a_node_that_is_alone_in_its_world_waits_for_its_store() -> None:
    state = apply(blank(LIFE, Limits(1, 1, 0)), Arrive(PROFILE), A)
    held = joined(saw(Held(Who(A, PROFILE, SETTINGS, LIFE)), state, 0.0, 0.0), state.world.id)
    held = silent(silent(held, 10.0, 8.0), 1e9, 1e9)
    assert not given_up(turn(begun(handlers.watch), stands_still(held, 20.0), 1e9))


def test_the_standstill_of_the_last_world_is_none_of_the_next() -> None:
    held = stranded()
    assert held.past.mine and joined(held, held.past.mine).past.still_since is None


def test_another_operation_gives_up_in_its_own_words() -> None:
    assert turn(begun(handlers.end), stranded(), 1e9) == Raise(Fail(Why.UNCONFIRMED))


def test_nor_for_a_write_whose_outcome_is_unknown_however_short_the_exit_barrier_is() -> None:
    """Found by the simulator: only nodes that are done have the barrier's deadline."""
    patient = but(running(), settings=evolve(SETTINGS, barrier_timeout=2.0))
    unsure = unanswered(patient, patient.token, 11.0)
    watching = operation(handlers.watch, unsure.who.settings, 0.0)
    assert turn(watching, unsure, 12.0) == Wait(unsure.token, 12.0)


def test_a_join_without_an_answer_ends_at_its_deadline() -> None:
    held = silent(saw(Held(Who(A, PROFILE, SETTINGS, LIFE)), None, 0.0, 0.0), 590.0)
    assert isinstance(turn(begun(handlers.join), held, 599.9), Write)
    assert given_up(turn(begun(handlers.join), held, 600.0))
    assert given_up(turn(begun(handlers.join), held, 601.0))


def test_the_first_silence_counts_and_any_answer_ends_it() -> None:
    held = silent(running(tried_at=300.0), 302.0)
    assert (held.contact.silent_since, held.contact.tried_at) == (10.0, 300.0)
    assert saw(held, held.view.state, 300.0, 300.0).contact.silent_since is None
    assert heard(held, {B: 1}, 300.0, 300.0).contact.silent_since is None


def test_after_an_answer_the_wait_begins_anew() -> None:
    held = heard(running(done=True), {B: 1}, 600.0, 600.0)
    assert not given_up(turn(begun(handlers.watch), held, 610.0))


def test_a_node_that_watches_nobody_asks_a_silent_store_until_it_answers() -> None:
    """Else the end of its work, long after a silence of a moment, would be given up without one try."""
    alone = Settings(Limits(1, 1, 0), join_timeout=600.0)
    state = apply(blank(LIFE, alone.limits), Arrive(PROFILE), A)
    held = joined(saw(Held(Who(A, PROFILE, alone, LIFE)), state, 0.0, 0.0), state.world.id)
    watches = operation(handlers.watch, alone, 0.0)
    assert turn(watches, held, 20.0) == Wait(state.token, math.inf)
    assert turn(watches, silent(held, 10.0), 20.0) == Wait(state.token, 20.0)
    assert turn(watches, saw(silent(held, 10.0), state, 20.0, 20.0), 20.0) == Wait(state.token, math.inf)
