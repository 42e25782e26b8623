"""The laws of agents find one that forgets something, or makes it up (L18), and one that tells or answers wrongly (O20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from attrs import evolve
from groups import ALONE, beat, closed, exited, ready, refused, world
from worlds import LIFE, but, edited, holding, node, running

from elastic.core.agent import (
    Acknowledged,
    Agent,
    Effect,
    Event,
    FollowLinks,
    FollowWorkers,
    Hear,
    Queried,
    Reply,
    Report,
    Rest,
    Settled,
    Stands,
    Stepped,
    begin,
    step,
)
from elastic.core.group import Group, Settings
from elastic.core.group.state import Checked, Closed, Gone, Reaped, Signalled
from elastic.core.properties.law import Strength
from elastic.core.rendezvous import Close, Drain, End, Fail, Raise, Seen, StoreBack, StoreSilent, Told, linger
from elastic.core.rendezvous import Over as RoundOver
from elastic.core.rendezvous import Settled as Done
from elastic.core.rendezvous.handlers import done, drain, end, join, leave, watch
from elastic.core.sim import agent_laws
from elastic.core.sim.agent_laws import answers, hears
from elastic.core.violation import Violation
from elastic.core.world import Ending, Life, Notice, Verdict, Why

SEEN, SILENT, BACK = Seen(running(), 1.0), StoreSilent("no answer", 2.0), StoreBack(3.0)
OPEN = Seen(evolve(running(), complete=False, round=1), 2.0)
LINGERED = Told(linger, Done(), holding("a", running(), ran=0))
FAILED = exited(0, 1, at=1.0)


def agent(*events: Event, settings: Settings | None = None) -> Agent:
    made, _ = begin(Agent(Group(node("a"), settings or Settings())), 0.0)
    for event in (ready(), beat(), *events):
        made, _ = step(made, event, 0.0)
    return made


def waiting() -> Agent:
    """Return an agent that waits for a heartbeat before its workers start."""
    made, _ = step(begin(Agent(Group(node("a"))), 0.0)[0], SEEN, 0.0)
    return step(made, ready(), 0.0)[0]


def is_found(before: Agent, event: Event, lie: Mapping[str, Any], without: type[Effect] | None = None) -> bool:
    """Return True if the law finds an agent that hears this, and then knows something else, or leaves this effect out."""
    after, effects = step(before, event, 1.0)
    try:
        some = tuple(each for each in effects if without is None or not isinstance(each, without))
        hears(Strength(), before, event, evolve(after, **lie), some)
    except Violation as violation:
        return violation.number == "L18"
    return False


TRUTHS = [
    (agent(), SEEN),
    (agent(SEEN), OPEN),
    (agent(), SILENT),
    (agent(SILENT), BACK),
    (agent(settings=ALONE), FAILED),
    (agent(SILENT, settings=ALONE), FAILED),
    (agent(), FAILED),
    (agent(), Stands(0, ("here",))),
    (agent(Stands(0, ("here",))), Stands(0, ())),
    (agent(Stands(0, ("here",))), Stands(7, ())),
    (agent(FAILED), Stands(0, ("here",))),
    (agent(FAILED, *(exited(1, -15, at=1.0),)), closed()),
    (agent(FAILED, exited(1, -15, at=1.0), closed()), LINGERED),
    (agent(), Settled(are_settled=False)),
    (agent(), Signalled(15, 1.0)),
    (agent(SEEN), Acknowledged(1.0, LIFE)),
    (agent(SEEN), Acknowledged(1.0, Life("another"))),
    (agent(), Acknowledged(1.0, LIFE)),
    (agent(SEEN), Queried("id", 0, None)),
    (waiting(), Acknowledged(0.9, LIFE)),
]


@pytest.mark.parametrize(("before", "event"), TRUTHS)
def test_what_an_agent_makes_of_what_it_hears_is_right(before: Agent, event: Event) -> None:
    assert not is_found(before, event, {})


@pytest.mark.parametrize(
    ("before", "event", "lie"),
    [
        (agent(), SEEN, {"state": None}),
        (agent(SEEN), OPEN, {"complete": OPEN.state}),
        (agent(), SEEN, {"complete": None}),
        (agent(), SILENT, {"silent_since": 1.0}),
        (agent(SILENT), BACK, {"silent_since": 2.0}),
        (waiting(), Acknowledged(0.9, LIFE), {"world": None}),
        (agent(SEEN), Acknowledged(1.0, LIFE), {"silent_since": 1.0}),
        (agent(SEEN), Acknowledged(1.0, LIFE), {"suspected": 0}),
        (agent(SEEN), Acknowledged(1.0, Life("another")), {"world": None}),
        (agent(), SEEN, {"suspected": 0}),
        (agent(), SEEN, {"world": world(3)}),
        (agent(), FAILED, {"world": None}),
        (agent(), FAILED, {"world": world(3)}),
        (agent(), Stands(0, ("here",)), {"suspected": None}),
        (agent(Stands(0, ("here",))), Stands(0, ()), {"suspected": 0}),
        (agent(), Stands(7, ("here",)), {"suspected": 7}),
        (agent(Stands(0, ("here",)), settings=ALONE), FAILED, {"suspected": 0}),
        (agent(), Settled(are_settled=False), {"are_settled": True}),
        (agent(), FAILED, {"lingers": True}),
        (agent(), FAILED, {"is_known_to_leave": True}),
        (agent(), closed(), {"is_known_to_leave": False}),
        (agent(closed(), exited(0, -15), exited(1, -15)), LINGERED, {"lingers": True}),
    ],
)
def test_an_agent_that_knows_something_else_is_found(before: Agent, event: Event, lie: Mapping[str, Any]) -> None:
    assert is_found(before, event, lie)


def test_an_agent_that_stays_after_a_verdict_or_does_not_is_found() -> None:
    before, event = agent(closed(), exited(0, -15)), exited(1, -15)
    made, effects = step(before, event, 1.0)
    while made.outcome is None:
        (hear,) = (each for each in effects if isinstance(each, Hear))
        before, event = made, cast(Any, hear.event)
        made, effects = step(made, event, 1.0)
    assert made.lingers and not is_found(before, event, {})
    assert is_found(before, event, {"lingers": False})
    for last in (LINGERED, Signalled(15, 9.0)):
        assert not is_found(made, last, {})
        assert is_found(made, last, {"lingers": True})
    assert is_found(made, Queried("id", 0, None), {"lingers": False})


@pytest.mark.parametrize(
    ("before", "event", "without"),
    [
        (agent(), SEEN, FollowLinks),
        (agent(), SILENT, FollowLinks),
        (agent(SILENT), BACK, FollowWorkers),
        (agent(SILENT, settings=ALONE), FAILED, FollowWorkers),
        (agent(), FAILED, Rest),
        (agent(settings=ALONE), FAILED, Rest),
        (agent(SEEN), Acknowledged(1.0, LIFE), object),
    ],
)
def test_an_agent_that_tells_its_parts_nothing_is_found(before: Agent, event: Event, without: type[Effect]) -> None:
    assert is_found(before, event, {}, without)


def test_an_acknowledgement_that_changes_the_phase_and_has_no_effect_but_that_is_found() -> None:
    after, effects = step(waiting(), Acknowledged(0.9, LIFE), 1.0)
    with pytest.raises(Violation, match="L18"):
        hears(Strength(), waiting(), Acknowledged(0.9, LIFE), evolve(after, world=waiting().world), effects[:1])


@pytest.mark.parametrize(
    ("before", "event", "is_armed"),
    [
        (agent(), SEEN, True),
        (agent(), SILENT, True),
        (waiting(), Acknowledged(0.9, LIFE), True),
        (agent(), Stands(0, ("here",)), True),
        (agent(), Settled(are_settled=False), True),
        (agent(), Settled(are_settled=True), False),
        (agent(SEEN), Acknowledged(1.0, LIFE), False),
        (agent(SEEN), Queried("id", 0, None), False),
        (agent(), Stands(7, ("here",)), False),
    ],
)
def test_the_law_is_armed_by_what_changes_what_an_agent_knows(before: Agent, event: Event, is_armed: bool) -> None:
    strength = Strength()
    hears(strength, before, event, *step(before, event, 1.0))
    assert bool(strength.armed["L18"]) is is_armed


# --- what it makes of questions and answers

RAN = holding("a", running(), ran=0)
FAILED_JOB = Verdict(Ending.FAILED, 0, node("b"), Why.FAILED)
CANCELLED = Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)
SUCCESS = Verdict(Ending.SUCCEEDED, 0, node("b"), Why.DONE)
NOTED = edited(running(), "a", Drain(node("a"), Notice(60.0, "a test")))
ENDED = edited(running(), "b", End(0, Why.FAILED))
NO_PART = but(RAN, state=None, ran=frozenset())


def answered(before: Agent, event: Event, **lie: Any) -> bool:
    """Return True if the law finds an agent that hears this."""
    after, effects = step(before, event, 1.0)
    try:
        answers(Strength(), before, event, evolve(after, **lie), tuple(lie.get("effects", effects)))
    except Violation as violation:
        return violation.number == "O20"
    return False


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (agent(), Told(join, running().world, RAN)),
        (agent(), Told(watch, RoundOver(0, None), RAN)),
        (agent(), Told(watch, RoundOver(0, ENDED.ended), but(RAN, state=ENDED))),
        (agent(), Told(watch, FAILED_JOB, RAN)),
        (agent(), Told(join, Raise(Fail(Why.CLOSED, SUCCESS)), RAN)),
        (agent(), Told(join, Raise(Fail(Why.CLOSED, SUCCESS)), NO_PART)),
        (agent(), Told(join, Raise(Fail(Why.UNFIT), "broken"), RAN)),
        (agent(), Told(join, Raise(Fail(Why.TIMEOUT)), RAN)),
        (agent(), Told(end, Done(), RAN)),
        (agent(), Told(end, Done(), but(RAN, state=ENDED))),
        (agent(), Told(end, Done(), but(RAN, state=edited(ENDED, "b", Close(CANCELLED))))),
        (agent(), Told(end, Done(), NO_PART)),
        (agent(), Told(leave, Done(), RAN)),
        (agent(), Told(done, Done(), RAN)),
        (agent(), Told(drain, Done(), RAN)),
        (agent(), LINGERED),
        (agent(Signalled(15, 1.0), Signalled(15, 1.0), exited(0, -9), exited(1, -9)), Told(leave, Done(), RAN)),
    ],
)
def test_an_agent_tells_its_group_what_its_rendezvous_answers(before: Agent, told: Told) -> None:
    assert not answered(before, told)
    _, effects = step(before, told, 1.0)
    others = tuple(each for each in effects if not isinstance(each, Stepped))
    wrong = Stepped(Gone(1.0) if told.handler is not leave else Checked(True, "", 1.0), before.group, before.group, ())
    if told.handler is not linger:
        with pytest.raises(Violation, match="O20"):
            answers(Strength(), before, told, before, (wrong, *others))


def test_an_agent_tells_its_group_a_notice_that_it_does_not_know() -> None:
    for before in (agent(), agent(SEEN)):
        assert not answered(before, Seen(NOTED, 1.0))
        with pytest.raises(Violation, match="O20"):
            answers(Strength(), before, Seen(NOTED, 1.0), before, ())
    knows = agent(Seen(NOTED, 1.0))
    assert not answered(knows, Seen(evolve(NOTED, version=99), 1.0)) and not answered(knows, OPEN)


def test_an_agent_that_answers_wrongly_to_a_query_or_a_hang_watch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for event, before, makes in (
        (SEEN, agent(), lambda agent, event, now: (agent, (Reply(None),) if isinstance(event, Queried) else ())),
        (SEEN, agent(), lambda agent, event, now: (agent, ())),
        (SEEN, agent(), lambda agent, event, now: (agent, (Reply(None),) * (event.round == 0))),
        (FAILED, agent(), lambda agent, event, now: (agent, (Report(None),))),
    ):
        after, effects = step(before, event, 1.0)
        answers(Strength(), before, event, after, effects)
        with monkeypatch.context() as patched:
            patched.setattr(agent_laws, "step", makes)
            with pytest.raises(Violation, match="O20"):
                answers(Strength(), before, event, after, effects)


def test_at_its_end_an_agent_waits_for_whom_and_what_it_is_to(monkeypatch: pytest.MonkeyPatch) -> None:
    before = agent(SEEN, Closed(FAILED_JOB, 1.0), exited(0, -15))
    before = step(before, exited(1, -15), 1.0)[0]
    after, effects = step(before, Reaped(1.0), 1.0)
    assert after.outcome == FAILED_JOB
    answers(Strength(), before, Reaped(1.0), after, effects)
    for name, lie in (("awaited", (node("z"),)), ("is_hurried", True)):
        with monkeypatch.context() as patched:
            patched.setattr(agent_laws, name, lambda agent, lie=lie: lie)
            with pytest.raises(Violation, match="O20"):
                answers(Strength(), before, Reaped(1.0), after, effects)
    joins, _ = begin(Agent(Group(node("a"))), 0.0)
    assert not answered(joins, refused(Why.UNCONFIRMED))
