"""The memory of a node: what it holds after each answer."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from attrs import evolve
from worlds import LIFE, anew, arrived, but, edited, heard, holding, node, nodes, profile, register, running, seats

from elastic.core.rendezvous import (
    Close,
    Done,
    End,
    Held,
    Leave,
    RendezvousState,
    Restore,
    Settings,
    Token,
    Who,
    introduced,
    joined,
    restored,
    saw,
    silent,
    unanswered,
    unreadable,
    woke,
)
from elastic.core.rendezvous import heard as answered_with
from elastic.core.rendezvous.actions import Proposal
from elastic.core.rendezvous.context import Fact, Found
from elastic.core.rendezvous.memory import gathered, marked, proposed, unserved
from elastic.core.world import Ending, Life, Verdict, Why, WorldId

ONE = arrived(register("3:5"), "a")
TWO = arrived(ONE, "b")
THREE = arrived(TWO, "c")
OTHER = evolve(TWO, life=Life("other"))


def read_anew(life: Life) -> Life:
    """Return the same life, of which no part is the same object."""
    return Life(anew(life.nonce), life.epoch)


def why(held: Held) -> Why | None:
    return held.trouble.why if held.trouble else None


def text(held: Held) -> str:
    return held.trouble.text if held.trouble else ""


# --- states


def test_a_newer_state_is_held_from_when_it_was_answered() -> None:
    held = saw(holding("a", ONE, at=1), TWO, 2, 3)
    assert (held.view.state, held.view.held_at) == (TWO, 3)


def test_a_newer_state_is_held_although_versions_between_were_missed() -> None:
    assert saw(holding("a", ONE), THREE, 1, 1).view.state == THREE


def test_the_same_version_changes_nothing() -> None:
    held = holding("a", ONE, at=1)
    assert saw(held, ONE, 2, 3) is held


def test_what_is_read_anew_is_the_same_register() -> None:
    # As another node reads it, far on: equal, but no single object is the same.
    held = holding("a", evolve(ONE, version=1_000), at=1)
    assert saw(held, evolve(ONE, version=int("1000"), life=Life("life")), 2, 3) == held
    assert saw(held, evolve(TWO, version=1_001, life=Life("life")), 2, 3).trouble is None
    assert why(saw(held, evolve(TWO, version=1_001, failures=1), 2, 3)) is Why.ILLEGAL


def test_an_absent_register_is_an_answer_too() -> None:
    assert holding("a", None, at=4).view.held_at == 4


@pytest.mark.parametrize("late", [ONE, OTHER, None], ids=["older", "another life", "empty"])
def test_an_answer_to_a_request_from_before_i_held_my_state_says_nothing(late: RendezvousState | None) -> None:
    held = holding("a", TWO, at=5)
    assert saw(held, late, 4, 6) == held
    assert saw(silent(held, 5), late, 4, 6) == held, "but the store is there"


@pytest.mark.parametrize("late", [ONE, OTHER, None], ids=["older", "another life", "empty"])
def test_an_answer_from_before_the_finding_says_nothing(late: RendezvousState | None) -> None:
    found = saw(holding("a", THREE, at=5), ONE, 6, 6)
    assert saw(found, late, 4, 7) == found


def test_a_state_that_breaks_an_invariant_is_a_trouble_and_not_held() -> None:
    held = saw(holding("a", ONE), evolve(TWO, next_order=0), 1, 1)
    assert (why(held), held.view.state) == (Why.ILLEGAL, ONE)
    assert text(held).startswith("S5: ")


def test_a_step_that_no_write_can_have_made_is_a_trouble_and_not_held() -> None:
    held = saw(holding("a", ONE), evolve(TWO, failures=1, limits=ONE.limits), 1, 1)
    assert (why(held), held.view.state) == (Why.ILLEGAL, ONE)
    assert text(held).startswith("B2: ")


def test_a_step_over_more_than_one_version_is_judged_by_its_state_alone() -> None:
    assert saw(holding("a", ONE), evolve(THREE, failures=0, stale_before=3), 1, 1).trouble is None


def test_bytes_that_are_no_state_are_a_trouble_until_the_register_can_be_read_again() -> None:
    held = unreadable(holding("a", ONE), "garbage at k", 1)
    assert (why(held), text(held)) == (Why.ILLEGAL, "garbage at k")
    assert saw(held, TWO, 1, 1).trouble is None
    assert saw(held, ONE, 1, 1).trouble is None


def test_a_register_that_cannot_be_read_is_as_good_as_silent() -> None:
    held = unreadable(unreadable(holding("a", ONE), "garbage at k", 5), "garbage at k", 6)
    assert (held.contact.silent_since, held.contact.tried_at) == (5, -math.inf)
    assert saw(holding("a", ONE), evolve(TWO, next_order=0), 7, 8).contact.silent_since == 8
    assert saw(held, TWO, 7, 8).contact.silent_since is None


def test_reads_further_apart_than_two_heartbeats_start_afresh() -> None:
    spans = Settings(limits=TWO.limits, keep_alive_interval=3.0)
    held = heard(holding("a", TWO, spans), {node("b"): 1}, 0.0, 0.0)
    assert heard(held, {node("b"): 1}, 6.0, 6.0).view.sightings.silence(node("b")) == 6.0
    assert heard(held, {node("b"): 1}, 6.1, 6.1).view.sightings.silence(node("b")) == 0.0


def test_a_heartbeat_under_a_lease_need_not_move() -> None:
    held = holding("a", TWO)
    leased = but(held, settings=evolve(held.who.settings, leased=True))
    for second in range(5):
        held, leased = (heard(each, {node("b"): 1}, second, second) for each in (held, leased))
    assert held.view.sightings.silence(node("b")) == 4.0
    assert leased.view.sightings.silence(node("b")) == 0.0


# --- owed writes


def test_an_unanswered_write_is_owed_and_must_be_read_before_i_decide_again() -> None:
    held = unanswered(holding("a", ONE), ONE.token, 7)
    assert (held.doubt.owed, held.doubt.unsure_at) == (ONE.token, 7)


def test_an_unanswered_genesis_is_owed_on_nothing() -> None:
    assert unanswered(holding("a", None), None, 7).doubt.owed == Token(LIFE, 0)


def test_an_owed_write_can_no_longer_land_once_the_register_has_moved_on() -> None:
    held = saw(unanswered(holding("a", ONE), ONE.token, 7), TWO, 7, 8)
    assert (held.doubt.owed, held.doubt.unsure_at) == (None, None)


def test_an_owed_write_may_still_land_on_the_state_that_stands() -> None:
    held = saw(unanswered(holding("a", ONE), ONE.token, 7), ONE, 7, 8)
    assert (held.doubt.owed, held.doubt.unsure_at) == (ONE.token, None)


@pytest.mark.parametrize("shown", [ONE, TWO])
def test_an_answer_to_a_request_from_before_the_write_leaves_me_unsure(shown: object) -> None:
    assert saw(unanswered(holding("a", ONE), ONE.token, 7), shown, 6, 8).doubt.unsure_at == 7  # type: ignore[arg-type]


# --- spans


def first_seen(held: Held) -> dict[Fact, float]:
    return {fact: at for fact, (_, at) in held.view.spans.items()}


def test_spans_count_from_when_i_first_saw_the_fact() -> None:
    held = holding("a", TWO, at=1)
    assert first_seen(held) == {Fact.OPEN: 1}
    held = saw(saw(held, THREE, 2, 2), arrived(THREE, "d"), 3, 3)
    assert first_seen(held) == {Fact.OPEN: 1, Fact.QUORUM: 2}


def test_a_quorum_that_was_lost_and_regained_is_another_one() -> None:
    held = holding("a", THREE, at=1)
    again = arrived(edited(THREE, "c", Leave()), "d")
    assert first_seen(saw(held, again, 2, 2))[Fact.QUORUM] == 2


def test_a_newcomer_with_room_is_a_fact_of_a_complete_round_in_which_nobody_is_done() -> None:
    state = running("a b", size="1:3")
    held = saw(holding("a", state), arrived(state, "c"), 2, 2)
    assert first_seen(held) == {Fact.NEWCOMER: 2}
    assert first_seen(saw(held, edited(arrived(state, "c"), "a", Done(0)), 3, 3)) == {}


def test_a_newcomer_has_waited_whatever_else_was_written_meanwhile() -> None:
    state = running("a b", size="1:4")
    held = saw(holding("a", state), arrived(state, "c"), 2, 2)
    assert first_seen(saw(held, arrived(state, "c d"), 3, 3)) == {Fact.NEWCOMER: 2}


def test_a_round_that_began_for_a_newcomer_has_done_so_whatever_else_was_written_meanwhile() -> None:
    two = running("a b", size="1:4")
    grown = arrived(edited(arrived(two, "c"), "a", End(0, Why.UPSCALE)), "a b")
    held = saw(holding("a", two), grown, 2, 2)
    assert first_seen(held) == {Fact.GROWN: 2}
    assert first_seen(saw(held, arrived(grown, "d"), 3, 3)) == {Fact.GROWN: 2, Fact.NEWCOMER: 3}
    again = arrived(edited(arrived(grown, "d"), "a", End(1, Why.UPSCALE)), "a b c")
    assert first_seen(saw(held, again, 3, 3)) == {Fact.GROWN: 3}
    shrunk = arrived(edited(grown, "c", Leave()), "a b")
    assert first_seen(saw(held, shrunk, 3, 3)) == {}


def test_an_open_round_is_another_one_than_the_one_before() -> None:
    """The node was not told of the world between them."""
    again = edited(arrived(NEXT, "a b"), "a", End(1, Why.FAILED))
    assert (NEXT.round, again.round) == (1, 2)
    assert first_seen(saw(holding("a", NEXT, at=1), again, 50, 50)) == {Fact.OPEN: 50}


def test_a_spare_is_no_newcomer() -> None:
    assert first_seen(holding("a", arrived(running(), "c"))) == {}


def test_a_closed_job_has_no_facts() -> None:
    assert first_seen(holding("a", edited(ONE, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED))))) == {}


def test_a_death_is_a_fact_from_the_read_that_showed_it() -> None:
    held = holding("a", TWO)
    for second in range(7):
        held = heard(held, {node("b"): 1}, second, second)
    assert first_seen(held)[Fact.DEAD] == 5


def test_the_dead_stay_dead_whatever_else_was_written_meanwhile() -> None:
    held = holding("a", TWO)
    for second in range(6):
        held = heard(held, {node("b"): 1}, second, second)
    assert first_seen(saw(held, arrived(TWO, "c"), 5.5, 5.5))[Fact.DEAD] == 5


def test_my_own_pause_makes_no_node_dead() -> None:
    held = heard(heard(holding("a", TWO), {node("b"): 1}, 0, 0), {node("b"): 1}, 60, 60)
    assert Fact.DEAD not in first_seen(held)


def test_a_change_of_its_own_seat_makes_a_node_alive() -> None:
    # S9 strong: a node whose heartbeat stands still, but which writes, must not be evicted.
    open_again = edited(running("a b", restarts=1), "a", End(0, Why.FAILED))
    held = holding("a", open_again)
    for second in range(5):
        held = heard(held, {node("b"): 1}, second, second)
    held = saw(held, arrived(open_again, "b"), 4.5, 4.5)
    assert Fact.DEAD not in first_seen(heard(held, {node("b"): 1}, 5, 5))


# --- what was asked since the last read


def asked(*sent_at: float) -> Held:
    """Return the memory of a after a read at 0, answers to other requests of these times, and a read at 3. b is silent."""
    held = heard(holding("a", running(), at=0), {node("b"): 1}, 0.0, 0.1)
    for at in sent_at:
        held = saw(held, running(), at, at + 0.1)
    return heard(held, {node("b"): 1}, 3.0, 3.1)


def test_an_answer_between_two_reads_shows_that_the_store_was_there() -> None:
    assert asked(1.5).view.sightings.silence(node("b")) == pytest.approx(2.9)
    assert asked(0.5, 1.5).view.sightings.silence(node("b")) == pytest.approx(2.9)


@pytest.mark.parametrize(("at", "silence"), [(6.0, 11.9), (6.2, 0.0)])
def test_an_answer_follows_another_within_two_heartbeats_of_any_length(at: float, silence: float) -> None:
    spans = Settings(limits=running().limits, keep_alive_interval=3.0)
    held = heard(holding("a", running(), spans), {node("b"): 1}, 0.0, 0.1)
    held = saw(held, running(), at, at)
    assert heard(held, {node("b"): 1}, 12.0, 12.0).view.sightings.silence(node("b")) == pytest.approx(silence)


def test_no_answer_closes_a_gap_that_lies_before_it() -> None:
    assert asked(1.5, 0.5).view.sightings.silence(node("b")) == pytest.approx(2.9), "though the answers change places"
    assert asked().view.sightings.silence(node("b")) == 0
    assert asked(0.5).view.sightings.silence(node("b")) == 0
    assert asked(2.5).view.sightings.silence(node("b")) == 0


def test_so_does_an_answer_with_another_state() -> None:
    held = heard(holding("a", running(), at=0), {node("b"): 1}, 0.0, 0.1)
    held = saw(held, arrived(running(), "c"), 1.5, 1.6)
    assert heard(held, {node("b"): 1}, 3.0, 3.1).view.sightings.silence(node("b")) == pytest.approx(2.9)


@pytest.mark.parametrize("answer", ["proposed", "gathered"])
def test_so_does_an_answer_to_a_proposal(answer: str) -> None:
    held = heard(holding("a", running(), at=0), {node("b"): 1}, 0.0, 0.1)
    mine = Proposal(running().era, Done(0))
    if answer == "proposed":
        held = proposed(held, mine, 1, 1.5, 1.6)
    else:
        held = gathered(proposed(held, mine, 1, 0.1, 0.2), {}, 1.5, 1.6)
    assert heard(held, {node("b"): 1}, 3.0, 3.1).view.sightings.silence(node("b")) == pytest.approx(2.9)


# --- spares


def test_a_spare_remembers_when_it_was_last_one() -> None:
    spare = arrived(running(), "c")
    assert holding("c", spare, at=3).past.spare_at == 3
    assert holding("a", spare, at=3).past.spare_at is None


def test_a_spares_time_starts_when_it_finds_room_not_when_it_began_to_wait() -> None:
    spare = arrived(running(), "c")
    promoted = edited(spare, "b", Leave())
    assert seats(promoted)["c"] == "in"
    held = saw(holding("c", spare, at=3), promoted, 5000, 5000)
    assert held.past.spare_at == 5000
    assert saw(held, arrived(promoted, "a"), 5001, 5001).past.spare_at == 5000


# --- what the node itself says


def test_joined_and_introduced_are_remembered() -> None:
    held = introduced(joined(holding("a", ONE), WorldId(LIFE, 3)), profile("a", port=7))
    assert (held.past.mine, held.who.profile.endpoint.port) == (WorldId(LIFE, 3), 7)
    again = joined(held, WorldId(Life("again", 2), 3))
    assert again.past.mine == WorldId(Life("again", 2), 3)
    assert again.past.ran == {WorldId(LIFE, 3), again.past.mine}


def test_of_the_worlds_of_a_life_the_last_one_is_remembered() -> None:
    """A life may have any number of rounds."""
    held = joined(holding("a", ONE), WorldId(Life("before"), 0))
    for round in range(3):
        held = joined(held, WorldId(read_anew(LIFE), round))
    assert held.past.ran == {WorldId(Life("before"), 0), WorldId(LIFE, 2)}
    assert [held.is_behind(WorldId(LIFE, round)) for round in range(4)] == [True, True, True, False]
    assert not held.is_behind(WorldId(Life("after", 2), 0))


def test_the_token_is_that_of_the_state_held() -> None:
    assert holding("a", ONE).token == ONE.token
    assert holding("a", None).token is None


def test_no_node_is_dead_in_an_absent_register() -> None:
    assert heard(holding("a", None), dict.fromkeys(nodes("b"), 1), 0, 0).view.spans == {}


def test_end_is_a_step_that_memory_accepts() -> None:
    state = running(restarts=1)
    assert saw(holding("b", state), edited(state, "a", End(0, Why.FAILED)), 1, 1).trouble is None


def test_a_register_is_made_with_another_life_after_each_try_whose_outcome_is_unknown() -> None:
    """Found by the simulator (S2): the first try may land in a store that has forgotten the life that it began."""
    held = unanswered(holding("a", None), None, 1.0)
    assert held.doubt.owed == Token(LIFE, 0)
    assert held.who.nonce == Life("life/2")
    assert unanswered(held, None, 2.0).who.nonce == Life("life/3")
    assert unanswered(held, Token(LIFE, 3), 2.0).who.nonce == Life("life/2")


# --- another life

WORLD = running("a b", size="1:3", restarts=3)
NEXT = edited(WORLD, "a", End(0, Why.FAILED))
CLOSED = edited(WORLD, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))
NEW_JOB = evolve(WORLD, life=Life("new"), job="new", completed_in=Life("new"))


def back(held: RendezvousState, found: RendezvousState | None = None, nonce: str = "again") -> RendezvousState:
    return restored(Restore(held, nonce), found)


def experienced(state: RendezvousState = NEXT) -> Held:
    """Return a node that has sightings, spans, and a write with an unknown outcome."""
    held = heard(marked(holding("a", state, at=1, ran=0)), {node("b"): 1}, 2, 2)
    return unanswered(silent(held, 3), state.token, 3)


@pytest.mark.parametrize(
    "shown",
    [back(NEXT), back(back(NEXT)), NEW_JOB],
    ids=["of mine", "of mine, twice", "a new job"],
)
def test_what_counts_more_is_taken_over_and_the_old_life_is_forgotten(shown: RendezvousState) -> None:
    before = experienced()
    assert before.view.spans and before.view.sightings.of and before.doubt.owed
    held = saw(before, shown, 4, 5)
    assert (held.view.state, held.view.held_at, held.found, held.trouble) == (shown, 5, None, None)
    assert (held.doubt.owed, held.doubt.unsure_at, held.contact.silent_since) == (None, None, None)
    assert (held.view.sightings.of, held.view.sightings.read_at) == ({}, None)
    assert (held.past.mine, held.past.ran, held.past.done_in) == (before.past.mine, before.past.ran, before.past.mine)
    assert held.who == before.who


def test_what_is_true_in_the_new_life_is_seen_from_now_on() -> None:
    held = saw(holding("a", NEXT, at=1), back(NEXT), 4, 5)
    assert first_seen(held) == {Fact.OPEN: 5}
    spare = arrived(running("a b", size="2"), "c")
    held = saw(holding("c", spare, at=1), back(spare), 4, 5)
    assert (held.past.spare_at, first_seen(held)) == (5, {})
    assert saw(held, arrived(back(spare), "c"), 6, 6).past.spare_at == 6


def test_a_spare_that_slept_was_one_until_it_wakes_into_another_life() -> None:
    spare = arrived(running("a b", size="2"), "c")
    held = saw(woke(holding("c", spare, at=1), 100), back(spare), 101, 102)
    assert (held.view.state, held.past.spare_at) == (back(spare), 102)
    held = saw(woke(held, 200), back(back(spare)), 201, 202)
    assert held.past.spare_at == 102


def test_a_spare_of_the_life_that_is_taken_over_is_one_from_now_on() -> None:
    spare = evolve(arrived(running("a b", size="2"), "c"), life=Life("new"), job="new", completed_in=Life("new"))
    assert saw(holding("c", running("a b", size="2"), at=1), spare, 4, 5).past.spare_at == 5


@pytest.mark.parametrize(
    "shown",
    [None, WORLD, evolve(ONE, life=Life("new"), job="new"), evolve(back(WORLD), version=9)],
    ids=["nothing", "older", "a forming job", "restored from less"],
)
def test_a_state_that_counts_less_is_found_and_mine_is_to_be_restored(shown: RendezvousState | None) -> None:
    before = experienced()
    held = saw(before, shown, 4, 5)
    assert held.found == Found(shown, NEXT, 5)
    assert (held.view.state, held.view.held_at, held.doubt.owed) == (NEXT, 1, before.doubt.owed)
    assert (held.doubt.unsure_at, held.contact.silent_since, held.trouble) == (None, None, None)


def test_the_time_of_a_finding_does_not_change() -> None:
    held = saw(holding("a", NEXT, at=1), None, 4, 5)
    assert saw(held, None, 6, 6) == held
    assert saw(held, WORLD, 6, 6).found == Found(WORLD, NEXT, 6)
    older = saw(held, WORLD, 6, 6)
    assert saw(older, evolve(WORLD), 7, 7).found == older.found


def test_an_answer_from_before_my_restore_was_lost_leaves_me_unsure_of_it() -> None:
    held = unanswered(saw(holding("a", NEXT, at=1), None, 4, 5), None, 6)
    assert (held.doubt.unsure_at, held.found, held.doubt.owed) == (6, Found(None, NEXT, 5), None)
    assert saw(held, None, 5.5, 7).doubt.unsure_at == 6
    assert saw(held, None, 6.0, 7).doubt.unsure_at is None
    assert saw(held, back(NEXT), 5.5, 7).doubt.unsure_at is None


def test_a_register_that_turns_out_to_be_mine_again_is_to_be_restored_no_longer() -> None:
    """The answer that showed less came from a member of the store that was behind."""
    found = saw(holding("a", NEXT, at=1), WORLD, 4, 5)
    assert saw(found, NEXT, 6, 6).found is None
    held = saw(found, back_in := arrived(NEXT, "a"), 6, 6)
    assert (held.found, held.view.state) == (None, back_in)


def test_a_copy_of_what_i_hold_is_restored_before_anybody_edits_it() -> None:
    held = saw(holding("a", NEXT, at=1), NEXT, 4, 5, here=False)
    assert held.found == Found(NEXT, NEXT, 5)
    assert saw(held, NEXT, 6, 6, here=False) == held


@pytest.mark.parametrize("mine", [None, WORLD], ids=["holding nothing", "holding less"])
def test_a_copy_that_counts_more_than_what_i_hold_is_restored_itself(mine: RendezvousState | None) -> None:
    held = saw(holding("a", mine, at=1), NEXT, 4, 5, here=False)
    assert held.found == Found(NEXT, NEXT, 5)
    assert held.view.state is mine
    assert saw(held, back(NEXT, NEXT), 6, 6).view.state == back(NEXT, NEXT)


def test_one_that_has_read_nothing_yet_may_restore_a_copy() -> None:
    unread = Held(Who(node("c"), profile("c"), Settings(limits=NEXT.limits), Life("c")))
    held = saw(unread, NEXT, 1, 2, here=False)
    assert (held.found, held.view.held_at, held.view.state) == (Found(NEXT, NEXT, 2), 2, None)


def test_a_copy_of_less_than_i_hold_is_replaced_by_mine() -> None:
    assert saw(holding("a", NEXT, at=1), WORLD, 4, 5, here=False).found == Found(WORLD, NEXT, 5)


@pytest.mark.parametrize("here", [True, False])
def test_another_life_that_breaks_an_invariant_is_a_trouble(here: bool) -> None:
    held = saw(holding("a", NEXT, at=1), evolve(back(NEXT), next_order=0), 4, 5, here)
    assert (why(held), held.view.state, held.found) == (Why.ILLEGAL, NEXT, None)
    assert text(held).startswith("S5: ")


def test_a_register_that_can_be_read_no_longer_is_not_restored_over() -> None:
    lost = saw(holding("a", NEXT, at=1), None, 4, 5)
    held = unreadable(lost, "garbage", 6)
    assert (held.found, text(held)) == (None, "garbage")
    assert saw(held, None, 6, 6).found == Found(None, NEXT, 6)
    assert saw(held, None, 6, 6).trouble is None


# --- nonces


def test_a_nonce_begins_one_life_only() -> None:
    held = holding("a", None)
    first = evolve(ONE, life=read_anew(held.who.nonce), job=held.who.nonce.nonce)
    begun = saw(held, first, 1, 1)
    assert begun.who.nonce == Life("life/2")
    assert saw(begun, evolve(TWO, life=first.life, job=first.job), 2, 2).who.nonce == begun.who.nonce
    lost = saw(begun, None, 3, 3)
    mine = back(first, nonce=lost.who.nonce.nonce)
    assert saw(lost, mine, 4, 4).who.nonce == Life("life/3")
    assert saw(lost, back(first, nonce="other"), 4, 4).who.nonce == lost.who.nonce
    slept = saw(woke(lost, 9), mine, 4, 9)
    assert (slept.who.nonce, slept.view.state, slept.doubt.woke_at) == (Life("life/3"), first, 9)


def test_after_a_restore_whose_outcome_is_unknown_the_next_begins_another_life() -> None:
    lost = saw(holding("a", NEXT, at=1), WORLD, 4, 5)
    assert unanswered(lost, WORLD.token, 6).who.nonce == Life("life/3")
    assert unanswered(lost, None, 6).who.nonce == Life("life/3")


# --- heartbeats beside another life


@pytest.mark.parametrize("named", [None, Life("other"), Life("life", 2)], ids=["none", "another", "a later epoch"])
def test_heartbeats_beside_another_life_force_a_look_and_tell_nothing(named: Life | None) -> None:
    held = silent(holding("a", TWO), 1)
    for second in range(4):
        held = heard(held, {node("b"): 1}, second, second)
    for second in range(4, 9):
        after = answered_with(held, {node("b"): None}, second, second, named)
        assert (after.doubt.unsure_at, after.contact.silent_since) == (second, None)
        assert (after.view.sightings, after.view.spans) == (held.view.sightings, held.view.spans)
        assert saw(after, TWO, 9, 9).doubt.unsure_at is None


def test_a_life_is_the_same_whoever_names_it() -> None:
    held = answered_with(holding("a", TWO), {node("b"): 1}, 1, 1, read_anew(LIFE))
    assert (held.doubt.unsure_at, held.view.sightings.read_at) == (None, 1)


def test_heartbeats_are_heard_by_one_that_holds_nothing() -> None:
    held = answered_with(holding("a", None), {node("b"): 1}, 1, 1, Life("other"))
    assert (held.doubt.unsure_at, held.view.sightings.read_at) == (None, 1)


# --- sleepers


def slept(state: RendezvousState | None = NEXT) -> Held:
    """Return a node that held this and woke at 100."""
    return woke(holding("a", state, at=1, ran=0 if state else None), 100)


@pytest.mark.parametrize("late", [NEXT, back(NEXT), None], ids=["the same", "another life", "nothing"])
@pytest.mark.parametrize("here", [True, False])
def test_an_answer_to_a_request_from_before_it_woke_tells_a_sleeper_nothing(
    late: RendezvousState | None, here: bool
) -> None:
    assert saw(slept(), late, 99, 101, here) == slept()
    assert saw(silent(slept(), 100), late, 99, 101, here) == slept(), "but the store is there"


def test_a_sleeper_whose_life_goes_on_goes_on_with_it() -> None:
    held = saw(slept(), NEXT, 100, 101)
    assert (held.view.state, held.doubt.woke_at, held.found) == (NEXT, None, None)
    assert first_seen(held) == {Fact.OPEN: 101}, "nobody is overdue for the time that I slept"
    assert saw(slept(), arrived(NEXT, "b"), 100, 101).view.state == arrived(NEXT, "b")
    assert saw(but(slept(), owed=NEXT.token), NEXT, 100, 101).doubt.owed == NEXT.token, "its last write may still land"


@pytest.mark.parametrize(
    "shown",
    [WORLD, evolve(ONE, life=Life("new"), job="new"), back(NEXT), NEW_JOB],
    ids=["older", "a forming job", "restored", "a new job"],
)
def test_a_sleeper_takes_what_it_finds(shown: RendezvousState) -> None:
    """This holds even if its own state counts more: the others may have gone on without it."""
    before = slept()
    held = saw(but(before, owed=NEXT.token), shown, 100, 101)
    assert (held.view.state, held.found, held.doubt.owed, held.doubt.woke_at) == (shown, None, None, None)
    assert (held.past.mine, held.past.ran) == (before.past.mine, before.past.ran)


def test_a_sleeper_that_finds_nothing_knows_nothing() -> None:
    held = saw(slept(CLOSED), None, 100, 101)
    assert (held.view.state, held.view.held_at, held.found, held.doubt.woke_at) == (None, 101, None, None)
    assert held.view.spans == {}


@pytest.mark.parametrize("held", [slept(), slept(None)], ids=["holding", "holding nothing"])
def test_a_sleeper_that_finds_a_copy_restores_the_copy(held: Held) -> None:
    after = saw(held, WORLD, 100, 101, here=False)
    assert after.found == Found(WORLD, WORLD, 101)


def test_the_store_was_not_silent_while_its_node_slept() -> None:
    assert woke(silent(holding("a", NEXT, at=1), 2), 100).contact.silent_since is None


def test_a_sleeper_gives_up_what_it_was_about_to_restore() -> None:
    asleep = woke(saw(holding("a", NEXT, at=1), None, 2, 3), 100)
    assert saw(asleep, None, 100, 101).found is None
    assert saw(asleep, WORLD, 100, 101).view.state == WORLD


def test_an_unreadable_answer_does_not_wake_a_sleeper() -> None:
    assert unreadable(slept(), "garbage", 101, 100).doubt.woke_at == 100


@pytest.mark.parametrize("no_state", [unreadable, unserved])
def test_what_could_not_be_read_before_it_slept_is_no_trouble_for_a_sleeper(no_state: Callable[..., Held]) -> None:
    """Somebody may have put it right meanwhile."""
    assert no_state(slept(), "garbage", 101, 99) == silent(slept(), 101, 99)
    assert no_state(slept(), "garbage", 101, 100).trouble


# --- who knows the verdict


def test_a_verdict_is_confirmed_by_the_last_answer_that_shows_it() -> None:
    held = holding("a", WORLD, at=1)
    assert held.contact.confirmed_at is None
    held = saw(held, CLOSED, 2, 3)
    assert held.contact.confirmed_at == 2
    assert saw(held, CLOSED, 7, 8).contact.confirmed_at == 7


def test_a_verdict_that_the_store_forgot_is_not_confirmed_until_it_is_restored() -> None:
    held = saw(holding("a", CLOSED, at=1), None, 5, 6)
    assert (held.contact.confirmed_at, held.found) == (1, Found(None, CLOSED, 6))
    assert saw(held, back(CLOSED), 7, 8).contact.confirmed_at == 7


def test_a_world_that_is_taken_over_confirms_nothing() -> None:
    assert saw(holding("a", CLOSED, at=1), NEW_JOB, 5, 6).contact.confirmed_at == 1


def test_a_write_of_a_node_that_the_last_read_left_out_is_a_sign_of_its_life_too() -> None:
    state = running("a b c")
    held = heard(holding("a", state), {node("b"): 1, node("c"): 1}, 1.0, 1.0, state.life)
    held = heard(held, {node("b"): 2}, 2.0, 2.0, state.life)
    assert held.view.sightings.aside.keys() == {node("c")}
    assert not saw(held, edited(state, "c", Done(state.round)), 2.5, 2.5).view.sightings.aside
