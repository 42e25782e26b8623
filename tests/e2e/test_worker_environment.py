"""What a worker finds: its environment to the last variable, its arguments, where its output goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import stage
from launches import PROGRAMS, Launcher
from processes import children_of, comes_true
from wrapped import needs_torch

from elastic.adapters.workers.devices.numa import bindings
from elastic.cli.render.status import PATIENCE_S

SHOW = PROGRAMS / "show.py"
CHATTY = PROGRAMS / "chatty.py"


@needs_torch
def test_a_worker_keeps_the_oom_score_of_before_and_no_helper_of_the_agent_does(launch: Launcher) -> None:
    """The agent, its reaper and the store's helper have none, as far as this process may lower it."""
    begin = 'echo 300 >/proc/self/oom_score_adj; exec "$@"'
    says = "cat /proc/self/oom_score_adj; exec sleep 1000"
    job = launch("--rdzv-endpoint=localhost:0", "--no-python", "sh", "-c", says, under=("sh", "-c", begin, "sh"))
    job.prints("300\n")

    def scores() -> list[int]:
        return sorted(int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (job.pid, *children_of(job.pid)))

    # the agent takes the worker's score while it starts one, which may print before that is over
    assert comes_true(lambda: scores() in ([-1000, -1000, -1000, 300], [0, 0, 0, 300])), scores()
    job.signal(signal.SIGTERM)
    assert job.ends().code == 143


def shown(folder: Path, local_rank: int, round: int = 0) -> Any:
    return json.loads((folder / f"{round}.{local_rank}.json").read_text())


def added(folder: Path, local_rank: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """What stands in a worker's environment beside what the launcher's own had."""
    found = shown(folder, local_rank)["environment"]
    assert {name: found.get(name) for name in inherited} == dict(inherited)
    return {name: text for name, text in found.items() if name not in inherited and name != stage.FOLDER}


def test_a_worker_finds_torchrun_s_variables_and_ours_and_no_others(launch: Launcher, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    launched = launch(
        *("--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=job7", "--node-id=n0", f"--log-dir={logs}"),
        *("--role=trainer", "--local-addr=127.0.0.1", SHOW, tmp_path),
    )
    assert launched.ends().code == 0
    (run,) = logs.iterdir()
    for rank in (0, 1):
        found = added(tmp_path, rank, launch.environment)
        port, agent = found.pop("MASTER_PORT"), found.pop("ELASTIC_AGENT")
        assert 1024 <= int(port) < 65_536
        assert re.fullmatch("[0-9a-f]{32}", agent)
        assert Path(found.pop("ELASTIC_NOTICE")).is_absolute()
        relay, world = Path(found.pop("ELASTIC_RELAY")), found.pop("ELASTIC_WORLD")
        assert found.pop("ELASTIC_PROGRESS") == f"{relay.parent}/progress.0.{rank}"
        assert relay.is_absolute() and not relay.parent.exists(), "it is gone with the agent"
        assert re.fullmatch("[0-9a-f]{16}[.]1[.]0", world)
        assert re.fullmatch("2 n0#[0-9]+", found.pop("ELASTIC_PARTY"))
        assert found == {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "GROUP_RANK": "0",
            "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": "2",
            "ROLE_NAME": "trainer",
            "LOCAL_WORLD_SIZE": "2",
            "WORLD_SIZE": "2",
            "GROUP_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "TORCHELASTIC_RUN_ID": "job7",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "3",
            "TORCHELASTIC_USE_AGENT_STORE": "False",
            "TORCHELASTIC_ERROR_FILE": f"{run}/attempt_0/{rank}/error.json",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
            "OMP_NUM_THREADS": "1",
            "ELASTIC_ROUND": "0",
            "ELASTIC_NODE_ID": "n0",
            "ELASTIC_RESTART_SCOPE": "group",
            "ELASTIC_TRACE": str(launch.traces),
        }


def test_what_the_user_has_set_is_kept_unless_it_is_the_launcher_s_to_say(launch: Launcher, tmp_path: Path) -> None:
    own = {"OMP_NUM_THREADS": "5", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "MINE": "x", "RANK": "77"}
    assert launch("--nproc-per-node=2", SHOW, tmp_path, environment=own).ends().code == 0
    found = shown(tmp_path, 1)["environment"]
    assert {name: found[name] for name in own} == {**own, "RANK": "1"}


def test_a_single_worker_may_use_all_cores(launch: Launcher, tmp_path: Path) -> None:
    assert launch(SHOW, tmp_path).ends().code == 0
    assert "OMP_NUM_THREADS" not in shown(tmp_path, 0)["environment"]


def test_arguments_are_the_script_s_own_but_for_the_local_rank(launch: Launcher, tmp_path: Path) -> None:
    given = ["--nnodes=7", "-h", "--rank=${local_rank}", "$local_rank", "${rank}", "$$", "a b", "", "--", "100%"]
    assert launch("--nproc-per-node=2", SHOW, tmp_path, *given).ends().code == 0
    assert shown(tmp_path, 1)["arguments"] == ["--nnodes=7", "-h", "--rank=1", "1", "${rank}", "$", "a b", *given[7:]]


def test_a_module_is_run_as_python_does_it_and_a_program_without(launch: Launcher, tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text("import sys; print(__name__, sys.argv[1:])")
    search = {"PYTHONPATH": str(tmp_path)}
    assert launch("-m", "greeting", "x", environment=search).ends().out == "__main__ ['x']\n"
    assert launch("--no-python", "echo", "x").ends().out == "x\n"


def test_a_script_may_be_run_by_its_path_and_its_exception_is_in_its_error_file(
    launch: Launcher, tmp_path: Path
) -> None:
    script = tmp_path / "greeting.py"
    script.write_text("import sys; print(__name__, sys.argv, sys.path[0] == ''); raise KeyError(sys.argv[1])")
    ended = launch("--run-path", "-m", "--log-dir", tmp_path / "logs", script, "x").ends()
    assert (ended.code, ended.out) == (1, f"__main__ ['{script}', 'x'] True\n")
    assert "KeyError: 'x'" in ended.err and "greeting.py:1" in ended.err
    (error_file,) = (tmp_path / "logs").rglob("error.json")
    assert json.loads(error_file.read_text())["message"]["message"] == "KeyError: 'x'"


@pytest.mark.parametrize("code", [0, 3])
def test_a_script_run_by_its_path_may_exit_as_it_likes(launch: Launcher, tmp_path: Path, code: int) -> None:
    (tmp_path / "exits.py").write_text(f"raise SystemExit({code})")
    ended = launch("--run-path", "--log-dir", tmp_path / "logs", tmp_path / "exits.py").ends()
    assert ended.code == (1 if code else 0)
    assert list((tmp_path / "logs").rglob("error.json")) == []


def test_the_local_rank_is_the_first_argument_without_use_env(launch: Launcher, tmp_path: Path) -> None:
    shows = tmp_path / "shows.py"
    shows.write_text("import sys; print(sys.argv[1:])")
    assert launch("--no-use-env", shows, "--lr=1").ends().out == "['--local-rank=0', '--lr=1']\n"


def test_options_may_be_shortened(launch: Launcher, tmp_path: Path) -> None:
    assert launch("--nproc-per=2", "--max-r", "1", SHOW, tmp_path, "--max-r").ends().code == 0
    found = shown(tmp_path, 1)
    assert (found["environment"]["TORCHELASTIC_MAX_RESTARTS"], found["arguments"]) == ("1", ["--max-r"])


def test_the_command_is_a_module_too(launch: Launcher, nothing_left: str) -> None:
    command = [sys.executable, "-m", "elastic", "launch", "--status=off", "--no-python", "echo", "x"]
    ended = subprocess.run(command, env=launch.environment, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("x\n", "")


def test_another_python_may_be_named(launch: Launcher) -> None:
    ended = launch(SHOW, "x", environment={"PYTHON_EXEC": "/bin/echo"}).ends()
    assert ended.out == f"-u {SHOW} x\n"


def test_a_script_of_another_python_need_not_be_on_this_host(launch: Launcher) -> None:
    ended = launch("/only/in/the/container.py", environment={"PYTHON_EXEC": "/bin/echo"}).ends()
    assert ended.out == "-u /only/in/the/container.py\n"


def test_a_program_may_come_from_stdin(launch: Launcher) -> None:
    assert launch("-", "x", environment={"PYTHON_EXEC": "/bin/echo"}).ends().out == "-u - x\n"
    assert launch("-", "x").ends().code == 0  # an empty one


def test_the_name_of_a_script_may_hold_the_local_rank(launch: Launcher, tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"$train{rank}.py").write_text(f"print('this is {rank}\\n', end='')")
    ended = launch("--nproc-per-node=2", f"{tmp_path}/$$train${{local_rank}}.py").ends()
    assert sorted(ended.out.splitlines()) == ["this is 0", "this is 1"]


def test_options_may_come_from_variables_and_the_command_line_beats_them(launch: Launcher, tmp_path: Path) -> None:
    variables = {
        "PET_NPROC_PER_NODE": "2",
        "PET_MAX_RESTARTS": "4",
        "PET_RDZV_ID": "from a variable",
        "PET_STANDALONE": "true",
        "PET_ROLE": "x",
        "PET_NNODES": "1:1",
    }
    assert launch("--role=y", SHOW, tmp_path, environment=variables).ends().code == 0
    found = shown(tmp_path, 1)["environment"]
    names = ("WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID", "ROLE_NAME")
    assert [found[name] for name in names] == ["2", "4", "from a variable", "y"]


# --- output


def files(logs: Path) -> dict[str, str]:
    """Each log file of the one run, by its place in it."""
    (run,) = logs.iterdir()
    return {str(file.relative_to(run)): file.read_text() for file in sorted(run.rglob("*.log"))}


def test_an_attempt_s_logs_stand_in_folders_of_their_own_and_outlive_the_next(launch: Launcher, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    ended = launch(
        "--nproc-per-node=2", "--max-restarts=1", "--rdzv-id=a/b", "-r", "3", "--log-dir", logs, CHATTY
    ).ends()
    assert ended.code == 0
    assert ended.out == ""
    (run,) = logs.iterdir()
    assert re.fullmatch("a%2Fb_[0-9a-f]{8}", run.name)
    found = files(logs)
    failed = {
        "attempt_0/1/stdout.log": "out of 1 in round 0\n",
        "attempt_0/1/stderr.log": "err of 1 in round 0\n",
    }
    succeeded = {
        f"attempt_1/{rank}/std{stream}.log": f"{stream} of {rank} in round 1\n"
        for rank in (0, 1)
        for stream in ("out", "err")
    }
    assert {name: found[name] for name in (*failed, *succeeded)} == {**failed, **succeeded}
    assert set(found) - set(failed) - set(succeeded) == {"attempt_0/0/stdout.log", "attempt_0/0/stderr.log"}
    assert json.loads((run / "report.json").read_text())["restarts"] == 1


def test_streams_may_be_chosen_for_each_rank(launch: Launcher, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    ended = launch("--nproc-per-node=2", "-r", "0:1", "--tee=0:2", "--log-dir", logs, CHATTY).ends()
    assert ended.code == 1
    assert set(files(logs)) == {"attempt_0/0/stdout.log", "attempt_0/0/stderr.log"}
    assert ended.out == "out of 1 in round 0\n"
    assert "err of 1 in round 0\n" in ended.err


@pytest.mark.parametrize(
    ("template", "prefix"),
    [
        (None, "[trainer{rank}]:"),
        (
            "<${role_name} ${rank}/${local_rank} ${x} ${host} ${node}> ",
            f"<trainer {{rank}}/{{rank}} ${{x}} {os.uname().nodename} n7> ",
        ),
    ],
)
def test_a_tee_d_line_is_in_the_file_and_on_the_console_behind_its_prefix(
    launch: Launcher, tmp_path: Path, template: str | None, prefix: str
) -> None:
    logs = tmp_path / "logs"
    ended = launch(
        *("--nproc-per-node=2", "--max-restarts=1", "--role=trainer", "--node-id=n7"),
        *("-t", "3", "--log-dir", logs, CHATTY),
        environment={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": template} if template else {},
    ).ends()
    assert ended.code == 0
    for rank in (0, 1):
        before = prefix.replace("{rank}", str(rank))
        assert f"{before}out of {rank} in round 1" in ended.out.splitlines()
        assert f"{before}err of {rank} in round 1" in ended.err.splitlines()
        assert files(logs)[f"attempt_1/{rank}/stdout.log"] == f"out of {rank} in round 1\n"


def test_tee_d_lines_with_a_word_are_in_a_file_of_the_attempt_too(launch: Launcher, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    filters = ("--duplicate-stdout-filters=of 1,zeus", "--duplicate-stderr-filters=err")
    ended = launch("--nproc-per-node=2", "--max-restarts=1", "-t", "3", *filters, "--log-dir", logs, CHATTY).ends()
    assert ended.code == 0
    found = files(logs)
    assert found["attempt_0/filtered_stdout.log"] == "[default1]:out of 1 in round 0\n"
    assert found["attempt_1/filtered_stdout.log"] == "[default1]:out of 1 in round 1\n"
    assert sorted(found["attempt_1/filtered_stderr.log"].splitlines()) == [
        f"[default{rank}]:err of {rank} in round 1" for rank in (0, 1)
    ]


def test_ranks_outside_the_filter_write_to_their_files_instead_of_the_console(launch: Launcher, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    ended = launch("--nproc-per-node=2", "--max-restarts=1", "--local-ranks-filter=0", "--log-dir", logs, CHATTY).ends()
    assert ended.code == 0
    assert "out of 0 in round 1\n" in ended.out and "out of 1" not in ended.out
    assert files(logs)["attempt_1/1/stdout.log"] == "out of 1 in round 1\n"
    assert files(logs)["attempt_1/1/stderr.log"] == "err of 1 in round 1\n"


def test_without_a_log_directory_nothing_stays_behind_unless_something_was_written(
    launch: Launcher, tmp_path: Path
) -> None:
    assert launch("--no-python", "true").ends().code == 0
    assert list((tmp_path / "tmp").iterdir()) == []
    assert launch("-r", "3", SHOW, tmp_path).ends().code == 0
    (kept,) = (tmp_path / "tmp").iterdir()
    assert sorted(file.name for file in kept.rglob("*.log")) == ["stderr.log", "stdout.log"]


def test_dev_null_stores_nothing(launch: Launcher, tmp_path: Path) -> None:
    ended = launch("--log-dir=/dev/null", "-r", "1", SHOW, tmp_path).ends()
    assert ended.code == 0
    assert shown(tmp_path, 0)["environment"]["TORCHELASTIC_ERROR_FILE"] == ""
    assert list((tmp_path / "tmp").iterdir()) == []


# --- the launcher itself


def test_a_job_that_goes_well_is_three_lines(launch: Launcher) -> None:
    """More only if it had to wait: on a machine that stood still."""
    ended = launch("--nproc-per-node=3", "--no-python", "true").ends()
    began = [
        line for line in ended.lines if re.fullmatch(r"round 0: 1 node, 3 workers, started in (\d+ ms|\d+\.\d s)", line)
    ]
    went_well = re.fullmatch(r"all 3 workers succeeded · 0 restarts, (\d+\.\d) s", ended.lines[-1])
    assert ended.code == 0
    assert len(began) == 1 and went_well
    assert re.fullmatch(r"job (\w{16}) in memory · TMPDIR=\S+ elastic status --rdzv-id=\1", ended.lines[0])
    assert len(ended.lines) == 3 or float(went_well[1]) >= PATIENCE_S


def test_it_can_be_told_to_be_quiet_and_then_tells_of_failures_alone(launch: Launcher) -> None:
    assert launch("--status=off", "--no-python", "true").ends().err == ""
    ended = launch("--status=off", "--no-python", "false").ends()
    assert ended.code == 1
    assert ended.lines[0] == "FAILED: 1 failure, no restart allowed (--max-restarts=0)"


def test_the_launcher_never_imports_torch(launch: Launcher) -> None:
    """Not when it starts, restarts, and reports either: Python tells of each import."""
    ended = launch(
        *("--nproc-per-node=2", "--max-restarts=1", "-t", "3", "--no-python", "sh", "-c", "exit 1"),
        environment={"PYTHONPROFILEIMPORTTIME": "1"},
    ).ends()
    imported = [line.rpartition("|")[2].strip() for line in ended.err.splitlines() if line.startswith("import time:")]
    assert ended.code == 1
    assert "elastic.adapters.agent.agent" in imported
    assert [module for module in imported if module.partition(".")[0] in ("torch", "numpy")] == []


def test_a_launcher_whose_stderr_nobody_reads_goes_on(launch: Launcher) -> None:
    job = launch(
        "--nproc-per-node=2", "--max-restarts=1", PROGRAMS / "crash.py", "code:7", under=(sys.executable, "-c", SHUT)
    )
    job.hears(3)
    assert job.ends().code == 0


def test_a_launcher_without_stdin_stdout_and_stderr_goes_on(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", PROGRAMS / "crash.py", "code:7", under=("sh", "-c", NONE))
    job.hears(3)
    assert job.ends().code == 0


SHUT = """import os, sys
read, write = os.pipe()
os.dup2(write, 2)
os.close(read)
os.execv(sys.argv[1], sys.argv[1:])"""
NONE = 'exec "$0" "$@" 0<&- 1>&- 2>&-'


def test_a_worker_may_be_bound_to_the_cpus_of_its_node_and_the_launcher_is_not(
    launch: Launcher, tmp_path: Path
) -> None:
    script = tmp_path / "bound.py"
    script.write_text("import os, stage; stage.tell(*sorted(os.sched_getaffinity(0))); stage.wait_for_gate()")
    before = os.sched_getaffinity(0)
    wanted = bindings("core-complex", 2)
    job = launch("--nproc-per-node=2", "--numa-binding=core-complex", script)
    assert [told.words for told in job.hears(2)] == [" ".join(map(str, sorted(cpus))) for cpus in wanted]
    assert comes_true(lambda: os.sched_getaffinity(job.pid) == before)
    job.open_gate()
    assert job.ends().code == 0


PLUGIN = """
import os
from torch.distributed.elastic.multiprocessing import LogsDest, LogsSpecs
class Own(LogsSpecs):
    root_log_dir = ""
    def reify(self, envs):
        place = f"{self._root_log_dir}/mine-{envs[0]['ELASTIC_ROUND']}"
        os.makedirs(place)
        return LogsDest(stdouts={0: f"{place}/out"}, tee_stdouts={0: f"{place}/out"}, error_files={0: f"{place}/error"})
"""


def test_a_plugin_may_say_where_logs_go(launch: Launcher, tmp_path: Path) -> None:
    (tmp_path / "own_logs.py").write_text(PLUGIN)
    (tmp_path / "own-1.dist-info").mkdir()
    (tmp_path / "own-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text("[torchrun.logs_specs]\nown = own_logs:Own\n")
    search = {"PYTHONPATH": f"{tmp_path}:{launch.environment['PYTHONPATH']}"}
    script = tmp_path / "fails.py"
    script.write_text("import os\nprint('x')\nif os.environ['ELASTIC_ROUND'] == '0': raise SystemExit(1)")
    ended = launch("--logs-specs=own", "--max-restarts=1", "--log-dir", tmp_path, script, environment=search).ends()
    assert (ended.code, ended.out) == (0, "[default0]:x\n" * 2)
    assert [(tmp_path / f"mine-{round}" / "out").read_text() for round in (0, 1)] == ["x\n", "x\n"]
    ended = launch("--logs-specs=zeus", script, environment=search).ends()
    assert ended.code == 2 and ended.err.endswith("write one of: default, own\n")
