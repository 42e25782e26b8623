"""Stories in which the simulator once broke a property, and shrank to a few operations: now they break none."""

from __future__ import annotations

from pathlib import Path

import pytest

from elastic.core.sim.run import tell
from elastic.core.sim.story import parsed

STORIES = sorted(Path(__file__).with_name("stories").glob("*.story"))


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_what_was_broken_once_is_not_broken_again(path: Path) -> None:
    run = tell(parsed(path.read_text().splitlines()))
    assert run.violation is None, run.violation


def test_there_are_stories() -> None:
    assert STORIES
