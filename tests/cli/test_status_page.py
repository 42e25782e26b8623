"""What the page's port tells Prometheus of a job's nodes."""

from __future__ import annotations

import json
import math
from contextlib import closing

import pytest
from attrs import evolve
from narration import FAULT
from worlds import node, running

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import TIMES, StandbyNote
from elastic.adapters.web_server import WebServer
from elastic.cli.looking import Looking, _Beat
from elastic.cli.render.history import History
from elastic.cli.render.job import Job
from elastic.cli.render.page import shown
from elastic.cli.status_page import _metrics, _tell
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.rendezvous import RendezvousState
from elastic.core.world import Node, name_of

FIRST, SECOND = "10.0.0.1/0123abcd", "10.0.0.1/torchrun-4567cdef"


def on_one_host(names: str) -> RendezvousState:
    state = running(names)
    return evolve(
        state, seats={each: evolve(seat, profile=evolve(seat.profile, host="vm")) for each, seat in state.seats.items()}
    )


def scraped(job: Job) -> list[str]:
    """Return the samples that name a node."""
    looking = Looking(MemoryBackend(MemoryStore(), SystemClock()), History(job))
    looking._beats = {each: _Beat(1, looking.at(), 0.0) for each in job.state.seats} if job.state else {}
    return [line for line in _metrics(looking).body.decode().splitlines() if "{node=" in line]


def test_a_counter_keeps_its_node_and_never_falls_whoever_else_is_there() -> None:
    job = Job("train", "gpu-01:29400", on_one_host("a b"), faults=(evolve(FAULT, node=node("b"), host="vm"),))
    for state in (job.state, on_one_host("a"), on_one_host("a b#2"), None):
        found = [line for line in scraped(evolve(job, state=state)) if "failures" in line]
        assert 'elastic_failures_total{node="b"} 1.0' in found and not any('"vm"' in line for line in found)


def test_a_node_without_an_id_goes_by_its_host() -> None:
    assert [name_of(Node(slot, 1), "vm") for slot in ("gpu-02", "rack/7", FIRST, SECOND)] == [
        *("gpu-02", "rack/7"),
        *("vm", "vm"),
    ]
    state = on_one_host(f"{FIRST} {SECOND}")
    notes = dict.fromkeys(state.seats, StandbyNote(2, None))
    found = scraped(Job("train", "gpu-01:29400", state, standbys=notes))
    assert [line for line in found if "age" not in line] == [
        'elastic_failures_total{node="vm"} 0.0',
        'elastic_standbys{node="vm"} 4.0',
    ]
    assert sum("elastic_heartbeat_age_seconds" in line for line in found) == 1


def test_the_time_of_nodes_is_that_of_their_records_and_no_counter_goes_back() -> None:
    """Agents of one host are added up, and a run that is not over is no part of it."""
    state, store = on_one_host(f"{FIRST} {SECOND}"), MemoryStore()
    backend = MemoryBackend(store, SystemClock())
    backend.set(state, None)
    looking = Looking(backend, History(Job("train", "gpu-01:29400", None)))
    for micros in (2_000_000, 1_000_000, None):
        for each in state.seats:
            if micros is None:  # a store that has lost its memory is told again one by one
                backend.notes.drop(TIMES, [each])
                break
            record = NodeRecord(each, Spent({("waiting", "loss"): micros}, run=9_000_000))
            backend.notes.put(TIMES, each, record)
        looking._faults_at = looking.read_at = -math.inf
        looking.look()
        told = [line for line in _metrics(looking).body.decode().splitlines() if "elastic_node_seconds_total{" in line]
        assert told == [
            'elastic_node_seconds_total{bucket="starting",cause="failure",node="vm"} 0.0',
            'elastic_node_seconds_total{bucket="waiting",cause="loss",node="vm"} 4.0',
        ]
    bar = json.loads(shown(looking.history, 0.0, None))["goodput"]
    assert bar["bar"][0] == {"text": "90.0 % running", "share": 0.9, "look": "running"}
    assert bar["lines"][0].startswith("90.0 % running · 10.0 % waiting · lost in all: 1 s of 1 agent")


@pytest.mark.parametrize(("scope", "causes"), [("group", [False, True]), ("rank", [True, False])])
def test_the_first_cause_is_what_the_job_s_launchers_report(scope: str, causes: list[bool]) -> None:
    """Where workers restart alone, a failure that was mended is none."""
    state = running("a b", restarts=1)
    state = evolve(state, limits=evolve(state.limits, agreed=f"--restart-scope={scope} --rdzv-conf=x"))
    mended, missing = (evolve(FAULT, node=node("b"), round=0, rank=rank) for rank in (0, 1))
    job = Job("train", "gpu-01:29400", state, faults=(mended, missing))
    with closing(WebServer("localhost", 0, {}, "/events")) as server:
        _tell(Looking(MemoryBackend(MemoryStore(), SystemClock()), History(job)), server)
        _, event = server.events["state"]
    told = json.loads(event())
    assert [each["cause"] for each in told["failures"]] == causes
