"""What a client tells its owner (L12): each register that it holds, another life as restored, a silence and its end once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve
from worlds import but, edited, holding, running

from elastic.core.rendezvous import (
    Agenda,
    Client,
    End,
    Fail,
    Notice,
    Raise,
    RendezvousState,
    Request,
    Restore,
    Restored,
    Seen,
    StoreBack,
    StoreSilent,
    Submitted,
    Told,
    join,
    restored,
)
from elastic.core.rendezvous.actions import Settled
from elastic.core.rendezvous.context import Found, Handler
from elastic.core.rendezvous.handlers import close, done, end, leave, watch
from elastic.core.rendezvous.operations import operation
from elastic.core.sim.owners import NEWS_AT, Owners
from elastic.core.violation import Violation
from elastic.core.world import Life, Why

ONE = running("a b")
TWO = edited(ONE, "b", End(0, Why.ASKED))
MINE, OTHERS = (restored(Restore(ONE, nonce), None) for nonce in ("mine/2", "another"))
SILENT, BACK = StoreSilent("nobody answers", 1.0), StoreBack(2.0)


def client(state: RendezvousState | None, unanswered: int = 0) -> Client:
    held = holding("a", None)
    since = SILENT.at if unanswered else None
    return Client(but(held, state=state, nonce=Life("mine/3"), silent_since=since), unanswered=unanswered)


def told(state: RendezvousState) -> Seen:
    return Seen(state, 1.0)


def taken(after: RendezvousState, by_me: bool) -> tuple[Notice, ...]:
    return Restored(ONE, None, after, by_me, 1.0), told(after)


def hears(before: RendezvousState | None, after: RendezvousState | None, *notices: Notice) -> Owners:
    owners = Owners()
    owners.hear(client(before), client(after), notices)
    return owners


@pytest.mark.parametrize(
    ("before", "after", "notices"),
    [
        (None, ONE, [told(ONE)]),
        (ONE, TWO, [Told(join, Settled(), holding("a", ONE)), told(TWO)]),
        (ONE, TWO, [told(evolve(ONE, version=9)), told(TWO)]),
        (ONE, None, []),
        (ONE, MINE, taken(MINE, by_me=True)),
        (ONE, MINE, taken(MINE, by_me=False)),
        (ONE, OTHERS, taken(OTHERS, by_me=False)),
    ],
)
def test_an_owner_that_is_told_all_is_none_to_complain_of(
    before: RendezvousState | None, after: RendezvousState | None, notices: Sequence[Notice]
) -> None:
    owners = hears(before, after, *notices)
    assert owners.strength.armed["L12"] == sum(not isinstance(notice, Told) for notice in notices)


@pytest.mark.parametrize(
    ("before", "after", "notices"),
    [
        (None, ONE, []),
        (ONE, TWO, [told(ONE)]),
        (ONE, MINE, [told(MINE)]),
        (ONE, TWO, taken(TWO, by_me=False)),
        (None, MINE, taken(MINE, by_me=True)),
        (ONE, OTHERS, taken(OTHERS, by_me=True)),
        (ONE, OTHERS, (Restored(TWO, None, OTHERS, False, 1.0), told(OTHERS))),
        (ONE, OTHERS, (Restored(ONE, TWO, OTHERS, False, 1.0), told(OTHERS))),
    ],
)
def test_an_owner_that_is_told_too_little_or_otherwise_is_found(
    before: RendezvousState | None, after: RendezvousState, notices: Sequence[Notice]
) -> None:
    with pytest.raises(Violation, match=r"^L12: "):
        hears(before, after, *notices)


def test_an_owner_is_told_over_what_its_register_was_restored() -> None:
    owners, before = Owners(), client(ONE)
    found = evolve(before, held=but(before.held, instead=Found(TWO, ONE, 1.0)))
    owners.hear(found, client(MINE), (Restored(ONE, TWO, MINE, True, 1.0), told(MINE)))
    assert owners.strength.armed["L12"] == 2


def test_a_silence_is_told_once_at_the_second_question_and_so_is_its_end() -> None:
    owners, silent = Owners(), client(ONE, NEWS_AT)
    owners.hear(client(ONE), client(ONE, NEWS_AT - 1), ())
    owners.hear(client(ONE, NEWS_AT - 1), silent, [SILENT])
    owners.hear(silent, client(ONE, NEWS_AT + 1), ())
    owners.hear(client(ONE, NEWS_AT + 1), client(ONE), [BACK])
    assert owners.strength.armed["L12"] == 2


@pytest.mark.parametrize(
    ("unanswered", "notices"),
    [
        (NEWS_AT, []),
        (NEWS_AT - 1, [SILENT]),
        (0, [BACK]),
        (NEWS_AT, [SILENT, SILENT]),
        (NEWS_AT, [evolve(SILENT, at=2.0)]),
        (0, [SILENT, BACK, BACK]),
    ],
)
def test_a_silence_that_is_told_otherwise_is_found(unanswered: int, notices: Sequence[Notice]) -> None:
    with pytest.raises(Violation, match=r"^L12: "):
        Owners().hear(client(ONE), client(ONE, unanswered), notices)


def asks(before: Sequence[Handler], fed: Sequence[Handler], after: Sequence[Handler], *told: Told) -> Owners:
    """Let an owner ask while these requests wait: the first one is under way."""
    owners = Owners()
    owners.ask(waiting(before), Submitted(tuple(map(Request, fed))), waiting(after), told)
    return owners


def waiting(handlers: Sequence[Handler]) -> Client:
    under_way = operation(handlers[0], holding("a", None).who.settings, 0.0) if handlers else None
    return evolve(client(ONE), agenda=Agenda(tuple(map(Request, handlers[1:])), under_way))


DONE, REFUSED = Told(done, Settled(), holding("a", ONE)), Told(join, Raise(Fail(Why.TIMEOUT)), holding("a", ONE))


@pytest.mark.parametrize(
    ("before", "fed", "after", "told"),
    [
        ([end], [join], [end, join], []),
        ([end, join], [leave], [leave], []),
        ([close], [leave], [close, leave], []),
        ([end, join], [close], [end, close], []),
        ([watch], [join], [join], []),
        ([done], [leave], [leave], [DONE]),
        ([join, join], [end], [end], [REFUSED]),
    ],
)
def test_L14_a_request_waits_for_its_answer_unless_a_later_one_voids_it(
    before: Sequence[Handler], fed: Sequence[Handler], after: Sequence[Handler], told: Sequence[Told]
) -> None:
    assert asks(before, fed, after, *told).strength.armed["L14"] == (before != [watch])


@pytest.mark.parametrize(
    ("before", "fed", "after"),
    [
        ([close], [leave], [leave]),
        ([end], [join], [join]),
        ([end, close], [leave], [leave]),
        ([join], [end], [end]),
        ([join], [], []),
        ([join], [leave], [join, leave]),
        ([end], [leave], [leave, end]),
    ],
)
def test_L14_a_request_that_is_dropped_or_outlives_a_leave_is_found(
    before: Sequence[Handler], fed: Sequence[Handler], after: Sequence[Handler]
) -> None:
    with pytest.raises(Violation, match=r"^L14: "):
        asks(before, fed, after)
