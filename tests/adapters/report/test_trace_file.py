"""Traces on disk: whole lines, one agent per file, and a job that goes on whatever becomes of its trace."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from processes import comes_true
from replays import complaints, replays
from traced import PAIR, finished, lines
from worlds import LIFE, but, node, profile

from elastic.adapters.agent.agent import Agent
from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import Kind, LaunchSettings, Logs, Program
from elastic.adapters.report.news import CannotTrace, News, NoTrace, Remark, TraceLost
from elastic.adapters.report.trace_file import PARTS_KEPT, TraceFile, later_parts, missing_parts, stretches
from elastic.adapters.report.trace_file import lines as lines_of
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.core import group, rendezvous
from elastic.core.inprocess import Call, Settings, transition
from elastic.core.inprocess.words import Join
from elastic.core.rendezvous import Held, Input, Pause, Silent, Who, step
from elastic.core.trace.lines import CUT, entries, traces
from elastic.core.trace.steps import STEPS, Asked, Calling, CallStepped, Trace
from elastic.core.world import Ending, Verdict

CLOCK = SystemClock()
HELD = Held(Who(node("a"), profile("a"), PAIR, LIFE))
TIMEOUT_S = 60.0


def silence(at: float) -> tuple[Input, float, Pause]:
    """What the client was fed then, and what it asked for."""
    return Silent("no answer"), at, Pause(at + 0.05)


@pytest.fixture
def lost() -> SimpleQueue[TraceLost | Remark]:
    return SimpleQueue()


def begun(path: Path | str, lost: SimpleQueue[TraceLost | Remark], held: Held = HELD) -> TraceFile:
    made = TraceFile(str(path))
    made.begin(held, group.Settings(), CLOCK, lost.put)
    return made


def read(path: Path) -> list[Trace]:
    return list(traces(lines_of(str(path))))


def test_what_is_taken_is_written_behind_a_header(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    made = begun(tmp_path / "t", lost)
    made.took(step, *silence(7.0))
    made.end()
    (trace,) = read(tmp_path / "t")
    header = trace.header
    assert trace.steps == (Asked(*silence(7.0)),)
    assert Who(header.node, header.profile, header.rendezvous, header.nonce) == HELD.who
    assert header.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert header.host == os.uname().nodename


def test_the_time_of_an_agent_begins_with_its_program(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    program_at = CLOCK.now() - 3.0
    made = TraceFile(str(tmp_path / "t"), began_at=program_at)
    assert made.begin(HELD, group.Settings(), CLOCK, lost.put) == pytest.approx(program_at)
    made.end()
    (header,) = (trace.header for trace in read(tmp_path / "t"))
    assert header.now == pytest.approx(program_at)
    assert CLOCK.wall() - header.wall >= 3.0
    assert NoTrace(program_at).begin(HELD, group.Settings(), CLOCK, lost.put) == program_at
    assert NoTrace().begin(HELD, group.Settings(), CLOCK, lost.put) > program_at + 3.0


def test_the_header_has_the_run_id_that_the_user_gave(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    for run_id in ("train42", ""):
        made = TraceFile(str(tmp_path / f"t{run_id}"), run_id=run_id)
        made.begin(HELD, group.Settings(), CLOCK, lost.put)
        made.end()
        (trace,) = read(tmp_path / f"t{run_id}")
        assert trace.header.run_id == run_id


def call_begun(path: Path | str, lost: SimpleQueue[TraceLost | Remark]) -> TraceFile:
    made = TraceFile(f"{path}/")
    made.begin_call(HELD, Call(token=7), CLOCK, lost.put)
    return made


def test_a_call_s_trace_has_a_file_of_its_own(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    begun(f"{tmp_path}/", lost).end()
    made = call_begun(tmp_path, lost)
    made.took(transition, None, (Join(),), 3.0)
    made.end()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a_1.ndjson", "rank_a_1.ndjson"]
    (trace,) = read(tmp_path / "rank_a_1.ndjson")
    assert trace.steps == (CallStepped(None, (Join(),), 3.0),)
    assert trace.header.machine == Calling(Settings(), 7)


def test_a_call_that_cannot_be_traced_goes_on_and_says_so_once(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    made = call_begun("/dev/null/traces", lost)
    told = lost.get(timeout=TIMEOUT_S)
    made.took(transition, None, (Join(),), 3.0)
    made.end()
    assert told == TraceLost("/dev/null/traces/: not a directory")
    assert lost.empty()


def test_a_trace_that_waits_for_quiet_is_whole_at_its_end(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    made = TraceFile(str(tmp_path / "t"), end_timeout_s=TIMEOUT_S, pause_s=3_600.0)
    made.begin_call(HELD, Call(), CLOCK, lost.put)
    for number in range(3):
        made.took(step, *silence(float(number)))
    made.end()
    (trace,) = read(tmp_path / "t")
    assert trace.steps == tuple(Asked(*silence(at)) for at in (0.0, 1.0, 2.0))


def test_a_trace_that_waits_for_quiet_is_written_where_there_is_none(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    made = TraceFile(str(tmp_path / "t"), pause_s=0.01)
    made.begin_call(HELD, Call(), CLOCK, lost.put)

    def is_written() -> bool:
        made.took(step, *silence(1.0))
        return (tmp_path / "t").exists() and (tmp_path / "t").read_bytes().count(b"\n") > 1

    assert comes_true(is_written)
    made.end()


def test_a_full_disk_ends_a_call_s_trace_and_is_told_once(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    with small_files():
        made = call_begun(tmp_path, lost)
        for number in range(1_000):
            made.took(step, *silence(float(number)))
        told = lost.get(timeout=TIMEOUT_S)
        made.end()
    assert told == TraceLost(f"{tmp_path}/rank_a_1.ndjson: file too large")
    assert lost.empty()


def test_a_step_that_cannot_be_written_ends_the_trace_and_is_told_once(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    made = begun(tmp_path / "t", lost)
    made.took(step, object(), 1.0, Pause(2.0))
    told = lost.get(timeout=TIMEOUT_S)
    made.took(step, *silence(1.0))
    made.end()
    assert told.text.startswith(f"{tmp_path}/t: TypeError: ")
    assert lost.empty()


def test_steps_of_many_threads_are_all_written_whole(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    made = begun(tmp_path / "t", lost)

    def take(thread: int) -> None:
        for number in range(200):
            made.took(step, *silence(float(1_000 * thread + number)))

    threads = [threading.Thread(target=take, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made.end()
    (trace,) = read(tmp_path / "t")
    assert len(trace.steps) == 800
    assert set(trace.steps) == {
        Asked(*silence(float(1_000 * thread + number))) for thread in range(4) for number in range(200)
    }


@pytest.mark.parametrize("there", [True, False], ids=["that is there", "to be made"])
def test_in_a_directory_each_node_has_a_file_of_its_own(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark], there: bool
) -> None:
    folder = tmp_path / "traces"
    if there:
        folder.mkdir()
    for held in (HELD, but(HELD, node=node("10.0.0.1/ab#7"))):
        begun(str(folder) + ("" if there else "/"), lost, held).end()
        there = True
    assert sorted(file.name for file in folder.iterdir()) == ["10.0.0.1_ab_7.ndjson", "a_1.ndjson"]


def test_a_later_agent_goes_on_in_the_same_file_and_marks_what_the_last_one_left_cut(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    path = tmp_path / "t"
    begun(path, lost).end()
    with path.open("ab") as file:
        file.write(b'{"is":')
    begun(path, lost).end()
    assert path.read_bytes().splitlines(keepends=True)[1] == b'{"is":' + CUT
    assert [trace.cut for trace in read(path)] == [True, False]


def test_two_agents_at_a_time_do_not_share_a_file(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    first = begun(tmp_path / "t", lost)
    with pytest.raises(CannotTrace, match="/t: another agent writes there; write --trace=DIR/ and each gets a file"):
        begun(tmp_path / "t", lost)
    first.end()
    begun(tmp_path / "t", lost).end()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/no/such/t", "no such file or directory"),
        ("/dev/full", "no space left on device"),
        ("/dev/null/traces/", "not a directory"),
    ],
)
def test_what_cannot_be_written_at_the_start_is_refused_with_the_reason(
    path: str, why: str, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    with pytest.raises(CannotTrace, match=f"{why}; name a file that can be written to"):
        begun(path, lost)


class Slow(TraceFile):
    """Its disk answers when it may."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.may_answer = threading.Event()

    def _failure(self) -> OSError | None:
        self.may_answer.wait()
        return super()._failure()


def test_a_file_that_cannot_be_opened_after_all_is_told_and_its_end_waits_for_no_disk(tmp_path: Path) -> None:
    made, news = Slow(tmp_path / "no" / "t"), SimpleQueue[TraceLost | Remark]()
    made.begin(HELD, group.Settings(), CLOCK, news.put)
    assert isinstance(news.get_nowait(), Remark)
    made.may_answer.set()
    refused = "no such file or directory; name a file that can be written to"
    assert news.get(timeout=TIMEOUT_S) == TraceLost(f"{tmp_path}/no/t: {refused}")
    assert comes_true(lambda: not made._awaits_disk)
    made.end(TIMEOUT_S)


@contextmanager
def small_files() -> Iterator[None]:
    """No file may grow beyond 4 KiB: what a full disk is like. The limit is the whole process', so it must be over when
    pytest writes its report."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_the_trace_and_is_told_once(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    with small_files():
        made = begun(tmp_path / "t", lost)
        for number in range(1_000):
            made.took(step, *silence(float(number)))
        told = lost.get(timeout=TIMEOUT_S)
        made.took(step, *silence(0.0))
        made.end()
    assert told == TraceLost(f"{tmp_path}/t: file too large")
    assert lost.empty()
    written = (tmp_path / "t").read_bytes()
    assert len(written) == 4_096
    (trace,) = read(tmp_path / "t")
    assert trace.cut is not written.endswith(b"\n")  # a host's name may be as long as makes the limit a line's end
    assert trace.steps[:2] == (Asked(*silence(0.0)), Asked(*silence(1.0)))


def test_a_disk_that_does_not_keep_up_ends_the_trace(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    os.mkfifo(tmp_path / "slow")  # which holds 64 KiB and is read by nobody
    made = TraceFile(str(tmp_path / "slow"), queue_max=10)
    made.begin(HELD, group.Settings(), CLOCK, lost.put)
    for number in range(100_000):
        made.took(step, *silence(float(number)))
    assert "the disk does not keep up, 10 steps wait" in lost.get(timeout=TIMEOUT_S).text
    reader = os.open(tmp_path / "slow", os.O_RDONLY | os.O_NONBLOCK)
    drained = threading.Thread(target=_drain, args=(reader,), daemon=True)
    drained.start()
    made.end()
    drained.join()


def _drain(descriptor: int) -> None:
    os.set_blocking(descriptor, True)
    while os.read(descriptor, 65_536):
        pass
    os.close(descriptor)


def test_no_line_is_read_beyond_the_longest_that_may_be(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"x" * 25)
    assert list(map(len, lines_of(str(tmp_path / "t"), 10))) == [11, 11, 3]


# --- parts


def long(path: Path, lost: SimpleQueue[TraceLost | Remark], steps: int) -> None:
    """Each step is unlike those before it, so it is written out. A part holds the header of any host, and some steps."""
    made = TraceFile(str(path), end_timeout_s=TIMEOUT_S, part_bytes=1_300)
    made.begin(HELD, group.Settings(), CLOCK, lost.put)
    for number in range(steps):
        made.took(step, Silent(f"no answer {number}"), float(number), Pause(number + 0.05))
    made.end()


def test_a_trace_that_grows_goes_on_in_parts_and_is_read_as_one(
    tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]
) -> None:
    long(tmp_path / "t", lost, 20)
    assert later_parts(str(tmp_path / "t")) == [2, 3]
    (trace,) = read(tmp_path / "t")
    assert [step.now for step in trace.steps if isinstance(step, Asked)] == list(range(20))
    assert missing_parts(str(tmp_path / "t")) is None
    assert lost.empty()


def test_of_many_parts_the_first_and_the_last_are_kept(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    path = tmp_path / "t"
    long(path, lost, 200)
    kept = later_parts(str(path))
    assert len(kept) == PARTS_KEPT
    assert all(each.stat().st_size < 1_500 for each in tmp_path.iterdir())
    assert missing_parts(str(path)) == (2, kept[0] - 1)
    (trace,) = read(path)
    assert 0 < len(trace.steps) < 20
    (first, _), (later, rest) = stretches(str(path))
    assert (first, later) == (str(path), f"{path}.{kept[0]}")
    steps = [step for _, step in entries(rest)]
    assert steps and all(isinstance(step, Asked) for step in steps), "a part can be read by itself"


def test_a_later_agent_goes_on_in_the_last_part(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    long(tmp_path / "t", lost, 20)
    begun(tmp_path / "t", lost).end()
    assert later_parts(str(tmp_path / "t")) == [2, 3]
    assert [len(trace.steps) for trace in read(tmp_path / "t")] == [20, 0]


def test_what_is_no_file_has_no_parts(lost: SimpleQueue[TraceLost | Remark]) -> None:
    long(Path("/dev/null"), lost, 100)
    assert later_parts("/dev/null") == []
    assert lost.empty()


def test_steps_that_repeat_but_for_their_times_are_short(tmp_path: Path, lost: SimpleQueue[TraceLost | Remark]) -> None:
    made = begun(tmp_path / "t", lost)
    for number in range(1_000):
        made.took(step, *silence(number + 0.123456789))
    made.end()
    (trace,) = read(tmp_path / "t")
    assert trace.steps == tuple(Asked(*silence(number + 0.123456789)) for number in range(1_000))
    assert (tmp_path / "t").stat().st_size < 50_000


def test_every_function_that_is_traced_has_its_step() -> None:
    assert {STEPS[function] for function in STEPS} >= {type(step) for step in finished().a.steps}
    assert lines(finished().a.header)


# --- an agent


class Nobody:
    """Sees what is lost."""

    until = None

    def __init__(self) -> None:
        self.lost: list[TraceLost] = []

    def saw(self, news: News) -> None:
        if isinstance(news, TraceLost):
            self.lost.append(news)

    def passed(self, now: float) -> None:
        pass


def launch(path: Path, seen: Nobody) -> object:
    meeting = rendezvous.Settings(rendezvous.Limits(1, 1, 2))
    program = Program(Kind.BINARY, "sh", ("-c", "[ $${ELASTIC_ROUND} = 2 ]"))
    made = LaunchSettings(program, rendezvous=meeting, logs=Logs("/dev/null"), environment=dict(os.environ))
    agent = Agent(made, MemoryBackend(MemoryStore(), CLOCK), CLOCK, seen, TraceFile(str(path)))
    return agent.run().outcome


def test_what_an_agent_does_is_what_the_core_says(tmp_path: Path, nothing_left: str) -> None:
    assert isinstance(outcome := launch(tmp_path / "t.ndjson", Nobody()), Verdict)
    assert outcome.ending is Ending.SUCCEEDED
    (run,) = found = replays(tmp_path)
    assert (complaints(found), run.ended) == ([], True)


@pytest.mark.usefixtures("nothing_left")
def test_a_job_whose_trace_is_lost_goes_on(tmp_path: Path) -> None:
    seen = Nobody()
    with small_files():
        outcome = launch(tmp_path / "t.ndjson", seen)
    assert isinstance(outcome, Verdict)
    assert outcome.ending is Ending.SUCCEEDED
    assert [lost.text for lost in seen.lost] == [f"{tmp_path}/t.ndjson: file too large"]
