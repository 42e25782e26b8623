"""The front of the core: `from elastic import core`, and its rooms by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elastic import core
from elastic.core import inprocess, policies, replay
from elastic.core.replay import chronicle


def test_rooms_that_an_agent_may_not_need_are_imported_when_they_are_named() -> None:
    assert core.__getattr__("inprocess") is inprocess
    assert core.__getattr__("policies") is policies
    assert (core.inprocess, core.policies) == (inprocess, policies)


def test_the_core_is_an_attribute_of_the_package_that_is_imported_when_it_is_named() -> None:
    program = (
        "import elastic, sys; assert 'elastic.core' not in sys.modules; print(elastic.core.rendezvous.Client.__name__)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "Client\n"
    )


def test_a_name_that_is_no_room_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"module 'elastic\.core' has no attribute 'sim_'"):
        core.__getattr__("sim_")


def test_the_names_of_replay_are_imported_when_they_are_used() -> None:
    assert replay.__getattr__("told") is chronicle.told
    assert {*replay.__all__} <= {*vars(chronicle)}
    with pytest.raises(AttributeError, match=r"module 'elastic\.core\.replay' has no attribute 'tell'"):
        replay.__getattr__("tell")
