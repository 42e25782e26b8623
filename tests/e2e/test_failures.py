"""Workers that fail in every way that a process can: what is said, what is charged, what lives afterwards."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from launches import PROGRAMS, Launcher
from processes import comes_true, dies, is_alive, is_stopped

CRASH = PROGRAMS / "crash.py"
HOW = re.compile(
    r": (exit code 1|uncaught exception(, then killed by SIGABRT)?): ValueError: no such sample \(crash.py:\d+ in step\)"
    r"( · still running 2 s after its exception, told to end)?\n"
)
"""A worker's end takes more than 2 s where this host stands still. Torch may abort one that ends."""

IGNORANT = 'trap "" CHLD; exec "$0" "$@"'
WAYS = [
    ("code:7", "ended by itself, exit code 7"),
    ("code:255", "ended by itself, exit code 255"),
    ("signal:9", "killed by SIGKILL"),
    ("signal:11", "killed by SIGSEGV"),
    ("signal:15", "killed by SIGTERM"),
    ("signal:40", "killed by SIGRTMIN+6"),
]


@pytest.mark.parametrize(("how", "sentence"), WAYS)
def test_a_worker_that_fails_is_named_with_how_it_ended_and_the_job_goes_on(
    launch: Launcher, how: str, sentence: str
) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", CRASH, how)
    (failed,) = [told.pid for told in job.hears(3) if (told.round, told.rank) == (0, 1)]
    ended = job.ends()
    assert ended.code == 0
    assert f"rank 1 (local 1, pid {failed}) failed: {sentence} after" in ended.err
    assert "restart 1 of 1: 1 worker stopped in" in ended.err
    assert "all 2 workers succeeded · 1 restart," in ended.lines[-1]


def test_an_uncaught_exception_is_shown_with_its_place_out_of_the_log(launch: Launcher, tmp_path: Path) -> None:
    ended = launch("--nproc-per-node=2", "--redirects=3", f"--log-dir={tmp_path}/logs", CRASH, "raise").ends()
    (log,) = (tmp_path / "logs").glob("*/attempt_0/1/stderr.log")
    assert ended.code == 1
    assert f"log: {log} (" in ended.err
    assert re.search(r"ValueError: no such sample +crash\.py:\d+ in step\n +last lines: ", ended.err), "at once"
    assert HOW.search(ended.err), ended.err


def test_an_exception_after_which_the_job_goes_on_is_shown_with_its_place_when_it_is_raised(
    launch: Launcher, tmp_path: Path
) -> None:
    options = ("--nproc-per-node=2", "--max-restarts=1", "--redirects=3", f"--log-dir={tmp_path}/logs")
    ended = launch(*options, CRASH, "raise").ends()
    (log,) = (tmp_path / "logs").glob("*/attempt_0/1/stderr.log")
    assert ended.code == 0
    assert re.search(r"ValueError: no such sample +crash\.py:\d+ in step\n", ended.err)
    assert f"last lines: {log}" in ended.err
    assert ended.err.count("ValueError: no such sample") == 1


@pytest.mark.parametrize("kept", ["--redirects=3", "--tee=3"])
def test_a_worker_that_starts_again_alone_is_not_told_of_by_the_output_of_its_start_before(
    launch: Launcher, tmp_path: Path, kept: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib\nstarts = pathlib.Path(__file__).with_name('starts')\nstarts.open('a').write('.')\n"
        "match starts.stat().st_size:\n"
        "    case 1: raise ValueError('of the first start')\n"
        "    case 2: os.kill(os.getpid(), 9)\n"
    )
    options = ("--restart-scope=rank", "--max-restarts=2", kept, f"--log-dir={tmp_path}/logs")
    assert launch(*options, program).ends().code == 0
    (report,) = (tmp_path / "logs").glob("*/report.json")
    first, second = json.loads(report.read_text())["failures"]
    assert (first["message"], first["tail"][-1]) == ("ValueError: of the first start",) * 2
    assert (second["message"], second["tail"]) == ("killed by SIGKILL", [])


def test_a_rank_that_never_entered_a_call_and_is_not_started_again_ends_the_job(
    launch: Launcher, tmp_path: Path
) -> None:
    """Nobody knows that it is missing: the other rank would wait for it in its first collective."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\nif os.environ['RANK'] == '0': raise ValueError('cannot begin')\ntime.sleep(1000)\n"
    )
    options = ("--nproc-per-node=2", "--restart-scope=rank", "--max-restarts=1", f"--log-dir={tmp_path}/logs")
    ended = launch(*options, program).ends()
    assert ended.code == 1
    (report,) = (tmp_path / "logs").glob("*/report.json")
    told = json.loads(report.read_text())
    assert [(each["round"], each["rank"]) for each in told["failures"]] == [(0, 0), (0, 0), (1, 0), (1, 0)]
    assert told["restarts"] == 1 and "first cause" in ended.err


def test_an_exception_under_torch_s_record_is_shown_with_its_place_without_any_log(launch: Launcher) -> None:
    ended = launch("--nproc-per-node=2", CRASH, "record").ends()
    assert ended.code == 1
    assert HOW.search(ended.err), ended.err


def test_a_terminal_obeys_nothing_of_a_worker_s_error_file_and_log(launch: Launcher) -> None:
    ended = launch("--nproc-per-node=2", "--redirects=3", "--max-restarts=1", CRASH, "hostile", "2").ends()
    assert ended.code == 1
    assert r"\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\x00" in ended.err
    assert [each for each in ended.err if each != "\n" and not each.isprintable()] == []


def test_a_worker_s_own_output_is_passed_on_as_it_is(launch: Launcher) -> None:
    ended = launch("--nproc-per-node=2", CRASH, "hostile").ends()
    assert "\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\x00\n" in ended.err


def test_two_workers_that_fail_at_once_cost_one_restart(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", CRASH, "both")
    job.hears(2)
    job.open_gate()
    assert [(told.round, told.words) for told in job.hears(2)] == [(1, "1"), (1, "1")]
    ended = job.ends()
    assert ended.code == 0
    assert "all 2 workers succeeded · 1 restart," in ended.lines[-1]


def test_workers_that_had_failed_when_the_launcher_looked_are_all_told_of(launch: Launcher, tmp_path: Path) -> None:
    """The launcher is held up while they fail. Nobody is left to be stopped."""
    file = tmp_path / "report.json"
    job = launch("--nproc-per-node=4", f"--report={file}", CRASH, "both")
    workers = job.hears(4)
    job.signal(signal.SIGSTOP)
    assert comes_true(lambda: is_stopped(job.pid))
    job.open_gate()
    assert all(dies(told.pid) for told in workers)
    job.signal(signal.SIGCONT)
    ended = job.ends()
    report = json.loads(file.read_text())
    assert ended.code == 1
    assert sorted((fault["rank"], fault["pid"]) for fault in report["failures"]) == [(w.rank, w.pid) for w in workers]
    assert ended.err.count(" failed: exit code 3 after ") == 4
    assert "of that round did not fail" not in ended.err


def test_exit_codes_are_known_also_where_a_supervisor_ignores_the_death_of_children(launch: Launcher) -> None:
    ended = launch("--no-python", "sh", "-c", "exit 7", under=("bash", "-c", IGNORANT)).ends()
    assert ended.code == 1
    assert ": exit code 7" in ended.err


def test_a_worker_that_ignores_sigterm_is_killed_after_the_grace_and_the_restart_goes_on(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", "--grace=0.2", PROGRAMS / "stubborn.py")
    (stays,) = job.hears(1)
    job.open_gate()
    ended = job.ends()
    assert not is_alive(stays.pid)
    assert ended.code == 0
    assert "1 worker did not stop in time: SIGKILL" in ended.lines
    assert "restart 1 of 1: 1 worker stopped in" in ended.err


def test_while_a_worker_takes_its_time_to_stop_it_is_named_with_the_option_that_bounds_it(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", "--grace=1000", PROGRAMS / "stubborn.py")
    job.hears(1)
    job.open_gate()
    job.says("waiting for 1 worker to stop: local rank 0 · SIGKILL in ")
    job.says(" s (--grace)\n")
    assert [told.words for told in job.hears(1)] == ["got SIGTERM"]
    job.signal(signal.SIGHUP)
    assert [told.words for told in job.hears(1)] == ["got SIGHUP"]
    job.signal(signal.SIGHUP)
    assert job.ends().code == 129


def test_with_status_off_a_failure_is_told_though_a_signal_ends_the_job(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--status=off", "--grace=1000", PROGRAMS / "stubborn.py")
    job.hears(1)
    job.open_gate()
    assert [told.words for told in job.hears(1)] == ["got SIGTERM"]
    job.signal(signal.SIGHUP)
    assert [told.words for told in job.hears(1)] == ["got SIGHUP"]
    job.signal(signal.SIGHUP)
    ended = job.ends()
    assert ended.code == 129
    failed, *_, last = ended.lines
    assert re.search(r" rank 1 \(local 1, pid \d+\) failed: ", failed)
    assert last.startswith("stopped by SIGHUP · 0 restarts, ")


def test_when_no_restart_is_left_the_report_names_the_first_cause_and_that_it_came_before(
    launch: Launcher, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    ended = launch("--nproc-per-node=3", "--max-restarts=2", f"--report={file}", CRASH, "code:7", "99").ends()
    report = json.loads(file.read_text())
    assert ended.code == 1
    head, cause, worker, others, stacks, hint, details = ended.lines[-7:]
    assert head == "FAILED: 3 failures, 2 restarts allowed (--max-restarts=2)"
    assert cause.startswith("  first cause   ") and " rank 1, round 2, " in cause
    assert cause.endswith(": ended by itself, exit code 7")
    assert worker.startswith("                local rank 1, pid ")
    assert others == "  others        ranks 0, 2 were running"
    assert stacks.startswith("  stacks        rank")
    assert hint == "  hint          rank 1 failed the same way in 3 rounds: a restart does not help"
    assert details == f"  details       {file}"
    assert [(fault["round"], fault["rank"], fault["exit_code"]) for fault in report["failures"]] == [
        (0, 1, 7),
        (1, 1, 7),
        (2, 1, 7),
    ]
    assert [(end["rank"], end["state"]) for end in report["here"]["workers"]] == [
        (0, "stopped by elastic"),
        (1, "failed"),
        (2, "stopped by elastic"),
    ]
    assert report["cause"] == 2
    assert (report["ending"]["state"], report["here"]["exit_code"], report["restarts"]) == ("failed", 1, 2)


def test_the_launcher_s_own_error_file_tells_the_first_cause_as_under_torchrun(
    launch: Launcher, tmp_path: Path
) -> None:
    file = tmp_path / "reply.json"
    reply = {"TORCHELASTIC_ERROR_FILE": str(file)}
    assert launch("--nproc-per-node=2", CRASH, "record", environment=reply).ends().code == 1
    message = json.loads(file.read_text())["message"]
    assert message["message"] == "ValueError: no such sample"
    assert message["errorCode"] == 1, "also if the end of torch took longer than 2 s"
    assert "crash.py" in message["extraInfo"]["py_callstack"]
    assert launch("--nproc-per-node=2", CRASH, "code:7", environment=reply).ends().code == 1
    message = json.loads(file.read_text())["message"]
    assert (message["message"], message["errorCode"]) == ("exit code 7", 7)
    file.unlink()
    assert launch("--max-restarts=1", "--nproc-per-node=2", CRASH, "code:7", environment=reply).ends().code == 0
    assert not file.exists()


def test_an_error_file_that_cannot_be_written_is_one_warning(launch: Launcher, tmp_path: Path) -> None:
    reply = {"TORCHELASTIC_ERROR_FILE": f"{tmp_path}/no/reply.json"}
    ended = launch("--no-python", "false", environment=reply).ends()
    assert ended.code == 1
    lost = f"elastic: TORCHELASTIC_ERROR_FILE={tmp_path}/no/reply.json could not be written: no such file or directory"
    assert ended.err.splitlines().count(lost) == 1


def test_a_mistake_is_in_the_error_file_of_the_launcher_too(launch: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "reply.json"
    ended = launch("--nproc-per-node=none", "x", environment={"TORCHELASTIC_ERROR_FILE": str(file)}).ends()
    assert ended.code == 2
    said = ended.err.strip().removeprefix("elastic: ")
    assert json.loads(file.read_text()) == {"message": {"message": said, "errorCode": 2}}


def test_a_launcher_that_is_stopped_says_so_in_its_error_file(launch: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "reply.json"
    running = launch(PROGRAMS / "stay.py", environment={"TORCHELASTIC_ERROR_FILE": str(file)})
    running.hears(1)
    running.signal(signal.SIGTERM)
    assert running.ends().code == 143
    assert json.loads(file.read_text())["message"]["message"].startswith("stopped by SIGTERM")


UNSTARTABLE = [
    (("nowhere.py",), "nowhere.py: no such file in "),
    (("-m", "no.such.module"), "no.such.module: no such module in "),
    (("--no-python", "./nowhere"), "./nowhere: no such file in "),
    (("--no-python", "no-such-program-anywhere"), "no-such-program-anywhere: not found in PATH"),
    (("--no-python", str(CRASH)), f"{CRASH}: not executable: chmod +x {CRASH}"),
    (("--no-python", "/"), "/: a directory, not a program"),
]


@pytest.mark.parametrize(("program", "reason"), UNSTARTABLE)
def test_a_program_that_cannot_be_started_fails_the_job_at_once_and_costs_no_restart(
    launch: Launcher, tmp_path: Path, program: tuple[str, ...], reason: str
) -> None:
    file = tmp_path / "report.json"
    options = ("--nproc-per-node=2", "--max-restarts=3", "--status=off", f"--report={file}")
    ended = launch(*options, *program).ends()
    report = json.loads(file.read_text())
    assert ended.code == 1
    assert ended.lines[0] == "FAILED: cannot start the program (no restart used)"
    assert ended.lines[1].startswith("  first cause   ") and reason in ended.lines[1]
    assert (report["restarts"], len(report["failures"])) == (0, 1)


@pytest.mark.parametrize(("end", "code"), [("succeed", 0), ("fail", 1)])
def test_what_a_worker_leaves_running_dies_with_it_or_with_the_job_if_it_has_a_session_of_its_own(
    launch: Launcher, end: str, code: int
) -> None:
    job = launch(PROGRAMS / "family.py", end)
    family = job.hears(3)
    assert all(is_alive(told.pid) for told in family)
    job.open_gate()
    assert job.ends().code == code
    assert not any(is_alive(told.pid) for told in family)


def test_a_worker_that_closes_its_output_is_not_taken_for_one_that_ended(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--tee=3", PROGRAMS / "mute.py")
    assert all(is_alive(told.pid) for told in job.hears(2))
    assert job.process.poll() is None
    job.open_gate()
    ended = job.ends()
    assert ended.code == 0
    assert ended.lines[-1].startswith("all 2 workers succeeded · 0 restarts, ")


def test_no_worker_starts_before_all_of_the_former_generation_are_gone(launch: Launcher, tmp_path: Path) -> None:
    rounds = 3
    job = launch(
        "--nproc-per-node=3",
        f"--max-restarts={rounds}",
        "--grace=0.2",
        PROGRAMS / "exclusive.py",
        tmp_path,
        str(rounds),
    )
    for round in range(rounds):
        assert [(told.round, told.words) for told in job.hears(3)] == [(round, "holds 0")] * 3
        job.open_gate(round)
    assert [(told.round, told.words) for told in job.hears(3)] == [(rounds, "last 0")] * 3
    assert job.ends().code == 0
