"""The monitor process, look by look: when it acts, and when it leaves things to the driver."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from attrs import evolve

from elastic.core.inprocess.monitoring import (
    Act,
    Bye,
    Kill,
    Monitor,
    Phase,
    Quit,
    Rules,
    SayDead,
    SayEnd,
    SayLeave,
    Sight,
    Terminate,
    Want,
    bye,
    step,
    until,
    woke,
)
from elastic.core.inprocess.state import LONGEST_PAUSE_S, Call
from elastic.core.inprocess.words import Raised, Reason
from elastic.core.world import Ending, Node, Verdict, Why

RULES = Rules(patience_s=0.02, leave_patience_s=1.0, unwind_s=30.0, grace_s=5.0, leave_s=5.0)
TRAINS = Sight(token=7_000, round=3, guarded=True, stamp=100.0, soft_s=60.0, hard_s=90.0)


def anew(sight: Sight) -> Sight:
    """Return an equal sight. Each look reads the page, so no number of it is the last look's object."""
    return evolve(
        sight, token=int(str(sight.token)), stamp=float(str(sight.stamp)), unwind_at=float(str(sight.unwind_at))
    )


class Watched:
    """A monitor that looks whenever `until` says so. The test changes what it sees."""

    def __init__(self, sight: Sight = TRAINS, rules: Rules = RULES) -> None:
        self.rules = rules
        self.monitor = Monitor()
        self.sight = sight
        self.did: list[tuple[float, Act]] = []

    def look(self, now: float) -> tuple[Act, ...]:
        self.monitor, acts = step(self.monitor, anew(self.sight), now, self.rules)
        self.did += [(now, act) for act in acts]
        return acts

    def watch(self, now: float, end: float) -> list[tuple[float, Act]]:
        """From now to the end; what it did, and when."""
        self.did.clear()
        self.look(now)
        while (at := until(self.monitor, anew(self.sight), self.rules)) <= end:
            self.look(at)
        return self.did

    def wakes(self, now: float, sees: Sight | None = None) -> None:
        """So late, for the look that it meant to take next. It sees this, or what it saw."""
        meant_at = until(self.monitor, self.sight, self.rules)
        self.sight = sees or self.sight
        self.monitor = woke(self.monitor, anew(self.sight), meant_at, now)


def firsts(did: list[tuple[float, Act]]) -> dict[Act, float]:
    """Return when the monitor did each act first."""
    return {act: at for at, act in reversed(did)}


def test_the_monitor_leaves_user_code_alone_that_makes_progress() -> None:
    watched = Watched()
    assert watched.watch(100.0, 160.0) == []
    watched.sight = evolve(TRAINS, stamp=159.0)
    assert watched.watch(160.01, 219.0) == []


def test_the_monitor_leaves_a_process_alone_while_no_user_code_runs() -> None:
    assert Watched(Sight()).watch(0.0, math.nextafter(math.inf, 0)) == []


def test_a_hang_that_the_driver_does_not_see_ends_the_round_and_then_the_span() -> None:
    """Else the driver could come back, and end the round for another reason, before that is written."""
    watched = Watched()
    assert watched.watch(100.0, 161.0) == [(160.02, SayEnd(3))]
    watched.sight = evolve(TRAINS, over=True)
    did = watched.watch(161.0, 162.0)
    assert firsts(did) == {Want(7_000): 161.0}
    assert len(did) == 10  # after 1, 2, 4 ... 512 ms


def test_the_signal_is_repeated_with_growing_pauses_up_to_the_longest() -> None:
    did = Watched(evolve(TRAINS, over=True, hard_s=math.inf)).watch(100.0, 125.0)
    times = [at for at, act in did if act == Want(7_000)]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == pytest.approx([min(0.001 * 2**tries, LONGEST_PAUSE_S) for tries in range(len(pauses))])
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S)


def test_the_monitor_leaves_a_hang_to_a_driver_that_acts() -> None:
    watched = Watched(evolve(TRAINS, wanted=True))
    assert watched.watch(160.1, 189.0) == []


def test_a_look_that_comes_late_does_what_was_due() -> None:
    hangs = Watched()
    assert (hangs.look(190.5), hangs.look(195.0), hangs.look(195.6)) == ((Terminate(),), (), (Kill(),))
    leaves = Watched(evolve(TRAINS, leaving=True))
    assert (leaves.look(150.0), leaves.look(151.5)) == ((), (SayLeave(),))
    over = Watched(evolve(TRAINS, over=True))
    assert (over.look(110.0), over.look(110.5)) == ((), (Want(7_000),))
    assert (over.look(110.5005), over.look(110.6)) == ((), (Want(7_000),))
    dead = Watched(evolve(TRAINS, dead=True))
    assert (dead.look(101.0), dead.look(106.5)) == ((SayDead(failed=True),), (Quit(),))


def test_the_first_span_of_a_process_is_watched_as_each_other_one() -> None:
    first = evolve(TRAINS, token=1)
    assert Watched(first).watch(100.0, 161.0) == [(160.02, SayEnd(3))]
    assert Watched(evolve(first, over=True)).watch(110.0, 110.0205) == [(110.02, Want(1))]
    late = Watched(Sight())
    late.wakes(99.0)
    late.sight = first
    late.wakes(230.0)
    assert late.watch(230.0, 291.0) == [(290.02, SayEnd(3))]


def test_a_hanging_reserve_leaves_and_ends_no_round() -> None:
    assert Watched(evolve(TRAINS, active=False)).watch(100.0, 189.0) == [(160.02, SayLeave())]


def test_callbacks_end_by_the_driver_or_by_the_hard_limit() -> None:
    finalizes = evolve(TRAINS, guarded=False)
    assert Watched(evolve(finalizes, over=True)).watch(100.0, 189.0) == []
    assert Watched(finalizes).watch(100.0, 190.0) == [(190.0, Terminate())]


def test_the_monitor_ends_user_code_of_a_round_that_is_over_after_the_driver_s_time() -> None:
    watched = Watched(evolve(TRAINS, over=True))
    did = watched.watch(110.0, 111.0)
    assert did[0] == (110.02, Want(7_000))
    assert SayEnd(3) not in firsts(did)


def test_the_monitor_leaves_a_round_alone_that_stands_again() -> None:
    """A store that forgot shows another world, and then the round's own again."""
    watched = Watched(evolve(TRAINS, over=True))
    watched.look(110.0)
    watched.sight = TRAINS
    assert watched.watch(110.01, 150.0) == []
    watched.sight = evolve(TRAINS, over=True)
    assert watched.watch(150.0, 150.021) == [(150.02, Want(7_000))]


def test_the_driver_has_its_time_in_each_round_that_is_over() -> None:
    watched = Watched(evolve(TRAINS, over=True))
    watched.watch(110.0, 111.0)
    watched.sight = evolve(TRAINS, token=8_000, round=4, stamp=120.0, over=True)
    assert watched.watch(120.0, 121.0)[0] == (120.02, Want(8_000))


def test_the_monitor_asks_nothing_of_a_span_that_ends_in_time() -> None:
    watched = Watched(evolve(TRAINS, over=True))
    assert watched.look(110.0) == ()
    watched.sight = Sight()
    assert watched.watch(110.01, 200.0) == []


def test_the_monitor_sleeps_when_the_span_that_it_wanted_to_end_is_over() -> None:
    watched = Watched(evolve(TRAINS, over=True))
    watched.watch(110.0, 111.0)
    watched.sight = Sight()
    assert (watched.look(111.0), until(watched.monitor, watched.sight, RULES)) == ((), math.inf)


def test_the_next_span_is_not_taken_for_the_last_one() -> None:
    watched = Watched(evolve(TRAINS, over=True))
    watched.watch(110.0, 110.1)
    watched.sight = evolve(TRAINS, token=8_000, round=4, stamp=110.2)
    assert watched.watch(110.2, 170.0) == []
    assert watched.watch(170.2, 170.2201) == [(170.22, SayEnd(4))]


def test_user_code_that_does_not_end_is_killed_at_the_monitor_s_own_limit() -> None:
    did = Watched(evolve(TRAINS, over=True, soft_s=math.inf, hard_s=math.inf)).watch(110.0, 150.0)
    assert firsts(did)[Terminate()] == 110.02 + RULES.unwind_s
    assert firsts(did)[Kill()] == 110.02 + RULES.unwind_s + RULES.grace_s


@pytest.mark.parametrize("limit", ["hard", "unwind"])
def test_a_process_past_its_limit_gets_sigterm_and_then_sigkill_again_and_again(limit: str) -> None:
    hangs = evolve(TRAINS, wanted=True, hard_s=90.0 if limit == "hard" else math.inf)
    did = Watched(hangs if limit == "hard" else evolve(hangs, unwind_at=190.0)).watch(100.0, 197.5)
    assert did == [(190.0, Terminate()), (195.0, Kill()), (196.0, Kill()), (197.0, Kill())]


def test_after_a_standstill_of_the_host_a_process_has_all_its_time_again() -> None:
    watched = Watched()
    watched.watch(100.0, 101.0)
    watched.wakes(400.0)
    assert watched.watch(400.0, 490.0) == [(460.02, SayEnd(3)), (490.0, Terminate())]


def test_a_host_that_stands_still_just_when_a_span_begins_costs_that_span_no_time() -> None:
    """Found by the simulator: the monitor meant to sleep for ever, so it did not know that it had stood still."""
    watched = Watched(Sight())
    watched.wakes(99.0)
    assert watched.watch(99.0, 100.0) == []
    watched.sight = TRAINS
    watched.wakes(230.0)
    assert watched.watch(230.0, 320.0) == [(290.02, SayEnd(3)), (320.0, Terminate())]


def test_a_monitor_that_is_started_while_no_user_code_runs_has_not_stood_still() -> None:
    assert woke(Monitor(), Sight(), 50.0, 50.0).awake_since == -math.inf


def test_a_monitor_that_is_started_again_gives_the_span_all_its_time_once() -> None:
    """Found by the simulator (I22): the last one had died in a standstill of the host, which the new one cannot know."""
    watched = Watched()
    watched.monitor = woke(watched.monitor, watched.sight, 230.0, 230.0)
    assert watched.watch(230.0, 320.0) == [(290.02, SayEnd(3)), (320.0, Terminate())]
    soon = Watched()
    soon.monitor = woke(soon.monitor, soon.sight, 101.0, 101.0)
    assert soon.watch(101.0, 190.0) == [(160.02, SayEnd(3)), (190.0, Terminate())]


def test_a_monitor_that_is_started_again_still_forgives_a_standstill_of_its_own_time() -> None:
    """Found by the simulator (I22): its beginning counted as the one standstill, so that of the host was not forgiven."""
    watched = Watched()
    watched.monitor = woke(watched.monitor, watched.sight, 130.0, 130.0)
    assert watched.watch(130.0, 131.0) == []
    watched.wakes(830.0)
    assert watched.watch(830.0, 889.0) == []
    watched.wakes(1_600.0)
    assert watched.look(1_600.0) == (Terminate(),)


def test_a_host_that_stands_still_just_when_the_driver_sets_its_limit_costs_the_process_no_time() -> None:
    """Found by the simulator (I22): no user code ran, so the monitor meant to sleep for ever."""
    watched = Watched(Sight())
    watched.wakes(100.0)
    assert watched.watch(100.0, 101.0) == []
    watched.wakes(800.0, Sight(unwind_at=130.0))
    assert watched.watch(800.0, 850.0) == [
        (830.0, Terminate()),
        (835.0, Kill()),
        *((835.0 + s, Kill()) for s in range(1, 16)),
    ]


def test_each_limit_of_the_driver_may_come_with_a_standstill_and_only_the_first_look_at_it_counts() -> None:
    watched = Watched(Sight())
    for now, limit_at in ((100.0, math.inf), (101.0, 131.0), (102.0, math.inf), (800.0, 132.0)):
        watched.sight = Sight(unwind_at=limit_at)
        watched.monitor = woke(watched.monitor, watched.sight, now, now)
    assert watched.monitor.awake_since == 800.0
    new = woke(Monitor(), watched.sight, 800.0, 800.0)
    assert (new.awake_since, new.forgave) == (800.0, None)
    assert woke(new, anew(watched.sight), 802.0, 802.0) == new


def test_a_driver_that_wants_its_process_killed_now_gets_that() -> None:
    watched = Watched(Sight())
    watched.wakes(100.0)
    watched.watch(100.0, 101.0)
    watched.wakes(130.01, Sight(unwind_at=130.0))
    assert watched.look(130.01) == (Terminate(),)


def test_a_mark_that_comes_as_the_host_goes_on_has_its_own_standstill_forgiven() -> None:
    """Found by the simulator (I22): the monitor looked after the mark, and took the standstill before it for the mark's."""
    watched = Watched()
    watched.wakes(100.0)
    assert watched.watch(100.0, 101.0) == []
    watched.wakes(400.001, evolve(TRAINS, stamp=400.0))
    assert watched.watch(400.001, 401.0) == []
    watched.wakes(1_100.0)
    assert watched.watch(1_100.0, 1_159.0) == []
    watched.wakes(1_800.0)
    assert watched.look(1_800.0) == (Terminate(),)


def test_a_hang_is_forgiven_once_and_only_after_a_real_standstill() -> None:
    late = Watched()
    for now in (100.0, 161.0):
        late.wakes(now)
    assert late.look(161.0) == (SayEnd(3),)
    slow = Watched()
    for now in (100.0, 162.0, 224.0):
        slow.wakes(now)
    assert slow.look(224.0) == (SayEnd(3),)


def test_after_a_standstill_a_span_that_must_end_has_all_its_time_again() -> None:
    called = evolve(TRAINS, wanted=True, hard_s=math.inf, unwind_at=130.0)
    watched = Watched(called)
    watched.look(110.0)
    watched.wakes(400.0)
    assert watched.watch(400.0, 429.0) == []
    assert until(watched.monitor, watched.sight, RULES) == 400.0 + RULES.unwind_s
    assert until(watched.monitor, evolve(called, unwind_at=400.0), RULES) == 400.0
    watched.sight = evolve(called, unwind_at=420.0)
    assert watched.look(420.0) == (Terminate(),)
    mine = Watched(evolve(TRAINS, over=True, soft_s=math.inf, hard_s=math.inf))
    mine.watch(110.0, 111.0)
    mine.wakes(400.0)
    assert firsts(mine.watch(400.0, 430.0))[Terminate()] == 430.0


def test_the_monitor_speaks_for_a_dead_process_until_the_register_shows_it() -> None:
    watched = Watched()
    watched.sight = evolve(TRAINS, dead=True)
    assert watched.look(101.0) == (SayDead(failed=True),)
    assert watched.look(101.1) == ()
    watched.sight = evolve(TRAINS, dead=True, settled=True)
    assert watched.look(101.2) == (Quit(),)
    assert watched.monitor.phase is Phase.QUIT
    assert (watched.look(101.3), until(watched.monitor, watched.sight, RULES)) == ((), math.inf)


def test_the_monitor_looks_again_at_once_when_the_register_already_shows_the_death() -> None:
    watched = Watched(evolve(TRAINS, dead=True, settled=True))
    assert watched.look(101.0) == (SayDead(failed=True),)
    assert until(watched.monitor, watched.sight, RULES) < 101.0
    assert watched.look(101.0) == (Quit(),)


def test_the_monitor_gives_up_a_register_that_does_not_answer() -> None:
    watched = Watched(evolve(TRAINS, dead=True))
    assert watched.watch(101.0, 200.0) == [(101.0, SayDead(failed=True)), (106.0, Quit())]


def test_the_seat_of_a_dead_process_is_kept_unless_it_was_leaving_or_lives() -> None:
    rules = evolve(RULES, replace_s=0.5)
    dead = Watched(evolve(TRAINS, dead=True), rules=rules)
    assert dead.watch(101.0, 200.0) == [(101.0, SayDead(0.5, failed=True)), (106.5, Quit())]
    assert Watched(evolve(TRAINS, dead=True, leaving=True), rules=rules).look(101.0) == (SayDead(),)
    assert Watched(evolve(TRAINS, dead=True, bye=Bye.UNSETTLED), rules=rules).look(101.0) == (SayDead(),)
    assert Watched(Sight(bye=Bye.UNSETTLED), rules=rules).look(1.0) == (SayDead(),)


def test_a_process_that_leaves_and_is_replaced_is_waited_for() -> None:
    rules = evolve(RULES, replace_s=0.5)
    leaves = Watched(evolve(TRAINS, leaving=True, replaced=True), rules=rules)
    assert leaves.watch(101.0, 105.0) == []
    leaves.sight = Sight(bye=Bye.REPLACED, leaving=True, replaced=True)
    assert leaves.watch(106.0, 108.0) == []
    leaves.sight = evolve(leaves.sight, dead=True)
    assert leaves.watch(108.5, 200.0) == [(108.5, SayDead(0.5)), (114.0, Quit())]
    lives = Watched(Sight(bye=Bye.REPLACED, leaving=True, replaced=True), rules=rules)
    assert lives.watch(1.0, 200.0) == [(1.0 + RULES.leave_s, SayDead()), (1.0 + 2 * RULES.leave_s, Quit())]


def test_the_monitor_speaks_for_a_process_that_it_has_killed() -> None:
    watched = Watched()
    assert watched.look(190.0) == (Terminate(),)
    watched.sight = evolve(TRAINS, dead=True)
    assert watched.look(190.5) == (SayDead(failed=True),)


def test_the_monitor_says_leave_for_a_leaving_rank_that_hangs_and_ends_no_round() -> None:
    did = firsts(Watched(evolve(TRAINS, leaving=True)).watch(159.5, 165.0))
    assert did == {SayLeave(): 160.5}


def test_a_process_says_whether_the_register_knows_of_the_end_of_its_call() -> None:
    ended = evolve(Call(), outcome=Raised(Reason.STUCK), leaving=Reason.STUCK)
    assert (bye(Call(left=True)), bye(ended)) == (Bye.NOT_YET, Bye.UNSETTLED)
    assert bye(evolve(ended, replaced=True)) is Bye.REPLACED
    verdict = Verdict(Ending.LIMIT, 0, Node("a", 1), Why.ASKED)
    assert bye(evolve(ended, replaced=True, left=True)) is bye(evolve(ended, verdict=verdict)) is Bye.SETTLED


def test_the_monitor_quits_once_the_register_shows_the_end_of_the_call() -> None:
    assert Watched(Sight(bye=Bye.SETTLED)).look(1.0) == (Quit(),)


def test_the_monitor_speaks_for_a_call_whose_end_the_register_may_not_show() -> None:
    assert Watched(Sight(bye=Bye.UNSETTLED)).watch(1.0, 10.0) == [(1.0, SayDead()), (6.0, Quit())]


def test_a_round_that_is_over_is_not_ended_again() -> None:
    watched = Watched(evolve(TRAINS, over=True, hard_s=math.inf))
    assert {type(act) for _, act in watched.watch(161.0, 180.0)} == {Want}
