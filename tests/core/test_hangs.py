"""When a node suspects that its workers hang, what it says, and which worker is blamed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from attrs import evolve

from elastic.core.hangs import (
    PATIENCE_S,
    SOON_S,
    Act,
    Blame,
    Busy,
    HangSettings,
    Others,
    Record,
    Report,
    Sight,
    Told,
    Watch,
    Withdraw,
    asks,
    look,
    odd_rank,
    out_of_reach,
    overdue,
    until,
)
from elastic.core.world import Node, Stacks

A, B = Node("a", 1), Node("b", 1)
SETTINGS = HangSettings(8.0)
RESTARTS = HangSettings(8.0, restarts=True)
SILENT = {0: Sight(10, stack="recv"), 1: Sight(11, stack="recv")}
HERE = Stacks(A, 0, ((0, "recv"), (1, "recv")))
THERE = Stacks(B, 0, ((2, "recv"), (3, "sleep")))
ALONE = Others((A,), (HERE,))
BOTH = Others((A, B), (HERE, THERE))


def looks(
    watch: Watch,
    now: float,
    times: int = 1,
    sights: Mapping[int, Sight] = SILENT,
    others: Others = ALONE,
    settings: HangSettings = SETTINGS,
) -> tuple[Watch, list[Act]]:
    """Look so often, one second after the other, the last time at `now`; return what followed."""
    acts: list[Act] = []
    for ago in reversed(range(times)):
        watch, more = look(watch, sights, others, now - ago, settings)
        acts += more
    return watch, acts


def suspecting(settings: HangSettings = SETTINGS) -> Watch:
    """Return the watch of a node whose workers stand still since 0, as it looks at 8."""
    watch, acts = looks(Watch(), 8.0, times=9, settings=settings)
    assert acts == [Record()]
    return watch


def test_a_node_whose_workers_stand_still_for_the_whole_span_puts_their_stacks_on_record_and_tells_people() -> None:
    before, _ = looks(Watch(), 7.0, times=8)
    before, acts = looks(before, 7.9)
    assert acts == []
    watch, acts = looks(before, 8.0)
    assert acts == [Record()]
    watch, acts = looks(watch, 8.5)
    assert acts == [Report(8.5, None)]
    assert looks(watch, 20.0, times=9)[1] == []


def test_a_worker_that_prints_or_has_another_stack_or_calls_or_is_another_one_has_moved() -> None:
    for moved in (
        Sight(11, output=1),
        Sight(11, stack="send"),
        Sight(11, calls=1),
        Sight(12),
        Sight(11, busy=Busy(1, 9)),
    ):
        watch, acts = looks(suspecting(), 8.5, sights={**SILENT, 1: moved})
        assert acts == [Withdraw()]
        assert looks(watch, 16.0, times=7, sights={**SILENT, 1: moved})[1] == []


def test_of_a_worker_that_calls_for_progress_nothing_else_counts() -> None:
    calling = {0: Sight(10, calls=7, output=1, stack="recv")}
    watch, _ = looks(Watch(), 8.0, times=9, sights=calling)
    assert watch.suspects_since is not None
    prints = {0: Sight(10, calls=7, output=2, stack="send")}
    assert looks(watch, 8.5, sights=prints, others=Others((A,)))[1] == []
    assert looks(watch, 8.5, sights={0: evolve(calling[0], calls=8)})[1] == [Withdraw()]


def test_one_worker_that_moves_is_enough_for_its_node() -> None:
    watch, acts = Watch(), list[Act]()
    for second in range(30):
        watch, more = looks(watch, second, sights={**SILENT, 1: Sight(11, output=second // 7)})
        acts += more
    assert acts == []


def test_a_stack_that_was_not_looked_at_is_no_other_one() -> None:
    blind = {rank: evolve(sight, stack="") for rank, sight in SILENT.items()}
    watch, _ = looks(Watch(), 4.0, times=5)
    watch, _ = looks(watch, 7.0, times=3, sights=blind)
    assert looks(watch, 8.0)[1] == [Record()]
    assert looks(watch, 8.0, sights={**SILENT, 0: Sight(10, stack="send")})[1] == []


def test_stacks_are_asked_for_when_nothing_else_has_moved_and_of_nobody_that_calls_for_progress() -> None:
    assert asks(Watch(), SILENT) == ()
    watch, _ = looks(Watch(), 0.0)
    assert asks(watch, SILENT) == (0, 1)
    assert asks(watch, {**SILENT, 1: Sight(11, output=5)}) == ()
    watch, _ = looks(watch, 1.0, sights={**SILENT, 1: Sight(11, calls=1)})
    assert asks(watch, {**SILENT, 1: Sight(11, calls=1, output=5)}) == (0,)


def test_a_busy_worker_has_the_limit_that_it_has_named() -> None:
    saves = {0: Sight(10, busy=Busy(1, 20.0, "checkpoint")), 1: Sight(11)}
    watch, acts = looks(Watch(), 19.0, times=20, sights=saves)
    assert acts == [] and overdue(watch, SETTINGS) == {}
    watch, acts = looks(watch, 20.0, sights=saves)
    assert acts == [Record()] and overdue(watch, SETTINGS) == {0: Busy(1, 20.0, "checkpoint")}
    ready = {**saves, 0: Sight(10)}
    watch, acts = looks(watch, 21.0, sights=ready)
    assert acts == [Withdraw()]
    assert looks(watch, 29.0, times=8, sights=ready)[1] == [Record()]


def test_a_host_that_stood_still_takes_no_time_from_its_workers() -> None:
    watch, _ = looks(Watch(), 4.0, times=5)
    watch, acts = looks(watch, 1_000.0)
    assert acts == []
    assert looks(watch, 1_001.0)[1] == []
    assert looks(watch, 1_002.0, times=2)[1] == [Record()]


def test_workers_that_are_all_dead_hang_no_longer() -> None:
    assert looks(suspecting(), 8.5, sights={}) == (
        evolve(suspecting(), at=8.5, looked_at=8.5, silences={}, suspects_since=None),
        [Withdraw()],
    )
    assert looks(Watch(), 9.0, times=9, sights={})[1] == []


def test_what_other_nodes_say_is_awaited_for_a_while() -> None:
    waits = Others((A, B), (HERE,))
    watch, acts = looks(suspecting(), 10.9, times=3, others=waits)
    assert acts == []
    watch, acts = looks(watch, 11.0, others=waits)
    assert acts == [Report(11.0, None, (B,))]
    assert SETTINGS.every_s == 1.0 and PATIENCE_S == 1.0
    watch, acts = looks(watch, 12.0, others=waits)
    assert acts == []
    assert looks(watch, 13.0, others=BOTH)[1] == [Report(13.0, 3)]


def test_a_node_that_has_taken_its_word_back_is_missing_again() -> None:
    assert Others((A, B), (HERE, Stacks(B, 0))).missing == (B,)


def test_the_odd_rank_is_alone_at_its_place_while_several_are_at_each_other_one() -> None:
    assert odd_rank(BOTH.stacks) == 3
    assert odd_rank((HERE,)) is None
    assert odd_rank((Stacks(A, 0, ((0, "recv"),)),)) is None
    assert odd_rank((Stacks(A, 0, ((0, "recv"), (1, "send"))),)) is None
    assert odd_rank((HERE, Stacks(B, 0, ((2, "sleep"), (3, "sleep"))))) is None
    assert odd_rank(()) is None


def test_the_node_of_the_odd_rank_blames_it_once_when_the_whole_job_stands_still() -> None:
    assert looks(suspecting(RESTARTS), 9.0, others=Others((A, B), (HERE,)), settings=RESTARTS)[1] == []
    assert looks(suspecting(RESTARTS), 9.0, others=BOTH, settings=RESTARTS)[1] == [Report(9.0, 3)]
    odd_here = Others((A, B), (Stacks(A, 0, ((0, "recv"), (1, "sleep"))), Stacks(B, 0, ((2, "recv"), (3, "recv")))))
    watch, acts = looks(suspecting(RESTARTS), 9.0, others=odd_here, settings=RESTARTS)
    assert acts == [Report(9.0, 1), Blame(1, 9.0, is_odd=True)]
    assert looks(watch, 10.0, others=odd_here, settings=RESTARTS)[1] == []
    assert looks(suspecting(), 9.0, others=odd_here)[1] == [Report(9.0, 1)]


def test_without_an_odd_rank_the_first_one_is_blamed() -> None:
    assert looks(suspecting(RESTARTS), 9.0, settings=RESTARTS)[1] == [
        Report(9.0, None),
        Blame(0, 9.0, is_odd=False),
    ]


def test_the_death_of_the_blamed_worker_takes_nothing_back_while_the_round_may_end_for_it() -> None:
    watch, _ = looks(suspecting(RESTARTS), 9.0, settings=RESTARTS)
    assert RESTARTS.patience_s == 3.0
    assert looks(watch, 11.9, times=3, sights={1: SILENT[1]}, settings=RESTARTS)[1] == []
    assert looks(watch, 11.9, times=3, sights={**SILENT, 1: Sight(11, output=1)}, settings=RESTARTS)[1] == []


def test_a_blamed_worker_that_has_started_again_alone_ends_the_suspicion_and_may_be_blamed_again() -> None:
    watch, _ = looks(suspecting(RESTARTS), 9.0, settings=RESTARTS)
    again = {**SILENT, 0: Sight(12, stack="recv")}
    watch, acts = looks(watch, 12.0, times=3, sights=again, settings=RESTARTS)
    assert acts == [Withdraw()]
    watch, acts = looks(watch, 18.0, times=6, sights=again, settings=RESTARTS)
    assert acts == [Record()]
    watch, acts = looks(watch, 19.0, sights=again, settings=RESTARTS)
    assert acts == [Report(9.0, None), Blame(0, 9.0, is_odd=False)]


def test_where_the_others_hang_on_without_the_blamed_worker_the_next_one_is_blamed() -> None:
    """Its place is on record no longer: it would be the odd one for ever."""
    watch, _ = looks(suspecting(RESTARTS), 9.0, settings=RESTARTS)
    without = {1: SILENT[1]}
    watch, acts = looks(watch, 13.0, times=4, sights=without, settings=RESTARTS)
    assert acts == [Withdraw(), Record()]
    left = Others((A,), (Stacks(A, 0, ((1, "recv"),)),))
    assert looks(watch, 14.0, sights=without, others=left, settings=RESTARTS)[1] == [
        Report(14.0, None),
        Blame(1, 14.0, is_odd=False),
    ]


def test_a_blamed_worker_that_does_not_die_is_blamed_once() -> None:
    watch, _ = looks(suspecting(RESTARTS), 9.0, settings=RESTARTS)
    watch, acts = looks(watch, 100.0, times=91, settings=RESTARTS)
    assert acts == []
    assert looks(watch, 101.0, sights={**SILENT, 0: Sight(10, output=1)}, settings=RESTARTS)[1] == [Withdraw()]


def test_a_node_looks_eight_times_within_the_span_and_sooner_while_it_waits_for_others() -> None:
    assert until(Watch(), 5.0, SETTINGS) == 6.0
    assert until(Watch(), 5.0, HangSettings(3600)) == 20.0
    for told in (Told.NOTHING, Told.PART):
        assert until(evolve(suspecting(), told=told), 8.0, SETTINGS) == 8.0 + SOON_S
    watch, _ = looks(suspecting(), 9.0)
    assert until(watch, 9.0, SETTINGS) == 10.0
    assert until(evolve(suspecting()), 8.0, HangSettings(0.8)) == 8.1


@pytest.mark.parametrize("span", [0.0, -1.0, math.inf, math.nan])
def test_a_span_is_a_number_of_seconds_above_0(span: float) -> None:
    with pytest.raises(ValueError, match=r"timeout_s=.*: a number of seconds above 0"):
        HangSettings(span)


def test_a_member_that_is_dead_or_out_of_reach_counts_as_one_that_agrees() -> None:
    alone = Others((A, B), (HERE,), (B,))
    assert alone.missing == ()
    assert looks(suspecting(RESTARTS), 9.0, others=alone, settings=RESTARTS)[1] == [
        Report(9.0, None),
        Blame(0, 9.0, is_odd=False),
    ]


def test_a_node_is_out_of_reach_when_the_store_is_silent_for_a_ttl_and_no_link_to_it_stands() -> None:
    assert out_of_reach((A, B), A, {}, 10.0, 15.0, 5.0) == (B,)
    assert out_of_reach((A, B), A, {}, 10.0, 14.9, 5.0) == ()
    assert out_of_reach((A, B), A, {}, None, 15.0, 5.0) == ()
    assert out_of_reach((A, B), A, {B: True}, 10.0, 15.0, 5.0) == ()


def test_a_node_to_which_no_link_is_kept_is_in_reach_while_some_link_stands() -> None:
    c = Node("c", 1)
    assert out_of_reach((A, B, c), A, {B: True}, 10.0, 15.0, 5.0) == ()
    assert out_of_reach((A, B, c), A, {B: False}, 10.0, 15.0, 5.0) == (B, c)
    assert out_of_reach((A, B, c), A, {B: False, c: True}, 10.0, 15.0, 5.0) == (B,)


def test_stacks_that_a_store_does_not_show_go_on_record_again() -> None:
    """Found by the simulator: a store that was away at that moment never heard of it, and nobody was blamed."""
    unheard = evolve(ALONE, on_record=False)
    watch, acts = looks(suspecting(), 10.0, times=2, others=unheard)
    assert acts == [Report(9.0, None)]
    assert looks(watch, 11.0, others=unheard)[1] == [Record()]
    assert looks(suspecting(), 11.0, times=3, others=evolve(unheard, members=(A, B)))[1] == [
        Record(),
        Report(11.0, None, (B,)),
    ]


def test_a_node_that_has_no_work_hangs_not() -> None:
    """Found by the simulator: a reserve that was cut off blamed a worker of its own."""
    idle = Others((A, B), (), (A, B), is_idle=True)
    assert looks(Watch(), 20.0, times=20, others=idle)[1] == []
    assert looks(suspecting(), 9.0, others=idle)[1] == [Withdraw()]
