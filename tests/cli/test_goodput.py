"""`elastic goodput`: its lines, its JSON and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from traced import PAIR, Agent, Pair, Party, Shared, finished, started
from traced_calls import called_again
from worlds import node

from elastic.adapters.report.trace_file import size_of
from elastic.cli.exit_codes import SUCCEEDED
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE
from elastic.cli.render.goodput import percent, rendered, said, span, summary
from elastic.core.goodput import Book, Cause, Kind, Piece, RoundEnd, booked
from elastic.core.trace.lines import encoded
from elastic.core.trace.steps import step_at
from elastic.core.world import Why

Goodput = Callable[..., tuple[int, str]]
A, B = node("a"), node("b")


TIMELESS = encoded(evolve(Agent("a", Shared()).header, now=1e308), None)[0]


@pytest.fixture
def goodput(capfd: pytest.CaptureFixture[str]) -> Goodput:
    """Return a runner of the command; it returns the exit code and the output."""

    def command(*arguments: object) -> tuple[int, str]:
        code = run(["goodput", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out + err

    return command


def written(folder: Path, *agents: Party) -> list[Path]:
    files = [folder / f"{agent.name}.ndjson" for agent in agents]
    for file, agent in zip(files, agents, strict=True):
        file.write_bytes(b"".join(agent.lines))
    return files


def test_a_job_that_lost_a_worker_is_told_by_bucket_cause_and_event(goodput: Goodput, tmp_path: Path) -> None:
    pair = finished()
    code, text = goodput(*written(tmp_path, pair.a, pair.b))
    assert code == SUCCEEDED
    assert text.splitlines() == [
        "elastic  2 agents, 1 job",
        (
            "  30.9 % running · 41.0 % waiting · 22.5 % finished · 3.4 % stopping · 2.2 % starting · "
            "lost in all: 830 ms of 2 agents"
        ),
        "",
        "  bucket    cause           node time  share",
        "  running   none            550 ms     30.9 %",
        "  starting  failure         20 ms      1.1 %",
        "  starting  first start     20 ms      1.1 %",
        "  stopping  failure         60 ms      3.4 %",
        "  waiting   failure         390 ms     21.9 %",
        "  waiting   first start     340 ms     19.1 %",
        "  finished  end of the job  400 ms     22.5 %",
        "",
        "  at      event                              node time  in which",
        "  290 ms  failure of rank 1 (b), in round 0  470 ms     390 ms waiting, 60 ms stopping, 20 ms starting",
        "  0 ms    first start                        360 ms     340 ms waiting, 20 ms starting",
    ]


def test_the_same_as_data_is_in_whole_microseconds_and_adds_up(goodput: Goodput, tmp_path: Path) -> None:
    pair = finished()
    files = written(tmp_path, pair.a, pair.b)
    code, text = goodput("--json", *files)
    told = json.loads(text)
    (job,) = told["jobs"]
    assert (code, told["format"], job["job"]) == (SUCCEEDED, 1, "by a")
    assert (
        job["micros"] == sum(each["micros"] for each in job["shares"]) == sum(each["micros"] for each in job["nodes"])
    )
    a, b = job["nodes"]
    assert (a["node"], a["name"], a["file"], a["host"], a["ended"], a["missing_parts"]) == (
        "a#1",
        "a",
        str(files[0]),
        "a",
        True,
        None,
    )
    assert b["micros"] == sum(b["buckets"].values())
    assert (a["awaited_micros"], b["awaited_micros"]) == (220_000, 0)
    failure, first = job["events"]
    assert {**failure, "buckets": sum(failure["buckets"].values())} == {
        "cause": "failure",
        "round": 0,
        "by": "b#1",
        "rank": 1,
        "lost": [],
        "came": [],
        "died": [],
        "began": pytest.approx(1100.3),
        "micros": 470_000,
        "buckets": 470_000,
    }
    assert (first["cause"], first["by"]) == ("first start", None)


def test_the_traces_of_a_call_s_ranks_are_left_out(goodput: Goodput, tmp_path: Path) -> None:
    pair, ranks = started(), called_again()
    files = written(tmp_path, pair.a, pair.b)
    (call,) = written(tmp_path, evolve_name(ranks.a))
    code, text = goodput(*files, call)
    assert (code, text.splitlines()[0]) == (SUCCEEDED, "elastic  2 agents, 1 job (1 trace of ranks left out)")
    assert goodput(call)[1].splitlines() == ["elastic  0 agents, 0 jobs (1 trace of ranks left out)"]


def evolve_name(rank: Party) -> Party:
    """Return the rank, whose file is called as its process calls it."""
    rank.name = "rank_0"
    return rank


def test_where_parts_are_missing_the_time_is_unknown_and_said_so(goodput: Goodput, tmp_path: Path) -> None:
    """A part can be read by itself: it has its registers whole."""
    agent = finished().b
    (file,) = written(tmp_path, agent)
    lines, last = [], None
    for step in agent.steps[30:]:
        line, last = encoded(step, last)
        lines.append(line)
    file.write_bytes(b"".join(agent.lines[:12]))
    Path(f"{file}.4").write_bytes(b"".join(lines))
    code, text = goodput(file)
    assert code == SUCCEEDED
    assert " % unknown" in text and "  unknown   unknown " in text
    assert text.splitlines()[-1] == (
        f"  missing    {file}.2 to {file}.3 are gone: the time of its node is unknown from there to what shows what it does"
    )
    (job,) = json.loads(goodput("--json", file)[1])["jobs"]
    (told,) = job["nodes"]
    assert told["missing_parts"] == [2, 3]
    assert told["micros"] == round(1e6 * (step_at(agent.steps[-1]) - agent.began_at))
    Path(f"{file}.3").touch()
    assert f"  missing    {file}.2 is gone: " in goodput(file)[1]


def test_a_file_of_several_agents_and_a_line_that_was_cut_off(goodput: Goodput, tmp_path: Path) -> None:
    pair = finished()
    file = tmp_path / "both.ndjson"
    file.write_bytes(b"".join(pair.a.lines)[:-20] + b" ... cut off\n" + b"".join(pair.b.lines))
    code, text = goodput("--json", file)
    assert code == SUCCEEDED
    assert [(each["node"], each["ended"]) for each in json.loads(text)["jobs"][0]["nodes"]] == [
        ("a#1", True),
        ("b#1", True),
    ]


def test_several_jobs_are_told_one_after_the_other(goodput: Goodput, tmp_path: Path) -> None:
    one, other, alone = started(), another(), Agent("e", Shared())
    files = written(tmp_path, one.a, one.b, other.a, other.b, alone)
    code, text = goodput(*files)
    assert (code, text.splitlines()[0]) == (SUCCEEDED, "elastic  5 agents, 2 jobs")
    shown = [line for line in text.splitlines() if "lost in all" in line or line.startswith("  job ")]
    assert [line.rsplit(" of ", 1)[-1] for line in shown] == ["  job by a", "2 agents", "  job by c", "2 agents"]
    assert text.splitlines()[-1] == "  no job     1 agent met none: 10 ms, in none of these"
    told = json.loads(goodput("--json", *files)[1])["jobs"]
    assert [(job["job"], len(job["nodes"])) for job in told] == [("", 1), ("by a", 2), ("by c", 2)]


def test_jobs_are_named_as_their_users_named_them(goodput: Goodput, tmp_path: Path) -> None:
    one, other = started(), another()
    one.a.run_id, one.b.run_id = "train42", "train42"
    files = written(tmp_path, one.a, one.b, other.a, other.b)
    shown = [line for line in goodput(*files)[1].splitlines() if line.startswith("  job ")]
    assert shown == ["  job train42 (by a)", "  job by c"]
    told = json.loads(goodput("--json", *files)[1])["jobs"]
    assert [(job["job"], job["run_id"]) for job in told] == [("by a", "train42"), ("by c", "")]


def another() -> Pair:
    """Return a pair of nodes of another job."""
    shared = Shared()
    return Pair(Agent("c", shared, PAIR), Agent("d", shared, PAIR)).run()


def test_an_agent_that_met_no_job_belongs_to_the_only_one(goodput: Goodput, tmp_path: Path) -> None:
    one, alone = started(), Agent("e", Shared())
    code, text = goodput(*written(tmp_path, one.a, one.b, alone))
    first, summed, *_, last = text.splitlines()
    assert (code, first, last) == (
        SUCCEEDED,
        "elastic  3 agents, 1 job",
        "  no job     1 agent met none: 10 ms, counted above",
    )
    assert summed.endswith(" of 3 agents")


def test_an_agent_that_wrote_its_header_alone_is_told(goodput: Goodput, tmp_path: Path) -> None:
    (file,) = written(tmp_path, alone := Agent("e", Shared()))
    file.write_bytes(alone.lines[0])
    code, text = goodput(file)
    assert (code, text.splitlines()[:2]) == (
        SUCCEEDED,
        ["elastic  1 agent, 0 jobs", "  0.0 % waiting · lost in all: 0 ms of 1 agent"],
    )
    (job,) = json.loads(goodput("--json", file)[1])["jobs"]
    assert [(node["node"], node["micros"]) for node in job["nodes"]] == [("e#1", 0)]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "line 1: no header: it is empty, or no trace; is it a trace? elastic launch --trace writes them"),
        (b"{}\n", "line 1: "),
        (b"\xff\n", "line 1: "),
        (b'{"name":"\xff"}\n', "line 1: text that is not UTF-8; is it a trace?"),
        (TIMELESS, "line 1: a time that no clock shows; is it a trace?"),
        (b'{"is":"started","round":0,"pids":[1],"at":1.0}\n', "line 1: a step before any header; is it a trace?"),
        (None, "no such file or directory"),
    ],
)
def test_what_is_no_trace_is_a_mistake(goodput: Goodput, tmp_path: Path, content: bytes | None, what: str) -> None:
    file = tmp_path / "t.ndjson"
    if content is not None:
        file.write_bytes(content)
    code, text = goodput(file)
    assert code == USAGE
    assert text.startswith(f"elastic: {file}: {what}")
    assert text.count("\n") == 1


def test_a_trace_that_comes_twice_is_a_mistake(goodput: Goodput, tmp_path: Path) -> None:
    a, copy = written(tmp_path, pair := started().a)[0], tmp_path / "copy.ndjson"
    copy.write_bytes(a.read_bytes())
    assert goodput(a, copy) == (
        USAGE,
        f"elastic: {copy}: holds the trace of {pair.held.who.node} that {a} holds too; name one of them\n",
    )


# --- words


@pytest.mark.parametrize(
    ("its", "words"),
    [
        (Cause(Kind.FIRST), "first start"),
        (Cause(Kind.FAILURE, "j", 2, B, 5), "failure of rank 5 (gpu-02), in round 2"),
        (Cause(Kind.FAILURE, "j", 2, B), "failure (gpu-02), in round 2"),
        (Cause(Kind.HANG, "j", 2, B, 5), "hang of rank 5 (gpu-02), in round 2"),
        (Cause(Kind.UPSCALE, "j", 2, B), "upscale, in round 2"),
        (Cause(Kind.UPSCALE, "j", 2, B, came=(A, B)), "upscale (a, gpu-02), in round 2"),
        (Cause(Kind.LOSS, "j", 2, B, lost=("gpu-03", "gpu-04")), "loss of gpu-03, gpu-04, in round 2"),
        (Cause(Kind.LOSS, "j", 2, B), "loss of a node, in round 2"),
        (
            Cause(Kind.LOSS, "j", 2, B, lost=("gpu-03", "gpu-04"), died=(A,)),
            "loss of gpu-03, gpu-04 (1 agent died), in round 2",
        ),
        (Cause(Kind.LOSS, "j", 2, B, lost=("gpu-03",), came=(A, B)), "loss of gpu-03, a, gpu-02 came, in round 2"),
        (Cause(Kind.DRAIN, "j", 2, A, came=(B,)), "drain (a), gpu-02 came, in round 2"),
        (
            Cause(Kind.UPSCALE, "j", 2, B, came=tuple(node(f"n{number}") for number in range(10))),
            "upscale (n0, n1, n2, n3, n4, n5, n6, n7, 2 more), in round 2",
        ),
        (Cause(Kind.DRAIN, "j", 2, A), "drain (a), in round 2"),
        (Cause(Kind.STORE), "store"),
        (Cause(Kind.UNKNOWN, "j", 7), "no trace tells why, in round 7"),
        (Cause(Kind.UNKNOWN), "unknown"),
    ],
)
def test_a_cause_in_words(its: Cause, words: str) -> None:
    assert said(its, {B: "gpu-02"}) == words


@pytest.mark.parametrize(
    ("micros", "words"),
    [
        (0, "0 ms"),
        (12_345, "12.3 ms"),
        (999_400, "999 ms"),
        (999_700, "1 s"),
        (1_500_000, "1.5 s"),
        (59_940_000, "59.9 s"),
        (59_960_000, "1 min 0 s"),
        (125_000_000, "2 min 5 s"),
        (11_520_000_000, "3 h 12 min"),
        (200 * 3_600_000_000, "8 d 8 h"),
    ],
)
def test_a_span_in_words(micros: int, words: str) -> None:
    assert span(micros) == words


@pytest.mark.parametrize(("end", "most"), [(10, ", most for gpu-02"), (11, "")])
def test_who_was_waited_for_during_half_of_the_waiting_is_named(end: int, most: str) -> None:
    pieces = (
        Piece(A, 0, 5, "waiting", Kind.FIRST, "j", (B,)),
        Piece(A, 5, 6, "waiting", Kind.FIRST, "j", (A,)),
        Piece(A, 6, end, "waiting", Kind.FIRST),
    )
    line = summary(booked(pieces), {B: "gpu-02"})
    assert line.startswith(f"100.0 % waiting{most} · lost in all: ")


def test_nothing_at_all_is_no_percentage() -> None:
    assert percent(0, 0) == "0.0 %"
    assert summary(Book(), {}) == "lost in all: 0 ms of 0 agents"


def test_a_busy_span_with_a_long_name_leaves_room_for_the_rest() -> None:
    long = Piece(A, 0, 5, "\x1b" + 99 * "\ufffd", Kind.PROGRAM)
    lines = [*rendered(booked([long]), {})]
    assert max(map(len, lines)) < 80
    assert [line.split("…")[0] for line in lines if "…" in line] == [
        f"{at}\\x1b" + 7 * "\ufffd" for at in ("  100.0 % ", "  ")
    ]


def test_of_many_events_the_dearest_ten_are_shown() -> None:
    pieces = [Piece(A, 10 * round, 10 * round + round, "stopping", round, "j") for round in range(1, 13)]
    ends = [RoundEnd("j", round, Why.UPSCALE, B) for round in range(1, 13)]
    lines = [*rendered(booked([*pieces, *ends]), {})]
    assert [line.split(" round ")[1].split()[0] for line in lines if "upscale" in line and "round" in line] == [
        str(round) for round in range(12, 2, -1)
    ]
    assert lines[-1] == "  and 2 more: --json"


def test_how_much_is_read_is_shown_on_the_way(
    goodput: Goodput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error: in a log a line now and then."""
    files = written(tmp_path, (pair := finished()).a, pair.b)
    monkeypatch.setattr("elastic.cli.render.last_line.PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr("elastic.cli.render.last_line.AGAIN_S", 0.0)
    _, text = goodput(*files)
    shown = [line for line in text.splitlines() if line.endswith(" of 0 MiB read")]
    assert len(shown) > 2 and shown[-1] == "elastic  100.0 % of 0 MiB read" != shown[0]
    size = sum(file.stat().st_size for file in files)
    assert size_of(str(files[0])) + size_of(str(files[1])) == size and size_of(str(tmp_path / "none")) == 0
