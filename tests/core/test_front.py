"""The front of the core: `from elastic import core`, and its rooms by name."""

from __future__ import annotations

import pytest

from elastic import core
from elastic.core import inprocess, policies


def test_rooms_that_an_agent_may_not_need_are_imported_when_they_are_named() -> None:
    assert core.__getattr__("inprocess") is inprocess
    assert core.__getattr__("policies") is policies
    assert (core.inprocess, core.policies) == (inprocess, policies)


def test_a_name_that_is_no_room_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"module 'elastic\.core' has no attribute 'sim_'"):
        core.__getattr__("sim_")
