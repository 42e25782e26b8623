"""Standby workers under the real command: who gets one, what they print, and that nothing of them stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import Jobs, only_in, slots
from launches import ELASTIC, PROGRAMS, TESTS, Launch, Launcher
from processes import children_of, comes_true, dies, standbys_of
from wrapped import FIRST_GATE

FAILS_ONCE = PROGRAMS / "fails_once.py"
WAYS = ("script", "package", "path", "function")
"""How a program is named to the launcher."""


@pytest.fixture
def start(launch: Launcher, tmp_path: Path) -> Callable[..., Launch]:
    """Start two workers with standbys: `main` of a program in one of these ways, with these options."""

    def start(way: str, program: str, *arguments: str, **options: str | int) -> Launch:
        settings = {"standby": "each", "nproc_per_node": 2, "trace": f"{launch.traces}/", **options}
        if way == "function":
            call = (sys.executable, PROGRAMS / "launches_function.py", json.dumps(settings), program)
            return launch.command(*call, *arguments)
        words = [f"--{name.replace('_', '-')}={text}" for name, text in settings.items()]
        words[0] = words[0].removesuffix("=each")
        named: list[str | Path] = [PROGRAMS / f"{program}.py"]
        if way == "package":
            (tmp_path / "pack").mkdir()
            (tmp_path / "pack" / "__main__.py").write_text("from . import inner\ninner.main()\n")
            (tmp_path / "pack" / "__init__.py").touch()
            (tmp_path / "pack" / "inner.py").write_bytes((PROGRAMS / f"{program}.py").read_bytes())
            named = ["-m", "pack"]
        elif way == "path":
            named = ["--run-path", *named]
        environment = {"PYTHONPATH": f"{TESTS}:{tmp_path}"}
        return launch(*words, *named, *arguments, environment=environment, traced=False)

    return start


@pytest.mark.parametrize("way", WAYS)
def test_all_workers_of_a_restart_come_from_standbys_and_the_first_ones_too(
    start: Callable[..., Launch], tmp_path: Path, way: str
) -> None:
    report = tmp_path / "report.json"
    running = start(way, "fails_once", max_restarts=1, report=str(report))
    first = running.hears(2)
    assert [told.words for told in first] == ["standby 2 colorsys"] * 2
    running.stands_by(2, first)
    running.open_gate()
    again = running.hears(2)
    assert [(told.round, told.words) for told in again] == [(1, "standby 2 colorsys")] * 2
    assert not {told.pid for told in first} & {told.pid for told in again}
    assert running.ends().code == 0
    standbys = json.loads(report.read_text())["here"]["standbys"]
    assert standbys["became_workers"] == 4 and standbys["imports_s"] > 0


@pytest.mark.parametrize("way", ["script", "function"])
def test_a_worker_that_is_started_again_alone_comes_from_a_standby(start: Callable[..., Launch], way: str) -> None:
    running = start(way, "fails_once", standby=1, restart_scope="rank", max_restarts=1)
    first = running.hears(2)
    assert sorted(told.words for told in first) == ["fresh 2 colorsys", "standby 2 colorsys"]
    running.stands_by(1, first)
    running.open_gate(0)
    (again,) = running.hears(1)
    assert (again.round, again.rank, again.words) == (0, 1, "standby 2 colorsys")
    running.open_gate(1)
    assert running.ends().code == 0


@pytest.mark.parametrize("way", ["script", "function"])
def test_the_replacement_of_a_wrapped_rank_comes_from_a_standby(start: Callable[..., Launch], way: str) -> None:
    running = start(way, "restarts", "0:1:kill", "replace_wait=60", restart_scope="rank", max_restarts=1)
    first = running.hears(2)
    ready = running.stands_by(2, first)
    running.open_gate(FIRST_GATE)
    running.open_gate(FIRST_GATE + 1)
    later = running.hears(3)
    assert [told.words for told in later] == ["finalize 0 NoneType", "in 1 of 2 as 0", "in 1 of 2 as 1"]
    assert later[2].pid in ready
    running.hears(2)
    assert running.ends().code == 0


def test_a_replacement_that_comes_too_late_is_not_waited_for(start: Callable[..., Launch]) -> None:
    running = start("script", "restarts", "0:1:kill", "1:0:sleep", restart_scope="rank", max_restarts=1)
    running.stands_by(2, running.hears(2))
    running.open_gate(FIRST_GATE)
    assert [told.words for told in running.hears(2)] == ["finalize 0 NoneType", "in 1 of 1 as 0"]
    running.open_gate(FIRST_GATE + 1)
    later = running.hears(3)
    assert [told.words for told in later] == ["finalize 1 NoneType", "in 2 of 2 as 0", "in 2 of 2 as 1"]
    running.hears(2)
    assert running.ends().code == 0


@only_in("etcd")
def test_the_nodes_of_a_job_restart_from_their_standbys(job: Jobs) -> None:
    made = job("2", "--standby", "--max-restarts=1")
    one = made.node("a", program=(FAILS_ONCE,))
    two = made.node("b", program=(FAILS_ONCE,))
    for agent in (one, two):
        (told,) = agent.hears(1)
        assert told.words == "standby 2 colorsys"
        agent.stands_by(1, [told])
    for agent in (one, two):
        agent.open_gate()
    for agent in (one, two):
        assert [(told.round, told.words) for told in agent.hears(1)] == [(1, "standby 2 colorsys")]
    assert [agent.ends().code for agent in (one, two)] == [0, 0]


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_no_standby_outlives_the_launcher(launch: Launcher, signum: signal.Signals) -> None:
    running = launch("--standby=3", FAILS_ONCE)
    running.stands_by(3, running.hears(1))
    children = children_of(running.pid)
    assert len(children) == 5  # a worker, the reaper and the standbys
    running.signal(signum)
    assert all(dies(child) for child in children)


def test_a_standby_that_is_killed_is_replaced_and_the_workers_run_on(launch: Launcher) -> None:
    running = launch("--standby", FAILS_ONCE, "end")
    (told,) = running.hears(1)
    (standby,) = running.stands_by(1, [told])
    os.kill(standby, signal.SIGKILL)
    assert dies(standby)
    assert comes_true(lambda: bool(standbys_of(running.pid, told.pid, standby)))
    running.open_gate()
    assert running.ends().code == 0


def test_a_program_without_python_has_no_standbys_and_is_told_so(launch: Launcher) -> None:
    ended = launch("--standby", "--preload=torch", "--no-python", "true").ends()
    assert ended.code == 0
    assert [line for line in ended.err.splitlines() if "no difference" in line] == [
        "elastic: --standby makes no difference: only a Python program has imports; leave it out",
        "elastic: --preload makes no difference: only standbys import it; write --standby too, or leave it out",
    ]


def test_show_preload_shows_and_starts_nothing(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import json\nimport mine\nprint('runs')\nimport string\n")
    (tmp_path / "mine.py").write_text("from attrs import frozen\n")
    ended = launch("--show-preload", script, traced=False).ends()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "standbys import:",
        f"  import json               {script}:1",
        f"  from attrs import frozen  {tmp_path}/mine.py:1",
        "left to the workers:",
        f"  mine    {script}:2 · your own: may read RANK",
        f"  string  {script}:4 · {script}:3 runs first: print('runs')",
    ]


def test_show_preload_names_files_of_the_working_directory_as_one_does_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import json\nimport mine\n")
    (tmp_path / "mine.py").write_text("from attrs import frozen\nprint('runs')\nimport string\n")
    assert shown(tmp_path, "train.py") == [
        "standbys import:",
        "  import json               train.py:1",
        "  from attrs import frozen  mine.py:1",
        "left to the workers:",
        "  mine    train.py:2 · your own: may read RANK",
        "  string  mine.py:3 · mine.py:2 runs first: print('runs')",
    ]


def test_show_preload_names_the_option_that_names_a_module_and_what_is_not_there(tmp_path: Path) -> None:
    assert shown(tmp_path, "--preload=attrs,os.path,nowhere.at_all", "train.py") == [
        "standbys import:",
        "  import attrs           --preload",
        "  import os.path         --preload",
        "  import nowhere.at_all  --preload · not found",
    ]


def shown(folder: Path, *words: str) -> list[str]:
    """Return what --show-preload prints in this working directory."""
    command = [ELASTIC, "launch", "--show-preload", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_without_the_option_an_agent_imports_nothing_of_standbys(launch: Launcher, tmp_path: Path) -> None:
    program = (
        "import sys, elastic.cli.main as main\nassert main.run(['launch', '--no-python', 'true']) == 0\n"
        "print([name for name in sys.modules if 'standby' in name or 'script_imports' in name])"
    )
    assert launch.command(sys.executable, "-c", program).ends().out == "[]\n"


@pytest.mark.long
def test_torch_in_a_standby(launch: Launcher) -> None:
    """It does what it did in a fresh worker. (The name is short: multiprocessing's sockets lie below the test's folder.)

    One rank: its standbys and its loaders import torch six times. Two of them meet in test_inprocess_torch.py."""
    running = launch("--standby", "--max-restarts=1", PROGRAMS / "common_ways.py", environment={"OMP_NUM_THREADS": "1"})
    for round in (0, 1):
        told = running.hears(1)
        assert [(each.round, each.words) for each in told] == [(round, "0 1 [1, 5] __main__ 4 1")]
        if round == 0:
            running.stands_by(1, told)
            running.open_gate(0)
    assert running.ends().code == 0


@only_in("tcpstore")
def test_a_newcomer_takes_no_seat_in_a_running_job_before_its_standbys_are_ready(job: Jobs, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    slow = "import os\nif os.environ['ELASTIC_NODE_ID'] == 'b':\n    open(os.environ['SLOW']).read()\n"
    (packages / "slow.py").write_text(slow)
    (tmp_path / "train.py").write_text(
        "import os, slow, stage\nstage.tell(os.environ['WORLD_SIZE'])\nstage.wait_for_gate()\n"
    )
    os.mkfifo(tmp_path / "fifo")
    environment = {"PYTHONPATH": f"{TESTS}:{packages}", "SLOW": str(tmp_path / "fifo")}
    made = job("1:2", "--last-call=0", "--standby")
    one = made.node("a", program=(tmp_path / "train.py",), environment=environment)
    assert [told.words for told in one.hears(1)] == ["1"]
    two = made.node("b", program=(tmp_path / "train.py",), environment=environment)
    with (tmp_path / "fifo").open("w"):
        two.says("round 0: 1 node running")
        assert slots(made.reaches(lambda state: True)) == ["a"]
    for agent in (one, two):
        assert [(told.round, told.words) for told in agent.hears(1)] == [(1, "2")]
        agent.open_gate()
    assert [agent.ends().code for agent in (one, two)] == [0, 0]
