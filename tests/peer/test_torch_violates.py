"""torch's own code breaks a property in each of the shortest stories, and our agents keep it in the same story.

A new torch that mends one of them fails here, and then the report is corrected.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
import torch.distributed as dist
from attrs import evolve
from fibres import Fibre
from processes import comes_true
from torch.distributed.elastic.agent.server.api import SimpleElasticAgent
from torchstories import PINS, WORDS
from torchtold import told

from elastic.core.group import Outcome
from elastic.core.rendezvous import RendezvousState, Status
from elastic.core.sim import run
from elastic.core.sim.story import Story, name, parsed
from elastic.core.world import Ending, Verdict


def ours(story: Story, ends: bool = True) -> run.Run:
    """Return the run of our agents with this story, in which they must break no property."""
    said = run.tell(story, ends=ends)
    assert said.violation is None
    return said


def outcomes(said: run.Run) -> dict[str, Outcome | None]:
    return {name(node): process.agent.outcome for node, process in said.world.by_node.items()}


def endings(said: run.Run) -> set[Ending | None]:
    """Return the endings of all agents that have ended."""
    ended = [process.agent.outcome for process in said.world.by_node.values() if process.agent.outcome is not None]
    return {each.ending if isinstance(each, Verdict) else None for each in ended}


def register(said: run.Run) -> RendezvousState:
    state = said.world.store.register
    assert state is not None
    return state


def seats(said: run.Run) -> dict[str, Status]:
    return {name(node): seat.status for node, seat in register(said).seats.items()}


@pytest.mark.parametrize("which", PINS)
def test_torch_breaks_the_property_of_the_story(which: str) -> None:
    pin = PINS[which]
    found = told(pin.story, pin.peers).findings
    assert set(pin.breaks) <= {finding.number for finding in found}, found
    assert {finding.number for finding in found} <= WORDS.keys()


@pytest.mark.parametrize("which", PINS)
def test_ours_keeps_all_its_properties_and_all_end_alike(which: str) -> None:
    assert len(endings(ours(PINS[which].story))) == 1


def test_one_failure_with_a_spare_costs_ours_one_round_and_torch_one_every_second() -> None:
    story = PINS["storm"].story
    assert register(ours(story, ends=False)).round == 1
    assert told(story, ends=False).register.round > 20


def test_ours_gives_the_spare_no_seat_of_a_live_member() -> None:
    said = seats(ours(PINS["seat"].story, ends=False))
    assert said == {"a": Status.IN, "b": Status.IN, "c": Status.WAITING}


def test_ours_evicts_nobody_for_an_outage_or_for_a_clock() -> None:
    for which in ("outage", "clock"):
        assert not any(process.main.evicted for process in ours(PINS[which].story).world.by_node.values())


def test_ours_takes_the_node_that_stood_still_in_again() -> None:
    said = ours(PINS["pause"].story, ends=False)
    assert register(said).complete and seats(said) == dict.fromkeys("abc", Status.IN)


def test_ours_tells_the_others_of_a_death() -> None:
    said = ours(PINS["lost"].story, ends=False)
    assert register(said).complete and seats(said) == dict.fromkeys("ab", Status.IN)


def test_a_death_costs_ours_no_restart_even_where_the_survivors_workers_fail_of_it() -> None:
    lines = ("world nodes=3 min=2 max=3", "start a", "start b", "start c", "pass 5", "crash c", "pass 1")
    said = ours(parsed((*lines, "fail a", "fail b", "pass 30")), ends=False)
    assert register(said).complete and register(said).failures == 0


def test_ours_ends_a_mixed_job_with_one_verdict_at_once() -> None:
    said = ours(PINS["mixed"].story, ends=False)
    assert endings(said) == {Ending.FAILED} and all(outcomes(said).values())


def test_ours_spends_the_jobs_budget_whoever_fails() -> None:
    assert endings(ours(PINS["budget"].story, ends=False)) == {Ending.FAILED}


def test_without_faults_torch_breaks_nothing() -> None:
    world = told(parsed(("world nodes=3 min=2 max=3", "start a", "start b", "start c", "pass 20")))
    assert not world.findings
    assert [process.outcome for process in world.processes] == ["succeeded"] * 3


def test_a_restart_of_all_members_without_spares_is_clean_in_torch_too() -> None:
    lines = ("world nodes=3 min=2 max=3", "start a", "start b", "start c", "pass 5", "fail a", "pass 20")
    world = told(parsed(lines))
    assert not world.findings
    assert world.counts["rounds completed"] == 2


@pytest.mark.parametrize("which", ["storm", "clock"])
def test_a_run_of_torch_is_the_same_every_time(which: str) -> None:
    def lines() -> list[tuple[float, str, str]]:
        heard = list[tuple[float, str, str]]()
        story = evolve(PINS[which].story, setting=evolve(PINS[which].story.setting, seed=11))
        told(story, PINS[which].peers, lambda *line: heard.append(line), ends=False)
        return heard

    first = lines()
    assert len(first) > 10 and first == lines()


def test_nothing_of_a_world_stays_behind_in_torch() -> None:
    """Neither the clock nor a thread stays behind."""
    clock = SimpleElasticAgent._invoke_run.__globals__["time"]
    threads = set(threading.enumerate())
    world = told(PINS["spare"].story)
    assert clock is time and SimpleElasticAgent._invoke_run.__globals__["time"] is time
    assert comes_true(lambda: set(threading.enumerate()) <= threads)  # what has just been left is still on its way out
    assert Fibre.current is None and not world.owners


def test_a_call_that_waits_holds_up_all_others_of_its_connection() -> None:
    """With a real TCPStore, a node that waits at the exit barrier cannot send heartbeats.

    The simulated store is kinder to torch: there, calls of one process do not wait for each other.
    """
    server: Any = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    client: Any = dist.TCPStore("localhost", server.port, is_master=False)  # type: ignore[attr-defined]

    def waits() -> None:
        with pytest.raises(dist.DistStoreError):
            client.wait(["never set"], timedelta(seconds=1))

    def held_up() -> float:
        thread = threading.Thread(target=waits)
        thread.start()
        time.sleep(0.2)
        before = time.monotonic()
        client.set("heartbeat", "1")
        span = time.monotonic() - before
        thread.join()
        return span

    assert any(held_up() > 0.3 for _ in range(5))
