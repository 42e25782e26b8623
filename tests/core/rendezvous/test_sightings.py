"""Sightings tell which nodes are alive, by the observer's own clock (docs/protocol.md#time-and-liveness)."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from worlds import arrived, edited, node, nodes, profile, register, reseated, running

from elastic.core.rendezvous import Arrive, Done, Drain, End, Leave, RendezvousState, Status
from elastic.core.rendezvous.sightings import Sighting, Sightings, observe, refreshed, signs_of_life
from elastic.core.world import Notice, Why

A, B = node("a"), node("b")
FRESH_AFTER = 2.0
TTL = 5.0


def observed(*reads: tuple[float, int | None], leased: bool = False) -> Sightings:
    """Return the sightings after reads of a's counter, each sent at its time and answered 0.1 s later."""
    sightings = Sightings()
    for sent_at, counter in reads:
        sightings = observe(sightings, {A: counter}, sent_at, sent_at + 0.1, FRESH_AFTER, TTL, leased)
    return sightings


def test_no_node_is_silent_before_the_first_read() -> None:
    assert Sightings().silence(A) == 0


def test_a_node_that_i_do_not_watch_is_not_silent() -> None:
    assert observed((0, 1), (1, 1)).silence(B) == 0


def test_silence_is_counted_from_the_answer_that_moved_to_the_sending_of_the_last() -> None:
    assert observed((0, 1), (1, 1), (2, 1)).silence(A) == pytest.approx(1.9)


def test_a_high_counter_that_stands_still_is_silence_too() -> None:
    assert observed((0, int("1000")), (1, int("1000")), (2, int("1000"))).silence(A) == pytest.approx(1.9)


def test_a_counter_that_moves_ends_the_silence() -> None:
    assert observed((0, 1), (1, 1), (2, 2)).silence(A) == 0


def test_any_move_counts() -> None:
    assert observed((0, 1), (1, 1), (2, 0)).of == {A: Sighting(0, 2.1)}


def test_a_heartbeat_that_is_gone_is_dead_at_once() -> None:
    assert observed((0, 1), (1, None)).silence(A) == math.inf
    assert observed((0, 1), (1, None), (2, None)).silence(A) == math.inf


def test_a_heartbeat_that_is_gone_soon_after_an_outage_is_waited_for() -> None:
    """The store was paused for all, so no node could renew the lease that it ended afterwards."""
    assert observed((0, 1), (60, 1), (61, None)).silence(A) == pytest.approx(0.9)
    later = [(float(at), 1) for at in range(60, 66)]
    assert observed((0, 1), *later, (66, None)).silence(A) == math.inf
    assert observed((0, 1), *later[:-1], (65, None)).silence(A) == pytest.approx(4.9)


@pytest.mark.parametrize(("gone_at", "silence"), [(65.0, math.inf), (64.9, 0.9)])
def test_the_outage_is_over_a_ttl_after_the_first_answer(gone_at: float, silence: float) -> None:
    seen = Sightings()
    for at, counter in ((0.0, 1), *((float(at), at) for at in range(60, 65)), (gone_at, None)):
        seen = observe(seen, {A: counter}, at, at, FRESH_AFTER, TTL)
    assert seen.silence(A) == pytest.approx(silence)


def test_a_heartbeat_that_is_gone_after_a_sign_of_life_is_waited_for_a_ttl() -> None:
    """The lease ended while its node was cut off. The node has written since, so it is back."""
    sightings = refreshed(observed((0, 1), (1, 1)), [A], 1.5)
    for sent_at in (2, 3):
        sightings = observe(sightings, {A: None}, sent_at, sent_at + 0.1, FRESH_AFTER, TTL)
    assert sightings.silence(A) == 1.5


def test_under_a_lease_a_heartbeat_that_is_there_is_a_sign_of_life_though_it_stands_still() -> None:
    still = observed((0, 1), (1, 1), (2, 1), leased=True)
    assert still.silence(A) == 0
    assert still.of == {A: Sighting(1, 2.1)}


def test_under_a_lease_a_heartbeat_that_is_gone_is_dead_at_once() -> None:
    assert observed((0, 1), (1, None), leased=True).silence(A) == math.inf
    assert observed((0, 1), (1, None), (2, None), leased=True).silence(A) == math.inf


def test_under_a_lease_too_a_node_without_a_heartbeat_falls_silent() -> None:
    assert observed((0, None), (1, None), (2, None), leased=True).silence(A) == pytest.approx(1.9)


def test_a_lease_that_was_granted_anew_ends_a_death() -> None:
    assert observed((0, 1), (1, None), (2, 1), leased=True).silence(A) == 0


def test_a_heartbeat_that_went_while_i_was_away_is_waited_for_like_any() -> None:
    assert observed((0, 1), (9, None)).silence(A) == 0


def test_a_node_without_a_heartbeat_falls_silent_too() -> None:
    assert observed((0, None), (1, None)).silence(A) == pytest.approx(0.9)


def test_every_sighting_starts_afresh_after_my_pause() -> None:
    assert observed((0, 1), (1, 1), (3.01, 1)).silence(A) == 0
    assert observed((-9, 1), (-1, 1)).silence(A) == 0  # a clock may begin anywhere
    assert observed((0, 1), (1, 1), (3.0, 1)).silence(A) == pytest.approx(2.9)


def test_only_the_nodes_that_were_read_last_are_known() -> None:
    assert observe(observed((0, 1)), {B: 1}, 1, 1, FRESH_AFTER, TTL).of.keys() == {B}


def left_out(reads: int = 1) -> Sightings:
    """Return the sightings after a read of a and b, and after reads of b alone."""
    sightings = observe(Sightings(), {A: 1, B: 1}, 0.0, 0.1, FRESH_AFTER, TTL)
    for read in range(1, 1 + reads):
        sightings = observe(sightings, {B: 1}, float(read), read + 0.1, FRESH_AFTER, TTL)
    return sightings


def test_the_silence_of_a_node_that_one_read_leaves_out_counts_on() -> None:
    again = observe(left_out(), {A: 1, B: 1}, 2.0, 2.1, FRESH_AFTER, TTL)
    assert again.of == {A: Sighting(1, 0.1), B: Sighting(1, 0.1)}


def test_that_of_a_node_that_two_reads_leave_out_or_that_has_acted_since_starts_afresh() -> None:
    assert observe(left_out(2), {A: 1}, 3.0, 3.1, FRESH_AFTER, TTL).of == {A: Sighting(1, 3.1)}
    assert observe(refreshed(left_out(), [A], 1.5), {A: 1}, 2.0, 2.1, FRESH_AFTER, TTL).of == {A: Sighting(1, 2.1)}
    assert observe(left_out(), {A: 1}, 60.0, 60.1, FRESH_AFTER, TTL).of == {A: Sighting(1, 60.1)}


def test_a_sign_of_life_is_as_good_as_a_heartbeat() -> None:
    sightings = observed((0, 1), (1, 1), (2, 1))
    assert refreshed(sightings, [A, B], 2.5).silence(A) == 0
    assert refreshed(sightings, [B], 2.5) is sightings


def signs(before: RendezvousState | None, after: RendezvousState) -> frozenset[object]:
    return frozenset(signs_of_life(before, after, after.seats))


RUNNING = running("a b", size="2", restarts=2)
OPEN = edited(RUNNING, "a", End(0, Why.FAILED))


def test_an_arrival_and_a_success_are_signs_of_life() -> None:
    assert signs(register("2"), arrived(register("2"), "a")) == nodes("a")
    assert signs(OPEN, arrived(OPEN, "b")) == nodes("b")
    assert signs(RUNNING, edited(RUNNING, "a", Done(0))) == nodes("a")


def test_a_seat_changed_by_another_node_is_no_sign_of_life() -> None:
    spare = arrived(RUNNING, "c")
    promoted = edited(spare, "b", Leave())
    assert signs(spare, promoted) == frozenset()
    assert signs(RUNNING, OPEN) == frozenset()
    done = edited(RUNNING, "a", Done(0))
    assert signs(done, edited(done, "b", Drain(A, Notice(30.0, "a test")))) == frozenset()
    gone = edited(edited(RUNNING, "a", Done(0)), "a", Leave())
    assert signs(edited(RUNNING, "a", Done(0)), gone) == frozenset()


def test_what_is_read_anew_a_thousand_rounds_in_is_no_sign_of_life() -> None:
    far = evolve(RUNNING, round=1_000)
    done = edited(far, "a", Done(1_000))
    seats = {who: evolve(seat) for who, seat in done.seats.items()}
    assert signs(far, evolve(done, round=int("1000"), seats=seats)) == nodes("a")


def test_nothing_is_a_sign_of_life_in_the_first_state_that_i_read() -> None:
    assert signs(None, RUNNING) == frozenset()


def test_signs_of_life_are_seen_although_i_missed_states_between() -> None:
    # Each can only stand there by writes of its node in between.
    again = arrived(OPEN, "a b")
    assert signs(RUNNING, again) == nodes("a b")
    assert signs(edited(RUNNING, "b", Done(0)), again) == nodes("a b")
    assert signs(OPEN, edited(again, "a", Done(1))) == nodes("a b")
    done_again = edited(arrived(edited(edited(RUNNING, "b", Done(0)), "a", End(0, Why.FAILED)), "a b"), "b", Done(1))
    assert signs(edited(RUNNING, "b", Done(0)), done_again) == nodes("a b")
    assert signs(arrived(RUNNING, "c"), reseated(arrived(RUNNING, "c"), c=Status.DONE)) == nodes("c")


def test_a_promotion_in_a_later_round_is_no_sign_of_life() -> None:
    spare = arrived(RUNNING, "c")
    later = arrived(edited(spare, "b", Leave()), "a")
    assert later.complete
    assert signs(spare, later) == nodes("a")


def test_the_next_incarnation_is_another_node() -> None:
    state = arrived(register("3"), "a")
    assert signs(state, edited(state, "a#2", Arrive(profile("a")))) == nodes("a#2")
