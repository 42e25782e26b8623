"""`elastic.launch` in this process, with real workers of every start method."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type, get_args

import called
import pytest
from called import Place
from processes import children_of

import elastic
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address
from elastic.adapters.workers.start.function_call import StartMethod

METHODS = get_args(StartMethod)
METHOD = pytest.mark.parametrize("method", METHODS)


def found() -> tuple[dict[str, str], list[object]]:
    """Return what a launch could leave changed."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return environment, [signal.getsignal(signum) for signum in range(1, 32)]


@pytest.fixture(autouse=True)
def _nothing_stays(nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no process, signal handler, variable or file stays."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, children = found(), set(children_of(os.getpid()))
    yield
    assert found() == before
    assert set(children_of(os.getpid())) <= children  # dead or alive; an earlier test's may have gone meanwhile
    assert list(tmp_path.glob("elastic_*")) == []


def settings(method: StartMethod = "fork", workers: int = 2, **others: Any) -> elastic.LaunchSettings:
    return elastic.LaunchSettings(nproc_per_node=workers, start_method=method, status="off", **others)


@METHOD
def test_a_worker_s_value_comes_back_by_its_rank(method: StartMethod) -> None:
    values = elastic.launch(settings(method))(called.place, "local ${local_rank}", again="|$$")
    assert_type(values, dict[int, Place])
    assert list(values) == [0, 1]
    assert [(value.rank, value.word) for value in values.values()] == [(0, "local 0|$"), (1, "local 1|$")]
    assert len({os.getpid(), *(value.pid for value in values.values())}) == 3


def test_a_fork_can_call_a_lambda() -> None:
    here = threading.Lock(), "kept"
    assert elastic.launch(settings("fork"))(lambda: here[1]) == {0: "kept", 1: "kept"}


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_function_that_cannot_be_pickled_is_refused_before_anything_starts(method: StartMethod) -> None:
    with pytest.raises(ValueError, match=r"<lambda>: a process .* cannot be given it: .* write start_method='fork'$"):
        elastic.launch(settings(method))(lambda: 1)


def takes(one: int, *, two: int = 2) -> None:
    """Nothing else."""


SLIPS = [
    (takes, (), {}, "takes: missing a required argument: 'one'; it is takes(one: 'int', *, two: 'int' = 2) -> 'None'"),
    (takes, (1, 3), {}, "takes: too many positional arguments; it is takes(one: 'int', *, two: 'int' = 2) -> 'None'"),
    (3, (), {}, "3: neither a function nor the name of a script"),
    ("train.py", (1,), {}, "1: a script's arguments are text; write '1'"),
    ("train.py", (), {"max_epochs": 1}, "max_epochs=1: a script has no named arguments; write '--max-epochs', '1'"),
    ("train", (), {"module": True}, "module=True: a script has no named arguments; write LaunchSettings(module=True)"),
]


@pytest.mark.parametrize(("entrypoint", "arguments", "named", "answer"), SLIPS)
def test_wrong_arguments_are_refused_before_anything_starts(
    entrypoint: Any, arguments: tuple[Any, ...], named: dict[str, Any], answer: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as refused:
        elastic.launch(settings(trace=tmp_path / "trace"))(entrypoint, *arguments, **named)
    assert str(refused.value) == answer
    assert not (tmp_path / "trace").exists()


def test_a_value_that_is_no_settings_is_refused() -> None:
    for given in ({"nproc_per_node": 2}, takes):
        with pytest.raises(ValueError, match=r": no settings; write elastic\.launch\(elastic\.LaunchSettings"):
            elastic.launch(given)  # type: ignore[arg-type]


@METHOD
def test_after_a_restart_the_last_round_s_values_count(method: StartMethod) -> None:
    assert elastic.launch(settings(method, max_restarts=1))(called.round) == {0: 1, 1: 1}


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_and_what_forks_them_ignore_a_scheduler_s_signals_until_they_handle_them(method: StartMethod) -> None:
    for ignored in elastic.launch(settings(method, 1))(called.ignored)[0]:
        assert ignored >= {signal.SIGUSR1, signal.SIGUSR2} and signal.SIGTERM not in ignored


@METHOD
def test_an_exception_comes_back_as_a_failure_with_its_place(method: StartMethod) -> None:
    with pytest.raises(elastic.ChildFailedError, match=r"first cause .* rank 1, .*KeyError: 'no key'") as raised:
        elastic.launch(settings(method))(called.fail, "no key")
    rank, failure = raised.value.get_first_failure()
    assert (rank, list(raised.value.failures)) == (1, [1])
    assert (failure.local_rank, failure.exitcode, failure.signal_name()) == (1, 1, "<N/A>")
    assert failure.message["message"] == "KeyError: 'no key'"
    first, frame, *_ = failure.message["extraInfo"]["py_callstack"].splitlines()
    assert first == "Traceback (most recent call last):"
    assert f'{called.__file__}", line ' in frame
    assert raised.value.name == "fail"
    assert raised.value.report.exit_code == 1


def test_an_exception_that_cannot_say_itself_is_shown() -> None:
    class Dumb(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail() -> None:
        raise Dumb("loss is nan")

    with pytest.raises(elastic.ChildFailedError) as raised:
        elastic.launch(settings("fork", 1))(fail)
    assert raised.value.get_first_failure()[1].message["message"] == "Dumb: Dumb('loss is nan')"


@METHOD
@pytest.mark.parametrize(
    ("entrypoint", "given", "code", "name"),
    [(called.end, 7, 7, "<N/A>"), (called.be_killed, signal.SIGSEGV, -11, "SIGSEGV")],
    ids=["exit", "signal"],
)
def test_other_ends_come_back_with_their_code(
    method: StartMethod, entrypoint: Any, given: int, code: int, name: str
) -> None:
    with pytest.raises(elastic.ChildFailedError) as raised:
        elastic.launch(settings(method, workers=1))(entrypoint, given)
    _, failure = raised.value.get_first_failure()
    assert (failure.exitcode, failure.signal_name(), failure.error_file) == (code, name, "<N/A>")


def test_the_first_failure_is_the_one_that_the_report_blames_though_its_rank_failed_before(tmp_path: Path) -> None:
    alone, started = settings("fork", 1, max_restarts=1, restart_scope="rank"), tmp_path / "started"
    with pytest.raises(elastic.ChildFailedError) as raised:
        elastic.launch(alone)(called.end_again, started)
    rank, failure = raised.value.get_first_failure()
    cause, starts = raised.value.report.cause, started.stat().st_size
    assert cause and starts > 1
    assert (rank, failure.exitcode, cause.exit_code) == (0, 10 + starts, 10 + starts)


@METHOD
def test_a_worker_that_exits_with_0_returns_none(method: StartMethod) -> None:
    assert elastic.launch(settings(method))(called.end, 0) == {0: None, 1: None}


@pytest.mark.parametrize(
    ("rank_1", "why"),
    [
        ("ends", "it left none: it ended its process by os._exit, or executed another program"),
        (
            "is awkward",
            "it cannot be read here: TypeError: Awkward.__init__() missing 1 required positional argument: 'two'",
        ),
    ],
)
def test_a_value_that_is_lost_after_a_job_that_succeeded_is_told_by_its_rank(rank_1: str, why: str) -> None:
    with pytest.raises(elastic.LaunchError) as raised:
        elastic.launch(settings("fork"))(called.return_or_not, rank_1)
    assert str(raised.value) == f"the job succeeded, but a value is lost: rank 1: {why}"
    assert raised.value.values == {0: "kept"}
    assert raised.value.report.exit_code == 0


@METHOD
def test_a_function_s_arguments_may_have_any_name(method: StartMethod) -> None:
    given = {"function": "a", "start_method": "b", "self": "c", "entrypoint": "d"}
    assert elastic.launch(settings(method, 1))(called.names, **given) == {0: "a b c d"}


@METHOD
def test_a_value_may_be_large(method: StartMethod) -> None:
    size = 20_000_000
    assert {rank: len(value) for rank, value in elastic.launch(settings(method))(called.many, size).items()} == {
        0: size,
        1: size,
    }


def test_a_value_that_cannot_come_back_is_the_worker_s_failure() -> None:
    with pytest.raises(
        elastic.ChildFailedError, match="what the function returned cannot be handed back: cannot pickle"
    ):
        elastic.launch(settings("spawn", workers=1))(called.unpicklable)


@METHOD
def test_streams_of_workers_and_their_children_go_where_the_settings_say(method: StartMethod, tmp_path: Path) -> None:
    elastic.launch(settings(method, redirects=1, tee="0:2", log_dir=str(tmp_path / "logs")))(called.speak, "word")
    written = {
        f"{log.parent.name}/{log.name}": log.read_text() for log in (tmp_path / "logs").glob("*/attempt_0/*/std*.log")
    }
    assert written == {"0/stdout.log": "word\n", "1/stdout.log": "word\n", "0/stderr.log": "word\n"}


@METHOD
def test_a_signal_stops_the_workers_and_is_raised(method: StartMethod) -> None:
    with pytest.raises(elastic.SignalException, match="stopped by SIGTERM") as raised:
        elastic.launch(settings(method, workers=1))(called.stop, os.getpid())
    assert raised.value.sigval == signal.SIGTERM


def test_with_torch_the_exceptions_are_torch_s_too() -> None:
    from torch.distributed.elastic.multiprocessing import api, errors

    with pytest.raises(errors.ChildFailedError) as raised:
        elastic.launch(settings())(called.fail, "boom")
    assert elastic.ChildFailedError in raised.type.__mro__
    with pytest.raises(api.SignalException) as stopped:
        elastic.launch(settings(workers=1))(called.stop, os.getpid())
    assert stopped.value.sigval == signal.SIGTERM


def test_torch_s_record_hands_the_first_failure_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outer launcher reads the error file of a launcher that it runs."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, record

    outer = tmp_path / "outer.json"
    main = record(lambda: elastic.launch(settings())(called.fail, "deep"))
    with monkeypatch.context() as patch:
        patch.setenv("TORCHELASTIC_ERROR_FILE", str(outer))
        with pytest.raises(ChildFailedError):
            main()
    assert "KeyError: 'deep'" in outer.read_text()


def test_an_error_file_of_torch_s_record_comes_first() -> None:
    with pytest.raises(elastic.ChildFailedError, match=r"RuntimeError: recorded \(called.py:\d+ in train\)") as raised:
        elastic.launch(settings("spawn", workers=1))(called.fail_under_torch_s_record)
    _, failure = raised.value.get_first_failure()
    assert "in train" in failure.message["extraInfo"]["py_callstack"]
    assert failure.error_file_data == {"message": failure.message}
    assert failure.timestamp_isoformat()[:4].isdigit()


def test_a_dead_fork_server_is_started_again_and_a_fork_cannot_be(tmp_path: Path) -> None:
    trace = str(tmp_path / "trace")
    traced = elastic.launch(settings("forkserver", 1, max_restarts=1, trace=trace))
    assert traced(called.kill_the_server, trace) == {0: "again"}
    traced = elastic.launch(settings("fork", 1, max_restarts=1, trace=trace))
    with pytest.raises(elastic.ChildFailedError, match="the process that forks the workers has died"):
        traced(called.kill_the_server, trace)


def test_a_launch_works_with_streams_that_have_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert elastic.launch(settings())(called.end, 0) == {0: None, 1: None}


def test_a_script_is_run_as_the_command_runs_it(tmp_path: Path) -> None:
    script = tmp_path / "touch.py"
    script.write_text("import os, sys\nopen(sys.argv[1], 'w').write(os.environ['WORLD_SIZE'])")
    values = elastic.launch(settings())(script, f"{tmp_path}/rank${{local_rank}}")
    assert_type(values, dict[int, None])
    assert values == {0: None, 1: None}
    assert [(tmp_path / f"rank{rank}").read_text() for rank in (0, 1)] == ["2", "2"]
    assert elastic.launch(settings(no_python=True))("true") == {0: None, 1: None}


def test_each_node_gets_its_own_workers_values() -> None:
    host, address = serve(Address("localhost", 0), True)
    assert host
    common: dict[str, Any] = {"nnodes": 2, "rdzv_endpoint": str(address), "rdzv_conf": {"is_host": "false"}}
    values: dict[int, int] = {}

    def node(number: int) -> None:
        launch = elastic.launch(settings("spawn", **common, node_id=str(number)))
        returned = launch(called.place, "x")
        assert len(returned) == 2
        values.update({rank: value.rank for rank, value in returned.items()})

    try:
        threads = [threading.Thread(target=node, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        host.close()
    assert values == {rank: rank for rank in range(4)}
