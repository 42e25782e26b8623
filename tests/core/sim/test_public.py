"""`from elastic.core import sim`: all that a model-based test needs, and nothing before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elastic.core import sim
from elastic.core.sim import public


def test_every_name_can_be_had_from_the_room_itself() -> None:
    assert sim.__all__ == public.__all__
    assert all(getattr(sim, name) is getattr(public, name) for name in sim.__all__)


def test_a_name_that_is_not_there_is_told_as_ever() -> None:
    with pytest.raises(AttributeError, match=r"module 'elastic.core.sim' has no attribute 'nothing'"):
        sim.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("imported", ["import elastic.core", "import elastic.core.sim", "import elastic.cli.root"])
def test_nothing_of_the_simulator_is_imported_by_those_who_do_not_run_it(imported: str) -> None:
    """An agent that can write a trace needs files of this room, and no world."""
    program = f"import sys; {imported}; print('elastic.core.sim.world' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "False\n"
