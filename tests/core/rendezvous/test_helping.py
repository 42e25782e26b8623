"""Many have the same to write: each leaves a proposal, and one of them writes for all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from attrs import evolve
from worlds import arrived, but, edited, holding, node, operation, profile, register, running, seats

from elastic.core.rendezvous import (
    Arrive,
    Decision,
    Done,
    End,
    Evict,
    Gather,
    Held,
    Leave,
    Proposal,
    Propose,
    RendezvousState,
    Reserve,
    Return,
    Settings,
    Settled,
    Together,
    Token,
    Wait,
    Write,
    gathered,
    join,
    proposed,
    saw,
    turn,
    unanswered,
)
from elastic.core.rendezvous.context import Handler, context
from elastic.core.rendezvous.handlers import done, end, leave, watch
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.world import Ending, Life, Node, Why

RUNS = running("a b c d")
OVER = edited(RUNS, "a", End(0, Why.UPSCALE))
"""All four are expected back."""
HELPED = Settings(RUNS.limits, helping_above=2, keep_alive_interval=2)
ERA = Token(OVER.life, OVER.version)


def proposal(of: str, era: Token = ERA) -> Proposal:
    return Proposal(era, Arrive(profile(of)))


def proposals(names: str, era: Token = ERA) -> Mapping[Node, Proposal]:
    return {node(who): proposal(who, era) for who in names.split()}


def joins(held: Held, now: float = 0.0, deadline: float = math.inf, handler: Handler = join) -> Decision:
    return turn(operation(handler, deadline=deadline), held, now)


def proposing(who: str, count: int, state: RendezvousState = OVER, at: float = 0.0) -> Held:
    """A node that has put down its proposal to come back, and was told how many propose the like."""
    return proposed(holding(who, state, HELPED), proposal(who, state.era), count, at, at)


# --- what a proposal is worth


def test_proposals_that_stand_come_true_in_one_write() -> None:
    after = edited(OVER, "c", Together(proposals("a b c")))
    assert seats(after) == {"a": "in", "b": "in", "c": "in", "d": "expected"}
    assert after.version == OVER.version + 1


def test_the_last_one_that_was_missing_completes_the_round() -> None:
    after = edited(OVER, "d", Together(proposals("a b c d")))
    assert after.complete
    assert after.members == RUNS.members
    back = edited(OVER, "b", Together(proposals("a b c")))
    assert edited(back, "d", Together(proposals("a b c d"))).complete


def test_each_comes_back_with_what_it_says_of_itself() -> None:
    moved = {**proposals("a"), node("b"): Proposal(ERA, Arrive(profile("b", 4711)))}
    after = edited(OVER, "a", Together(moved))
    assert after.seats[node("b")].profile == profile("b", 4711)


@pytest.mark.parametrize(
    "era",
    [Token(OVER.life, OVER.version - 1), Token(OVER.life, 0), Token(Life("another"), OVER.version)],
    ids=["of the round before", "of the first round", "of another life"],
)
def test_a_proposal_of_another_era_is_none(era: Token) -> None:
    assert edited(OVER, "a", Together(proposals("a b", era))) is OVER
    some = edited(OVER, "a", Together({**proposals("a"), **proposals("b", era)}))
    assert seats(some) == {"a": "in", "b": "expected", "c": "expected", "d": "expected"}


def test_who_has_left_or_was_thrown_out_is_not_brought_back_by_its_proposal() -> None:
    left = edited(OVER, "b", Leave())
    gone = edited(left, "a", Evict(frozenset({node("c")})))
    assert gone.era == ERA
    after = edited(gone, "a", Together(proposals("a b c d")))
    assert set(seats(after)) == {"a", "d"}


def test_who_was_thrown_out_has_proposed_nothing_that_still_counts() -> None:
    out = edited(OVER, "a", Evict(frozenset({node("b")})))
    assert out.era == ERA
    assert joins(saw(proposing("b", 1), out, 0.1, 0.1), now=0.1, handler=leave) == Return(Settled())


def test_whose_slot_was_started_again_is_not_brought_back_by_its_proposal() -> None:
    replaced = arrived(OVER, "b#2")
    after = edited(replaced, "a", Together(proposals("a b")))
    assert "b" not in seats(after)
    assert seats(after)["b#2"] != "expected"


def test_who_bumps_voids_all_proposals() -> None:
    bumped = edited(OVER, "nobody", Leave())
    assert edited(bumped, "a", Together(proposals("a b c d"))) is bumped


def test_marks_of_success_come_true_together_and_the_last_closes() -> None:
    marks = {who: Proposal(RUNS.era, Done(0)) for who in RUNS.members}
    after = edited(RUNS, "a", Together(marks))
    assert after.closed and after.closed.ending is Ending.SUCCEEDED
    del marks[node("d")]
    assert seats(edited(RUNS, "a", Together(marks))) == {"a": "done", "b": "done", "c": "done", "d": "in"}


@pytest.mark.parametrize("round", [1, 7])
def test_a_mark_of_another_round_is_none(round: int) -> None:
    assert edited(RUNS, "a", Together({node("a"): Proposal(RUNS.era, Done(round))})) is RUNS


def test_a_batch_goes_past_no_end() -> None:
    """However proposals are mixed: what some of them do makes none of the others mean something else."""
    marks = {who: Proposal(RUNS.era, Done(0)) for who in RUNS.members}
    last = edited(OVER, "a", Together({**proposals("a b c d"), node("d"): Proposal(ERA, Done(1))}))
    assert seats(last) == {"a": "in", "b": "in", "c": "in", "d": "expected"}
    assert edited(OVER, "a", Together(marks)) is OVER
    closed = edited(RUNS, "a", Together(marks))
    assert edited(closed, "a", Together(proposals("a b"))) is closed


# --- when it is made


def test_who_is_one_of_many_to_come_back_proposes() -> None:
    assert joins(holding("b", OVER, HELPED)) == Propose(proposal("b"))


def test_one_of_few_writes_by_itself() -> None:
    assert joins(holding("b", OVER, evolve(HELPED, helping_above=4))) == _alone("b")
    few = edited(OVER, "a", Together(proposals("a b")))
    ask = joins(holding("c", few, HELPED))
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("c"))


def _alone(who: str) -> Decision:
    after = edited(OVER, who, Arrive(profile(who)))
    return Write(after, OVER.token, Arrive(profile(who)))


def test_who_has_no_seat_is_like_nobody() -> None:
    for state in (OVER, None):
        ctx = context(operation(join), holding("e", state), 0.0)
        assert (ctx.alike, ctx.crowd) == ((), 0)


def test_who_is_new_writes_by_itself() -> None:
    """Only a seat says whose proposals are to be read."""
    ask = joins(holding("e", OVER, HELPED))
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("e"))
    first = joins(holding("a", None, evolve(HELPED, limits=register("1:2").limits)))
    assert isinstance(first, Write) and first.token is None


def test_who_ends_or_leaves_writes_by_itself() -> None:
    leaves = joins(holding("b", OVER, HELPED), handler=leave)
    ends = joins(holding("b", RUNS, HELPED, ran=0), handler=end)
    assert [ask.edit for ask in (leaves, ends) if isinstance(ask, Write)] == [Leave(), End(0, Why.ASKED)]


def test_whose_workers_have_succeeded_proposes_it_too() -> None:
    held = holding("b", RUNS, HELPED, ran=0)
    assert joins(held, handler=done) == Propose(Proposal(RUNS.era, Done(0)))
    mark = but(held, done_in=held.past.mine)
    assert joins(mark, handler=watch) == Propose(Proposal(RUNS.era, Done(0)))


# --- and then


def test_who_proposed_leaves_it_to_the_last_for_as_long_as_its_patience_lasts() -> None:
    asked = [joins(but(proposing(who, 1, at=5.0), sightings=_awake(who)), now=5.0) for who in "abcd"]
    untils = [ask.until for ask in asked if isinstance(ask, Wait)]
    assert untils == pytest.approx([5.6, 5.75, 5.9, 6.05])
    for who, until in zip("abcd", untils, strict=True):
        late = but(proposing(who, 1, at=5.0), sightings=_awake(who))
        assert joins(late, now=until) == Gather(OVER.expected)


def test_patience_with_proposals_may_be_shorter_than_with_chores() -> None:
    hasty = evolve(HELPED, helping_patience=0.02)
    asked = joins(but(proposing("b", 1, at=5.0), settings=hasty, sightings=_awake("b")), now=5.0)
    assert isinstance(asked, Wait) and asked.until == pytest.approx(5.025)


def _awake(who: str) -> Sightings:
    """All others were heard just now."""
    return Sightings({node(other): Sighting(1, 5.0) for other in "abcd" if other != who}, 5.0)


def test_it_waits_no_longer_than_its_deadline() -> None:
    ask = joins(but(proposing("b", 1, at=5.0), sightings=_awake("b")), now=5.0, deadline=5.2)
    assert isinstance(ask, Wait) and ask.until == 5.2


def test_the_last_one_reads_what_the_others_propose_and_writes_for_all() -> None:
    last = proposing("d", 4)
    assert joins(last) == Gather(OVER.expected)
    ask = joins(gathered(last, proposals("a b c"), 0.1, 0.1))
    assert isinstance(ask, Write)
    assert ask.edit == Together(proposals("a b c d"))
    assert ask.state.complete


def test_who_loses_patience_writes_for_those_who_propose() -> None:
    late = proposing("b", 2)
    assert joins(late, now=2.0) == Gather(OVER.expected)
    ask = joins(gathered(late, proposals("a b"), 2.0, 2.0), now=2.0)
    assert isinstance(ask, Write)
    assert seats(ask.state) == {"a": "in", "b": "in", "c": "expected", "d": "expected"}


def test_fewer_are_waited_for_when_one_is_dropped() -> None:
    three = edited(OVER, "a", Evict(frozenset({node("d")})))
    held = saw(proposing("c", 3), three, 0.1, 0.1)
    assert joins(proposing("c", 3), now=0.1) != Gather(OVER.expected)
    assert joins(held, now=0.1) == Gather(three.expected)
    assert joins(saw(proposing("d", 4), edited(OVER, "a", Evict(frozenset({node("c")}))), 0.1, 0.1), now=0.1) == Gather(
        (node("a"), node("b"), node("d"))
    )


def test_marks_wait_for_all_members() -> None:
    held = holding("b", RUNS, HELPED, ran=0)
    mark = Proposal(RUNS.era, Done(0))
    assert joins(proposed(held, mark, 4, 0.0, 0.0), handler=done) == Gather(RUNS.participants)
    assert not isinstance(joins(proposed(held, mark, 3, 0.0, 0.0), handler=done), Gather)


def test_marks_wait_for_no_reserve() -> None:
    with_one = edited(RUNS, "d", Reserve(0))
    held = holding("b", with_one, HELPED, ran=0)
    assert joins(proposed(held, Proposal(with_one.era, Done(0)), 3, 0.0, 0.0), handler=done) == Gather(
        with_one.participants
    )


# --- what is remembered


def test_a_proposal_stands_through_its_era_but_what_others_propose_is_read_again() -> None:
    last = gathered(proposing("d", 4), proposals("a b c"), 0.1, 0.1)
    refused = saw(last, edited(OVER, "a", Arrive(profile("a"))), 0.2, 0.2)
    assert joins(refused, now=0.2) == Gather(tuple(map(node, "bcd")))


def test_in_another_era_the_proposal_is_made_anew() -> None:
    bumped = edited(OVER, "nobody", Leave())
    held = saw(proposing("d", 4), bumped, 0.1, 0.1)
    assert joins(held, now=0.1) == Propose(proposal("d", bumped.era))


def test_with_something_else_to_say_the_proposal_is_made_anew() -> None:
    held = but(proposing("d", 4), profile=profile("d", 4711))
    assert joins(held) == Propose(Proposal(ERA, Arrive(profile("d", 4711))))


def test_in_another_life_nobody_has_proposed() -> None:
    older = evolve(OVER, life=Life("new", 9), version=OVER.version + 1)
    assert saw(proposing("d", 4), older, 0.1, 0.1).view.proposed is None


def test_what_comes_of_a_question_of_an_era_that_is_over_is_nothing() -> None:
    held = holding("d", OVER, HELPED)
    assert gathered(held, proposals("a b"), 0.0, 0.0) == held


def test_an_unknown_outcome_is_looked_for_first() -> None:
    unsure = unanswered(gathered(proposing("d", 4), proposals("a b c"), 0.1, 0.1), OVER.token, 0.2)
    assert joins(unsure, now=0.2) == Wait(OVER.token, 0.2)
    assert isinstance(joins(saw(unsure, OVER, 0.3, 0.3), now=0.3), Write)
