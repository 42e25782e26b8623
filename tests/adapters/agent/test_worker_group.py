"""The workers of one node, as the agent knows them: whose report it was, and whom a look disturbs."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest
from groups import world
from processes import unloadable
from worlds import node

from elastic.adapters.agent.watchdogs import Watchdogs
from elastic.adapters.agent.worker_group import WorkerGroup
from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import WatchdogSettings
from elastic.adapters.store.notes import EarlyEnds
from elastic.adapters.workers.messages.reports import Report, What
from elastic.adapters.workers.start.attempts import Attempt
from elastic.adapters.workers.start_up import StackHandler
from elastic.adapters.workers.worker_port import WorkerSpec
from elastic.core.group.state import Exiting
from elastic.core.ranks import assign


class Silent(SimpleNamespace):
    """It has whatever it is asked for, and none of it matters."""

    def __getattr__(self, name: str) -> Any:
        return None


def group(running: dict[int, int]) -> WorkerGroup:
    settings = SimpleNamespace(group=SimpleNamespace(alone=None))
    nothing = cast(Any, Silent())
    made = WorkerGroup(
        cast(Any, Silent(settings=settings, clock=SystemClock())),
        nothing,
        nothing,
        nothing,
        nothing,
        None,
        nothing,
        nothing,
    )
    made._uncollected = running
    return made


@pytest.mark.parametrize(("running", "counts"), [({0: 7}, True), ({0: 8}, False), ({1: 7}, False), ({}, False)])
def test_what_a_process_reported_is_not_held_against_the_one_that_has_its_place_now(
    running: dict[int, int], counts: bool
) -> None:
    """The report may be taken after the worker was collected, and started again alone."""
    told = group(running).reported(0, 7, Report(What.ENDING, 1.0, 1.0))
    assert isinstance(told, Exiting) is counts


def test_a_worker_whose_timer_has_expired_has_no_stack_where_a_look_cannot_be_loaded() -> None:
    """It is ended all the same."""
    nothing = cast(Any, Silent())
    watchdogs = Watchdogs(WatchdogSettings(), nothing, nothing, nothing, nothing, StackHandler(40, 1023))
    with unloadable("elastic.adapters.workers.watch.stacks"):
        assert watchdogs._callstack(os.getpid()) == ""


def test_a_worker_that_raised_is_left_to_write_its_traceback_before_it_is_stopped() -> None:
    made, looked = group({0: 7, 1: 8}), []
    made._raised = {8}
    vars(made)["_seen"] = lambda pids, attempts, ends: looked.append((pids, ends))
    made.see()
    assert looked == [({0: 7}, True)]


class Quiet(SimpleNamespace):
    """It does whatever it is told, and nothing of it matters."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


def test_who_ended_early_is_told_again_by_the_ranks_of_the_next_world() -> None:
    told, ranks = list[EarlyEnds](), assign(world(0))[node("a")]
    made = group({})
    made._node, made._ends, made._work = node("a"), cast(Any, Quiet()), cast(Any, Quiet())
    made._tell_early_ends = told.append
    spec = WorkerSpec(1, ("x",), {})
    made._attempts = {1: Attempt(node("a"), "host", 0, ranks, spec, None)}
    made._ended_when = {1: "12:00"}
    made.move(world(1))
    assert told == [EarlyEnds(1, ((1, "12:00"),))]
