"""`elastic.start` in this process, with real workers: a job that runs beside the program."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import called
import pytest
from attrs import evolve
from processes import children_of, dies, no_thread_left

import elastic
from elastic.adapters.workers.start.function_call import StartMethod
from elastic.cli.api.job import Job

TIMEOUT_S = 90.0
"""Nothing here takes as long."""


class Gate:
    """Forked workers wait at it."""

    def __init__(self) -> None:
        self._waits, self._opens = os.pipe()

    def wait(self) -> int:
        """Return the worker's process id, when the test lets one pass."""
        os.read(self._waits, 1)
        return os.getpid()

    def open(self, workers: int = 2) -> None:
        os.write(self._opens, b"x" * workers)

    def close(self) -> None:
        os.close(self._waits)
        os.close(self._opens)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


@pytest.fixture(autouse=True)
def _nothing_stays(nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no process, thread, signal handler or file stays."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    handlers, children = [signal.getsignal(signum) for signum in range(1, 32)], set(children_of(os.getpid()))
    yield
    assert [signal.getsignal(signum) for signum in range(1, 32)] == handlers
    assert set(children_of(os.getpid())) <= children
    assert [thread.name for thread in threading.enumerate() if thread.name == "elastic-launch"] == []
    assert list(tmp_path.glob("elastic_*")) == []


def settings(method: StartMethod = "fork", workers: int = 2, **others: Any) -> elastic.LaunchSettings:
    return elastic.LaunchSettings(nproc_per_node=workers, start_method=method, status="off", **others)


def test_a_job_runs_beside_the_program_and_its_values_come_back(gate: Gate) -> None:
    with elastic.start(settings())(gate.wait) as job:
        assert_type(job, elastic.Job[int])
        pids = job.pids(TIMEOUT_S)
        assert list(pids) == [0, 1] and job.poll() is None and job.wait(timeout=0.0) is None
        gate.open()
        assert_type(job.wait(), dict[int, int])
        assert job.wait() == job.wait(TIMEOUT_S) == job.poll() == job.pids() == pids


def test_a_script_runs_beside_the_program(tmp_path: Path) -> None:
    script = tmp_path / "touch.py"
    script.write_text("import os, sys\nopen(sys.argv[1], 'w').write(os.environ['RANK'])")
    job = elastic.start(settings("spawn"))(script, f"{tmp_path}/rank${{local_rank}}")
    assert_type(job, elastic.Job[None])
    assert job.wait() == {0: None, 1: None}
    assert [(tmp_path / f"rank{rank}").read_text() for rank in (0, 1)] == ["0", "1"]


def test_stop_ends_the_workers_by_the_signal_and_wait_raises_it(gate: Gate) -> None:
    job = elastic.start(settings())(gate.wait)
    pids = job.pids(TIMEOUT_S)
    job.stop(signal.SIGINT)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())
    for ended in (job.wait, job.poll):
        with pytest.raises(elastic.SignalException, match="stopped by SIGINT") as raised:
            ended()
        assert raised.value.sigval == signal.SIGINT
    job.stop()
    assert job.pids() == pids


def test_a_number_that_is_no_signal_stops_nothing(gate: Gate) -> None:
    with elastic.start(settings())(gate.wait) as job:
        with pytest.raises(ValueError, match="99 is not a valid Signals"):
            job.stop(99)
        assert job.poll() is None


def ignores_sigterm(told: int) -> None:
    signal.signal(signal.SIGTERM, lambda signum, frame: os.write(told, b"t"))
    os.write(told, b"r")
    while True:
        signal.pause()


def test_a_second_stop_kills_workers_that_take_their_time() -> None:
    heard, told = os.pipe()
    job = elastic.start(settings(workers=1, grace=600))(ignores_sigterm, told)
    assert os.read(heard, 1) == b"r"
    first = threading.Thread(target=job.stop)
    first.start()
    assert os.read(heard, 1) == b"t"
    job.stop()
    first.join()
    os.close(heard)
    os.close(told)


@pytest.mark.parametrize("error", [None, KeyError("of the program")])
def test_the_end_of_the_block_stops_the_job(gate: Gate, error: Exception | None) -> None:
    def block() -> dict[int, int]:
        with elastic.start(settings())(gate.wait) as job:
            pids = job.pids(TIMEOUT_S)
            if error:
                raise error
        with pytest.raises(elastic.SignalException):
            job.wait()
        return pids

    if error:
        with pytest.raises(KeyError, match="of the program"):
            block()
    else:
        assert not any(Path(f"/proc/{pid}").exists() for pid in block().values())


def test_jobs_run_beside_each_other_whatever_their_start_method(gate: Gate) -> None:
    with elastic.start(settings())(gate.wait) as first, elastic.start(settings(workers=1))(gate.wait) as second:
        pids = [*first.pids(TIMEOUT_S).values(), *second.pids(TIMEOUT_S).values()]
        assert len({*pids}) == 3
        for method in ("spawn", "forkserver"):
            assert len(elastic.start(settings(method))(called.place, "x").wait()) == 2
        gate.open(3)
        assert [*first.wait().values(), *second.wait().values()] == pids


def test_failures_are_raised_by_wait_and_by_poll_as_often_as_they_are_called() -> None:
    job = elastic.start(settings())(called.fail, "no key")
    for ended in (job.wait, job.poll, job.wait):
        with pytest.raises(elastic.ChildFailedError, match=r"first cause .* rank 1, .*KeyError: 'no key'"):
            ended()


def test_a_failure_is_told_in_full_before_anybody_asks_for_it(capfd: pytest.CaptureFixture[str]) -> None:
    """The report is the caller's to show, who may never do so."""
    with pytest.raises(elastic.ChildFailedError):
        elastic.start(evolve(settings(), status="plain"))(called.fail, "no key").wait()
    told = capfd.readouterr().err
    assert "rank 1 (local 1, " in told and "KeyError: 'no key'      called.py:" in told and "first cause" not in told


MISTAKES = [
    ({}, (1,), r"^end: too many positional arguments"),
    ({"log_dir": "{}/file/logs"}, (), r"^log_dir={}/file/logs: a file is in the way; name a directory$"),
    ({"trace": "{}/file/trace"}, (), r"^trace={}/file/trace: "),
]


@pytest.mark.parametrize(("given", "further", "text"), MISTAKES)
def test_a_mistake_is_raised_by_start_itself(
    given: dict[str, str], further: tuple[int, ...], text: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    made: Any = {name: value.format(tmp_path) for name, value in given.items()}
    for begin in (elastic.start, elastic.launch):
        with pytest.raises(ValueError, match=text.format(tmp_path)):
            begin(settings(**made))(called.end, 0, *further)


def jobs_kept() -> list[Job[Any]]:
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is Job]


def test_without_a_thread_start_and_launch_refuse_alike() -> None:
    before = jobs_kept()
    said = r"^no agent can run on this host: .*: this host has no thread"
    for begin in (elastic.start, elastic.launch):
        with no_thread_left(), pytest.raises(ValueError, match=said):
            begin(settings("spawn"))(called.end, 0)
    assert [job for job in jobs_kept() if job not in before] == []


def test_a_job_that_has_ended_is_not_kept() -> None:
    before = jobs_kept()

    def fail(job: Job[int] | None) -> dict[int, int]:
        raise ValueError("a mistake")

    for _ in range(100):
        assert Job[int](lambda job: {}, (), 0.0).wait() == {}
        with pytest.raises(ValueError, match="a mistake"):
            Job[int](fail, (), 0.0)
    assert [job for job in jobs_kept() if job not in before] == []


def test_what_is_no_settings_and_no_time_is_refused(gate: Gate) -> None:
    with pytest.raises(ValueError, match=r"^\{\}: no settings; write elastic\.start\("):
        elastic.start({})  # type: ignore[arg-type]
    with elastic.start(settings())(gate.wait) as job, pytest.raises(ValueError, match=r"^timeout=-1: write a number"):
        job.wait(-1)


def test_a_signal_that_comes_while_the_main_thread_waits_stops_the_job() -> None:
    with pytest.raises(elastic.SignalException, match="stopped by SIGTERM"):
        elastic.start(settings(workers=1))(called.stop, os.getpid()).wait()


def test_a_job_may_be_started_by_a_thread_that_ends(gate: Gate) -> None:
    jobs: list[elastic.Job[int]] = []
    thread = threading.Thread(target=lambda: jobs.append(elastic.start(settings())(gate.wait)))
    thread.start()
    thread.join()
    with jobs.pop() as job:
        pids = job.pids(TIMEOUT_S)
        gate.open()
        assert job.wait() == pids


def test_logs_name_the_files_of_the_round_that_runs(tmp_path: Path) -> None:
    job = elastic.start(settings(max_restarts=1, redirects="1:3", log_dir=tmp_path / "logs"))(called.round)
    assert job.wait() == {0: 1, 1: 1}
    zero, one = job.logs().values()
    assert zero.stdout is zero.stderr is None
    (folder,) = (tmp_path / "logs").glob("*/attempt_1/1")
    assert (one.stdout, one.stderr, one.error_file) == tuple(
        folder / name for name in ("stdout.log", "stderr.log", "error.json")
    )
    nowhere = elastic.start(settings(workers=1, redirects=3, log_dir="/dev/null"))(called.end, 0)
    assert nowhere.wait() == {0: None}
    assert nowhere.logs() == {0: elastic.WorkerFiles(None, None, None)}


def test_a_worker_that_starts_again_alone_has_its_new_process_id(tmp_path: Path) -> None:
    def once() -> int:
        if os.environ["RANK"] == "1" and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise ValueError
        return os.getpid()

    job = elastic.start(settings(max_restarts=1, restart_scope="rank", log_dir=tmp_path / "logs"))(once)
    assert job.wait() == job.pids()
    error_file = job.logs()[1].error_file
    assert error_file and error_file.name == "error.1.json"


def test_exit_codes_are_known_though_the_program_ignores_its_children() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        job = elastic.start(settings("spawn", workers=1))(called.end, 7)
        with pytest.raises(elastic.ChildFailedError) as raised:
            job.wait()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert raised.value.get_first_failure()[1].exitcode == 7


PROGRAM = """
import os, signal, sys
import elastic

def work(told):
    signal.signal(signal.SIGTERM, lambda signum, frame: (open("stopped", "w"), os._exit(0)))
    os.write(told, b"r")
    while True:
        signal.pause()

heard, told = os.pipe()
settings = elastic.LaunchSettings(nproc_per_node=1, start_method="fork", status="off")
job = elastic.start(settings)(work, told)
assert os.read(heard, 1) == b"r"
print(*job.pids(30).values(), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "raises":
    raise KeyError("of the program")
sys.exit(3)
"""


@pytest.mark.parametrize(("how", "code"), [("exits", 3), ("raises", 1), ("killed", -signal.SIGKILL)])
def test_no_worker_outlives_the_program(how: str, code: int, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, script, how], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert ended.returncode == code, ended.stderr
    assert dies(int(ended.stdout))
    assert (tmp_path / "stopped").exists() == (how != "killed")
    for call in tmp_path.glob("elastic_*"):
        assert how == "killed"  # nobody is left to remove it
        shutil.rmtree(call)
    assert ended.stderr.strip().rpartition("\n")[2] == ("KeyError: 'of the program'" if how == "raises" else "")


ENDS_AT_ONCE = """
import sys
import elastic
from called import wait

if __name__ == "__main__":
    settings = elastic.LaunchSettings(nproc_per_node=2, start_method=sys.argv[1], status="off")
    job = elastic.start(settings)(wait)
    if sys.argv[2] == "later":
        job.pids(30)
"""


@pytest.mark.parametrize("when", ["at once", "later"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_program_that_ends_stops_its_job_before_it_removes_the_job_s_files(
    method: str, when: str, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(ENDS_AT_ONCE)
    for _ in range(4):
        ended = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", script, method, when],
            env={**os.environ, "PYTHONPATH": os.path.dirname(called.__file__)},
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert [*tmp_path.glob("*elastic_*")] == []


def test_torch_s_logs_specs_and_a_line_prefix_are_settings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std

    specs = DefaultLogsSpecs(log_dir=str(tmp_path / "logs"), tee=Std.OUT, local_ranks_filter={1})
    template = "<${role_name} ${rank}> "
    job = elastic.start(settings(logs_specs=specs, log_line_prefix_template=template))(called.speak, "word")
    assert job.wait() == {0: None, 1: None}
    assert capfd.readouterr().out == "<default 1> word\n"
    assert [each.stdout.read_text() for each in job.logs().values() if each.stdout] == ["word\n", "word\n"]
    assert sorted((tmp_path / "logs").glob("*/attempt_0/*/stdout.log")) == [each.stdout for each in job.logs().values()]
    assert elastic.launch(settings(workers=1, tee=1, log_line_prefix_template=template))(called.speak, "two") == {
        0: None
    }
    assert capfd.readouterr().out == "<default 0> two\n"
