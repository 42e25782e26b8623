"""A story is made smaller while it still breaks what it broke: by operations first, then by plainer words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from elastic.core.rendezvous import Violation
from elastic.core.sim.run import Run, tell
from elastic.core.sim.shrink import PAIRS_MAX, shrunk, smaller_stories
from elastic.core.sim.story import Story, parsed
from elastic.core.sim.world import World

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
    """A teller to whom a story breaks something when its text says so."""

    def again(story: Story) -> Run:
        broken = Violation(number, "as it was needed") if needed(str(story)) else None
        return Run(story, World(story.setting), broken)

    return again


def small(text: str, *needed: str, tries: int = 3_000) -> str:
    again = breaks(lambda story: all(word in story for word in needed))
    return str(shrunk(again(parsed(text.splitlines())), tries, again).story)


def test_only_what_is_needed_is_left() -> None:
    assert small(LONG) == "world nodes=1 max=1"
    assert small(LONG, "fail") == "world nodes=1 max=1\nfail a"
    assert small(LONG, "backend=lease", "pass") == "world nodes=1 max=1 backend=lease\npass 1"


def test_waits_become_one_and_round() -> None:
    needed = breaks(lambda story: sum(float(line[5:]) for line in story.splitlines() if line.startswith("pass")) >= 8)
    run = shrunk(needed(parsed(LONG.splitlines())), again=needed)
    assert str(run.story) == "world nodes=1 max=1\npass 10"


def test_two_that_only_together_can_go_are_left_out() -> None:
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
    assert small("world nodes=1 max=1 attempts=6 fence=4", "fence=4") == "world nodes=1 max=1 attempts=6 fence=4"


def test_another_violation_is_not_what_was_looked_for() -> None:
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
def test_every_try_is_smaller(text: str) -> None:
    story = parsed(text.splitlines())
    assert story not in list(smaller_stories(story))
