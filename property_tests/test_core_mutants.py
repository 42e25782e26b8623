"""Plausible bugs of the core (mutants.toml), one at a time. Its recorded story, or its directed test, kills each of them.

The core itself breaks nothing in the same stories. `tools/mutation.py` makes the mutants and looks for the stories, and
docs/mutants.md lists what it has found.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Mapping

import mutation
import pytest
from mutation import Answer, Mutant, number_of, operations_of

from elastic.core.sim.run import tell
from elastic.core.sim.story import parsed
from elastic.core.sim.tally import LAWS

MUTANTS = mutation.mutants()
BY_STORY = [each for each in MUTANTS if not each.test]
NAMES = [each.name for each in MUTANTS]
MEDIAN, LONGEST = 15, 30
"""Limits for the operations of a shrunk story: nobody reads a longer one."""
SIMULATOR_ALONE = {"core/rendezvous": 0.66, "core/group": 0.76, "core": 0.34}
"""The share of the mutants that a story of the simulator must kill. Many of the others cost time or requests and break no
property, or are of what no simulated world draws, as programs. Directed tests kill those (docs/SAFETY.md)."""


def test_a_mutant_that_is_no_python_is_found_and_no_reason_why_a_change_survives_stands_twice() -> None:
    """`make lint` asks so of all mutants. tools/cosmic.py tries all changes for hours: it reports one without a reason."""
    broken = Mutant("no Python", (mutation.Edit("values.py", "from __future__", "from from __future__"),), "")
    assert any("invalid syntax" in line for line in mutation.drifted([broken])), "any test would kill it"
    rows = tomllib.loads(mutation.SURVIVORS.read_text())["survivor"]
    assert len({(row["file"], row["old"], row["new"]) for row in rows}) == len(rows)


@pytest.fixture(scope="module")
def killers() -> Mapping[str, Answer]:
    """Return what kills each mutant now."""
    command = [sys.executable, mutation.__file__, "check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2_400)  # 1: some are alive
    return {answer["mutant"]: answer for answer in map(json.loads, checked.stdout.splitlines())}


@pytest.mark.long
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_mutant_is_killed_by_what_is_recorded(mutant: Mutant, killers: Mapping[str, Answer]) -> None:
    assert mutant.name in killers, "the check came to no end"
    killer = killers[mutant.name]
    assert "drifted" not in killer, killer["drifted"]
    if mutant.test:
        assert killer.get("test") == mutant.test
    else:
        assert killer.get("number") == number_of(mutant), killer


@pytest.mark.parametrize("mutant", BY_STORY, ids=[each.name for each in BY_STORY])
def test_the_core_breaks_nothing_in_the_same_story(mutant: Mutant) -> None:
    assert tell(parsed(mutant.story.read_text().splitlines())).violation is None


def test_stories_are_short_enough_to_be_read() -> None:
    sizes = [operations_of(each) for each in BY_STORY]
    assert statistics.median(sizes) <= MEDIAN
    assert max(sizes) <= LONGEST


@pytest.mark.parametrize("room", SIMULATOR_ALONE)
def test_the_simulator_alone_kills_most_mutants_of_what_decides(room: str) -> None:
    alone, all = mutation.shares(MUTANTS)[room]
    assert alone >= SIMULATOR_ALONE[room] * all


def test_there_is_no_story_without_its_mutant() -> None:
    assert {path.name for path in mutation.RECORDED.iterdir()} == {each.story.name for each in BY_STORY}


def test_a_property_that_kills_no_mutant_says_why_it_is_kept() -> None:
    quiet = LAWS.keys() - {number_of(each) for each in BY_STORY}
    assert quiet == tomllib.loads(mutation.TABLE.read_text())["quiet"].keys()


def test_the_document_is_what_is_recorded() -> None:
    assert mutation.DOCUMENT.read_text() == mutation.document(MUTANTS)


def test_one_more_mutant_changes_its_own_row_and_the_count_of_its_room() -> None:
    with_all = mutation.document(MUTANTS).splitlines()
    for each in (BY_STORY[0], next(each for each in MUTANTS if each.test)):
        without = mutation.document([other for other in MUTANTS if other is not each]).splitlines()
        assert len(set(with_all) - set(without)) == 2
        assert len(set(without) - set(with_all)) == 1
