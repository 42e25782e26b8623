"""torch's events and metrics of real jobs, run by the agent in this process."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.elastic.events.api import Event as TorchEvent

from elastic.adapters.agent.agent import Agent
from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import Kind, LaunchSettings, Logs, Program, WatchdogSettings
from elastic.adapters.report.news import News
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.torch.metrics import Metric, Metrics
from elastic.adapters.torch.torch_events import Event, Events
from elastic.core import group, rendezvous

CLOCK = SystemClock()


class Told:
    """An observer that has both rendered."""

    until = None

    def __init__(self, settings: LaunchSettings) -> None:
        self._events, self._metrics = Events(settings, "c10d", CLOCK), Metrics(settings, CLOCK)
        self.events: list[Event] = []
        self.metrics: list[Metric] = []

    def saw(self, news: News) -> None:
        self.events.extend(self._events.of(news))
        self.metrics.extend(self._metrics.of(news))

    def passed(self, now: float) -> None:
        pass

    def run(self, settings: LaunchSettings) -> Told:
        Agent(settings, MemoryBackend(MemoryStore(), CLOCK), CLOCK, self).run()
        self.events.extend(self._events.last())
        return self

    @property
    def states(self) -> list[tuple[str, str, int | None]]:
        return [
            (event.source, event.metadata["state"], event.metadata["global_rank"])
            for event in self.events
            if event.metadata["state"] != "ASSIGN_WORKER_RANKS"
        ]

    def values(self, part: str) -> dict[str, int]:
        return {metric.name: metric.value for metric in self.metrics if part in metric.name}


@pytest.fixture
def environment(nothing_left: str) -> dict[str, str]:
    return dict(os.environ)


def told(script: str, environment: dict[str, str], restarts: int = 0, **others: Any) -> Told:
    meeting = rendezvous.Settings(rendezvous.Limits(1, 1, restarts))
    made = LaunchSettings(
        Program(Kind.BINARY, "sh", ("-c", script.replace("$", "$$"))),
        **{
            "local_world_size": 2,
            "run_id": "job7",
            "rendezvous": meeting,
            "environment": environment,
            "logs": Logs("/dev/null"),
            **others,
        },
    )
    return Told(made).run(made)


FAILS_ONCE = "[ $RANK$ELASTIC_ROUND = 10 ] && exit 3; [ $ELASTIC_ROUND = 1 ] || exec sleep 1000"


def test_every_worker_that_starts_ends_and_the_agent_last(environment: dict[str, str]) -> None:
    found = told(FAILS_ONCE, environment, restarts=1).states
    assert found[:3] == [("AGENT", "RENDEZVOUS", None), ("WORKER", "START", 0), ("WORKER", "START", 1)]
    assert set(found[3:5]) == {("WORKER", "FAILED", 1), ("WORKER", "TERMINATED", 0)}
    assert found[5:8] == found[:3]
    assert sorted(found[8:10]) == [("WORKER", "SUCCEEDED", 0), ("WORKER", "SUCCEEDED", 1)]
    assert found[10:] == [("AGENT", "SUCCEEDED", None)]


def test_the_values_are_true(environment: dict[str, str]) -> None:
    before = int(time.time() * 1000)
    found = told(FAILS_ONCE, environment, restarts=1)
    after = int(time.time() * 1000) + 1
    stamps = [event.timestamp for event in found.events]
    assert before <= min(stamps) <= max(stamps) <= after
    failed = next(event for event in found.events if event.metadata["state"] == "FAILED")
    started = found.events[3]
    details = json.loads(failed.metadata["metadata"])
    assert details == {
        "group_world_size": 1,
        "entry_point": "sh",
        "local_rank": [1],
        "role_rank": [1],
        "role_world_size": [2],
        "exit_code": [3],
        "worker_pid": [int(started.metadata["worker_id"])],
    }
    assert (started.metadata["state"], started.metadata["global_rank"]) == ("START", 1)
    assert [event.metadata["agent_restarts"] for event in found.events][::10] == [0, 1]
    rendezvous_ms = found.events[0].metadata["duration_ms"]
    assert 0 < rendezvous_ms < after - before


def test_a_failed_worker_comes_with_what_its_error_file_said(environment: dict[str, str], tmp_path: object) -> None:
    content = {"message": {"message": "boom", "extraInfo": {"py_callstack": "Traceback", "timestamp": "17"}}}
    script = f"echo '{json.dumps(content)}' > $TORCHELASTIC_ERROR_FILE; exit 1"
    found = told(script, environment, local_world_size=1, logs=Logs(str(tmp_path)))
    (failed, agent) = (event for event in found.events if event.metadata["state"] == "FAILED")
    assert json.loads(failed.metadata["raw_error"]) == content
    assert (agent.source, agent.metadata["raw_error"]) == ("AGENT", f"failed: failed (round 0, by {agent_of(agent)})")


def test_a_worker_that_is_started_again_alone_starts_and_ends_by_its_own_process_id(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = f"mkdir {tmp_path}/once 2>/dev/null && exit 3; mkdir {tmp_path}/twice 2>/dev/null && exit 4; exit 0"
    scope = group.Settings(alone=group.Alone(2))
    found = [event.metadata for event in told(script, environment, local_world_size=1, group=scope).events]
    pids = [each["worker_id"] for each in found if each["state"] == "START"]
    assert len(set(pids)) == 3
    failed = [each for each in found if each["state"] == "FAILED"]
    assert [each["worker_id"] for each in failed] == pids[:2]
    assert [json.loads(each["metadata"])["exit_code"] for each in failed] == [[3], [4]]
    assert [each["worker_id"] for each in found if each["state"] == "SUCCEEDED"] == [pids[2], None]


def agent_of(event: Event) -> str:
    return str(event.metadata["raw_error"]).rpartition("by ")[2].removesuffix(")")


def test_torch_reads_them(environment: dict[str, str]) -> None:
    for event in told("exit 0", environment).events:
        read = TorchEvent.deserialize(event.serialize())
        assert (read.name, read.source.value, read.timestamp) == (event.name, event.source, event.timestamp)
        assert read.metadata == event.metadata


def test_the_metrics_count_runs_and_time_what_was_done(environment: dict[str, str]) -> None:
    found = told(FAILS_ONCE, environment, restarts=1)
    assert found.values("run_") == {
        "workers.default.run_total": 1,
        "workers.default.run_success_with_retries": 1,
        "workers.default.run_success_no_retries": 0,
        "workers.default.run_failed_with_retries": 0,
        "workers.default.run_failed_no_retries": 0,
    }
    assert found.values("flakiness") == {"workers.default.flakiness": 50}
    states = [metric.name.rpartition(".")[2] for metric in found.metrics if "workers.default" in metric.name]
    assert states[:6] == ["healthy", "remaining_restarts", "failed", "healthy", "remaining_restarts", "succeeded"]
    spans = found.values("duration.ms")
    run = spans.pop("SimpleElasticAgent.run.duration.ms")
    assert sorted(name.split(".")[1] for name in spans) == [
        "_assign_worker_ranks",
        "_initialize_workers",
        "_monitor_workers",
        "_rendezvous",
        "_restart_workers",
        "_start_workers",
        "_stop_workers",
    ]
    assert all(0 <= span <= run for span in spans.values())
    assert all(value == 1 for value in found.values(".success").values())


TIMED_OUT = (
    'echo "{\\"pid\\": $$, \\"scope_id\\": \\"step\\", \\"expiration_time\\": $(date +%s), \\"signal\\": 9}" '
    '>"$TORCHELASTIC_TIMER_FILE"; exec sleep 1000'
)
"""A timer that expires at once. One of long ago would be dropped if it is read before the agent follows the worker."""


def test_the_watchdog_of_file_timers_says_what_torch_s_says(environment: dict[str, str], tmp_path: Path) -> None:
    watchdogs = WatchdogSettings(str(tmp_path / "timers"))
    events = told(TIMED_OUT, environment, local_world_size=1, watchdogs=watchdogs).events
    found = [event for event in events if "watchdog_event" in event.metadata["metadata"]]
    assert [event.name for event in found] == [
        "watchdog started",
        "timer expired",
        "kill worker process",
        "watchdog stopped",
    ]
    timer = json.loads(found[2].metadata["metadata"])
    assert (timer["watchdog_event"], timer["scope_id"], timer["signal"]) == ("kill worker process", "step", "9")
    assert {event.source for event in found} == {"AGENT"}


def test_a_failed_run_is_counted_as_one(environment: dict[str, str]) -> None:
    found = told("exit 1", environment)
    assert found.values("run_failed") == {
        "workers.default.run_failed_with_retries": 0,
        "workers.default.run_failed_no_retries": 1,
    }
    assert found.values("flakiness") == {"workers.default.flakiness": 100}
    assert found.values("SimpleElasticAgent.run.failure") == {"SimpleElasticAgent.run.failure": 1}


def test_a_program_that_cannot_be_started_fails_the_start(environment: dict[str, str]) -> None:
    made = Program(Kind.BINARY, "./nowhere")
    settings = LaunchSettings(made, environment=environment, logs=Logs("/dev/null"))
    found = Told(settings).run(settings)
    assert found.values("_start_workers") == {"LocalElasticAgent._start_workers.failure": 1}
    assert [(source, state) for source, state, _ in found.states] == [("AGENT", "FAILED")]  # it did not join
