"""The law of proposals (O16) finds a node that proposes, acts for others or waits when it is not to."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from attrs import evolve
from simulated import world
from worlds import arrived, but, edited, holding, node, profile, register, running

from elastic.core.rendezvous import (
    Arrive,
    Counted,
    Done,
    End,
    Gather,
    Held,
    Leave,
    Proposal,
    Proposals,
    Propose,
    RendezvousState,
    Settings,
    Together,
    Token,
    Violation,
    Wait,
    Write,
    unanswered,
)
from elastic.core.rendezvous.context import Fact, Found
from elastic.core.sim.proposals import Proposing
from elastic.core.world import Node, Party, Why

RUNS = running("a b c d")
OVER = edited(RUNS, "a", End(0, Why.UPSCALE))
"""All four are expected back."""
OPEN = arrived(register("4:8"), "a")
"""Seven more may enter, and three are enough."""
HELPED = Settings(RUNS.limits, helping_above=2, helping_patience=1.0)
BACK, ENTERS, DONE = (
    Proposal(OVER.era, Arrive(profile("b"))),
    Proposal(OPEN.era, Arrive(profile("b")), enters=True),
    Proposal(RUNS.era, Done(0)),
)
WANTED = [(OVER, BACK), (OPEN, ENTERS), (RUNS, DONE)]
LAST = {OVER: 4, OPEN: 3, RUNS: 4}


def at(state: RendezvousState | None, settings: Settings = HELPED) -> Held:
    return holding("b", state, settings)


def wrote(state: RendezvousState, edit: Arrive | Done | Together | Leave) -> Write:
    return Write(state, state.token, edit)


def made(held: Held, proposal: Proposal, number: int = 1, others: Mapping[Node, Proposal] | None = None) -> Proposing:
    """Return the judge of a node that has proposed this at 5, as this number (0: the store has not answered)."""
    judge = Proposing()
    judge.asks(held, Propose(proposal), 4.9)
    if number:
        judge.answers(held, Counted(number), 5.0)
    if others is not None:
        judge.answers(held, Proposals(others), 5.1)
    return judge


def breaks(judge: Proposing, held: Held, question: Propose | Gather | Write | Wait, now: float = 5.2) -> bool:
    try:
        judge.waits(held, question, now) if isinstance(question, Wait) else judge.asks(held, question, now)
    except Violation as violation:
        return violation.number == "O16"
    return False


@pytest.mark.parametrize(("state", "proposal"), WANTED)
def test_a_node_proposes_where_many_have_the_same_to_write_and_writes_alone_where_few_do(
    state: RendezvousState, proposal: Proposal
) -> None:
    few = evolve(HELPED, helping_above=8)
    assert not breaks(Proposing(), at(state), Propose(proposal))
    assert breaks(Proposing(), at(state, few), Propose(proposal))
    assert breaks(Proposing(), at(state), wrote(state, proposal.edit))
    assert not breaks(Proposing(), at(state, few), wrote(state, proposal.edit))


def test_it_proposes_what_counts_in_this_era() -> None:
    for state, proposal in WANTED:
        other = evolve(proposal, era=Token(state.life, 99))
        assert breaks(Proposing(), at(state), Propose(other))
        assert breaks(Proposing(), at(state), Propose(evolve(proposal, enters=not proposal.enters)))
    assert breaks(Proposing(), at(RUNS), Propose(Proposal(RUNS.era, Done(7))))


@pytest.mark.parametrize(("state", "proposal"), WANTED)
def test_it_proposes_the_same_once_unless_the_store_has_not_answered_or_it_slept(
    state: RendezvousState, proposal: Proposal
) -> None:
    held, answered = at(state), made(at(state), proposal)
    assert breaks(answered, held, Propose(proposal))
    assert not breaks(made(held, proposal, 0), held, Propose(proposal))
    answered.slept(held.who.node)
    assert not breaks(answered, held, Propose(proposal))
    answered.answers(held, Counted(2), 6.0)
    assert breaks(answered, held, Propose(proposal))


def test_who_has_proposed_to_enter_writes_no_arrival_beside_that_and_proposes_what_it_says_of_itself_now() -> None:
    judge, few = made(at(OPEN), ENTERS), at(OPEN, evolve(HELPED, helping_above=8))
    moved = evolve(ENTERS, edit=Arrive(profile("b", 4711)))
    assert breaks(judge, few, wrote(OPEN, ENTERS.edit))
    assert not breaks(judge, few, Propose(moved))
    assert not breaks(made(at(OPEN), ENTERS), at(running("a c", "1:3")), wrote(OPEN, ENTERS.edit))


def test_few_enter_where_a_write_may_land_the_last_call_is_short_or_the_party_is_small() -> None:
    owes = unanswered(at(OPEN), OPEN.token, 1.0)
    assert breaks(Proposing(), owes, Propose(ENTERS))
    party = but(at(OPEN), profile=evolve(profile("b"), party=Party("p", 2)))
    assert breaks(Proposing(), party, Propose(ENTERS))
    quorate = arrived(register("1:8"), "a")
    proposal = evolve(ENTERS, era=quorate.era)
    assert not breaks(Proposing(), at(quorate), Propose(proposal))
    assert breaks(Proposing(), at(quorate, evolve(HELPED, last_call_timeout=1.9)), Propose(proposal))
    assert breaks(Proposing(), at(quorate, evolve(HELPED, first_call_timeout=1.9)), Propose(proposal))
    first = evolve(OPEN, target=3)
    assert breaks(Proposing(), at(first), Propose(ENTERS))


@pytest.mark.parametrize(("state", "proposal"), WANTED)
def test_it_acts_for_all_as_the_last_that_is_awaited_or_after_its_patience(
    state: RendezvousState, proposal: Proposal
) -> None:
    held = at(state)
    gather = Gather((), state.era) if proposal.enters else Gather(state.nodes)
    assert breaks(Proposing(), held, gather)
    assert breaks(made(held, proposal), held, gather, 5.9)
    assert not breaks(made(held, proposal), held, gather, 6.0)
    assert not breaks(made(held, proposal, LAST[state]), held, gather)
    assert breaks(made(held, proposal, LAST[state]), held, Gather(state.nodes[:1], None))


def test_it_acts_for_nobody_by_a_proposal_of_another_era() -> None:
    bumped = edited(OVER, "nobody", Leave())
    assert breaks(made(at(OVER), BACK, 4), at(bumped), Gather(bumped.nodes))


def test_it_writes_what_it_has_read_of_the_others_in_this_version() -> None:
    held, others = at(OVER), {node("a"): Proposal(OVER.era, Arrive(profile("a")))}
    judge = made(held, BACK, 4, others)
    assert not breaks(judge, held, wrote(OVER, Together({**others, node("b"): BACK})))
    assert breaks(judge, held, wrote(OVER, Together({node("b"): BACK})))
    assert breaks(judge, at(arrived(OVER, "c")), wrote(OVER, Together({**others, node("b"): BACK})))
    assert breaks(made(held, BACK, 4), held, wrote(OVER, Together({node("b"): BACK})))


@pytest.mark.parametrize(("state", "proposal"), WANTED)
def test_it_waits_no_longer_than_twice_its_patience_and_not_as_the_last(
    state: RendezvousState, proposal: Proposal
) -> None:
    held, judge = at(state), made(at(state), proposal)
    assert not breaks(judge, held, Wait(state.token, 7.0))
    assert breaks(judge, held, Wait(state.token, 7.1))
    assert breaks(made(held, proposal, LAST[state]), held, Wait(state.token, 5.3))
    assert not breaks(made(held, proposal, LAST[state]), held, Wait(state.token, 5.2))
    assert not breaks(made(held, proposal, 0), held, Wait(state.token, math.inf))


def test_in_a_last_call_who_enters_waits_for_an_eighth_of_that() -> None:
    quorate = arrived(register("1:8"), "a")
    held, proposal = at(quorate), evolve(ENTERS, era=quorate.era)
    assert not breaks(made(held, proposal), held, Wait(quorate.token, 5.25))
    assert breaks(made(held, proposal), held, Wait(quorate.token, 5.26))


def test_it_may_wait_for_something_else() -> None:
    never = Wait(None, math.inf)
    judge, held = made(at(OVER), BACK), at(OVER)
    restores = but(held, instead=Found(None, OVER, 1.0))
    moved, few = but(held, profile=profile("b", 4711)), at(OVER, evolve(HELPED, helping_above=8))
    others = [at(None), at(edited(OVER, "nobody", Leave())), at(arrived(OVER, "b")), restores, moved, few]
    assert not any(breaks(judge, each, never) for each in others)
    barred = but(at(OPEN), spans={Fact.BARRED: (True, 1.0)})
    assert not breaks(made(at(OPEN), ENTERS), barred, never)
    assert not breaks(made(at(OPEN), ENTERS), at(arrived(OPEN, "b")), never)


def test_nothing_is_asked_where_there_is_no_register_or_nothing_is_proposed() -> None:
    judge = Proposing()
    judge.answers(at(OVER), Counted(1), 1.0)
    assert not breaks(judge, at(None), wrote(OVER, Arrive(profile("b"))))
    assert not breaks(judge, at(OVER), wrote(OVER, Leave()))
    assert (judge.of, judge.strength.armed) == ({}, {})


def test_a_world_that_returns_together_arms_the_law() -> None:
    run = world("start a", "start b", "start c", "pass 3", "fail a", "pass 9", setting="world helping=1 min=3 max=3")
    assert run.witness.judge.strength.armed["O16"] > 5


@pytest.mark.parametrize(
    ("size", "story"),
    [
        (3, "start a, start b, start c, pass 5, pause c 30, fail a, pass 0.2, pause a 12, pause b 12, pass 15"),
        (4, "start a, pass 1, start b, pass 0.1, pause a 12, pause b 12, pass 14, start c, start d, pass 20"),
        (3, "start a, start b, start c, pass 5, succeed a, pass 0.2, pause a 12, pause b 12, pause c 12, pass 15"),
    ],
    ids=["returns", "enters", "is done"],
)
def test_a_node_that_slept_acts_by_what_it_had_proposed(size: int, story: str) -> None:
    run = world(*story.split(", "), setting=f"world nodes={size} min={size} max={size} helping=1 join=60")
    assert run.witness.judge.strength.armed["O16"] > 2
