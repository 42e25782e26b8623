"""Random workers before the hang watch: only workers that stand still are suspected, and only a whole job is restarted."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from elastic.core.hangs import (
    Act,
    Blame,
    Busy,
    HangSettings,
    Others,
    Record,
    Report,
    Sight,
    Watch,
    Withdraw,
    asks,
    look,
    until,
)
from elastic.core.world import Node, Stacks

A, B = Node("a", 1), Node("b", 1)
SPAN_S = 4.0
PLACES = st.sampled_from(("recv", "sleep"))
BUSY = st.sampled_from((None, None, Busy(1, 2.0), Busy(2, 9.0)))
SIGHTS = st.builds(
    Sight,
    start=st.integers(1, 2),
    calls=st.integers(0, 1),
    output=st.integers(0, 1),
    busy=BUSY,
    stack=PLACES | st.just(""),
)
LOOKS = st.tuples(
    st.dictionaries(st.integers(0, 2), SIGHTS, max_size=3),
    st.integers(1, 6).map(lambda quarters: quarters / 4),
    st.integers(1, 12),
    st.tuples(st.booleans(), PLACES),
)
"""The same sights so often, with this pause after each, and what the other node says then."""


@define
class Judge:
    """A second account of who has stood still since when, by the looks themselves."""

    settings: HangSettings
    at: float = 0.0
    since: dict[int, float] = field(factory=dict)
    last: dict[int, Sight] = field(factory=dict)
    stacks: dict[int, str] = field(factory=dict)
    on_record: bool = False
    blamed: tuple[int, int, float] | None = None
    """A rank, its start, and when it was blamed."""
    happened: set[type[Act]] = field(factory=set)

    def sees(self, sights: dict[int, Sight], pause_s: float) -> None:
        self.at += min(pause_s, 2 * self.settings.every_s)
        for rank, sight in sights.items():
            before = self.last.get(rank)
            known, own = self.stacks.get(rank, ""), sight.stack
            same = before is not None and (before.start, before.calls, before.busy) == (
                sight.start,
                sight.calls,
                sight.busy,
            )
            if same and before and not sight.calls:
                same = before.output == sight.output and not (known and own and known != own)
            if not same:
                self.since[rank] = self.at
                self.stacks[rank] = own
            self.stacks[rank] = own or self.stacks[rank]
        for rank in self.last.keys() - sights.keys():
            del self.since[rank], self.stacks[rank]
        self.last = sights

    @property
    def stands_still(self) -> bool:
        limits = {rank: sight.busy.limit_s if sight.busy else SPAN_S for rank, sight in self.last.items()}
        return bool(limits) and all(self.at - self.since[rank] >= limit for rank, limit in limits.items())

    @property
    def may_end_for_it(self) -> bool:
        """True while the round may end for the death of the worker that was blamed, or while that worker does not die."""
        if self.blamed is None:
            return False
        rank, start, at = self.blamed
        lives = rank in self.last and self.last[rank].start == start
        return self.at < at + self.settings.patience_s or (lives and self.stands_still)

    def judges(self, acts: Sequence[Act], others: Others) -> None:
        self.happened |= set(map(type, acts))
        for act in acts:
            assert self.blamed is None or isinstance(act, Withdraw)
            match act:
                case Record():
                    assert self.stands_still and not self.on_record
                    self.on_record = True
                case Withdraw():
                    assert self.on_record and not self.may_end_for_it and not (self.stands_still and not self.blamed)
                    self.on_record, self.blamed = False, None
                case Report(missing=missing):
                    assert self.stands_still and self.on_record and missing == others.missing
                case Blame(rank):
                    assert self.stands_still and self.on_record and self.settings.restarts
                    assert rank in self.last and not others.missing
                    self.blamed = rank, self.last[rank].start, self.at
        if self.blamed:
            assert self.may_end_for_it, "a round that goes on is looked at anew"
        elif Withdraw() not in acts:
            assert self.on_record == self.stands_still, "a node that stands still has said so, and no other one"


def happens(spans: Sequence[tuple[dict[int, Sight], float, int, tuple[bool, str]]], restarts: bool) -> set[type[Act]]:
    settings = HangSettings(SPAN_S, restarts)
    watch, judge, now, own = Watch(), Judge(settings), 0.0, Stacks(A, 0)
    for sights, pause_s, times, (says, place) in spans:
        for _ in range(times):
            now += pause_s
            there = (Stacks(B, 0, ((3, place), (4, "recv"))),) if says else ()
            others = Others((A, B), (own, *there))
            assert set(asks(watch, sights)) <= sights.keys()
            began = watch.looked_at is None
            watch, acts = look(watch, sights, others, now, settings)
            judge.sees(sights, 0.0 if began else pause_s)
            judge.judges(acts, others)
            if Record() in acts:
                own = Stacks(A, 0, tuple((rank, sight.stack or "recv") for rank, sight in sights.items()))
            if Withdraw() in acts:
                own = Stacks(A, 0)
            assert until(watch, now, settings) > now
    return judge.happened


@given(st.lists(LOOKS, max_size=8), st.booleans())
def test_a_node_is_suspected_exactly_while_all_its_workers_stand_still_and_blames_only_in_a_job_that_does(
    spans: list[tuple[dict[int, Sight], float, int, tuple[bool, str]]], restarts: bool
) -> None:
    happens(spans, restarts)


def test_all_of_it_happens() -> None:
    still = {0: Sight(1, stack="recv"), 1: Sight(1, stack="sleep")}
    spans = [
        (still, 1.0, 8, (False, "recv")),
        ({**still, 0: Sight(1, output=1)}, 1.0, 1, (False, "recv")),
        (still, 1.0, 8, (True, "recv")),
    ]
    assert happens(spans, True) == {Record, Withdraw, Report, Blame}
