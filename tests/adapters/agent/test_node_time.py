"""The time of a node, kept beside its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from goodputs import read, spent
from traced import Agent, finished, started

from elastic.adapters.agent.node_time import NodeTime
from elastic.adapters.clock import Clock, SystemClock
from elastic.adapters.report.news import NoTrace, Remark, TraceLost
from elastic.core.goodput import Ledger, booked, follow, kept, take
from elastic.core.group import Group, Phase, Settings, transition
from elastic.core.group.state import Beaten, Start
from elastic.core.rendezvous import Counted, Heartbeats, Held, Input, Passed, Silent, Unknown
from elastic.core.rendezvous import step as client_step
from elastic.core.trace.steps import STEPS, Asked, Header, Started, Step, Stepped, step_at


class Written(NoTrace):
    """A trace in memory."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.steps: list[Step] = []
        self.has_ended = False

    def begin(self, held: Held, settings: Settings, clock: Clock, lost: Callable[[TraceLost | Remark], None]) -> float:
        return self.header.now

    def took(self, function: Callable[..., object], *given: object) -> None:
        self.steps.append(STEPS[function](*given))

    def end(self, patience_s: float | None = None) -> None:
        self.has_ended = True


class Beside:
    """The time of an agent that takes these steps again."""

    def __init__(self, agent: Agent) -> None:
        self.trace = Written(agent.header)
        self.time = NodeTime(self.trace, lambda: self.group)
        self.said: list[TraceLost | Remark] = []
        self.time.begin(agent.held, agent.of_group, SystemClock(), self.said.append)
        self._follower = follow(agent.header)

    @property
    def group(self) -> Group:
        group = self._follower.account.group
        assert group
        return group

    def hears(self, *steps: Step) -> None:
        for step in steps:
            self._follower, _ = take(self._follower, step)
            match step:
                case Asked(fed, now, ask):
                    self.time.took(client_step, fed, now, ask)
                case Stepped(event, commands, at):
                    self.time.took(transition, event, commands, at)
                case Started(round, pids, at):
                    self.time.took(Start, round, pids, at)
                case other:
                    raise AssertionError(f"no step of these agents: {other}")

    def told(self, span_s: float) -> Any:
        """Return what it tells so long after the agent began."""
        return self.time.totals(self.trace.header.now + span_s)

    def traced(self) -> dict[tuple[str, str], int]:
        return spent(booked(read(self.trace.header, self.trace.steps).all))


QUIET = (Passed(), Heartbeats({}, None), Counted(1))
SILENT = (*QUIET, Silent(), Passed(), Unknown(), Passed(), *QUIET)


@pytest.mark.parametrize(
    "between", [QUIET, SILENT], ids=["a store that answers", "a store that is silent now and then"]
)
@pytest.mark.parametrize("name", ["a", "b"])
def test_it_tells_to_the_microsecond_what_the_trace_of_the_same_steps_does(name: str, between: Sequence[Input]) -> None:
    """However many heartbeats come between, and in whichever order threads write their steps down."""
    agent = getattr(finished(), name)
    beside = Beside(agent)
    for step in agent.steps:
        beside.hears(step)
        at = step_at(step)
        for number in range(40):
            at += 0.000_3
            if beside.group.phase is Phase.RUNNING:
                beside.hears(Stepped(Beaten(at - 0.000_1, at), (), at))
            beside.hears(Asked(between[number % len(between)], at - (number % 3) * 0.000_2, None))
    beside.time.end()
    assert beside.trace.has_ended
    assert beside.told(60.0) == beside.traced()


def test_of_a_short_part_it_tells_only_after_a_restart() -> None:
    beside = Beside(agent := started().a)
    beside.hears(*agent.steps)
    assert beside.told(9.0) is None
    assert beside.told(11.0) == beside.traced()
    again = Beside(agent := finished().a)
    again.hears(*agent.steps)
    assert again.told(9.0) == again.traced()


def test_workers_are_started_before_the_account_takes_what_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counts(ledger: Ledger, steps: Iterable[tuple[Step, Group | None]]) -> Ledger:
        taken.append(len(found := list(steps)))
        return kept(ledger, found)

    monkeypatch.setattr("elastic.core.goodput.kept", counts)
    beside = Beside(agent := started().a)
    for step in agent.steps:
        beside.hears(*(Asked(Silent(), step_at(step), None) for _ in range(20 if step is agent.steps[0] else 0)), step)
    assert beside.group.phase is Phase.RUNNING and not taken
    at = step_at(agent.steps[-1])
    beside.hears(Stepped(Beaten(at, at), (), at))
    assert len(taken) == 1


def test_an_agent_that_has_not_begun_has_no_time() -> None:
    beside = NodeTime(Written(started().a.header), lambda: Group(started().a.held.who.node))
    assert beside.totals(1_000.0) is None


@pytest.mark.parametrize("function", ["kept", "whole"])
def test_an_error_of_the_account_is_told_once_and_costs_neither_the_trace_nor_the_job(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object) -> None:
        raise KeyError("a step")

    monkeypatch.setattr(f"elastic.core.goodput.{function}", fails)
    beside = Beside(agent := finished().a)
    beside.hears(*agent.steps)
    assert beside.told(60.0) is None
    beside.hears(*agent.steps)
    assert beside.told(60.0) is None
    assert [each.text for each in beside.said] == ["where the time of this node went is not told: KeyError: 'a step'"]
    assert beside.trace.steps == [*agent.steps, *agent.steps]
