"""A story shrinks while it still breaks the same property: operations go first, then settings become plainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from elastic.core.group import Phase
from elastic.core.properties.facts import Fact, Stepped, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import Violation
from elastic.core.sim.run import Run, tell
from elastic.core.sim.shrink import PAIRS_MAX, shrunk, smaller_stories
from elastic.core.sim.simulation import World
from elastic.core.sim.story import Story, parsed

LONG = """\
world nodes=5 min=2 max=4 restarts=8 workers=2 backend=lease seed=77 drift=0.01 attempts=3 barrier=2
start c
start d
pass 0.02
pass 2.5
slow d 0.6
fail d
pass 6.5
crash c"""


def breaks(needed: Callable[[str], bool], number: str = "X1") -> Callable[[Story], Run]:
    """Return a teller of stories in which a story breaks a property if its text says so."""

    def again(story: Story) -> Run:
        broken = Violation(number, "as it was needed") if needed(str(story)) else None
        return Run(story, World(story.setting), broken)

    return again


def small(text: str, *needed: str, tries: int = 3_000) -> str:
    again = breaks(lambda story: all(word in story for word in needed))
    return str(shrunk(again(parsed(text.splitlines())), tries, again).story)


def test_a_shrunk_story_has_only_the_operations_that_it_needs() -> None:
    assert small(LONG) == "world nodes=1 max=1"
    assert small(LONG, "fail") == "world nodes=1 max=1\nfail a"
    assert small(LONG, "backend=lease", "pass") == "world nodes=1 max=1 backend=lease\npass 1"


def test_waits_become_one_and_round() -> None:
    needed = breaks(lambda story: sum(float(line[5:]) for line in story.splitlines() if line.startswith("pass")) >= 8)
    run = shrunk(needed(parsed(LONG.splitlines())), again=needed)
    assert str(run.story) == "world nodes=1 max=1\npass 10"


def test_a_world_with_a_first_target_shrinks_too() -> None:
    assert small(f"{LONG.splitlines()[0]} first_target=4\nfail a\nfail b", "first_target", "fail") == (
        "world nodes=1 max=1 first_target=1\nfail a"
    )


def test_waits_are_merged_up_to_the_longest_that_there_is() -> None:
    waits = "world\npass 600000\npass 600000"
    assert small(waits, "pass 600000\npass 600000") == waits.replace("world", "world nodes=1 max=1")


def test_a_story_that_was_told_without_its_end_is_shrunk_without_one() -> None:
    run = tell(parsed(["world", "start a", "pass 5", "fail a", "pass 5"]), ends=False, also=(any_failure,))
    assert run.violation and not shrunk(run).ends


def any_failure(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Wrote) and fact.after.failures:
        yield "X2", "a failure"


def test_two_operations_that_can_only_go_together_are_left_out() -> None:
    def even(story: str) -> bool:
        return story.count("fail") % 2 == 0 and "crash" in story

    text = "world nodes=1 max=1\nfail a\npass 1\nfail a\ncrash a"
    again = breaks(even)
    assert str(shrunk(again(parsed(text.splitlines())), again=again).story) == "world nodes=1 max=1\ncrash a"


def test_a_long_story_is_not_tried_without_every_two() -> None:
    text = "\n".join(["world nodes=1", *["fail a"] * (PAIRS_MAX + 1)])
    assert len(list(smaller_stories(parsed(text.splitlines())))) < 3 * PAIRS_MAX


def test_slots_take_the_first_names_and_a_seed_a_small_number() -> None:
    assert small(LONG, "fail", "crash", "seed") == "world nodes=2 max=1 seed=1\nfail a\ncrash b"


def test_limits_that_are_needed_stay() -> None:
    assert small(LONG, "min=2", "max=4") == "world nodes=4 min=2 max=4"


def test_settings_that_forbid_each_other_are_passed_over() -> None:
    assert small("world nodes=1 max=1 attempts=6 overdue=9 fence=4", "fence=4") == (
        "world nodes=1 max=1 attempts=6 overdue=9 fence=4"
    )


def test_a_story_that_breaks_another_property_is_not_taken() -> None:
    first = breaks(lambda story: True, "X1")(parsed(LONG.splitlines()))
    assert shrunk(first, again=breaks(lambda story: True, "X2")) is first


def test_the_time_it_may_take_is_bounded() -> None:
    again = breaks(lambda story: True)
    first = again(parsed(LONG.splitlines()))
    assert shrunk(first, 0, again) is first
    assert str(shrunk(first, 1, again).story) == str(first.story).splitlines()[0]


def test_a_run_that_broke_nothing_stays_as_it_is() -> None:
    run = tell(parsed(["world", "start a", "start b", "start c"]))
    assert run.violation is None
    assert shrunk(run) is run


@pytest.mark.parametrize("text", [LONG, "world", "world nodes=2 max=2 fence=3\nstart a\npass 1"])
def test_no_try_is_the_story_itself(text: str) -> None:
    story = parsed(text.splitlines())
    tries = list(smaller_stories(story))
    assert tries
    assert story not in tries


# --- real runs, by a property of the caller's own


def two_in(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Wrote) and len(fact.after.participants) > 1:
        yield "two", f"{len(fact.after.participants)} nodes are in"


def told(*lines: str) -> Run:
    return tell(parsed(lines), also=(two_in,))


def test_operations_that_are_not_needed_are_left_out() -> None:
    run = told(
        "world min=2", "start c", "pass 0.5", "gap c", "pass 0.5", "start a", "pass 1", "fail a", "start b", "crash b"
    )
    smaller = shrunk(run)
    assert smaller.violation
    assert smaller.violation.number == "two"
    assert len(smaller.story.operations) <= 2


def test_settings_become_plainer_while_the_same_property_breaks() -> None:
    lines = ("start a", "start b", "start c", "start d", "pass 1")
    run = told("world nodes=6 min=1 max=4 workers=2 seed=9 drift=0.01 fence=3 barrier=2", *lines)
    setting = shrunk(run).story.setting
    assert (setting.seed, setting.drift, setting.workers, setting.fence, setting.barrier) == (0, 0, 1, 0, 0)
    assert (setting.nodes, setting.limits.max_nodes) == (2, 2)


def test_a_world_of_segments_is_tried_with_as_few_nodes_as_its_racks_make_segments_of() -> None:
    story = parsed(["world nodes=6 min=2 max=4 unit=2 racks=2", "start a", "start c", "start e", "pass 1"])
    tried = {each.setting.nodes for each in smaller_stories(story) if each.setting.racks}
    assert tried == {3, 4, 5, 6}
    few = parsed(["world nodes=4 min=4 max=4 unit=2 racks=2", "start a", "pass 1"])
    assert {each.setting.nodes for each in smaller_stories(few) if each.setting.racks} == {3, 4}


def test_waits_that_follow_each_other_become_one() -> None:
    def late(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
        if isinstance(fact, Stepped) and fact.after.phase is Phase.LEAVING and fact.at > 0.9:
            yield "late", "it leaves after so long"

    lines = ["world nodes=1 max=1", "start a", "pass 0.5", "pass 0.5", "drain a"]
    run = tell(parsed(lines), also=(late,))
    assert [str(each) for each in shrunk(run).story.operations] == ["start a", "pass 1", "drain a"]
    assert all(shrunk(run, tries).violation for tries in range(20))


def test_two_waits_in_a_row_are_tried_as_one_of_their_sum() -> None:
    lines = ["world nodes=3 max=3", "start a", "start b", "start c", "pass 0.5", "pass 0.25", "drain a", "crash b"]
    tries = [[str(each) for each in story.operations] for story in smaller_stories(parsed(lines))]
    assert ["start a", "start b", "start c", "pass 0.75", "drain a", "crash b"] in tries


@pytest.mark.parametrize("tries", [0, 1, 3])
def test_no_more_tries_are_made_than_are_allowed(tries: int) -> None:
    """A search that is cut short still returns a run that breaks the same property."""
    tried = list[Story]()

    def again(story: Story) -> Run:
        tried.append(story)
        return tell(story, also=(two_in,))

    smaller = shrunk(told("world min=2", "start a", "gap a", "start b", "pass 1"), tries, again)
    assert len(tried) == tries
    assert smaller.violation
    assert smaller.violation.number == "two"


def test_a_run_that_is_not_brought_to_its_end_ends_with_its_story() -> None:
    run = tell(parsed(["world nodes=1 max=1", "start a", "pass 1"]), ends=False)
    assert run.world.future.now == 1.0
    assert any(run.world.living())
