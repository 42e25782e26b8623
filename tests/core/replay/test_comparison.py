"""The steps of an agent, taken again: real traces agree with the core, and the first difference is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from traced import HELPED, Agent, Pair, Shared, finished, restarted, restored, started
from worlds import node

from elastic.core.group.state import Closed, Exited, Join, MarkDone, Signal
from elastic.core.rendezvous import (
    Counted,
    Draw,
    Drawn,
    Errand,
    Look,
    NoState,
    Observe,
    Passed,
    Prepared,
    Proposals,
    Propose,
    Pushed,
    Request,
    Restore,
    Shown,
    Silent,
    Submitted,
    Unknown,
    Woke,
    Write,
    join,
    leave,
    watch,
)
from elastic.core.replay.comparison import Replayed, replayed
from elastic.core.trace.lines import traces
from elastic.core.trace.steps import Asked, HangEnd, Started, Step, Stepped, Trace, Worked
from elastic.core.world import Ending, Verdict, Why

PAIR, LOST = finished(), finished(restored())
TRACE = PAIR.b.trace


def tampered(change: Callable[[Step], Step | None], trace: Trace = TRACE) -> Replayed:
    """Return the trace with the first step changed that the change applies to."""
    for index, step in enumerate(trace.steps):
        if changed := change(step):
            return replayed(evolve(trace, steps=(*trace.steps[:index], changed, *trace.steps[index + 1 :])))
    raise AssertionError("no such step")


def difference(run: Replayed) -> tuple[str, str, str]:
    assert run.differs
    _, differs = run.differs
    return differs.what, differs.traced, differs.core


@pytest.mark.parametrize("agent", [PAIR.a, PAIR.b, started().a], ids=["a", "b", "still running"])
def test_the_traces_of_real_agents_agree_with_the_core(agent: object) -> None:
    run = replayed(agent.trace)  # type: ignore[attr-defined]
    assert run.differs is None
    assert len(run.moments) == len(run.trace.steps)
    assert run.ended == (agent in (PAIR.a, PAIR.b))
    assert run.moments[-1].after.held == agent.held  # type: ignore[attr-defined]
    assert run.moments[-1].after.group == agent.group  # type: ignore[attr-defined]


def test_agents_that_help_each_other_are_taken_again() -> None:
    for agent in (pair := restarted(HELPED)).a, pair.b:
        run = replayed(*traces(agent.lines))
        assert run.differs is None
        assert run.moments[-1].after.held == agent.held
    asks = [step.ask for step in pair.a.trace.steps if isinstance(step, Asked)]
    helped = [ask.proposal for ask in asks if isinstance(ask, Propose)]
    inputs = [step.fed for each in (pair.a, pair.b) for step in each.trace.steps if isinstance(step, Asked)]
    (read,) = [input for input in inputs if isinstance(input, Proposals)]
    assert helped == [read.of[node("a")]]


def test_an_agent_that_took_no_step_is_at_its_beginning() -> None:
    run = replayed(evolve(TRACE, steps=(), lines=()))
    assert (run.moments, run.ended, run.ended_at) == ((), False, TRACE.header.now)


def test_a_state_that_was_changed_is_found_by_the_steps_after_it() -> None:
    def later(step: Step) -> Step | None:
        match step:
            case Asked(Shown(state) | Pushed(state) as input) if state and state.round == 1:
                return evolve(step, fed=evolve(input, state=evolve(state, failures=0)))
            case _:
                return None

    assert "B2: 0 failures became 0 by an end because failed" in difference(tampered(later))[2]


def test_another_ask_than_the_core_s_is_found_with_the_place() -> None:
    def later(step: Step) -> Step | None:
        match step:
            case Asked(ask=Write(state) as write):
                return evolve(step, ask=evolve(write, state=evolve(state, next_order=9)))
            case _:
                return None

    run = tampered(later)
    assert difference(run)[:2] == ("what is asked for (state.next_order)", "9")
    assert run.differs
    assert run.differs[0] == run.trace.lines[len(run.moments)]


def test_commands_that_the_core_would_not_have_given_are_found() -> None:
    def lazy(step: Step) -> Step | None:
        return evolve(step, commands=()) if isinstance(step, Stepped) and Signal(15) in step.commands else None

    assert difference(tampered(lazy, PAIR.a.trace))[:2] == ("what the group commands", "[]")


def test_an_event_of_the_group_without_its_answer_is_found() -> None:
    verdict = Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)
    invented = evolve(TRACE, steps=(TRACE.steps[0], Stepped(Closed(verdict, 200.0), (), 200.0)), lines=(2, 3))
    what, traced, core = difference(replayed(invented))
    assert (what, core) == ("what the group hears", "null")
    assert '"is": "closed"' in traced


@pytest.mark.parametrize(
    "item", [Request(leave), Errand(None), Request(watch)], ids=["leave", "an errand", "another operation"]
)
def test_what_is_requested_must_have_been_commanded(item: Request | Errand) -> None:
    def other(step: Step) -> Step | None:
        match step:
            case Asked(Submitted()):
                return evolve(step, fed=Submitted((item,)))
            case _:
                return None

    assert difference(tampered(other))[0].startswith("what the agent requests")


def test_only_the_agent_knows_whether_its_join_holds_back_and_when_it_is_prepared() -> None:
    def holds_back(step: Step) -> Step | None:
        match step:
            case Asked(fed=Submitted((Request() as request,))) if request.handler is join:
                return evolve(step, fed=Submitted((evolve(request, holds_back=True), Prepared())))
            case _:
                return None

    changed = tampered(holds_back)
    assert changed.differs is None and changed != replayed(TRACE)


def test_the_shell_s_part_of_an_errand_is_not_compared() -> None:
    def named(step: Step) -> Step | None:
        match step:
            case Asked(Submitted((Errand(),))):
                return evolve(step, fed=Submitted((Errand("a log to read"),)))
            case _:
                return None

    assert tampered(named).differs is None


def test_a_request_out_of_nothing_is_found() -> None:
    run = replayed(evolve(TRACE, steps=(Asked(Submitted((Errand(None),)), 1.0, Draw()),), lines=(2,)))
    assert difference(run) == ("what the agent requests", '{"is": "errand"}', "null")


def test_nothing_begins_that_is_not_due() -> None:
    run = replayed(evolve(TRACE, steps=(Asked(Drawn(0.5), 1.0, Look()),), lines=(2,)))
    drawn = '{"is": "drawn", "jitter": 0.5}'
    assert difference(run) == ("what the client is fed", drawn, "none of that: a number was drawn, and nothing is due")


def test_nothing_is_answered_that_was_not_asked() -> None:
    run = replayed(evolve(TRACE, steps=(Asked(Counted(3), 1.0, Look()),), lines=(2,)))
    assert difference(run)[0] == "what the client is fed"


def test_nothing_is_asked_for_nothing() -> None:
    run = replayed(evolve(TRACE, steps=(Asked(Passed(), 1.0, Look()),), lines=(2,)))
    assert difference(run) == ("what is asked for (is)", '"look"', '"idle"')


def test_workers_start_in_the_round_that_the_group_is_in() -> None:
    def other(step: Step) -> Step | None:
        return evolve(step, round=5) if isinstance(step, Started) else None

    assert difference(tampered(other)) == ("workers started in round", "5", "0")
    run = replayed(evolve(TRACE, steps=(Started(0, (), 1.0),), lines=(2,)))
    assert difference(run) == ("workers started in round", "0", "null")


@pytest.mark.parametrize("work", [Worked(0, 0, 0, False, 1.0, 2.0, 3.0), HangEnd(0, 0, 3.0)])
def test_what_a_worker_came_to_decides_nothing(work: Step) -> None:
    run = replayed(evolve(TRACE, steps=(*TRACE.steps, work), lines=(*TRACE.lines, TRACE.lines[-1] + 1)))
    assert run.differs is None and run.ended
    assert (run.moments[-1].step, run.moments[-1].after) == (work, run.moments[-1].before)


def test_a_store_in_trouble_is_remembered_as_the_agent_did() -> None:
    shared = Shared()
    agent = Agent("a", shared)
    agent.feeds(Drawn(0.5), Silent("gone"), Passed(), Shown(None), Unknown(), NoState("nonsense"), Passed())
    run = replayed(*traces(agent.lines))
    held = run.moments[-1].after.held
    assert run.differs is None
    assert held == agent.held
    assert held.doubt.unsure_at and held.contact.silent_since
    assert held.trouble and held.trouble.text == "nonsense"


def test_a_loss_of_the_store_is_taken_as_the_agent_took_it() -> None:
    for agent in (LOST.a, LOST.b):
        run = replayed(agent.trace)
        assert run.differs is None
        assert run.moments[-1].after.held == agent.held
        assert agent.held.view.state and agent.held.view.state.life.epoch == 2


def test_another_state_than_was_held_is_not_restored() -> None:
    def other(step: Step) -> Step | None:
        match step:
            case Asked(ask=Write(edit=Restore(held) as edit) as write):
                return evolve(step, ask=evolve(write, edit=evolve(edit, held=evolve(held, failures=0))))
            case _:
                return None

    assert difference(tampered(other, LOST.a.trace)) == ("what is asked for (edit.held.failures)", "0", "1")


def test_a_sleep_is_remembered_as_the_agent_did() -> None:
    pair = started()
    pair.a.sleeps()
    pair.run()
    run = replayed(pair.a.trace)
    assert run.differs is None
    assert any(moment.after.held.doubt.woke_at for moment in run.moments)
    assert run.moments[-1].after.held == pair.a.held

    def awake(step: Step) -> Step | None:
        match step:
            case Asked(Woke()):
                return evolve(step, fed=Passed(), ask=None)
            case _:
                return None

    assert difference(tampered(awake, pair.a.trace))[0].startswith("what is asked for")


def test_whether_the_store_had_written_it_itself_is_taken_as_it_was() -> None:
    shared = Shared()
    Pair(Agent("a", shared), Agent("b", shared)).run()
    shared.loses(older=shared.state)
    newcomer = Agent("c", shared)
    newcomer.runs()
    assert replayed(newcomer.trace).differs is None

    def own(step: Step) -> Step | None:
        match step:
            case Asked(Shown(here=False) as input):
                return evolve(step, fed=evolve(input, here=True))
            case _:
                return None

    assert difference(tampered(own, newcomer.trace))[0].startswith("what is asked for")


def test_events_of_the_workers_are_taken_as_they_came() -> None:
    run = replayed(PAIR.b.trace)
    events = [moment.step.event for moment in run.moments if isinstance(moment.step, Stepped)]
    assert any(isinstance(event, Exited) for event in events)
    assert {
        command for moment in run.moments if isinstance(moment.step, Stepped) for command in moment.step.commands
    } >= {
        Join(),
        MarkDone(),
    }


def test_lists_are_compared_place_by_place() -> None:
    def other(step: Step) -> Step | None:
        match step:
            case Asked(ask=Observe((_, *rest)) as ask):
                return evolve(step, ask=evolve(ask, nodes=(node("z"), *rest)))
            case _:
                return None

    assert difference(tampered(other)) == ("what is asked for (nodes.0)", '"z#1"', '"a#1"')
