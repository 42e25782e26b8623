"""The log pump: bytes to the file, lines to the console."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import TIMEOUT_S, comes_true

from elastic.adapters.disk import Disk
from elastic.adapters.workers.output.console import UNFINISHED, Console, identity
from elastic.adapters.workers.output.log_file import WAITING_MAX, LogFile, LogWriter
from elastic.adapters.workers.output.prefixed_lines import LINE_MAX, cut, last, matching
from elastic.adapters.workers.output.pump import PENDING_MAX, LogPump, Stream
from elastic.adapters.workers.worker_port import Duplicate


class Pipe:
    """A pipe whose ends are closed at most once."""

    def __init__(self) -> None:
        self.read, self._write = os.pipe()

    @property
    def write(self) -> int:
        return self._write

    def send(self, data: bytes) -> None:
        os.write(self._write, data)

    def end(self) -> None:
        if self._write != -1:
            os.close(self._write)
            self._write = -1


@pytest.fixture
def pump(disk: Disk) -> Iterator[LogPump]:
    """A pump that shows no unfinished line, also on a machine that stands still for a while."""
    pump = LogPump(disk, prompt_s=1e6)
    yield pump
    pump.close()


@pytest.fixture
def prompting(disk: Disk) -> Iterator[LogPump]:
    """A pump that shows unfinished lines at once."""
    pump = LogPump(disk, prompt_s=0.0)
    yield pump
    pump.close()


@pytest.fixture
def pipe() -> Iterator[Callable[[], Pipe]]:
    pipes: list[Pipe] = []

    def make() -> Pipe:
        pipes.append(Pipe())
        return pipes[-1]

    yield make
    for each in pipes:
        each.end()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "console", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    yield descriptor
    os.close(descriptor)


def shown(console: int) -> bytes:
    return os.pread(console, 1 << 22, 0)


def test_the_file_gets_each_byte_at_once_and_the_console_whole_lines_with_the_prefix(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out, file = pipe(), tmp_path / "out"
    pump.follow(out.read, file, console, "[w0]:")
    out.send(b"one\ntw")
    assert comes_true(lambda: file.read_bytes() == b"one\ntw" and shown(console) == b"[w0]:one\n")
    out.send(b"o \xff\xfe\nthree")
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:two \xff\xfe\n")
    out.end()
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:two \xff\xfe\n[w0]:three\n")
    assert comes_true(lambda: file.read_bytes() == b"one\ntwo \xff\xfe\nthree")


def test_a_prompt_is_shown_and_its_line_goes_on_behind_it(
    prompting: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out = pipe()
    prompting.follow(out.read, tmp_path / "out", console, "[w0]:")
    out.send(b"one\n(Pdb) ")
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:(Pdb) ")
    out.send(b"wh")
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:(Pdb) wh")
    out.send(b"ere\r\n")
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:(Pdb) where\n")
    out.send(b"...")
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:(Pdb) where\n[w0]:...")
    out.end()
    assert comes_true(lambda: shown(console) == b"[w0]:one\n[w0]:(Pdb) where\n[w0]:...\n")


def test_a_prompt_is_known_to_be_unfinished_before_anybody_sees_it(
    prompting: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher wrote behind one that it was told to end at once: a signal came as soon as the prompt was seen."""
    known, place = list[bool](), identity(console)

    def put(self: Console, text: bytes) -> None:
        known.append(place in UNFINISHED)
        written(self, text)

    written = Console.put
    monkeypatch.setattr(Console, "put", put)
    out = pipe()
    prompting.follow(out.read, tmp_path / "out", console, "[w0]:")
    out.send(b"name? ")
    assert comes_true(lambda: shown(console) == b"[w0]:name? ")
    out.end()
    assert comes_true(lambda: shown(console) == b"[w0]:name? \n")
    assert known[0]


def test_a_prompt_ends_when_another_worker_writes_and_what_is_new_follows_in_a_line_of_its_own(
    prompting: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    asks, runs = pipe(), pipe()
    prompting.follow(asks.read, tmp_path / "0", console, "0:")
    prompting.follow(runs.read, tmp_path / "1", console, "1:")
    asks.send(b"name? ")
    assert comes_true(lambda: shown(console) == b"0:name? ")
    runs.send(b"step 1\n")
    assert comes_true(lambda: shown(console) == b"0:name? \n1:step 1\n")
    runs.send(b"and? \xc3")
    assert comes_true(lambda: shown(console) == b"0:name? \n1:step 1\n1:and? ")
    asks.send(b"x\n")
    assert comes_true(lambda: shown(console) == b"0:name? \n1:step 1\n1:and? \n0:x\n")
    runs.send(b"\xa9")
    assert comes_true(lambda: shown(console).endswith(b"0:x\n1:\xc3\xa9"))
    asks.send(b"y\n")
    assert comes_true(lambda: shown(console).endswith(b"0:x\n1:\xc3\xa9\n0:y\n"))
    runs.end()
    asks.send(b"z\n")
    assert comes_true(lambda: shown(console).endswith(b"0:x\n1:\xc3\xa9\n0:y\n0:z\n"))


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([b"a", b"bc\n", b"\r", b"\n", b"d\re", b"\xc3"])), max_size=12
    )
)
def test_however_prompts_come_nothing_of_a_worker_is_lost_or_shown_twice(written: list[tuple[int, bytes]]) -> None:
    """And no line has text of two workers."""
    read, write = os.pipe()
    pump = LogPump(Disk(), prompt_s=0.0)
    streams = [Stream(-1 - number, None, write, b"%d:" % number) for number in (0, 1)]
    for number, data in written:
        stream = streams[number]
        text, stream.rest = cut(stream.rest + data, stream.prefix)
        pump._to_console(stream, text)
        pump._expect_prompt(stream)
        pump._show_prompts()
    for stream in streams:
        pump._to_console(stream, last(stream.rest, stream.prefix))
    os.close(write)
    seen = os.read(read, 1 << 16)
    os.close(read)
    pump.close()
    assert not seen or seen.endswith(b"\n")
    for number in (0, 1):
        whole = b"".join(data for each, data in written if each == number)
        text, rest = cut(whole, b"%d:" % number)
        wanted = (text + last(rest, b"%d:" % number)).split(b"\n")
        mine = [line for line in seen.split(b"\n") if line.startswith(b"%d:" % number)]
        assert b"".join(line[2:] for line in mine) == b"".join(line[2:] for line in wanted)


def test_lines_of_several_workers_never_mix(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    pipes = [pipe() for _ in range(4)]
    for number, each in enumerate(pipes):
        pump.follow(each.read, tmp_path / str(number), console, f"{number}:")
    for line in range(200):
        for each in pipes:
            each.send(b"half ")
            each.send(b"%d\n" % line)
    for each in pipes:
        each.end()
    assert comes_true(lambda: shown(console).count(b"\n") == 800)
    lines = shown(console).decode().splitlines()
    for number in range(4):
        assert [line for line in lines if line.startswith(f"{number}:")] == [f"{number}:half {n}" for n in range(200)]


def test_what_a_finished_workers_pipe_holds_is_carried_though_a_grandchild_keeps_it_open(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out = pipe()
    stream = pump.follow(out.read, tmp_path / "out", console, "")
    out.send(b"x" * 60_000 + b"\nend")
    pump.finish(stream)
    assert pump.drain(TIMEOUT_S)
    assert shown(console) == b"x" * 60_000 + b"\nend\n"
    with pytest.raises(BrokenPipeError):
        out.send(b"late")


def test_a_writer_that_never_stops_does_not_hold_the_finish_up(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pipe()
    stream = pump.follow(out.read, tmp_path / "out", console, "")
    fcntl.fcntl(out.write, fcntl.F_SETPIPE_SZ, 4096)
    child = os.posix_spawn(
        "/bin/sh", ["sh", "-c", "yes >&3"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.write, 3)]
    )
    out.end()
    assert comes_true(lambda: shown(console) != b"")
    pump.finish(stream)
    assert pump.drain(TIMEOUT_S)
    os.waitpid(child, 0)


def test_a_stream_may_be_finished_after_its_end(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out = pipe()
    stream = pump.follow(out.read, tmp_path / "out", console, "")
    out.end()
    assert comes_true(lambda: stream.closed)
    pump.finish(stream)
    assert pump.drain(0.0)


def fill(pipe: Pipe) -> int:
    """So that it takes no more; returns how much it holds."""
    os.set_blocking(pipe.write, False)
    held = 0
    while True:
        try:
            held += os.write(pipe.write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(pipe.write, True)
            return held


def read_until(pipe: Pipe, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += os.read(pipe.read, 1 << 20)
    return data


def test_a_console_that_does_not_read_holds_up_neither_the_file_nor_the_end(
    pipe: Callable[[], Pipe], tmp_path: Path, disk: Disk
) -> None:
    pump, out, blocked = LogPump(disk), pipe(), pipe()
    assert pump.drain(0.0)
    held = fill(blocked)
    stream = pump.follow(out.read, tmp_path / "out", blocked.write, ">")
    out.send(b"line\n")
    pump.finish(stream)
    assert pump.drain(TIMEOUT_S)
    assert (tmp_path / "out").read_bytes() == b"line\n"
    pump.close(timeout_s=0.01)
    assert not pump._thread.is_alive()
    os.set_blocking(blocked.read, False)
    assert os.read(blocked.read, 1 << 20) == b"x" * held
    os.close(blocked.read)


def test_a_console_that_reads_late_gets_every_line_and_its_workers_wait_meanwhile_and_no_others(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    waits, late, blocked, goes_on = pipe(), pipe(), pipe(), pipe()
    held = fill(blocked)
    pump.follow(waits.read, tmp_path / "out", blocked.write, "1:")
    lines = b"y" * 1023 + b"\n"
    os.set_blocking(waits.write, False)
    sent = 0

    def takes_no_more() -> bool:
        nonlocal sent
        try:
            while True:
                sent += os.write(waits.write, lines)
        except BlockingIOError:
            return (tmp_path / "out").stat().st_size > PENDING_MAX * 0.9

    assert comes_true(takes_no_more)
    assert sent < 2 * PENDING_MAX
    pump.follow(late.read, tmp_path / "late", blocked.write, "2:")
    late.send(b"late\n")
    pump.follow(goes_on.read, tmp_path / "other", console, "3:")
    goes_on.send(b"other\n")
    assert comes_true(lambda: shown(console) == b"3:other\n")
    waits.end()
    late.end()
    data = b""
    while data.count(b"\n") < sent // 1024 + 1:
        data += os.read(blocked.read, 1 << 20)
    assert data[:held] == b"x" * held
    assert sorted(data[held:].splitlines()) == sorted([*[b"1:" + lines[:-1]] * (sent // 1024), b"2:late"])
    assert comes_true(lambda: (tmp_path / "out").stat().st_size == sent), "another thread writes the files"
    assert (tmp_path / "out").read_bytes() == lines * (sent // 1024)
    os.close(blocked.read)


def test_stdout_and_stderr_of_one_terminal_do_not_write_into_each_other_s_lines(
    pump: LogPump, pipe: Callable[[], Pipe], tmp_path: Path
) -> None:
    out, err, blocked = pipe(), pipe(), pipe()
    same = os.dup(blocked.write)
    fill(blocked)
    pump.follow(out.read, tmp_path / "out", blocked.write, "")
    pump.follow(err.read, tmp_path / "err", same, "")
    out.send(b"o" * 6000 + b"\n")
    assert comes_true(lambda: (tmp_path / "out").stat().st_size == 6001)
    err.send(b"e" * 6000 + b"\n")
    data = read_until(blocked, b"e\n").lstrip(b"x")
    assert data == b"o" * 6000 + b"\n" + b"e" * 6000 + b"\n"
    os.close(same)
    os.close(blocked.read)


def test_lines_with_a_word_go_to_a_file_of_all_ranks_too(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    found = Duplicate(tmp_path / "filtered", (b"apple", b"a,b"))
    streams = []
    for number, text in enumerate((b"an apple\npear\nin a,b\xff", b"pear\n", b"apples\n")):
        out = pipe()
        streams.append(pump.follow(out.read, tmp_path / str(number), console, f"apple{number}:", found))
        out.send(text)
        pump.finish(streams[-1])
        assert pump.drain(TIMEOUT_S)
    assert found.path.read_bytes() == b"apple0:an apple\napple0:in a,b\xff\napple2:apples\n"
    assert shown(console).count(b"\n") == 5


def test_a_file_of_filtered_lines_that_fails_stops_nothing_else(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out = pipe()
    stream = pump.follow(out.read, tmp_path / "out", console, "", Duplicate(Path("/dev/full"), (b"a",)))
    for _ in range(2):
        out.send(b"a\n")
    pump.finish(stream)
    assert pump.drain(TIMEOUT_S)
    assert shown(console) == b"a\na\n" == (tmp_path / "out").read_bytes()


def test_a_console_that_fails_stops_neither_the_file_nor_the_other_console(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    broken, out, err = pipe(), pipe(), pipe()
    os.close(broken.read)
    pump.follow(out.read, tmp_path / "out", broken.write, "")
    pump.follow(err.read, tmp_path / "err", console, "")
    for _ in range(2):
        out.send(b"out\n")
        err.send(b"err\n")
    assert comes_true(lambda: shown(console) == b"err\nerr\n")
    assert comes_true(lambda: (tmp_path / "out").read_bytes() == b"out\nout\n")


def test_a_file_that_fails_is_said_once_and_the_console_goes_on(
    pump: LogPump, pipe: Callable[[], Pipe], console: int
) -> None:
    out = pipe()
    stream = pump.follow(out.read, Path("/dev/full"), console, "p:")
    out.send(b"one\n")
    assert comes_true(lambda: b"p:one\n" in shown(console))
    out.send(b"two\n")
    pump.finish(stream)
    assert pump.drain(TIMEOUT_S)
    note = b"p:/dev/full: no space left on device: from here on this output is on the console only\n"
    assert sorted(shown(console).splitlines(keepends=True)) == [note, b"p:one\n", b"p:two\n"]


def test_a_file_that_fails_at_the_end_is_said_too(pipe: Callable[[], Pipe], console: int, disk: Disk) -> None:
    pump, out = LogPump(disk), pipe()
    pump.follow(out.read, Path("/dev/full"), console, "p:")
    out.send(b"last\n")
    pump.close()
    assert b"p:/dev/full: no space left on device: " in shown(console)


@pytest.fixture
def still(tmp_path: Path) -> Iterator[int]:
    """The reader of the file "still", which stands still until this is read."""
    os.mkfifo(tmp_path / "still")
    reader = os.open(tmp_path / "still", os.O_RDONLY | os.O_NONBLOCK)
    yield reader
    os.close(reader)


def comes_true_while_read(reader: int, condition: Callable[[], bool]) -> bool:
    def is_so() -> bool:
        with suppress(BlockingIOError):
            while os.read(reader, 1 << 20):
                pass
        return condition()

    return comes_true(is_so)


def test_a_file_whose_end_the_disk_does_not_take_is_named(
    pipe: Callable[[], Pipe], console: int, tmp_path: Path, still: int, disk: Disk
) -> None:
    pump, out = LogPump(disk), pipe()
    stream = pump.follow(out.read, tmp_path / "still", console, "")
    out.send(b"x" * (1 << 17))
    with pytest.raises(TimeoutError, match="/still: the disk does not answer, the end of this output is not written"):
        pump.close(timeout_s=0.01)
    assert comes_true_while_read(still, lambda: stream.file is not None and stream.file.is_whole)
    pump.close()


def test_a_worker_waits_for_a_file_of_filtered_lines_whose_disk_stands_still(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path, still: int
) -> None:
    out, sent = pipe(), 0
    stream = pump.follow(out.read, Path("/dev/null"), console, "", Duplicate(tmp_path / "still", (b"a",)))
    os.set_blocking(out.write, False)

    def waits() -> bool:
        nonlocal sent
        with suppress(BlockingIOError):
            while sent < 4 * WAITING_MAX:
                sent += os.write(out.write, b"a" * 1023 + b"\n")
        return not stream.watched

    assert comes_true(waits) and sent < 4 * WAITING_MAX
    assert comes_true_while_read(still, lambda: stream.watched)
    out.end()
    assert comes_true_while_read(still, lambda: stream.closed)


def test_a_file_that_cannot_be_opened_costs_no_descriptor(
    pump: LogPump, pipe: Callable[[], Pipe], tmp_path: Path
) -> None:
    out = pipe()
    with pytest.raises(FileNotFoundError):
        pump.follow(out.read, tmp_path / "no" / "out", 1, "")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(out.read)


def test_a_close_carries_what_there_is_and_may_be_repeated_or_come_first(
    pipe: Callable[[], Pipe], console: int, tmp_path: Path, disk: Disk
) -> None:
    pump, out = LogPump(disk), pipe()
    pump.follow(out.read, tmp_path / "out", console, "")
    out.send(b"unfinished")
    pump.close()
    pump.close()
    assert shown(console) == b"unfinished\n"
    LogPump(disk).close()


def test_an_error_that_ends_the_thread_is_told(pipe: Callable[[], Pipe], tmp_path: Path, disk: Disk) -> None:
    told = SimpleQueue[BaseException]()
    pump, out = LogPump(disk, told.put), pipe()
    pump.follow(out.read, tmp_path / "out", console=-1, prefix="")
    out.send(b"for no console\n")
    error = told.get(timeout=TIMEOUT_S)
    assert isinstance(error, OSError) and error.errno == errno.EBADF
    pump.close()


def test_an_event_of_a_pipe_that_was_empty_after_all_is_no_end(
    pump: LogPump, pipe: Callable[[], Pipe], console: int, tmp_path: Path
) -> None:
    out = pipe()
    stream = pump.follow(out.read, tmp_path / "out", console, "")
    assert pump._carry_once(stream) == 0 and not stream.closed


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(at % (len(data) + 1) for at in cuts)})
    return [data[a:b] for a, b in pairwise(edges)]


TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\xff", b"\x85"])).map(b"".join)


@given(TEXT, st.lists(st.integers(min_value=0)))
def test_however_the_bytes_arrive_the_console_shows_the_same_lines(data: bytes, cuts: list[int]) -> None:
    text, rest = b"", b""
    for chunk in in_chunks(data, cuts):
        more, rest = cut(rest + chunk, b">")
        text += more
    text += last(rest, b">")
    expected = [line for line in data.splitlines(keepends=True) if line != b"\r"]
    assert text == b"".join(b">" + line.rstrip(b"\r\n") + b"\n" for line in expected)


@given(TEXT, st.lists(st.integers(min_value=0)))
def test_however_the_bytes_arrive_the_same_lines_match(data: bytes, cuts: list[int]) -> None:
    found, rest = b"", b""
    for chunk in in_chunks(data, cuts):
        before = rest + chunk
        _, rest = cut(before, b">")
        found += matching(before[: len(before) - len(rest)], (b"bc",), b">")
    found += matching(rest, (b"bc",), b">")
    assert found == b"".join(b">" + line.rstrip(b"\r\n") + b"\n" for line in data.splitlines() if b"bc" in line)


def test_a_line_without_end_is_passed_on_in_pieces() -> None:
    size = LINE_MAX
    text, rest = cut(b"a" * (2 * size + 3), b">")
    assert text == b">" + b"a" * size + b"\n>" + b"a" * size + b"\n"
    assert rest == b"aaa"
    text, rest = cut(b"a" * (size + 1) + b"\n", b">")
    assert text == b">" + b"a" * size + b"\n>a\n" and rest == b""


def test_a_progress_bar_is_seen_to_move() -> None:
    assert cut(b"\r 10%\r 11%", b">") == (b"> 10%\n", b" 11%")
    assert cut(b" 11%\r", b">") == (b"", b" 11%\r")
    assert last(b" 11%\r", b">") == b"> 11%\n"
    assert last(b"", b">") == b""


def test_a_file_that_fails_as_it_is_closed_is_not_whole(tmp_path: Path) -> None:
    """Some file systems write only then."""
    ended, errors = SimpleQueue[None](), list[BaseException]()
    writer, file = LogWriter(lambda: None, errors.append), LogFile(NO_DESCRIPTOR, tmp_path / "stdout.log")
    writer.start()
    writer.end(file, lambda: ended.put(None))
    ended.get(timeout=TIMEOUT_S)
    assert file.error is not None and file.error.errno == errno.EBADF
    assert not file.is_whole
    assert writer.stop(time.monotonic() + TIMEOUT_S)
    assert errors == []


NO_DESCRIPTOR = 2**30
"""No process has so many."""
