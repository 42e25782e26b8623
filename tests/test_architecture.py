"""README.md and ARCHITECTURE.md stay short, and show the rooms and the moves that the code has."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from elastic.core import group, inprocess

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PROTOCOL = ROOT / "docs" / "protocol.md"
ROOMS = ("core", "adapters", "cli", "inprocess")
LINES_MAX = {"README.md": 150, "ARCHITECTURE.md": 250}


@pytest.mark.parametrize("page", LINES_MAX)
def test_a_page_that_everybody_reads_first_is_short(page: str) -> None:
    assert len((ROOT / page).read_text().splitlines()) <= LINES_MAX[page]


@pytest.mark.parametrize("machine", [group, inprocess], ids=["worker group", "call"])
def test_the_diagram_of_a_machine_is_the_one_that_its_table_draws(machine: ModuleType) -> None:
    assert f"```mermaid\n{machine.diagram()}\n```" in PROTOCOL.read_text(), f"paste this:\n{machine.diagram()}"


def test_every_room_has_its_place_in_the_table_and_every_place_its_room() -> None:
    """A room is a package, or a module right under core/ that holds a thought of its own; the files tell what they are."""
    (table,) = re.findall(r"^## The rooms\n(.*?)^## ", ARCHITECTURE.read_text(), re.DOTALL | re.MULTILINE)
    packages = {file.parent.relative_to(ROOT) for room in ROOMS for file in (ROOT / room).rglob("*.py")}
    first_cells = "\n".join(row.split(" | ")[0] for row in table.splitlines() if row.startswith("| "))
    named = {name.rstrip("/").split("/")[-1] for name in re.findall(r"`([\w./]*\w/?)`", first_cells)}
    rooms = {package.name for package in packages if len(package.parts) > 1} | {"cli"}
    modules = {file.name for file in (ROOT / "core").glob("*.py")}
    assert sorted(rooms - named) == []
    assert sorted(named - rooms - modules) == []


def test_every_decision_says_what_speaks_against_it() -> None:
    (decisions,) = re.findall(r"^## Design decisions\n(.*?)^## ", ARCHITECTURE.read_text(), re.DOTALL | re.MULTILINE)
    sections = re.split(r"^### ", decisions, flags=re.MULTILINE)[1:]
    assert len(sections) > 10
    assert [section.splitlines()[0] for section in sections if "**Against:**" not in section] == []
