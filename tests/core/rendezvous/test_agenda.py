"""One thing after the other: what a node's requests do to what is under way (docs/protocol.md#the-client)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from worlds import holding, node, profile, running

from elastic.core.rendezvous import (
    Fail,
    Held,
    Limits,
    Over,
    Raise,
    Settings,
    Settled,
    close,
    done,
    end,
    join,
    leave,
    watch,
)
from elastic.core.rendezvous.agenda import Agenda, Prepared, Request, answered, begun, resumed, submitted
from elastic.core.rendezvous.context import Handler
from elastic.core.rendezvous.errands import Errand
from elastic.core.rendezvous.operations import operation
from elastic.core.world import Ending, Life, Verdict, Why

HELD = holding("a", running())
CLOSED = Verdict(Ending.CANCELLED, 0, HELD.who.node, Why.ASKED)


def about(handler: Handler, *items: Request | Errand, watching: bool = False) -> Agenda:
    """An agenda on which this operation is under way, and then these items are submitted."""
    agenda = submitted(Agenda(watching=watching), Request(handler))
    agenda, _, _ = begun(agenda, HELD, 7.0, 0.0)
    for item in items:
        agenda = submitted(agenda, item)
    return agenda


def handlers(agenda: Agenda) -> list[Handler | Errand]:
    return [item if isinstance(item, Errand) else item.handler for item in agenda.queue]


def under_way(agenda: Agenda) -> Handler | None:
    return agenda.operation.handler if agenda.operation else None


def watching() -> Agenda:
    agenda, _, _ = begun(Agenda(watching=True), HELD, 0.0, 0.0)
    return agenda


def test_with_nothing_to_do_nothing_is_due() -> None:
    assert not Agenda().due
    assert not about(join).due


def test_a_node_in_a_world_watches_it_when_nothing_else_is_to_be_done() -> None:
    assert Agenda(watching=True).due
    assert under_way(watching()) is watch


def test_a_watch_gives_way_to_any_request() -> None:
    assert under_way(submitted(watching(), Request(end))) is None
    assert under_way(submitted(watching(), Errand("record"))) is None


def test_another_operation_under_way_is_carried_out_first() -> None:
    agenda = about(end, Request(join))
    assert under_way(agenda) is end
    assert handlers(agenda) == [join]


@pytest.mark.parametrize(("handler", "span"), [(join, 600.0), (leave, 5.0), (close, 5.0), (end, math.inf)])
def test_what_is_under_way_has_its_whole_time_again_after_a_sleep(handler: Handler, span: float) -> None:
    agenda = resumed(about(handler, Request(join)), 9_000.0)
    assert agenda.operation
    assert (agenda.operation.handler, agenda.operation.since) == (handler, 9_000.0)
    assert agenda.operation.deadline == 9_000.0 + span
    assert handlers(agenda) == [join]


def test_a_memory_that_is_made_as_it_was_before_it_had_parts_begins_nothing() -> None:
    old: Any = Held
    held = old(node("a"), profile("a"), Settings(Limits(min_nodes=1, max_nodes=2, max_restarts=0)), Life("a"))
    with pytest.raises(TypeError, match=r"begins with Held\(Who\(node, profile, settings, nonce\)\).* who is Node"):
        begun(Agenda(), held, 0.0, 0.5)


def test_a_sleep_begins_nothing() -> None:
    assert resumed(Agenda((Request(join),)), 9_000.0) == Agenda((Request(join),))


def test_a_node_that_cannot_start_waits_for_the_store_as_one_that_joins() -> None:
    assert operation(close, Settings(join_timeout=60.0), 1.0, why=Why.CANNOT_START).deadline == 61.0


def test_leaving_voids_what_was_requested_before_but_for_a_close_and_errands() -> None:
    record = Errand("record")
    agenda = about(done, Request(end), record, Request(close), Request(leave))
    assert under_way(agenda) is None
    assert handlers(agenda) == [record, close, leave]


@pytest.mark.parametrize("handler", [close, leave], ids=["close", "leave"])
def test_leaving_does_not_interrupt_a_close_or_a_leave(handler: Handler) -> None:
    assert under_way(about(handler, Request(leave))) is handler


@pytest.mark.parametrize("answer", [Raise(Fail(Why.UNCONFIRMED)), Raise(Fail(Why.SUPERSEDED))])
def test_who_is_refused_is_out_and_joins_no_more(answer: Raise) -> None:
    record = Errand("record")
    agenda, held = answered(about(end, Request(join), record), HELD, answer)
    assert (handlers(agenda), held) == ([record], HELD)
    agenda, held = answered(about(done, Request(end), Request(join)), HELD, answer)
    assert (handlers(agenda), held) == ([end], HELD)
    agenda, _ = answered(about(end, Request(join)), HELD, Over(0, None))
    assert handlers(agenda) == [join]


def test_requests_begin_in_their_order_with_their_reason_and_deadline() -> None:
    agenda = submitted(submitted(Agenda(), Request(end, Why.FAILED)), Request(join, profile=profile("a", 7)))
    agenda, held, _ = begun(agenda, HELD, 3.0, 0.5)
    assert agenda.operation is not None
    assert (agenda.operation.why, agenda.operation.since, agenda.operation.jitter) == (Why.FAILED, 3.0, 0.5)
    agenda, held = answered(agenda, held, Settled())
    agenda, held, _ = begun(agenda, held, 4.0, 0.0)
    assert under_way(agenda) is join
    assert held.who.profile == profile("a", 7)


def test_an_errand_is_the_shells_to_do() -> None:
    agenda, held, errand = begun(submitted(Agenda(), Errand("record")), HELD, 0.0, 0.0)
    assert (agenda, held, errand) == (Agenda(), HELD, Errand("record"))


def test_a_node_that_has_joined_watches_and_remembers_the_world() -> None:
    world = running().world
    agenda, held = answered(about(join), HELD, world)
    assert agenda == Agenda(watching=True)
    assert held.past.mine == world.id


def test_a_node_that_has_marked_success_watches_on() -> None:
    assert answered(about(done, watching=True), HELD, Settled()) == (Agenda(watching=True), HELD)


@pytest.mark.parametrize(
    ("handler", "answer"),
    [
        (watch, Over(0, None)),
        (done, Over(0, None)),
        (end, Settled()),
        (leave, Settled()),
        (close, CLOSED),
        (join, Raise(Fail(Why.TIMEOUT))),
    ],
)
def test_after_any_other_answer_nothing_is_watched(handler: Handler, answer: Settled | Over | Verdict | Raise) -> None:
    assert answered(about(handler, watching=True), HELD, answer) == (Agenda(), HELD)


def test_a_join_gives_way_to_a_close_and_nothing_else_does() -> None:
    assert under_way(about(join, Request(close))) is None
    assert handlers(about(join, Request(close))) == [close]
    assert handlers(about(end, Errand("record"), Request(join), Request(close))) == [Errand("record"), close]
    assert under_way(about(end, Request(close))) is end
    assert under_way(about(join, Request(done))) is join


def test_a_join_holds_back_from_its_beginning_until_the_node_is_prepared() -> None:
    agenda, _, _ = begun(submitted(Agenda(), Request(join, holds_back=True)), HELD, 0.0, 0.0)
    assert agenda.operation and agenda.operation.holds_back
    after = submitted(agenda, Prepared())
    assert after.operation and not after.operation.holds_back and under_way(after) is join
    usual = about(join).operation
    assert usual and not usual.holds_back


def test_a_join_that_is_still_in_the_queue_holds_back_no_longer_either() -> None:
    record = Errand("record")
    agenda = submitted(submitted(submitted(Agenda(), record), Request(join, holds_back=True)), Prepared())
    assert agenda == Agenda((record, Request(join)))
