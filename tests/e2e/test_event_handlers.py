"""`--event-log-handler` beside torchrun's own: the same events, with the same fields."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launches import PROGRAMS, Launcher

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
        [TORCHRUN, *options], capture_output=True, text=True, env=launch.environment, check=False, timeout=100
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
        "elastic: --event-log-handler=nobody: no handler of that name; write one of console, null"
    )
