"""`from elastic.core import sim` has all that a model-based test needs, and a writer of traces imports none of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elastic.core import sim


def test_every_name_can_be_had_from_the_room_itself() -> None:
    assert sim.__all__ == sorted(sim.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(sim, name) for name in sim.__all__)


@pytest.mark.parametrize(
    "imported", ["import elastic.core", "import elastic.adapters.report.trace_file", "import elastic.cli.root"]
)
def test_an_agent_that_writes_a_trace_imports_nothing_of_the_simulator(imported: str) -> None:
    """A writer of traces needs files of core.replay only."""
    program = f"import sys; {imported}; print([m for m in sys.modules if m.startswith('elastic.core.sim')])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "[]\n"
