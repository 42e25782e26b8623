"""What real workers report before they end: an uncaught exception at once, and an interpreter that begins to end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from processes import TIMEOUT_S, comes_true

from elastic.adapters.disk import Disk
from elastic.adapters.launch_settings import STACKS_SIGNAL
from elastic.adapters.workers.child_processes import SubprocessWorkers
from elastic.adapters.workers.messages.error_files import ErrorFile, read_error_file
from elastic.adapters.workers.messages.reports import Report, What, channel, read
from elastic.adapters.workers.start.environment import command
from elastic.adapters.workers.start.function_call import StartMethod, calling
from elastic.adapters.workers.start.spawner import Executing, Spawner
from elastic.adapters.workers.start_up import StackHandler, StartUp
from elastic.adapters.workers.worker_port import Exit, Sink, WorkerSpec

START_UP = StartUp(StackHandler(STACKS_SIGNAL, 1023), 1022)
RAISES = "def fails():\n    raise RuntimeError('the real cause')\nfails()\n"
HANGS = "time.sleep(1000)"


class Node:
    """The agent's side: one worker at a time, what it reports, and its end."""

    def __init__(self, folder: Path, disk: Disk, spawner: Spawner | None = None) -> None:
        self.folder = folder
        self.error_file = folder / "error.json"
        self.reports: SimpleQueue[tuple[int, int, Report]] = SimpleQueue()
        self.dead: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self.workers = SubprocessWorkers(
            lambda *event: self.dead.put(event),
            disk,
            spawner=spawner or Executing(START_UP),
            on_report=lambda *event: self.reports.put(event),
        )
        self.pid = 0

    def start(self, text: str, *words: str, **environment: str) -> None:
        file = self.folder / "program.py"
        file.write_text(text)
        self.start_command((sys.executable, "-u", *(words or (str(file),))), **environment)

    def start_command(self, command: tuple[str, ...], **environment: str) -> None:
        told = {**os.environ, "TORCHELASTIC_ERROR_FILE": str(self.error_file), **environment}
        out, err = (Sink(self.folder / name, console=False) for name in ("out", "err"))
        (self.pid,) = self.workers.start([WorkerSpec(0, command, told, out, err)])

    def hears(self) -> tuple[float, ErrorFile | None]:
        """Wait for a raise that is reported: when it was, and the record."""
        local_rank, pid, report = self.reports.get(timeout=TIMEOUT_S)
        assert (local_rank, pid, report.what) == (0, self.pid, What.RAISE)
        return report.at, read_error_file(self.error_file)

    def ends(self) -> Exit:
        assert self.dead.get(timeout=TIMEOUT_S) == (0, self.pid)
        ended = self.workers.collect(0, self.pid)
        assert ended
        return ended

    def said(self, name: str = "out") -> str:
        return (self.folder / name).read_text()

    def run(self, text: str, *words: str, **environment: str) -> Exit:
        """One worker that reports no exception, from start to end."""
        self.start(text, *words, **environment)
        ended = self.ends()
        reported = []
        while not self.reports.empty():
            reported.append(self.reports.get()[2])
        assert [each.what for each in reported] == ([] if ended.ending_at is None else [What.ENDING])
        return ended


@pytest.fixture
def make(nothing_left: str, tmp_path: Path, disk: Disk) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def make(*given: Any) -> Node:
        made.append(Node(tmp_path, disk, *given))
        return made[-1]

    yield make
    for node in made:
        node.workers.close()


KEPT_BACK = {
    "nothing": "",
    "a handler of atexit": f"import atexit, time\natexit.register(lambda: {HANGS})\n",
    "a thread": f"import threading, time\nthreading.Thread(target=lambda: {HANGS}).start()\n",
    "a pool of threads": (
        f"import concurrent.futures, time\nconcurrent.futures.ThreadPoolExecutor(1).submit(lambda: {HANGS})\n"
    ),
    "C": (
        "import threading\nclass Held:\n    def __del__(self, pause=__import__('ctypes').PyDLL(None).pause):\n"
        "        pause()\nheld = Held()\n"
    ),
}


@pytest.mark.parametrize("before", KEPT_BACK.values(), ids=KEPT_BACK)
def test_an_exception_is_reported_when_it_is_raised_with_its_record_whatever_keeps_the_end_back(
    make: Callable[..., Node], before: str
) -> None:
    node = make()
    node.start(before + RAISES)
    at, record = node.hears()
    line = before.count("\n") + 2
    assert record and record.message == "RuntimeError: the real cause"
    assert record.where == f"program.py:{line} in fails"
    assert "Traceback" in record.callstack and record.callstack.endswith("RuntimeError: the real cause\n")
    assert comes_true(lambda: node.said("err").endswith("RuntimeError: the real cause\n"))
    if before:
        node.workers.signal(signal.SIGKILL)
    ended = node.ends()
    assert ended.code == (-signal.SIGKILL if before else 1)
    assert ended.started_at <= at <= ended.died_at and ended.ending_at is None


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (f"import atexit, threading, time\natexit.register(lambda: {HANGS})\n", 7),
        (KEPT_BACK["a thread"], 7),
        (KEPT_BACK["a pool of threads"], 0),
    ],
)
def test_the_end_of_the_interpreter_is_reported_when_it_begins(
    make: Callable[..., Node], before: str, code: int
) -> None:
    node = make()
    node.start(f"{before}import sys\nsys.exit({code})\n")
    local_rank, pid, report = node.reports.get(timeout=TIMEOUT_S)
    assert (local_rank, pid, report.what) == (0, node.pid, What.ENDING)
    node.workers.signal(signal.SIGKILL)
    ended = node.ends()
    assert ended.code == -signal.SIGKILL and ended.ending_at == report.at <= ended.died_at
    assert not node.error_file.exists()


@pytest.mark.parametrize(
    "text", ["", "import threading\n", "import sys\nsys.exit(7)\n", "import sys\nsys.exit('words')\n"]
)
def test_every_end_in_order_is_reported_as_one_that_begins(make: Callable[..., Node], text: str) -> None:
    ended = make().run(text)
    assert ended.ending_at is not None and ended.started_at <= ended.ending_at <= ended.died_at


OTHERS = {
    "os._exit": "import os\nos._exit(3)\n",
    "a signal": "import os\nos.kill(os.getpid(), 9)\n",
    "another program": "import os\nos.execvp('false', ['false'])\n",
    "another Python": f"import os, sys\nos.execv(sys.executable, [sys.executable, '-c', {RAISES!r}])\n",
    "a closed descriptor": "import os, sys\nos.closerange(3, 2000)\n" + RAISES,
    "a file in its place": (
        "import os, sys\nos.dup2(os.open(sys.argv[0] + '.other', os.O_RDWR | os.O_CREAT), 1022)\n" + RAISES
    ),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_ends_are_known_by_the_end_alone(make: Callable[..., Node], text: str) -> None:
    node = make()
    ended = node.run(text)
    assert ended.code not in (0, 70) and ended.ending_at is None
    other = node.folder / "program.py.other"
    assert not other.exists() or other.read_text() == ""


GOES_ON = {
    "a console": "import code\ncode.InteractiveConsole().push('1 / 0')\n",
    "a console in a function": (
        "import code\ndef main():\n    console = code.InteractiveConsole()\n    console.push('raise ValueError')\n"
        "    console.push('1 +')\nmain()\n"
    ),
    "a hook that is called": "import sys\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    sys.excepthook(*sys.exc_info())\n",
    "a thread": "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n",
    "a console in a thread": (
        "import code, threading\n"
        "thread = threading.Thread(target=lambda: code.InteractiveConsole().push('1 / 0'))\nthread.start()\nthread.join()\n"
    ),
    "a forked child": "import os, sys\nif os.fork() == 0:\n    1 / 0\nos.wait()\n",
    "a child of multiprocessing": (
        "import multiprocessing\nprocess = multiprocessing.get_context('fork').Process(target=lambda: 1 / 0)\n"
        "process.start()\nprocess.join()\n"
    ),
    "a forked child that ends": "import os, sys, threading\nif os.fork() == 0:\n    sys.exit(1)\nos.wait()\n",
}


@pytest.mark.parametrize("text", GOES_ON.values(), ids=GOES_ON)
def test_an_exception_after_which_the_program_goes_on_is_not_reported(make: Callable[..., Node], text: str) -> None:
    node = make()
    ended = node.run(text + "import sys\nprint('went on', flush=True)\nsys.exit(7)\n")
    assert (ended.code, node.said()) == (7, "went on\n")
    assert ended.ending_at is not None and not node.error_file.exists()


@pytest.mark.parametrize("text", [GOES_ON["a console"], GOES_ON["a thread"], GOES_ON["a forked child"]])
def test_the_exception_after_one_that_was_shown_is_reported(make: Callable[..., Node], text: str) -> None:
    node = make()
    node.start(text + RAISES)
    _, record = node.hears()
    assert record and record.message == "RuntimeError: the real cause" and node.ends().code == 1


MINE = "import sys\nbefore = sys.excepthook\ndef mine(*given):\n    before(*given)\n"
HOOKS = {
    "of the program": MINE + "sys.excepthook = mine\n",
    "that fails": MINE + "    1 / 0\nsys.excepthook = mine\n",
}


@pytest.mark.parametrize("text", HOOKS.values(), ids=HOOKS)
def test_a_hook_that_calls_the_one_before_is_no_obstacle(make: Callable[..., Node], text: str) -> None:
    node = make()
    node.start(text + RAISES)
    _, record = node.hears()
    assert record and record.message == "RuntimeError: the real cause" and node.ends().code == 1


def test_a_hook_that_stood_there_before_is_called(make: Callable[..., Node], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.excepthook = lambda *given: print('hidden', given[1])\n"
    )
    node = make()
    node.start(RAISES, PYTHONPATH=str(tmp_path))
    node.hears()
    assert node.ends().code == 1 and node.said() == "hidden the real cause\n" and node.said("err") == ""


def test_a_program_that_replaces_the_hook_is_known_by_its_end(make: Callable[..., Node]) -> None:
    node = make()
    ended = node.run("import sys\nsys.excepthook = lambda *given: print('mine')\n" + RAISES)
    assert ended.code == 1 and ended.ending_at is not None and not node.error_file.exists()


def test_torch_s_own_record_of_the_exception_stays(make: Callable[..., Node]) -> None:
    node = make()
    own = json.dumps({"message": {"message": "of @record", "extraInfo": {"py_callstack": "", "timestamp": "1"}}})
    node.start(f"import os\nopen(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write({own!r})\n{RAISES}")
    _, record = node.hears()
    assert record and record.message == "of @record" and node.ends().code == 1


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("StopIteration", "StopIteration"),
        ("MemoryError('x' * 3_000_000)", "MemoryError: " + "x" * (2**20 - 13)),
        ("ValueError('\\udc80 \\x1b[31m')", "ValueError: ? \x1b[31m"),
        ("type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()", "Mute: Mute()"),
        ("ExceptionGroup('many', [OSError(1, 'one')])", "ExceptionGroup: many (1 sub-exception)"),
    ],
)
def test_a_record_holds_any_exception(make: Callable[..., Node], raised: str, message: str) -> None:
    node = make()
    node.start(f"raise {raised}\n")
    _, record = node.hears()
    assert record and record.message == message and record.where == "program.py:1 in <module>"
    assert node.ends().code == 1


def test_a_record_is_left_also_if_a_handler_of_a_signal_raises_meanwhile(make: Callable[..., Node]) -> None:
    """As that of torch's DataLoader does when its worker has died."""
    node = make()
    node.start(
        "import os, signal, sys\ndef handler(*given):\n    raise RuntimeError('of the handler')\n"
        "signal.signal(signal.SIGCHLD, handler)\n"
        "def disturb(event, given, times=[]):\n    if event == 'open' and 'error.json' in str(given[0]) and not times:\n"
        "        times.append(1)\n        os.kill(os.getpid(), signal.SIGCHLD)\nsys.addaudithook(disturb)\n" + RAISES
    )
    _, record = node.hears()
    assert record and record.message == "RuntimeError: the real cause" and node.ends().code == 1


def test_an_interrupt_ends_a_worker_as_it_does_without_us(make: Callable[..., Node]) -> None:
    ended = make().run("raise KeyboardInterrupt\n")
    assert ended.code == -signal.SIGINT and ended.ending_at is not None


def test_an_error_of_syntax_and_a_missing_module_are_reported(make: Callable[..., Node]) -> None:
    node = make()
    for text in ("import nowhere_to_be_found\n", "import (\n"):
        node.error_file.unlink(missing_ok=True)
        node.start(text)
        _, record = node.hears()
        assert record and record.message.startswith(("ModuleNotFoundError: No module", "SyntaxError: "))
        assert node.ends().code == 1


def test_a_report_needs_neither_an_error_file_nor_a_descriptor_for_it(make: Callable[..., Node]) -> None:
    node = make()
    scarce = "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
    for text, error_file in ((RAISES, ""), (RAISES, "/nowhere/error.json"), (scarce + RAISES, str(node.error_file))):
        node.start(text, TORCHELASTIC_ERROR_FILE=error_file)
        assert node.hears()[1] is None and node.ends().code == 1
        assert "the real cause" in node.said("err")


@pytest.mark.parametrize("words", [("-m", "program"), ("-c", RAISES)])
def test_a_module_and_a_command_report_as_a_script_does(make: Callable[..., Node], words: tuple[str, ...]) -> None:
    node = make()
    node.start(RAISES, *words, PYTHONPATH=str(node.folder))
    _, record = node.hears()
    assert record and record.message == "RuntimeError: the real cause" and node.ends().code == 1


FUNCTIONS = "import sys\ndef fails():\n    raise RuntimeError('the real cause')\ndef exits():\n    sys.exit(7)\n"


@pytest.mark.parametrize("name", ["fails", "exits"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_function_reports_as_a_program_does(
    make: Callable[..., Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: StartMethod, name: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = f"of_{method}_{name}"
    (tmp_path / f"{module}.py").write_text(FUNCTIONS)
    with calling(method, getattr(import_module(module), name))() as called:
        node = make(called.spawner)
        node.start_command(command(called.program, 0), RANK="0", LOCAL_RANK="0", ELASTIC_ROUND="0")
        if name == "fails":
            _, record = node.hears()
            assert record and record.message == "RuntimeError: the real cause"
            assert record.where == f"{module}.py:3 in fails"
        ended = node.ends()
        assert ended.code == (1 if name == "fails" else 7) and (ended.ending_at is None) is (name == "fails")
        node.workers.close()


# --- one packet


@pytest.mark.parametrize(
    ("packet", "report"),
    [
        (b"raise 2.5", Report(What.RAISE, 2.5, 1.5)),
        (b"ending 2.5", Report(What.ENDING, 2.5, 1.5)),
        (b"raise 0.5", Report(What.RAISE, 3.0, 2.0)),
        (b"raise 3.5", Report(What.RAISE, 3.0, 2.0)),
        (b"raise nan", Report(What.RAISE, 3.0, 2.0)),
        (b"raise inf", Report(What.RAISE, 3.0, 2.0)),
        (b"raise", None),
        (b"else 2.5", None),
        (b"raise 2.5 2.5", None),
        (b"raise \xff", None),
        (b"", None),
        (b"raise " + b"1" * 5_000, Report(What.RAISE, 3.0, 2.0)),
    ],
)
def test_a_packet_is_read_bounded_and_its_time_is_within_the_worker_s_life(
    packet: bytes, report: Report | None
) -> None:
    ours, theirs = channel()
    with ours, theirs:
        assert read(ours, 1.0, 3.0) is None
        theirs.send(packet, socket.MSG_DONTWAIT)
        assert read(ours, 1.0, 3.0) == report
