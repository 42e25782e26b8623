"""Every story goes as it is told. REWRITE=1 records how it goes now."""

from __future__ import annotations

from pathlib import Path

import pytest
from group_teller import GroupTeller
from register_teller import RegisterTeller
from storybook import Teller, check

STORIES = sorted(Path(__file__).parent.glob("*.story"))
TELLERS: dict[str, type[RegisterTeller] | type[GroupTeller]] = {".register": RegisterTeller, ".group": GroupTeller}


@pytest.mark.parametrize("path", STORIES, ids=[path.name.removesuffix(".story") for path in STORIES])
def test_a_story_goes_as_it_is_told(path: Path) -> None:
    teller: Teller = TELLERS[path.with_suffix("").suffix]()
    check(path, teller)
