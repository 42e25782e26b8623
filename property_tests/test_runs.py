"""Random runs of simulated worlds keep what was asked for, and show what they must. test_simulator.py judges more runs."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, product

from simulated import ECHOED, echoing

from elastic.core.sim.chance import seeded
from elastic.core.sim.features import FEATURES, PAIRS, features_of
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import tell, wander
from elastic.core.sim.story import Backend, parsed
from elastic.core.sim.swarm import Shape, setting

SETTINGS = 3_000


@cache
def drawn() -> tuple[tuple[str, ...], ...]:
    """Return the features of each of the settings that are drawn."""
    return tuple(tuple(features_of(setting(seeded(seed), Shape()))) for seed in range(SETTINGS))


def test_a_run_told_again_from_its_text_is_the_same_run() -> None:
    for seed in range(5):
        lines, again = list[object](), list[object]()
        run = wander(seed, Shape(), lambda *line, lines=lines: lines.append(line))
        tell(parsed(str(run.story).splitlines()), lambda *line, again=again: again.append(line))
        assert lines and again == lines


def test_a_run_keeps_the_settings_that_were_asked_for() -> None:
    shape = Shape(
        nodes=4, min=2, max=3, backend=Backend.LEASE, faults=frozenset((Kind.CRASH, Kind.START)), operations=10
    )
    for seed in range(20):
        run = wander(seed, shape)
        has = run.story.setting
        assert (has.nodes, has.backend) == (4, Backend.LEASE)
        assert (has.limits.min_nodes, has.limits.max_nodes) == (2, 3)
        assert {operation.kind for operation in run.story.operations} <= {Kind.CRASH, Kind.START, Kind.PASS}


def test_without_faults_a_run_still_ends_in_success() -> None:
    for seed in range(20):
        run = wander(seed, Shape(faults=frozenset()))
        assert run.violation is None
        assert run.world.counts["closed SUCCEEDED"] == 1


def test_only_the_faults_that_were_asked_for_happen() -> None:
    strange, checks = frozenset((Kind.START_NEXT, Kind.START_BACK)), frozenset((Kind.UNFIT, Kind.BREAK_CHECK))
    for kinds in (frozenset[Kind](), frozenset((Kind.CRASH,)), strange, checks):
        wanted, done = kinds | {Kind.START}, set[Kind]()
        for seed in range(60):
            done |= set(wander(seed, Shape(faults=kinds)).world.done)
            assert done <= wanted
            if seed >= 9 and done == wanted:
                break
        assert done == wanted


def test_some_worlds_have_spares_that_wait_for_hours_and_pauses_of_minutes() -> None:
    """There the join's deadline is long over when the store is lost, or when a node wakes."""
    shapes = (Shape(features=frozenset((name,))) for name in ("patient", "long"))
    runs = [wander(seed, shape) for shape in shapes for seed in range(6)]
    assert [run.violation for run in runs] == [None] * len(runs)
    assert max(run.world.future.now for run in runs) > 1.5 * 3_600
    spans = [each.span for run in runs for each in run.story.operations if each.kind in (Kind.PAUSE, Kind.OUTAGE)]
    assert max(spans) > 120
    assert any(run.world.counts["a spare"] for run in runs)


def test_every_pair_of_features_meets_in_three_thousand_settings() -> None:
    met = Counter[tuple[str, str]]()
    for features in drawn():
        met.update(combinations(features, 2))
    assert [pair for pair in PAIRS if not met[pair]] == []
    assert met.keys() <= {*PAIRS}


def test_a_feature_is_drawn_as_often_as_the_table_says() -> None:
    """A patient world is a long one, too."""
    seen = Counter(name for features in drawn() for name in features)
    for name, feature in FEATURES.items():
        odds = 1 / feature.one_in + (name == "long") / FEATURES["patient"].one_in
        odds /= FEATURES[feature.needs].one_in if feature.needs else 1
        spread = (SETTINGS * odds * (1 - odds)) ** 0.5
        assert abs(seen[name] - SETTINGS * odds) < 4 * spread, name


def test_a_world_may_have_all_features_at_once() -> None:
    for seed in range(5):
        run = wander(seed, Shape(features=frozenset(FEATURES), operations=8))
        assert list(features_of(run.story.setting)) == list(FEATURES)
        assert run.violation is None
        assert parsed(str(run.story).splitlines()) == run.story


def test_whoever_fails_with_peers_that_echo_is_named_or_it_is_open() -> None:
    """The cause of a round is a failure that did not follow from another one (G9)."""
    for operations, seed in product(ECHOED, range(1, 9)):
        run = tell(echoing(operations, seed))
        assert run.violation is None, (operations, seed)
        assert run.world.witness.judge.strength.armed["G9"] or "crash" in operations, (operations, seed)
