"""What the demo makes of what it reads."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from traced import finished

DEMO = Path(__file__).parents[2] / "examples/digits/demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_demo", DEMO)
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRANSCRIPT = """\
1 node-a rank 1 of 4, pid 11, restart 0
1 node-b rank 3 of 4, pid 13, restart 0
2 node-a epoch 1/14  loss 1.0659  accuracy 0.9194
3 node-a 20:48:30 elastic  node-a rank 1 (local 1, pid 11) failed: killed by SIGKILL after 11.0 s
3 node-a            last lines: /tmp/logs/attempt_0/1/stderr.log (node-a)
4 node-b elastic  restart 1 of 3: 2 workers stopped in 90 ms, 2 nodes back in 23 ms, round 1 started · 113 ms in all
5 node-b rank 3 of 4, pid 23, restart 1
6 node-b 20:48:52 elastic  1 standby ready, imports took 2.1 s
"""


def test_the_demo_reads_what_workers_and_launcher_print(demo: ModuleType) -> None:
    rows = [line.split(" ", 2) for line in TRANSCRIPT.splitlines()]
    lines = [demo.Line(float(at), node, text) for at, node, text in rows]

    assert [match.groups["pid"] for match in demo.matches(lines, demo.WORKER)] == ["11", "13", "23"]
    assert [match.groups["pid"] for match in demo.matches(lines, demo.WORKER, since=2.0, size="4")] == ["23"]
    assert demo.matches(lines, demo.WORKER, node="node-b")[-1].groups["restarts"] == "1"
    assert [match.groups["epoch"] for match in demo.matches(lines, demo.EPOCH)] == ["1"]
    assert [match.groups["accuracy"] for match in demo.matches(lines, demo.EPOCH)] == ["0.9194"]
    assert [match.groups["node"] for match in demo.matches(lines, demo.READY)] == ["node-b"]
    (failed,) = demo.matches(lines, demo.status(r"pid 11\b"))
    assert failed.groups["said"] == "node-a rank 1 (local 1, pid 11) failed: killed by SIGKILL after 11.0 s"
    assert [match.at for match in demo.matches(lines, demo.status("restart 1 of"))] == [4.0]


def test_the_table_counts_from_the_fault_and_compares_the_two_ways(demo: ModuleType) -> None:
    noticed = demo.Match(3.1, {"said": "node-a rank 1 failed"})
    soon = demo.Row("a worker killed", 3.0, noticed, up_at=3.2, on_at=3.7, charged=1, charge=1)
    late = demo.Row("a worker killed", 3.0, noticed, up_at=5.0, on_at=6.5, charged=1, charge=1)
    assert [line.split() for line in demo.table([[soon], [late]])[1:]] == [
        "a worker killed".split(),
        "node-a rank 1 failed".split(),
        "with standbys and links 0.1 s 0.2 s 0.7 s 1".split(),
        "with neither 0.1 s 2.0 s 3.5 s 1".split(),
    ]


def test_the_account_of_a_job_is_what_elastic_goodput_says_but_for_its_table(demo: ModuleType, tmp_path: Path) -> None:
    pair = finished()
    for agent in (pair.a, pair.b):
        (tmp_path / f"{agent.name}.ndjson").write_bytes(b"".join(agent.lines))
    assert demo.account(tmp_path) == [
        "  30.9 % running · 41.0 % waiting · 22.5 % finished · 3.4 % stopping · 2.2 % starting · lost in all:",
        "  830 ms of 2 agents",
        "  at      event                              node time  in which",
        "  290 ms  failure of rank 1 (b), in round 0  470 ms     390 ms waiting, 60 ms stopping, 20 ms starting",
        "  0 ms    first start                        360 ms     340 ms waiting, 20 ms starting",
    ]


def test_what_is_no_trace_fails_the_demo_with_the_reason(demo: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("{}\n")
    with pytest.raises(demo.DidNotHappen, match=r"elastic goodput ended with 2: .*a\.ndjson"):
        demo.account(tmp_path)


def test_a_job_that_is_over_keeps_nobody_waiting(demo: ModuleType) -> None:
    job = demo.Job(demo.WAYS[0], Path(), 0, 0.0)
    with pytest.raises(demo.DidNotHappen, match="the job ended before the loss was noticed"):
        job.sees("the loss was noticed", demo.status("lost"))
    job.open.append("node-a")
    with pytest.raises(demo.DidNotHappen, match="not within 240 s: the loss was noticed"):
        job.sees("the loss was noticed", demo.status("lost"))
