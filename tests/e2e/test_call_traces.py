"""Real ranks of a wrapped function write down what their calls do, and `elastic replay` takes it again, as all other tests
of wrapped functions do at their end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from launches import ELASTIC, PROGRAMS, Launcher
from replays import complaints, replays

from elastic.adapters.report.trace_file import lines as lines_of

RESTARTS = 4
TWICE = """
import sys
from elastic.inprocess import Wrapper
train = Wrapper(trace=sys.argv[1])(lambda: 7)
assert [train(), train()] == [7, 7]
"""


def replay(files: Iterable[Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ELASTIC, "replay", *map(str, files)], capture_output=True, text=True, check=False)


def restarted(launch: Launcher) -> list[Path]:
    """The traces of two ranks whose function was called again so often, one fault at a time."""
    program = (PROGRAMS / "many_restarts.py", str(RESTARTS))
    ended = launch("--restart-scope=rank", "--nproc-per-node=2", *program).ends()
    assert ended.code == 0
    assert f"all 2 workers succeeded · 0 restarts, {RESTARTS} restarts of wrapped functions, " in ended.err
    return sorted(launch.traces.glob("rank_*.ndjson"))


def test_how_a_function_was_called_again_is_told(launch: Launcher) -> None:
    ranks = restarted(launch)
    assert [file.name.split("_")[1] for file in ranks] == ["0", "1"]
    assert all(run.ended for run in replays(launch.traces))
    told = replay(launch.traces.iterdir())
    assert (told.returncode, told.stderr) == (0, "")
    assert "elastic  1 agent, 2 ranks, 1 job, 1 call: " in told.stdout
    assert "all as traced" in told.stdout
    lines = told.stdout.partition("  call       of rank 0, rank 1\n")[2].splitlines()
    assert lines[1] == "  violations none"
    assert sum(line.startswith("     then ") and "called again +" in line for line in lines) == RESTARTS
    assert "function failed on rank 0" in told.stdout
    assert lines[-1].startswith(f"  iteration {RESTARTS}   2 ranks (")
    assert " · succeeded at " in lines[-1]


FORGERIES = [
    ('{"is":"mark done","round":4}', '{"is":"leave"}', "what the call commands (0)"),
    ('"how":"failed"', '"how":"exited"', "what the call commands"),
    ('"event":{"is":"ready","round":4', '"event":{"is":"ready","round":3', "what the call hears (round)"),
    ('"handler":"done"', '"handler":"leave"', "what the agent requests (handler)"),
    ('"event":{"is":"gate read","token":', '"event":{"is":"gate read","token":9', "what the call hears"),
]
"""What stands in a rank's trace, what is put there once, and what then is found."""


def test_one_line_that_was_changed_is_found(launch: Launcher, tmp_path: Path) -> None:
    texts = {file: b"".join(lines_of(str(file))).decode() for file in restarted(launch)}
    for number, (written, forged, what) in enumerate(FORGERIES):
        folder = tmp_path / f"forged{number}"
        folder.mkdir()
        file, text = next(
            (file, text) for file, text in texts.items() if written in text
        )  # a gate is not read by each rank
        (folder / file.name).write_text(text.replace(written, forged, 1))
        (found, *_) = complaints(replays(folder))
        assert f": {what}" in found
    told = replay(tmp_path.glob("forged0/*"))
    assert (told.returncode, "  DIFFERS  rank 0, " in told.stdout) == (1, True)


def test_of_a_rank_that_is_killed_the_trace_breaks_off(launch: Launcher) -> None:
    running = launch("--restart-scope=rank", "--nproc-per-node=2", PROGRAMS / "restarts.py", "0:1:kill")
    running.hears(2)
    running.open_gate(10)
    running.hears(3)
    assert running.ends().code == 0
    told = replay(launch.traces.iterdir())
    assert told.returncode == 0
    assert "  unended    rank 1: the trace breaks off: its process was killed, or still runs\n" in told.stdout
    assert "a rank was lost" in told.stdout


def test_a_wrapper_may_name_the_directory_itself_and_each_call_has_a_file(launch: Launcher, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(TWICE)
    folder = tmp_path / "own"
    assert launch("--nproc-per-node=1", tmp_path / "twice.py", folder, traced=False).ends().code == 0
    runs = replays(folder)
    assert [(run.calls, run.ended) for run in runs] == [(True, True)] * 2
    assert complaints(runs) == []


def test_where_no_trace_can_be_written_that_is_said_once_and_the_training_goes_on(launch: Launcher) -> None:
    nowhere = {"ELASTIC_TRACE": "/dev/null/traces"}
    arguments = ("--restart-scope=rank", "--nproc-per-node=2", PROGRAMS / "many_restarts.py", str(RESTARTS))
    ended = launch(*arguments, traced=False, environment=nowhere).ends()
    assert ended.code == 0
    for rank in (0, 1):
        assert ended.err.count(f"rank {rank} is traced no longer: /dev/null/traces/: not a directory") == 1


def test_beside_a_trace_that_is_a_file_the_ranks_have_a_directory(launch: Launcher, tmp_path: Path) -> None:
    arguments = (f"--trace={tmp_path}/job.ndjson", "--restart-scope=rank", PROGRAMS / "many_restarts.py", str(RESTARTS))
    assert launch(*arguments, traced=False).ends().code == 0
    (run,) = runs = replays(tmp_path / "job.ndjson.ranks")
    assert (run.ended, complaints(runs)) == (True, [])
