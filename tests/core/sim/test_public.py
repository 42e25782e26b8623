"""`from elastic.core import sim` has all that a model-based test needs, and a writer of traces imports none of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from elastic.core import sim
from elastic.core.inprocess.words import Returned
from elastic.core.sim import calls


@pytest.mark.parametrize("room", [sim, calls])
def test_every_name_can_be_had_from_the_room_itself(room: ModuleType) -> None:
    assert room.__all__ == sorted(room.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(room, name) for name in room.__all__)


def test_the_page_has_a_row_for_each_name_of_a_world_of_calls_and_for_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "simulate.md").read_text()
    table = page.partition("`elastic.core.sim.calls` has all")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)", " ".join(cells))) == sorted(calls.__all__)


def test_a_world_of_calls_is_driven_by_hand() -> None:
    """As the room's own text says."""
    noted: list[str] = []
    world = calls.beginning(calls.Shape(ranks=2))
    while moves := calls.prompt(world):
        world = calls.step(world, moves[0], note=noted.append)
    assert [rank.returned for rank in world.ranks] == [Returned(0), Returned(0)]


@pytest.mark.parametrize(
    "imported", ["import elastic.core", "import elastic.adapters.report.trace_file", "import elastic.cli.root"]
)
def test_an_agent_that_writes_a_trace_imports_nothing_of_the_simulator(imported: str) -> None:
    """A writer of traces needs files of core.replay only."""
    program = f"import sys; {imported}; print([m for m in sys.modules if m.startswith('elastic.core.sim')])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "[]\n"
