"""The sum of what many runs have shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import evolve

from elastic.core.properties.facts import Fact, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.properties.law import Strength
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import run_seed, tell, wander
from elastic.core.sim.sometimes import SOMETIMES
from elastic.core.sim.story import parsed
from elastic.core.sim.swarm import Shape
from elastic.core.sim.tally import LAWS, MANY, Broken, Showed, Tally, showed


def one(run: int, counts: Iterable[str] = (), broken: str | None = None) -> Showed:
    fact = Broken(broken, f"{broken}: so it was") if broken else None
    return Showed(run, 10, 2, 1, 3.5, {Kind.CRASH: 1}, dict.fromkeys(counts, 2), fact)


def tally(*showed: Showed) -> Tally:
    made = Tally()
    for each in showed:
        made.adds(each)
    return made


def test_the_situations_of_runs_are_added_up() -> None:
    both = tally(one(0, ["a spare"]), one(1, ["a spare", "the bump"]))
    assert (both.runs, both.steps, both.writes, both.rounds, both.seconds) == (2, 20, 4, 2, 7.0)
    assert both.done == {Kind.CRASH: 2}
    assert both.counts == {"a spare": 4, "the bump": 2}


def test_a_situation_is_counted_in_runs_and_the_rarest_is_named() -> None:
    both = tally(one(0, ["a spare"]), one(1, ["a spare", "the bump"]))
    assert both.seen == {"a spare": 2, "the bump": 1}
    assert both.rarest == ("the bump", 1)
    assert tally(one(0, ["the bump", "a spare"])).rarest == ("a spare", 1)
    assert both.never == tuple(what for what in SOMETIMES if what not in ("a spare", "the bump"))


def test_what_was_armed_is_added_up_and_a_law_that_never_was_is_named() -> None:
    armed = evolve(one(0), strength=Strength(Counter(S1=2, R12=3), Counter(R12=1)))
    both = tally(armed, armed)
    assert both.strength == Strength(Counter(S1=4, R12=6), Counter(R12=2))
    assert both.unarmed == tuple(number for number in LAWS if number not in ("S1", "R12"))
    assert Tally(laws=()).unarmed == ()


def test_recoveries_are_kept_by_what_befell_the_world() -> None:
    run = tell(
        parsed(
            "world nodes=2 min=2 max=2; start a; start b; pass 1; fail a; pass 9; fail a; cut b 1; gap a".split("; ")
        )
    )
    small = showed(7, run)
    both = tally(small, small)
    assert {("fail",), (MANY,)} <= both.recoveries.keys()
    first = both.recoveries["fail",][0]
    assert (first.run, first.patient) == (7, False)
    assert first.share == first.took_s / first.may_s > 0


def test_nothing_is_rare_where_nothing_was_seen() -> None:
    assert Tally().rarest is None
    assert Tally().never == SOMETIMES


def test_violations_are_kept_by_number_and_the_first_run_comes_first() -> None:
    found = tally(one(0), one(3, broken="V10"), one(4, broken="S1"), one(9, broken="V10"))
    assert found.first == (3, Broken("V10", "V10: so it was"))
    assert {number: [run for run, _ in those] for number, those in found.broken.items()} == {"V10": [3, 9], "S1": [4]}
    assert found.violations == 3
    assert tally(one(0)).first is None


def test_a_run_is_summed_up_by_the_situations_that_it_showed() -> None:
    run = wander(run_seed(1, 0), Shape(nodes=3))
    small = showed(7, run)
    assert (small.run, small.steps, small.writes) == (7, run.world.steps, run.world.writes)
    assert small.seconds == run.world.future.now
    assert small.rounds == run.world.counts["rounds completed"] > 0
    assert small.broken is None
    assert small.counts.keys() <= set(SOMETIMES)


def never(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Wrote):
        yield "never", "somebody wrote"


def test_a_violation_is_summed_up_by_its_number_and_its_fact() -> None:
    assert showed(0, wander(1, Shape(), also=(never,))).broken == Broken("never", "never: somebody wrote")
