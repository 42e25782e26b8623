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


def test_every_module_has_its_place_in_the_table_of_rooms_and_every_place_its_module() -> None:
    """By its name; several modules may share one, in different rooms."""
    (table,) = re.findall(r"^## The rooms\n(.*?)^## ", ARCHITECTURE.read_text(), re.DOTALL | re.MULTILINE)
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if file.name != "__init__.py"]
    modules = {file.stem for file in files}
    folders = {part for file in files for part in file.relative_to(ROOT).parts[:-1]} | {"tests", "property_tests"}
    first_cells = "\n".join(row.split(" | ")[0] for row in table.splitlines() if row.startswith("| "))
    assert sorted(modules - _named(table)) == []
    assert sorted(_named(first_cells) - modules - folders) == []


def _named(text: str) -> set[str]:
    return {name.removesuffix(".py").split("/")[-1] for name in re.findall(r"`([\w./]*\w)/?`", text)}
