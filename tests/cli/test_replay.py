"""`elastic replay`: its lines, its JSON, its picture and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from attrs import evolve
from replays import complaints
from traced import Agent, Pair, Party, Shared, finished, started
from traced_calls import Rank, called_again, ranks

from elastic.cli.exit_codes import FAILED, SUCCEEDED
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE
from elastic.cli.render.rounds import names, rank_names, rendered, rendered_call, span
from elastic.core.group.state import (
    Closed,
    Command,
    Elapsed,
    End,
    Event,
    Exited,
    Leave,
    Noticed,
    ReadyToLeave,
    Refused,
    Signal,
    Signalled,
    Unstartable,
)
from elastic.core.inprocess import words
from elastic.core.inprocess.words import How, Span
from elastic.core.replay.call_restarts import restarts
from elastic.core.replay.comparison import replayed
from elastic.core.replay.history import histories
from elastic.core.replay.timeline import recoveries, rounds
from elastic.core.world import Ending, Node, Notice, Verdict, Why

Replay = Callable[..., tuple[int, str]]
Change = Callable[[bytes], bytes]


@pytest.fixture
def replay(capfd: pytest.CaptureFixture[str]) -> Replay:
    """Return a runner of the command; it returns the exit code and the output."""

    def command(*arguments: object) -> tuple[int, str]:
        code = run(["replay", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out + err

    return command


def written(folder: Path, *agents: Party) -> list[Path]:
    files = [folder / f"{agent.name}.ndjson" for agent in agents]
    for file, agent in zip(files, agents, strict=True):
        file.write_bytes(b"".join(agent.lines))
    return files


def test_traces_that_agree_with_the_core_are_well(replay: Replay, tmp_path: Path) -> None:
    pair = finished()
    code, text = replay(*written(tmp_path, pair.a, pair.b))
    assert code == SUCCEEDED
    assert text.splitlines() == [
        "elastic  2 agents, 1 job: 71 steps taken again, all as traced",
        "  register   7 versions",
        "  laws       38 of 85 armed (how often: --json)",
        "  violations none",
        "  round 0   2 nodes (a, b), 2 workers · complete at 0.1 s · over at 0.4 s: a worker failed (b)",
        (
            "     then   0.3 s: worker 0 of b failed (exit code 9) · workers stopped +0.2 s, all back +0.2 s, "
            "complete +0.2 s, workers started +0.4 s"
        ),
        "  round 1   2 nodes (a, b), 2 workers · complete at 0.5 s · succeeded at 0.8 s: done (b)",
    ]


def test_a_changed_decision_is_named_with_its_line(replay: Replay, tmp_path: Path) -> None:
    pair = finished()
    a, b = written(tmp_path, pair.a, pair.b)
    lines = b.read_bytes().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if b'"is":"end"' in line and b"stepped" in line)
    lines[number] = lines[number].replace(b'"why":"failed"', b'"why":"left"')
    b.write_bytes(b"".join(lines))
    code, text = replay(a, b)
    assert code == FAILED
    assert f"  DIFFERS  b, {b} line {number + 1}: what the group commands (1.why)\n" in text
    assert '           traced  "left"\n' in text
    assert '           core    "failed"\n' in text
    assert "all as traced" not in text


def test_a_broken_property_is_named_with_its_number(replay: Replay, tmp_path: Path) -> None:
    """Two nodes hold different states of one version, and each trace agrees with the core."""
    pair, other = started(), Pair(Agent("a", shared := Shared()), Agent("c", shared)).run()
    code, text = replay(*written(tmp_path, pair.b, other.b))
    assert code == FAILED
    assert "  VIOLATION  S7: version 2 is one state for b#1 and another for c#1\n" in text


def test_a_trace_that_breaks_off_is_reported_and_is_no_fault(replay: Replay, tmp_path: Path) -> None:
    (file,) = written(tmp_path, finished().a)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-20])[:-30])
    code, text = replay(file)
    assert code == SUCCEEDED
    assert "  unended    a: the trace breaks off in the middle of a line: its agent was killed, or still runs\n" in text


def test_parts_that_were_removed_are_named(replay: Replay, tmp_path: Path) -> None:
    (file,) = written(tmp_path, finished().a)
    for number in (5, 6):
        Path(f"{file}.{number}").touch()
    code, text = replay(file)
    assert code == SUCCEEDED
    assert (
        f"  missing    {file}.2 to {file}.4 are gone: {file}.5 and later parts cannot be taken again without\n" in text
    )
    (trace,) = json.loads(replay("--json", file)[1])["traces"]
    assert trace["missing_parts"] == [2, 4]
    Path(f"{file}.3").touch()
    assert f"  missing    {file}.2 is gone: " in replay(file)[1]


def test_versions_that_no_trace_shows_are_counted(replay: Replay, tmp_path: Path) -> None:
    (file,) = written(tmp_path, finished().a)
    code, text = replay(file)
    assert code == SUCCEEDED
    assert "  register   6 versions, 1 that nobody's trace shows\n" in text


def test_traces_without_a_register_say_so(replay: Replay, tmp_path: Path) -> None:
    code, text = replay(*written(tmp_path, Agent("a", Shared())))
    assert code == SUCCEEDED
    assert "  register   nobody saw it\n" in text


def test_times_of_several_hosts_are_marked_as_wall_clock_times(replay: Replay, tmp_path: Path) -> None:
    pair = Pair(Agent("a", shared := Shared()), Agent("b", shared, boot="other")).run()
    _, text = replay(*written(tmp_path, pair.a, pair.b))
    assert "  times      of different hosts are compared by their wall clocks\n" in text
    assert "stands at the end of the traces\n" in text


def test_json_has_the_same_and_more(replay: Replay, tmp_path: Path) -> None:
    pair = finished()
    pair.a.run_id = "train42"
    code, text = replay("--json", *written(tmp_path, pair.a, pair.b))
    data: Any = json.loads(text)
    assert code == SUCCEEDED
    assert [trace["node"] for trace in data["traces"]] == ["a#1", "b#1"]
    assert {(trace["cut"], trace["ended"], trace["differs"]) for trace in data["traces"]} == {(False, True, None)}
    (job,) = data["jobs"]
    assert job["run_id"] == "train42"
    assert (job["versions"], job["missing"], job["violation"]) == (7, [], None)
    assert [(round["number"], round["why"]) for round in job["rounds"]] == [(0, "failed"), (1, "done")]
    assert [(each["ended"], each["began"], each["event"]["is"]) for each in job["recoveries"]] == [(0, 1, "exited")]
    assert job["lanes"]["nodes"] == ["a#1", "b#1"]
    assert {"node", "start", "end", "kind", "label"} == job["lanes"]["spans"][0].keys()


def test_json_has_differences_and_violations(replay: Replay, tmp_path: Path) -> None:
    (file,) = written(tmp_path, finished().a)
    file.write_bytes(file.read_bytes().replace(b'"ask":{"is":"look"}', b'"ask":{"is":"idle"}', 1))
    code, text = replay("--json", file)
    (trace,) = json.loads(text)["traces"]
    assert code == FAILED
    assert trace["differs"] == {"line": 4, "what": "what is asked for (is)", "traced": '"idle"', "core": '"look"'}


WRITTEN = "is it a trace? elastic launch --trace writes them"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no such file or directory"),
        (b"", f"line 1: no header: it is empty, or no trace; {WRITTEN}"),
        (b"hello\n", f"line 1: JSON is malformed: invalid character (byte 0); {WRITTEN}"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_mistake(
    replay: Replay, tmp_path: Path, content: bytes | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    assert replay(tmp_path / "t") == (USAGE, f"elastic: {tmp_path}/t: {why}\n")


def test_a_trace_that_is_named_twice_is_a_mistake_and_no_violation(replay: Replay, tmp_path: Path) -> None:
    a, b = written(tmp_path, (pair := finished()).a, pair.b)
    copy = tmp_path / "copy"
    copy.write_bytes(a.read_bytes())
    for first, again in ((a, a), (a, copy)):
        told = f"elastic: {again}: holds the trace of a#1 that {first} holds too; name one of them\n"
        assert replay(first, b, again) == (USAGE, told)


def test_files_must_be_named(replay: Replay) -> None:
    code, text = replay()
    assert code == USAGE
    assert "FILE... is missing" in text


# --- calls


def test_the_restarts_of_a_wrapped_function_are_shown(replay: Replay, tmp_path: Path) -> None:
    made = called_again().finish()
    code, text = replay(*written(tmp_path, made.a, made.b))
    assert code == SUCCEEDED
    assert text.splitlines() == [
        "elastic  2 ranks, 1 call: 67 steps taken again, all as traced",
        "  call       of rank 0, rank 1",
        "  register   7 versions",
        "  violations none",
        "  iteration 0   2 ranks (rank 0, rank 1) · complete at 0.1 s · over at 0.3 s: it went wrong on a rank (rank 1)",
        (
            "     then   0.2 s: function failed on rank 1 · all out of it +0.1 s, aborted +0.1 s, all back +0.2 s, "
            "complete +0.3 s, called again +0.3 s"
        ),
        "  iteration 1   2 ranks (rank 0, rank 1) · complete at 0.5 s · succeeded at 0.7 s: done (rank 1)",
    ]


def test_a_broken_law_of_calls_is_named_even_if_every_step_agrees(replay: Replay, tmp_path: Path) -> None:
    """Rank 0 is interrupted in the function while its round stands."""
    made = ranks()
    made.a.ends(How.INJECTED).ends(span=Span.FINALIZE).ends(span=Span.CHECK)
    made.run()
    code, text = replay(*written(tmp_path, made.a, made.b))
    assert code == FAILED
    assert "all as traced\n" in text
    assert "  VIOLATION  I5: 0#1 is hit though round 0 stands\n" in text
    assert complaints([replayed(made.a.trace), replayed(made.b.trace)]) == ["I5: 0#1 is hit though round 0 stands"]


def test_a_rank_s_trace_that_breaks_off_is_reported_and_its_later_start_has_a_name(
    replay: Replay, tmp_path: Path
) -> None:
    made = ranks()
    later = Rank("1", made.a.shared, incarnation=2)
    made.a.shared.watchers.append(later)
    later.runs()
    files = written(tmp_path, made.a, made.b)
    (tmp_path / "later.ndjson").write_bytes(b"".join(later.lines))
    code, text = replay(*files, tmp_path / "later.ndjson")
    assert code == SUCCEEDED
    assert "  unended    rank 1 (start 2): the trace breaks off: its process was killed, or still runs\n" in text
    assert "  call       of rank 0, rank 1, rank 1 (start 2)\n" in text


def test_a_picture_of_a_job_leaves_its_calls_out_and_a_line_says_so(replay: Replay, tmp_path: Path) -> None:
    made, pair = ranks(), finished()
    calls, job = written(tmp_path, made.a, made.b), written(tmp_path, pair.a, pair.b)
    code, text = replay(*calls, *job, f"--picture={tmp_path}/job.svg")
    line = f"elastic: --picture={tmp_path}/job.svg shows the job without 1 call; name the rank_*.ndjson of a call to draw it"
    assert (code, text.splitlines()[-1]) == (SUCCEEDED, line)
    assert "replay: 2 agents" in (tmp_path / "job.svg").read_text()


def test_a_picture_of_traces_of_one_call_shows_its_ranks(replay: Replay, tmp_path: Path) -> None:
    made = ranks()
    code, text = replay(*written(tmp_path, made.a, made.b), f"--picture={tmp_path}/call.svg")
    assert (code, "--picture" in text) == (SUCCEEDED, False)
    assert "replay: 2 ranks" in (tmp_path / "call.svg").read_text()


def test_json_has_the_restarts_of_a_call(replay: Replay, tmp_path: Path) -> None:
    made = called_again()
    _, text = replay("--json", *written(tmp_path, made.a, made.b))
    (job,) = json.loads(text)["jobs"]
    assert (job["of"], job["recoveries"]) == ("rank", [])
    assert [(each["ended"], each["began"], each["span"]) for each in job["restarts"]] == [(0, 1, "function")]


def test_a_rank_in_several_calls_has_one_start() -> None:
    """A trace that breaks off before its rank saw the register is a call of its own."""
    nodes = [Node("0", 1), Node("1", 5), Node("1", 9)]
    assert list(rank_names([*nodes, nodes[1]]).values()) == ["rank 0", "rank 1", "rank 1 (start 2)"]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (words.Over(0), "rank 1 heard that the iteration is over"),
        (words.Terminated(), "rank 1 was told to stop"),
        (words.Refused(Why.SUPERSEDED), "rank 1 was refused (superseded)"),
        (words.Elapsed(words.Deadline(words.Timer.SOFT, 1, 2.0)), "rank 1 passed its soft limit"),
        (words.Closed(Verdict(Ending.CANCELLED, 0, Node("1", 1), Why.ASKED)), "rank 1 heard that the job is over"),
    ],
)
def test_the_cause_of_a_restart_is_named(event: words.Event, told: str) -> None:
    history = called_again().history
    (restart,) = restarts(history)
    lines = rendered_call(rounds(history), [evolve(restart, event=event)], rank_names(history.hosts))
    assert lines[1].startswith(f"     then   0.2 s: {told} · ")


# --- words


def test_spans_below_a_tenth_of_a_second_are_shown_in_milliseconds() -> None:
    assert (span(0.1), span(0.0423), span(0.0)) == ("0.1 s", "42 ms", "0 ms")


def test_nodes_are_named_by_id_then_host_then_slot_then_incarnation() -> None:
    made_up, other = "10.0.0.1/0123abcd", "10.0.0.1/1123abcd"
    hosts = {Node(made_up, 1): "gpu-01", Node("b", 1): "gpu-02", Node("b", 2): "gpu-02", Node("c", 1): "gpu-02"}
    assert list(names(hosts).values()) == ["gpu-01", "b#1", "b#2", "c"]
    assert list(names({**hosts, Node(other, 1): "gpu-01"}).values()) == [made_up, "b#1", "b#2", "c", other]


@pytest.mark.parametrize(
    ("event", "commands", "words"),
    [
        (Exited(1, -9, 0.0, 0.0), (End(Why.FAILED),), "worker 1 of b failed (killed by SIGKILL)"),
        (Exited(1, 0, 0.0, 0.0), (Leave(),), "b left"),
        (Signalled(15, 0.0), (Leave(),), "b got SIGTERM"),
        (Unstartable("why", 0.0), (), "b could not start its workers"),
        (Elapsed(0.0), (Signal(SIGKILL),), "b had lost the store and stopped its workers"),
        (Elapsed(0.0), (End(Why.FAILED), Signal(SIGTERM)), "b waited in vain for another node to end the round"),
        (Elapsed(0.0), (Leave(), Signal(SIGTERM)), "b left"),
        (Noticed(Notice(9.0, "test"), 0.0), (Leave(),), "b left"),
        (ReadyToLeave(0, 0.0), (Leave(), Signal(SIGTERM)), "b left"),
        (Closed(Verdict(Ending.CANCELLED, 0, Node("a", 1), Why.ASKED), 0.0), (), "b heard that the job is over"),
        (Refused(Why.SUPERSEDED, "why", 0.0), (), "b was refused (superseded)"),
    ],
)
def test_the_cause_of_a_recovery_is_named(event: Event, commands: tuple[Command, ...], words: str) -> None:
    pair = finished()
    (history,) = histories([replayed(pair.a.trace), replayed(pair.b.trace)])
    (recovery,) = recoveries(history)
    told = rendered(rounds(history), [evolve(recovery, event=event, commands=commands)], names(history.hosts))
    assert told[1].startswith(f"     then   0.3 s: {words} · ")
    assert told[1].endswith(", workers started +0.4 s")
    done = evolve(recovery, progressed_at=recovery.detected_at + 1.25)
    told = rendered(rounds(history), [done], names(history.hosts))
    assert told[1].endswith(", workers started +0.4 s, first progress of all +1.2 s")


def test_a_launch_without_a_trace_imports_no_replay() -> None:
    program = (
        "import sys, elastic.cli.main, elastic.cli.root; print([m for m in sys.modules if 'elastic.core.sim' in m])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_one_job_is_drawn(replay: Replay, tmp_path: Path) -> None:
    pair, drawn = finished(), tmp_path / "job.svg"
    code, _ = replay(*written(tmp_path, pair.a, pair.b), f"--picture={drawn}")
    assert code == SUCCEEDED
    assert drawn.read_text().startswith("<svg")
    assert "replay: 2 agents" in drawn.read_text()


def test_a_picture_is_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    pair, drawn = finished(), tmp_path / "job.svg"
    files = [*map(str, written(tmp_path, pair.a, pair.b)), f"--picture={drawn}"]
    foreign = {**os.environ, "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-X", "utf8=0", "-m", "elastic", "replay", *files]
    ended = subprocess.run(command, env=foreign, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert not drawn.read_text("utf-8").isascii()


def test_a_picture_of_several_jobs_or_to_a_bad_path_is_a_mistake(replay: Replay, tmp_path: Path) -> None:
    pair, shared = finished(), Shared()
    other = Pair(Agent("c", shared), Agent("d", shared)).run()
    files = written(tmp_path, pair.a, pair.b)
    code, text = replay(*files, f"--picture={tmp_path}/none/job.svg")
    assert (code, "no file can be written there" in text) == (USAGE, True)
    (tmp_path / "other").mkdir()
    code, text = replay(*files, *written(tmp_path / "other", other.a, other.b), f"--picture={tmp_path}/job.svg")
    assert (code, "these traces are of 2 jobs; name those of one (rank_" in text) == (USAGE, True)
