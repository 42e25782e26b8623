"""ARCHITECTURE.md shows what the code does, not what it once did."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from elastic.core import group, inprocess

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
ROOMS = ("core", "adapters", "cli")


@pytest.mark.parametrize("machine", [group, inprocess], ids=["worker group", "call"])
def test_the_diagram_of_a_machine_is_the_one_that_its_table_draws(machine: ModuleType) -> None:
    assert f"```mermaid\n{machine.diagram()}\n```" in ARCHITECTURE.read_text(), f"paste this:\n{machine.diagram()}"


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
