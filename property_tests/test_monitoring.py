"""Random sights of the monitor: what the simulator's model of a monitor assumes holds of the real one."""

from __future__ import annotations

import math
from typing import assert_never

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

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
    step,
    until,
)

RULES = Rules(patience_s=0.25, leave_patience_s=1.0, unwind_s=3.0, grace_s=1.0, leave_s=2.0)
INSTANTS = st.integers(0, 40).map(lambda quarters: quarters / 4)
SIGHTS = st.builds(
    Sight,
    token=st.integers(0, 3),
    round=st.integers(0, 2),
    guarded=st.booleans(),
    active=st.booleans(),
    stamp=INSTANTS,
    soft_s=st.sampled_from((math.inf, 1.0)),
    hard_s=st.sampled_from((math.inf, 3.0)),
    wanted=st.booleans(),
    leaving=st.booleans(),
    bye=st.sampled_from((Bye.NOT_YET, Bye.NOT_YET, Bye.UNSETTLED, Bye.SETTLED)),
    unwind_at=st.sampled_from((math.inf, 8.0)),
    dead=st.sampled_from((False, False, False, True)),
    over=st.booleans(),
    settled=st.booleans(),
)


@define
class Watcher:
    """The rules that say what the monitor may do after the sights so far."""

    over: set[int] = field(factory=set)
    """The spans that were seen in a round that is over."""
    said: set[int] = field(factory=set)
    left: bool = False
    wished: dict[int, float] = field(factory=dict)
    terminated_at: float = math.inf

    def judges(self, act: Act, sight: Sight, now: float) -> None:
        late = sight.guarded and now >= sight.stamp + sight.soft_s + RULES.patience_s and sight.token not in self.said
        match act:
            case Want(token):
                assert token == sight.token and token in self.over
                self.wished.setdefault(token, now)
            case SayEnd(round):
                assert late and sight.active and round == sight.round
                assert not (sight.wanted or sight.leaving or sight.over)
                self.said.add(sight.token)
            case SayLeave():
                assert self.left or (late and not sight.active)
                self.said |= set() if self.left else {sight.token}
            case Terminate():
                hard = now >= sight.stamp + sight.hard_s
                unwinds = now >= self.wished.get(sight.token, math.inf) + RULES.unwind_s
                assert (sight.token and (hard or unwinds)) or now >= sight.unwind_at
                self.terminated_at = now
            case Kill():
                assert now >= self.terminated_at + RULES.grace_s
            case SayDead():
                assert sight.dead or sight.bye is Bye.UNSETTLED
            case Quit():
                assert sight.bye is Bye.SETTLED or self.left or sight.settled or now >= RULES.leave_s
            case other:
                assert_never(other)


@given(st.lists(st.tuples(SIGHTS, INSTANTS), max_size=12))
def test_the_monitor_acts_only_when_its_process_is_late_and_calls_back_only_from_a_round_that_is_over(
    looks: list[tuple[Sight, float]],
) -> None:
    monitor, now, watcher = Monitor(), 0.0, Watcher()
    for sight, span in looks:
        now += span / 4
        if sight.token and sight.guarded and sight.over:
            watcher.over.add(sight.token)
        watcher.left |= sight.leaving
        before = monitor
        monitor, acts = step(monitor, sight, now, RULES)
        for act in acts:
            watcher.judges(act, sight, now)
        assert (Quit() in acts) == (monitor.phase is Phase.QUIT is not before.phase)


@given(SIGHTS, INSTANTS)
def test_the_monitor_has_nothing_to_do_as_long_as_it_may_sleep(sight: Sight, now: float) -> None:
    monitor, _ = step(Monitor(), sight, now, RULES)
    wakes_at = until(monitor, sight, RULES)
    just_before = math.nextafter(min(wakes_at, 1e6), -math.inf)
    if just_before > now:
        assert step(monitor, sight, just_before, RULES)[1] == ()
