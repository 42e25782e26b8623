"""A node whose check finds it unfit stays out: at its first join, or after a failure that began on it. The others go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs import Jobs, asked, only_in
from launches import PROGRAMS, Launcher
from processes import comes_true, is_alive

FAILS_ON_B = """import os, stage
stage.tell('begins')
stage.wait_for_gate(stage.round)
raise SystemExit(3 if stage.round == 0 and os.environ['ELASTIC_NODE_ID'] == 'b' else 0)
"""


@only_in("tcpstore")
def test_only_the_node_that_failed_is_checked_again_and_stays_out_if_it_is_unfit(
    job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    script, check = tmp_path / "train.py", tmp_path / "check.sh"
    script.write_text(FAILS_ON_B)
    check.write_text(
        f"#!/bin/sh\nran={tmp_path}/$ELASTIC_NODE_ID.ran\nif [ $ELASTIC_NODE_ID = b ] && [ -e $ran ]; then\n"
        "echo x >>$ran; echo GPU 3 has lost its memory; exit 1; fi\necho x >>$ran\n"
    )
    check.chmod(0o755)
    made = job("1:2", "--max-restarts=1", f"--node-check={check}", "--last-call=60")
    a, b = made.nodes("ab", program=(script,))
    for agent in (a, b):
        agent.hears(1)
    for agent in (a, b):
        agent.open_gate(0)
    out = b.ends()
    assert out.code == 4
    assert any(f"this node stays out of job {made.run_id}: GPU 3 has lost its memory" in line for line in out.lines)
    assert a.hears(1)[0].round == 1
    shown = json.loads(asked(made, "--json", launch=launch).stdout)
    assert [(each["node"].partition("#")[0], each["reason"]) for each in shown["unfit"]] == [
        ("b", "GPU 3 has lost its memory")
    ]
    assert "1 node out of the job:" in asked(made, launch=launch).stdout
    a.open_gate(1)
    ended = a.ends()
    assert ended.code == 0 and "(GPU 3 has lost its memory)" in ended.err
    assert [each["reason"] for each in made.report("a")["unfit"]] == ["GPU 3 has lost its memory"]
    assert [(tmp_path / f"{name}.ran").read_text().count("x") for name in "ab"] == [1, 2]


def test_a_node_that_is_unfit_never_joins_and_one_whose_check_hangs_does(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import stage\nstage.tell('begins')\n")
    unfit = launch("--node-check=sh -c 'echo no disk; exit 1'", script).ends()
    assert unfit.code == 4 and "this node stays out: no disk" in unfit.lines
    hangs = launch("--node-check=sleep 1000000", "--node-check-timeout=0.5", script)
    hangs.hears(1)
    ended = hangs.ends()
    assert ended.code == 0
    limit = "warning: the node check did not end within 0.5 s (--node-check-timeout); this node joins"
    assert limit in ended.lines


def test_a_signal_ends_the_check_and_the_agent(launch: Launcher, tmp_path: Path) -> None:
    running = launch("--node-check=sleep 1000000", "--node-check-timeout=1e6", "--status=plain", tmp_path)
    running.says("checking this node (--node-check)")
    running.signal(15)
    assert running.ends().code == 128 + 15


def test_a_check_that_brings_the_program_runs_before_anybody_looks_for_it(launch: Launcher, tmp_path: Path) -> None:
    script, check = tmp_path / "train.py", tmp_path / "check.sh"
    check.write_text(f"#!/bin/sh\necho 'import stage; stage.tell(0)' >{script}\n")
    check.chmod(0o755)
    agent = launch(f"--node-check={check}", script)
    agent.hears(1)
    assert agent.ends().code == 0


@only_in("tcpstore")
def test_a_node_that_is_found_unfit_at_work_saves_and_leaves_with_4(
    job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    check = tmp_path / "check.sh"
    check.write_text(f"#!/bin/sh\nif [ -e {tmp_path}/$ELASTIC_NODE_ID.bad ]; then echo GPU 3 is lost; exit 1; fi\n")
    check.chmod(0o755)
    made = job("1:2", f"--watch-check={check}", "--watch-check-every=0.2", "--drain-deadline=90")
    a, b = made.nodes("ab", program=(PROGRAMS / "drained.py", tmp_path))
    for agent in (a, b):
        agent.hears(1)
    (tmp_path / "b.bad").touch()
    out = b.ends()
    assert out.code == 4 and (tmp_path / "checkpoint-0-1.json").exists()
    assert json.loads((tmp_path / "checkpoint-0-1.json").read_text())[0] == "GPU 3 is lost"
    assert any(f"this node stays out of job {made.run_id}: GPU 3 is lost" in line for line in out.lines)
    assert a.hears(1)[0].words == "restart 0 of 1 workers"
    a.open_gate()
    ended = a.ends()
    assert ended.code == 0 and "GPU 3 is lost" in ended.err
    assert [(each["node"].partition("#")[0], each["reason"]) for each in made.report("a")["unfit"]] == [
        ("b", "GPU 3 is lost")
    ]


def test_a_watch_check_that_hangs_drains_the_node_and_ends_with_it(launch: Launcher, tmp_path: Path) -> None:
    check = tmp_path / "check.sh"
    check.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; sleep 1000000\n")
    check.chmod(0o755)
    hangs = launch(
        f"--watch-check={check}",
        "--watch-check-every=0.1",
        "--node-check-timeout=0.5",
        PROGRAMS / "drained.py",
        tmp_path,
    )
    hangs.hears(1)
    out = hangs.ends()
    assert out.code == 4
    assert any("the watch check did not end within 0.5 s (--node-check-timeout)" in line for line in out.lines)
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("code", [0, 3])
def test_a_watch_check_that_finds_nothing_stops_no_work_and_dies_with_its_agent(
    code: int, launch: Launcher, tmp_path: Path
) -> None:
    check, ran = tmp_path / "check.sh", tmp_path / "ran"
    check.write_text(
        f"#!/bin/sh\necho x >>{ran}\nif [ $(wc -l <{ran}) = 3 ]; then echo $$ >{tmp_path}/pid; sleep 1000000; fi\n"
        f"echo all is well; exit {code}\n"
    )
    check.chmod(0o755)
    agent = launch(f"--watch-check={check}", "--watch-check-every=0.05", PROGRAMS / "stay.py")
    agent.hears(1)
    assert comes_true(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text().strip()))
    agent.open_gate()
    out = agent.ends()
    assert out.code == 0
    told = [line for line in out.lines if "the watch check ended with exit code 3: all is well" in line]
    assert len(told) == (1 if code else 0)
    pid = int((tmp_path / "pid").read_text())
    assert comes_true(lambda: not is_alive(pid))
