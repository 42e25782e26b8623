"""What a node remembers after an answer."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import LIFE, arrived, edited, heard, holding, node, nodes, profile, register, running, seats

from elastic.core.rendezvous import (
    Close,
    Done,
    End,
    Held,
    Leave,
    Settings,
    Token,
    introduced,
    joined,
    saw,
    unanswered,
    unreadable,
)
from elastic.core.rendezvous.context import Fact
from elastic.core.world import Ending, Life, Verdict, Why, WorldId

ONE = arrived(register("3:5"), "a")
TWO = arrived(ONE, "b")
THREE = arrived(TWO, "c")
OTHER = evolve(TWO, life=Life("other"))


def why(held: Held) -> Why | None:
    return held.trouble.why if held.trouble else None


def text(held: Held) -> str:
    return held.trouble.text if held.trouble else ""


# --- states


def test_a_newer_state_is_held_from_when_it_was_answered() -> None:
    held = saw(holding("a", ONE, at=1), TWO, 2, 3)
    assert (held.state, held.held_at) == (TWO, 3)


def test_a_newer_state_is_held_although_versions_between_were_missed() -> None:
    assert saw(holding("a", ONE), THREE, 1, 1).state == THREE


def test_the_same_version_changes_nothing() -> None:
    held = holding("a", ONE, at=1)
    assert saw(held, ONE, 2, 3) == held


def test_what_is_read_anew_is_the_same_register() -> None:
    # As another node reads it, far on: equal, but no single object is the same.
    held = holding("a", evolve(ONE, version=1_000), at=1)
    assert saw(held, evolve(ONE, version=int("1000"), life=Life("life")), 2, 3) == held
    assert saw(held, evolve(TWO, version=1_001, life=Life("life")), 2, 3).trouble is None
    assert why(saw(held, evolve(TWO, version=1_001, failures=1), 2, 3)) is Why.ILLEGAL


def test_an_absent_register_is_an_answer_too() -> None:
    assert holding("a", None, at=4).held_at == 4


@pytest.mark.parametrize("late", [ONE, OTHER, None], ids=["older", "another life", "empty"])
def test_an_answer_to_a_request_from_before_i_held_my_state_says_nothing(late: object) -> None:
    held = holding("a", TWO, at=5)
    assert saw(held, late, 4, 6) == held  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (None, "the register came back empty (I hold version 2)"),
        (ONE, "the register came back older: version 1 (I hold 2)"),
        (evolve(ONE, life=Life("life")), "the register came back older: version 1 (I hold 2)"),
        (OTHER, "the register came back with another life, other (I hold life)"),
    ],
    ids=["empty", "older", "older, read anew", "another life"],
)
def test_a_store_that_forgot_is_a_trouble_and_my_state_stays(shown: object, said: str) -> None:
    held = saw(holding("a", TWO, at=5), shown, 5, 6)  # type: ignore[arg-type]
    assert (why(held), text(held), held.state) == (Why.STORE_LOST, said, TWO)


def test_nothing_heals_a_store_that_forgot() -> None:
    # The answer may be to a request from before; and whoever saw the loss must not go on beside those who did not.
    lost = saw(holding("a", TWO), None, 5, 6)
    assert saw(lost, THREE, 4, 7) == lost
    assert unreadable(lost, "garbage") == lost


def test_a_state_that_breaks_an_invariant_is_a_trouble_and_not_held() -> None:
    held = saw(holding("a", ONE), evolve(TWO, next_order=0), 1, 1)
    assert (why(held), held.state) == (Why.ILLEGAL, ONE)
    assert text(held).startswith("S5: ")


def test_a_step_that_no_write_can_have_made_is_a_trouble_and_not_held() -> None:
    held = saw(holding("a", ONE), evolve(TWO, failures=1, limits=ONE.limits), 1, 1)
    assert (why(held), held.state) == (Why.ILLEGAL, ONE)
    assert text(held).startswith("B2: ")


def test_a_step_over_more_than_one_version_is_judged_by_its_state_alone() -> None:
    assert saw(holding("a", ONE), evolve(THREE, failures=0, stale_before=3), 1, 1).trouble is None


def test_bytes_that_are_no_state_are_a_trouble_until_the_register_can_be_read_again() -> None:
    held = unreadable(holding("a", ONE), "garbage at k")
    assert (why(held), text(held)) == (Why.ILLEGAL, "garbage at k")
    assert saw(held, TWO, 1, 1).trouble is None
    assert saw(held, ONE, 1, 1).trouble is None


def test_a_store_that_forgot_after_it_was_unreadable_is_a_store_that_forgot() -> None:
    assert why(saw(unreadable(holding("a", ONE), "garbage"), None, 1, 1)) is Why.STORE_LOST


def test_reads_further_apart_than_two_heartbeats_start_afresh() -> None:
    spans = Settings(limits=TWO.limits, keep_alive_interval=3.0)
    held = heard(holding("a", TWO, spans), {node("b"): 1}, 0.0, 0.0)
    assert heard(held, {node("b"): 1}, 6.0, 6.0).sightings.silence(node("b")) == 6.0
    assert heard(held, {node("b"): 1}, 6.1, 6.1).sightings.silence(node("b")) == 0.0


def test_a_heartbeat_under_a_lease_need_not_move() -> None:
    held = holding("a", TWO)
    leased = evolve(held, settings=evolve(held.settings, leased=True))
    for second in range(5):
        held, leased = (heard(each, {node("b"): 1}, second, second) for each in (held, leased))
    assert held.sightings.silence(node("b")) == 4.0
    assert leased.sightings.silence(node("b")) == 0.0


# --- owed writes


def test_an_unanswered_write_is_owed_and_must_be_read_before_i_decide_again() -> None:
    held = unanswered(holding("a", ONE), ONE.token, 7)
    assert (held.owed, held.unsure_at) == (ONE.token, 7)


def test_an_unanswered_genesis_is_owed_on_nothing() -> None:
    assert unanswered(holding("a", None), None, 7).owed == Token(LIFE, 0)


def test_an_owed_write_can_no_longer_land_once_the_register_has_moved_on() -> None:
    held = saw(unanswered(holding("a", ONE), ONE.token, 7), TWO, 7, 8)
    assert (held.owed, held.unsure_at) == (None, None)


def test_an_owed_write_may_still_land_on_the_state_that_stands() -> None:
    held = saw(unanswered(holding("a", ONE), ONE.token, 7), ONE, 7, 8)
    assert (held.owed, held.unsure_at) == (ONE.token, None)


@pytest.mark.parametrize("shown", [ONE, TWO])
def test_an_answer_to_a_request_from_before_the_write_leaves_me_unsure(shown: object) -> None:
    assert saw(unanswered(holding("a", ONE), ONE.token, 7), shown, 6, 8).unsure_at == 7  # type: ignore[arg-type]


# --- spans


def first_seen(held: Held) -> dict[Fact, float]:
    return {fact: at for fact, (_, at) in held.spans.items()}


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


def test_a_spare_is_no_newcomer() -> None:
    assert first_seen(holding("a", arrived(running(), "c"))) == {}


def test_a_closed_job_has_no_facts() -> None:
    assert first_seen(holding("a", edited(ONE, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED))))) == {}


def test_somebody_dead_is_a_fact_from_the_read_that_showed_it() -> None:
    held = holding("a", TWO)
    for second in range(7):
        held = heard(held, {node("b"): 1}, second, second)
    assert first_seen(held)[Fact.DEAD] == 5


def test_my_own_pause_makes_nobody_dead() -> None:
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


# --- spares


def test_a_spare_remembers_when_it_was_last_one() -> None:
    spare = arrived(running(), "c")
    assert holding("c", spare, at=3).spare_at == 3
    assert holding("a", spare, at=3).spare_at is None


def test_a_spares_time_starts_when_it_finds_room_not_when_it_began_to_wait() -> None:
    spare = arrived(running(), "c")
    promoted = edited(spare, "b", Leave())
    assert seats(promoted)["c"] == "in"
    held = saw(holding("c", spare, at=3), promoted, 5000, 5000)
    assert held.spare_at == 5000
    assert saw(held, arrived(promoted, "a"), 5001, 5001).spare_at == 5000


# --- what the node itself says


def test_joined_and_introduced_are_remembered() -> None:
    held = introduced(joined(holding("a", ONE), WorldId(LIFE, 3)), profile("a", port=7))
    assert (held.mine, held.profile.endpoint.port) == (WorldId(LIFE, 3), 7)


def test_the_token_is_that_of_the_state_held() -> None:
    assert holding("a", ONE).token == ONE.token
    assert holding("a", None).token is None


def test_nobody_is_dead_in_a_register_that_is_absent() -> None:
    assert heard(holding("a", None), dict.fromkeys(nodes("b"), 1), 0, 0).spans == {}


def test_end_is_a_step_that_memory_accepts() -> None:
    state = running(restarts=1)
    assert saw(holding("b", state), edited(state, "a", End(0, Why.FAILED)), 1, 1).trouble is None


def test_a_register_is_made_with_another_life_after_each_try_whose_outcome_is_unknown() -> None:
    """Found by the simulator (S2): the first try may land in a store that has forgotten the life that it began."""
    held = unanswered(holding("a", None), None, 1.0)
    assert held.owed == Token(LIFE, 0)
    assert held.nonce == Life("life/2")
    assert unanswered(held, None, 2.0).nonce == Life("life/3")
    assert unanswered(held, Token(LIFE, 3), 2.0).nonce == Life("life/2")
