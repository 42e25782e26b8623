"""What is told of ranks that come too late for the first iteration of a call."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import holding, node, register, running

from elastic.adapters.inprocess.rank.latecomers import Latecomers
from elastic.adapters.rendezvous.loop import LoopNotice
from elastic.core.rendezvous import Limits, Seen, Settings, Told, handlers
from elastic.core.rendezvous.state import RendezvousState

SETTINGS = Settings(limits=Limits(1, 8), first_target=3, first_call_timeout=1.5, upscale_after=1e9)


def told(me: str, state: RendezvousState, settings: Settings = SETTINGS, world_size: int = 3) -> None:
    """The ranks meet in this register, and see it twice."""
    posted: list[LoopNotice] = []
    latecomers = Latecomers(posted.append, node(me), settings, world_size)
    notices: list[LoopNotice] = [Seen(state, 0.0)] * 2
    if node(me) in state.members:
        notices.append(Told(handlers.join, state.world, holding(me, state)))
    for notice in notices:
        latecomers.told(notice)
    assert posted == notices


def test_the_first_rank_says_which_ranks_the_first_iteration_begins_without(caplog: pytest.LogCaptureFixture) -> None:
    for me in ("0", "2"):
        told(me, running("0 2"))
    assert caplog.messages == [
        "the first iteration begins without 1 of 3 ranks (1), which did not come in 1.5 s (barrier_timeout)"
    ]


def test_of_many_ranks_that_are_not_there_the_first_are_named(caplog: pytest.LogCaptureFixture) -> None:
    told("0", running("0 2+3"), evolve(SETTINGS, first_target=8), world_size=12)
    assert "without 10 of 12 ranks (1, 3, 4, 5, 6, 7, 8, 9, …), which" in caplog.text


def test_a_rank_that_comes_when_the_first_iteration_has_begun_says_that_it_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told("1", running("0 2"))
    assert caplog.messages == [
        "rank 1 comes too late: it waits for the next iteration, and returns None if there is none"
    ]


@pytest.mark.parametrize(
    ("me", "state", "settings"),
    [
        ("0", running("0 1 2"), SETTINGS),
        ("1", register("1:3"), SETTINGS),
        ("1", running("0 2"), evolve(SETTINGS, upscale_after=0.0)),
        ("0", running("0 2"), evolve(SETTINGS, first_target=2)),
    ],
)
def test_nothing_is_told_where_nobody_is_missed(
    caplog: pytest.LogCaptureFixture, me: str, state: RendezvousState, settings: Settings
) -> None:
    """All are there; the iteration has not begun; it lets the late rank in at once; no more ranks were expected."""
    told(me, state, settings)
    assert caplog.messages == []
