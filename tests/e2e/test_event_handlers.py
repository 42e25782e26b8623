"""`--event-log-handler` beside torchrun's own: the same events, with the same fields."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launches import PROGRAMS, TIMEOUT_S, Launcher
from torch.distributed.elastic.events.api import RdzvEvent

TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
Found = list[dict[str, Any]]
Kind = tuple[str, str, int | None]


def events(stderr: str) -> Found:
    """A line of JSON each; torch's own words stand between them."""
    return [json.loads(line) for line in stderr.splitlines() if line.startswith('{"name": "torchelastic.')]


def summary(found: Found) -> list[Kind]:
    return sorted(((event["source"], event["name"], event["metadata"]["global_rank"]) for event in found), key=str)


def shape(found: Found) -> set[tuple[str, ...]]:
    """The fields of agents' and of workers' events, those of the inner text too."""
    return {
        (event["source"], *event, *event["metadata"], *json.loads(event["metadata"]["metadata"])) for event in found
    }


STATUS = "torchelastic.worker.status"
MENDED: dict[Kind, Kind] = {
    ("AGENT", f"{STATUS}.SUCCEEDED", None): ("AGENT", f"{STATUS}.FAILED", None),
    ("WORKER", f"{STATUS}.FAILED", 0): ("WORKER", f"{STATUS}.TERMINATED", 0),
}
"""What torch says of an agent whose workers failed, and of a worker that it stopped itself."""


@pytest.mark.parametrize("program", ["meeting", "fails"])
def test_the_events_are_torchrun_s_but_for_the_end_of_a_failed_agent(
    launch: Launcher, tmp_path: Path, program: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, sys, time\n")
    if program == "fails":
        script.write_text(
            "import os, sys, time\ntime.sleep(0.2) if os.environ['RANK'] == '1' else time.sleep(1000)\nsys.exit(1)"
        )
    options = ["--nproc-per-node=2", "--event-log-handler=console", str(script)]
    theirs = subprocess.run(
        [TORCHRUN, *options], capture_output=True, text=True, env=launch.environment, check=False, timeout=TIMEOUT_S
    )
    ours = launch(*options).ends()
    expected = {kind if program == "meeting" else MENDED.get(kind, kind) for kind in summary(events(theirs.stderr))}
    assert set(summary(events(ours.err))) == expected
    assert len(summary(events(ours.err))) == len(expected)
    assert shape(events(ours.err)) == shape(events(theirs.stderr))


def test_metrics_and_events_leave_stdout_to_the_workers(launch: Launcher) -> None:
    ended = launch("--metrics-handler=console", "--event-log-handler=console", "--no-python", "echo", "word").ends()
    assert (ended.code, ended.out) == (0, "word\n")
    assert "[torchelastic]: workers.default.run_total=1\n" in ended.err


def test_a_handler_that_there_is_not_is_a_mistake_before_anything_starts(launch: Launcher) -> None:
    ended = launch("--event-log-handler=nobody", PROGRAMS / "show.py", traced=False).ends()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        "elastic: --event-log-handler=nobody: no handler of that name; write one of console, dynamic_rendezvous, null"
    )


PROGRAM = """
import logging, sys
from torch.distributed.elastic.events import handlers
handlers._log_handlers["dynamic_rendezvous"] = logging.StreamHandler()
if sys.argv[1] == "torchrun":
    from torch.distributed.run import main
    main(sys.argv[2:])
else:
    from elastic.cli.main import run
    sys.exit(run(sys.argv[1:]))
"""
NOT_OURS = ("_keep_alive", "run", "_mark_rendezvous_complete", "_mark_rendezvous_closed")
"""What torch tells of heartbeats and synchronisations, and twice."""


def rendezvous_events(launch: Launcher, *arguments: str) -> list[RdzvEvent]:
    """Of a job in a program that has put a handler into torch's table."""
    command = [sys.executable, "-c", PROGRAM, *arguments, "--no-python", "true"]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=launch.environment, check=True, timeout=TIMEOUT_S
    )
    lines = [line for line in ended.stderr.splitlines() if line.startswith('{"name": "dynamic_rendezvous')]
    return [RdzvEvent.deserialize(line) for line in lines]


@pytest.mark.long
@pytest.mark.timeout(900)  # torchrun and two jobs, each with torch
def test_the_events_of_the_rendezvous_are_torch_s_whatever_handler_the_others_have(launch: Launcher, port: int) -> None:
    job = ("--nnodes=1:2", "--rdzv-id=job", "--rdzv-conf=last_call_timeout=1", f"--rdzv-endpoint=localhost:{port}")
    torch_s = rendezvous_events(launch, "torchrun", "--rdzv-backend=c10d", "--event-log-handler=null", *job)
    for handler in ("null", "dynamic_rendezvous"):
        ours = rendezvous_events(launch, "launch", f"--event-log-handler={handler}", *job)
        assert told(ours) == told(torch_s)
        assert len(told(ours)) == 4


def told(found: list[RdzvEvent]) -> list[tuple[object, ...]]:
    """What is compared of them. Torch tells of a write before it has landed."""

    def message(event: RdzvEvent) -> str:
        return re.sub("node '[^']*'", "node", event.message).removesuffix(" Pending sync.")

    return [
        (each.name, each.node_state, each.rank, message(each), each.run_id)
        for each in found
        if each.name.rpartition(".")[2] not in NOT_OURS
    ]
