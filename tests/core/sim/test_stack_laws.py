"""What an agent puts on record of the workers that it stops, and that the judge finds an agent that does otherwise (O12)."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import beat, closed, exited, lost, over, ready
from worlds import node

from elastic.core.agent import Agent, Effect, Event, PutStacks, Reply, See, Stands, Stepped, Suspect, begin, step
from elastic.core.group import Group, Settings
from elastic.core.group.state import Raised, Signal, Signalled, StartAgain
from elastic.core.sim.stack_laws import StackJudge
from elastic.core.violation import Violation
from elastic.core.world import Ending, Why

FAILURES = [exited(0, 1), Raised(0, 1.0, 1.0), lost(), over(), closed(Ending.FAILED)]


def runs() -> Agent:
    """Return the agent of node a whose two workers run."""
    agent, _ = begin(Agent(Group(node("a"), Settings())), 0.0)
    for event in (ready(), beat()):
        agent, _ = step(agent, event, 0.0)
    return agent


def hears(event: Event, judge: StackJudge | None = None, agent: Agent | None = None) -> tuple[Effect, ...]:
    """Return the effects of this event, which the judge has heard."""
    _, effects = step(agent or runs(), event, 1.0)
    judged(effects, judge)
    return effects


def judged(effects: tuple[Effect, ...], judge: StackJudge | None = None) -> None:
    stepped = effects[0]
    assert isinstance(stepped, Stepped)
    (judge or StackJudge()).hear(stepped, effects, 0)


@pytest.mark.parametrize("event", FAILURES)
def test_workers_that_a_failure_stops_are_looked_at_and_go_on_record(event: Event) -> None:
    judge = StackJudge()
    assert PutStacks(0) in hears(event, judge)
    assert judge.strength.armed["O12"] == 1


@pytest.mark.parametrize("event", [Signalled(15, 1.0), evolve(over(), why=Why.LEFT), closed()])
def test_workers_that_are_stopped_in_order_do_not(event: Event) -> None:
    judge = StackJudge()
    hears(event, judge)
    assert judge.strength.armed["O12"] == 0


def test_the_stacks_of_a_hang_stay_on_record_until_its_worker_moves_or_starts_again() -> None:
    judge, me = StackJudge(), node("a")
    hung, (suspect,) = step(runs(), Stands(0, ((0, "here"),)), 1.0)
    assert isinstance(suspect, Suspect)
    judge.suspects(me, suspect)
    hears(exited(0, 1), judge, hung)
    assert judge.strength.excused["O12"] == 1
    judge.suspects(me, Suspect(0, ()))
    hears(exited(0, 1), judge)
    judge.suspects(me, suspect)
    again = Stepped(exited(0, 1), hung.group, hung.group, (StartAgain(0),))
    judged((again, StartAgain(0)), judge)
    hears(exited(0, 1), judge)
    assert judge.strength.excused["O12"] == 1


@pytest.mark.parametrize(
    ("left_out", "more", "wrong"),
    [
        (PutStacks, (), "puts stacks of the rounds"),
        (Reply, (PutStacks(0),), "puts stacks of the rounds"),
        (PutStacks, (PutStacks(1),), "puts stacks of the rounds"),
        (See, (), "after their signal, or not at all"),
        (See, (See(),), "after their signal, or not at all"),
    ],
    ids=["nothing", "twice", "of another round", "not seen", "seen late"],
)
def test_O12_whoever_does_otherwise_is_found(left_out: type, more: tuple[Effect, ...], wrong: str) -> None:
    effects = hears(exited(0, 1))
    assert Signal in map(type, effects)
    with pytest.raises(Violation, match=f"O12: .*{wrong}"):
        judged((*(each for each in effects if type(each) is not left_out), *more))


def test_O12_stacks_that_nobody_asks_for_are_found() -> None:
    with pytest.raises(Violation, match=r"O12: .*puts stacks of the rounds"):
        judged((*hears(Signalled(15, 1.0)), PutStacks(0)))
