"""Where output goes: the options, the directories, the prefix, the tail."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.adapters.disk import Disk
from elastic.adapters.launch_settings import Logs, Std, Streams, parse_streams
from elastic.adapters.workers.output import logs
from elastic.adapters.workers.output.logs import (
    CannotLog,
    OwnLogs,
    Place,
    file_name,
    line_prefix,
    make_run_directory,
    sinks,
    tail,
)
from elastic.adapters.workers.worker_port import Duplicate, Remark, Sink


def test_one_digit_is_for_all_ranks() -> None:
    chosen = [parse_streams(text) for text in "0123"]
    assert [streams.of(17) for streams in chosen] == [Std.NONE, Std.OUT, Std.ERR, Std.ALL]


def test_a_map_names_ranks_and_the_others_have_none() -> None:
    streams = parse_streams("0:1,12:3,3:2,0:2")
    assert [streams.of(rank) for rank in (0, 1, 3, 12)] == [Std.ERR, Std.NONE, Std.ERR, Std.ALL]


@pytest.mark.parametrize("text", ["", "4", "11", "-1", "0:1,", "0:1,1", "1,0:1", "0:4", "0;1", " 1", "a", "٣", "0:1\n"])
def test_anything_else_is_refused_with_the_value_and_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{text!r} is not a choice of streams: write 0 (none)")):
        parse_streams(text)


NONE, ALL = Streams(), Streams(Std.ALL)
D = Path("/logs/0")


@pytest.mark.parametrize(
    ("redirects", "tee", "shown", "expected"),
    [
        (NONE, NONE, None, (Sink(), Sink())),
        (Streams(Std.OUT), NONE, None, (Sink(D / "stdout.log", console=False), Sink())),
        (NONE, Streams(Std.ERR), None, (Sink(), Sink(D / "stderr.log", console=True))),
        (ALL, Streams(Std.OUT), None, (Sink(D / "stdout.log", console=True), Sink(D / "stderr.log", console=False))),
        (NONE, ALL, {0, 7}, (Sink(D / "stdout.log", console=True), Sink(D / "stderr.log", console=True))),
        (NONE, ALL, {1}, (Sink(D / "stdout.log", console=False), Sink(D / "stderr.log", console=False))),
        (NONE, NONE, {1}, (Sink(D / "stdout.log", console=False), Sink(D / "stderr.log", console=False))),
        (NONE, NONE, {0}, (Sink(), Sink())),
    ],
)
def test_a_stream_goes_to_the_file_the_console_or_both(
    redirects: Streams, tee: Streams, shown: set[int] | None, expected: tuple[Sink, Sink]
) -> None:
    assert sinks(Logs(None, redirects, tee, None if shown is None else frozenset(shown)), 0, D) == expected


def test_without_a_directory_files_are_dev_null() -> None:
    null = Path("/dev/null")
    assert sinks(Logs(None, Streams(Std.OUT), Streams(Std.ERR)), 0, None) == (
        Sink(null, console=False),
        Sink(null, console=True),
    )


def test_of_tee_d_streams_lines_with_a_word_go_to_a_file_of_the_attempt() -> None:
    asked = Logs(None, ALL, Streams(Std.OUT), frozenset({0}), None, ("an apple", "ä"), ("b",))
    out, err = sinks(asked, 0, D)
    assert out.duplicate == Duplicate(Path("/logs/filtered_stdout.log"), (b"an apple", "ä".encode()))
    assert err == Sink(D / "stderr.log", console=False)
    assert sinks(asked, 1, D)[0].duplicate is None
    assert sinks(asked, 0, None)[0].duplicate == Duplicate(Path("/dev/null"), (b"an apple", "ä".encode()))


def test_an_attempt_has_its_own_directory_once(tmp_path: Path) -> None:
    run = make_run_directory(str(tmp_path / "new" / "logs"), "job7")
    assert run.root is not None
    assert re.fullmatch(r"job7_[0-9a-f]{8}", run.root.name) and run.root.parent == tmp_path / "new" / "logs"
    assert run.attempt(0, 1) == run.root / "attempt_0" / "1"
    assert run.attempt(0, 12) == run.root / "attempt_0" / "12"
    assert run.attempt(0, 1) == run.root / "attempt_0.2" / "1"  # the store had forgotten round 0
    assert run.attempt(0, 12) == run.root / "attempt_0.2" / "12"
    assert run.attempt(0, 1) == run.root / "attempt_0.3" / "1"
    run.remove_if_unused()
    assert (run.root / "attempt_0" / "1").is_dir()


def test_the_error_file_is_named_in_the_environment_if_anything_is_stored(tmp_path: Path, disk: Disk) -> None:
    own = OwnLogs(Logs(str(tmp_path)), make_run_directory(str(tmp_path), "job"), disk)
    environments: dict[int, dict[str, str]] = {0: {"A": "b"}, 1: {"TORCHELASTIC_ERROR_FILE": "/of/another/launcher"}}
    places = own.places(3, environments)
    assert own.directory and own.directory.root
    error_file = own.directory.root / "attempt_3" / "1" / "error.json"
    assert places[1].error_file == error_file and environments[1] == {"TORCHELASTIC_ERROR_FILE": str(error_file)}
    assert environments[0]["A"] == "b"
    stored = OwnLogs(Logs("/dev/null"), make_run_directory("/dev/null", "job"), disk)
    assert stored.places(0, environments)[0].error_file is None
    assert environments[0]["TORCHELASTIC_ERROR_FILE"] == ""


def test_agents_of_one_job_share_no_run_directory(tmp_path: Path) -> None:
    assert make_run_directory(str(tmp_path), "job") != make_run_directory(str(tmp_path), "job")


def test_a_name_that_is_taken_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([b"\0\0\0\0", b"\0\0\0\0", b"\0\0\0\1"])
    made = [logs._make_new(tmp_path, "job", lambda size: next(draws)) for _ in range(2)]
    assert [path.name for path in made] == ["job_00000000", "job_00000001"]


def test_a_relative_log_directory_becomes_absolute_since_workers_may_change_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = make_run_directory("logs", "job").root
    assert root is not None and root.parent == tmp_path / "logs"


def test_the_default_directory_is_removed_if_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for log_dir in (None, ""):
        run = make_run_directory(log_dir, "job")
        assert re.match("torchelastic_.{8}/job_.{8}$", os.path.relpath(str(run.root), tmp_path))
        run.attempt(0, 0)
        run.remove_if_unused()
        assert list(tmp_path.iterdir()) == []


def test_the_default_directory_stays_if_there_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run = make_run_directory(None, "job")
    kept, unused = run.attempt(0, 0), run.attempt(1, 0)
    assert kept is not None and unused is not None
    (kept / "error.json").write_text("{}")
    run.remove_if_unused()
    assert (kept / "error.json").exists() and not unused.exists()


def test_dev_null_stores_nothing() -> None:
    run = make_run_directory("/dev/null", "job")
    assert run.root is None and run.attempt(0, 0) is None
    run.remove_if_unused()


def test_a_round_whose_directories_cannot_be_made_runs_on_the_console_and_it_is_told_once(
    tmp_path: Path, disk: Disk
) -> None:
    told: list[Remark] = []
    asked = Logs(str(tmp_path), redirects=ALL, tee=Streams(ranks={1: Std.OUT}), shown=frozenset({0, 1}))
    own = OwnLogs(asked, make_run_directory(str(tmp_path), "job"), disk, told.append)
    assert own.directory and own.directory.root
    own.directory.root.rmdir()
    own.directory.root.symlink_to("/proc")  # where nobody makes a directory, root neither
    environments: dict[int, dict[str, str]] = {rank: {} for rank in range(3)}
    places = own.places(4, environments)
    carried = Sink(Path("/dev/null"), console=True)
    assert places[0] == places[1] == Place(carried, carried, None)
    assert places[2] == Place(Sink(Path("/dev/null"), console=False), Sink(Path("/dev/null"), console=False), None)
    assert environments == {rank: {"TORCHELASTIC_ERROR_FILE": ""} for rank in range(3)}
    why = "no such file or directory: the output of round 4 is on the console only"
    assert told == [Remark(f"{own.directory.root}: {why}")]


def test_a_tmpdir_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "not" / "there"))
    run = make_run_directory(None, "job")
    run.remove_if_unused()
    assert run.temporary is not None and run.temporary.parent == Path("/tmp") and not run.temporary.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_log_directory_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (file, file / "below"):
        with pytest.raises(CannotLog, match=f"^{path}: a file is in the way; name a directory$"):
            make_run_directory(str(path), "job")
    with pytest.raises(CannotLog, match=r"^/proc/logs: no such file"):
        make_run_directory("/proc/logs", "job")


@given(st.text())
def test_a_run_id_is_one_part_of_a_path_of_bounded_length(run_id: str) -> None:
    name = f"{file_name(run_id)}_00000000"
    assert "/" not in name and "\0" not in name and len(name.encode()) < 200
    assert Path(name).name == name


def test_a_usual_run_id_stays_as_it_is() -> None:
    assert file_name("job-7.x_1") == "job-7.x_1"
    assert file_name("..x") == "%2E.x"
    assert file_name("team/job 7") == "team%2Fjob%207"


def test_the_prefix_is_torchruns_or_the_templates() -> None:
    assert line_prefix(None, "default", 5, 1, "h", "n") == "[default1]:"
    assert line_prefix("[${role_name} ${rank}/${local_rank}${other}] ", "r", 5, 1, "h", "n") == "[r 5/1${other}] "
    assert line_prefix("${host} ${node} $$host", "r", 5, 1, "gpu-01", "$rank") == "gpu-01 $rank $host"


def test_the_tail_is_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(100)))
    assert tail(log, 3) == ("line 97", "line 98", "line 99")
    assert len(tail(log)) == 20
    log.write_text("only\n\nthree, unfinished")
    assert tail(log) == ("only", "", "three, unfinished")


def test_there_is_no_tail_of_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    assert [tail(path) for path in (tmp_path / "no", tmp_path / "empty", tmp_path / "fifo", tmp_path)] == [()] * 4


def test_of_a_long_log_only_the_end_is_read_from_a_lines_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{n:099}\n" for n in range(10_000)))
    found = tail(log, 10_000)
    assert len(found) == logs.TAIL_BYTES_MAX // 100 and found[0] == f"{10_000 - len(found):099}"
    log.write_text("x" * 100_000)
    assert tail(log) == ("x" * logs.TAIL_BYTES_MAX,)


def test_a_tail_may_begin_at_a_byte_which_a_shorter_file_does_not_have(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\nafter\n")
    assert tail(log, begins=len("before\n")) == ("after",)
    assert tail(log, begins=logs.size(log)) == ()
    log.write_text("anew\n")
    assert tail(log, begins=7) == ("anew",)
    log.write_text("before\n" + "x" * logs.TAIL_BYTES_MAX)
    assert tail(log, begins=len("before\n")) == ("x" * logs.TAIL_BYTES_MAX,)
    assert logs.size(tmp_path / "no") == 0


def test_a_tail_is_harmless_for_a_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\x1b[31;1mred\x1b[0m \x1b]0;title\x07\tx\xff\r\n 10%\r 99%\r\n")
    assert tail(log) == ("red \\x1b]0;title\\x07        x\ufffd", " 99%") or tail(log)[1] == " 99%"


@given(st.binary())
def test_every_line_of_a_tail_is_printable(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_bytes(data)
    assert all(line.isprintable() for line in tail(log))
