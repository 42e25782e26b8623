"""Real agents write down what they do, and `elastic replay` takes it again, as all other tests here do at their end."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jobs import Jobs, end, kill, lose, only_in, run
from launches import ELASTIC, Launcher


def replay(folder: Path) -> subprocess.CompletedProcess[str]:
    files = sorted(map(str, folder.glob("*.ndjson")))
    return subprocess.run([ELASTIC, "replay", *files], capture_output=True, text=True, check=False)


@only_in("tcpstore")
def test_a_job_that_lost_a_worker_and_then_a_node_is_told_again(job: Jobs, launch: Launcher) -> None:
    pair = job("2", "--max-restarts=1")
    a, b = pair.nodes("ab")
    kill(run([a, b])[1].pid)
    run([a, b])
    lose(b)
    c = pair.node("c")
    run([a, c])
    end([a, c])
    told = replay(launch.traces)
    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert "3 agents, 1 job: " in lines[0]
    assert "all as traced" in lines[0]
    assert any(line.startswith("  unended    b: the trace breaks off") for line in lines)
    assert "  violations none" in lines
    assert [line.split(" (")[0] for line in lines if line.startswith("  round")] == [
        f"  round {number}   2 nodes" for number in range(3)
    ]
    assert "a worker failed (b)" in told.stdout
    assert "a node was lost" in told.stdout


def test_a_decision_that_no_core_made_is_found(launch: Launcher, tmp_path: Path) -> None:
    assert launch("--no-python", "false").ends().code == 1
    (trace,) = launch.traces.iterdir()
    forged = tmp_path / "forged"
    forged.mkdir()
    (forged / "t.ndjson").write_text(trace.read_text().replace('{"is":"end","why":"failed"}', '{"is":"mark done"}', 1))
    told = replay(forged)
    assert told.returncode == 1
    assert "t.ndjson line " in told.stdout
    assert "what the group commands (1)" in told.stdout
