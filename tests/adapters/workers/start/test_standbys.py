"""Standbys as real processes: what a program finds in one, what "go" does, and what becomes of those that fail."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from attrs import define, evolve, field
from processes import TIMEOUT_S, comes_true, cut_name, dies, is_alive

from elastic.adapters.disk import Disk
from elastic.adapters.launch_settings import STACKS_SIGNAL, Function, Kind, LaunchSettings, Program, StandbySettings
from elastic.adapters.workers.child_processes import SubprocessWorkers
from elastic.adapters.workers.messages.reports import Report
from elastic.adapters.workers.start.environment import command, lasting_environment
from elastic.adapters.workers.start.function_call import calling
from elastic.adapters.workers.start.spawner import Executing
from elastic.adapters.workers.start.standbys import Standbys, _can_end_idling, _schedule
from elastic.adapters.workers.start_up import start_up
from elastic.adapters.workers.startup.elastic_standby import STALE
from elastic.adapters.workers.watch.reaper_process import ReaperProcess
from elastic.adapters.workers.watch.watcher import Watcher
from elastic.adapters.workers.worker_port import Exit, Remark, Sink, StandbyNews, StandbysReady, WorkerSpec

PROBE = Path(__file__).parents[1] / "programs" / "probe.py"
BEFORE = "import os; print(os.environ['RANK'], os.environ['ELASTIC_ROUND'], flush=True)"


@define(eq=False, slots=False)
class Node:
    """The agent's side: workers from standbys, by its own clock."""

    program: Program | Function
    folder: Path
    disk: Disk
    wanted: StandbySettings = StandbySettings()
    environment: Mapping[str, str] = field(factory=lambda: dict(os.environ))
    local_world_size: int = 1
    now: float = 0.0
    heard: SimpleQueue[int] = field(factory=SimpleQueue)
    dead: SimpleQueue[tuple[int, int]] = field(factory=SimpleQueue)
    told: SimpleQueue[tuple[int, int, Report]] = field(factory=SimpleQueue)
    news: list[StandbyNews] = field(factory=list)
    starts: int = 0
    stacks_signal: int | None = STACKS_SIGNAL
    reports: bool = True

    def __attrs_post_init__(self) -> None:
        self.settings = LaunchSettings(
            self.program,
            self.local_world_size,
            run_id="job",
            slot="a",
            environment=self.environment,
            stacks_signal=self.stacks_signal,
        )
        self.reaper, self.watcher = ReaperProcess(), Watcher()
        self.start_up = start_up(self.settings)
        self.standbys = Standbys(
            self.settings,
            self.wanted,
            "a",
            Executing(self.start_up),
            self.reaper,
            self.watcher,
            lambda: self.now,
            self.heard.put,
            str(self.folder / "nvidia"),
            self.start_up,
        )
        self.workers = SubprocessWorkers(
            lambda *event: self.dead.put(event),
            self.disk,
            reaper=self.reaper,
            spawner=self.standbys,
            watcher=self.watcher,
            on_report=(lambda *event: self.told.put(event)) if self.reports else None,
        )

    def begin(self) -> None:
        self.workers.prepare()
        self.news += self.standbys.begin()

    def listen(self) -> Sequence[StandbyNews]:
        """The news of the next standby that has something to say."""
        news = self.standbys.heard(self.heard.get(timeout=TIMEOUT_S))
        self.news += news
        return news

    def becomes_ready(self, count: int = 1) -> None:
        """Wait until so many standbys are ready; none of them for an idle CPU, which a busy machine may not have."""
        while self.standbys.ready < count:
            for pid in self.standbys.pids:
                _schedule(pid, os.SCHED_OTHER)
            self.listen()

    def until_and_count(self) -> tuple[float | None, int]:
        """When the next standby is due, and how many there are."""
        return self.standbys.until, len(self.standbys.pids)

    def spec(self, local_rank: int = 0, console: bool = False, **more: str) -> WorkerSpec:
        """A worker that writes into files, or into pipes that are copied to files and the console."""
        self.starts += 1
        told = {"RANK": str(local_rank), "LOCAL_RANK": str(local_rank), "ELASTIC_ROUND": "3", **more}
        return WorkerSpec(
            local_rank,
            command(self.program, local_rank),
            {**lasting_environment(self.settings, "a"), **told},
            Sink(self.folder / f"out.{self.starts}", console=console),
            Sink(self.folder / f"err.{self.starts}", console=console),
        )

    def start(self, spec: WorkerSpec) -> int:
        (pid,) = self.workers.start([spec])
        return pid

    def end(self) -> Exit:
        rank, pid = self.dead.get(timeout=TIMEOUT_S)
        ended = self.workers.collect(rank, pid)
        assert ended
        return ended

    def run(self, spec: WorkerSpec) -> tuple[int, str, str]:
        """One worker from start to end: its code, and what it wrote."""
        self.start(spec)
        code = self.end().code
        self.workers.drain(TIMEOUT_S)
        assert spec.stdout.file and spec.stderr.file
        return code, spec.stdout.file.read_text(), spec.stderr.file.read_text()


@pytest.fixture
def make(nothing_left: str, tmp_path: Path, disk: Disk) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def make(program: Program | Function | str, **settings: Any) -> Node:
        if isinstance(program, str):
            file = tmp_path / "program.py"
            file.write_text(program)
            program = script(file)
        made.append(Node(program, tmp_path, disk, **{"environment": dict(os.environ), **settings}))
        return made[-1]

    yield make
    for node in made:
        node.workers.close()


def script(file: Path, *arguments: str) -> Program:
    return Program(Kind.SCRIPT, str(file), arguments, sys.executable)


def with_site_packages(folder: Path, **modules: str) -> dict[str, str]:
    """An environment in which these modules are installed ones."""
    packages = folder / "site-packages"
    packages.mkdir()
    for name, text in modules.items():
        (packages / f"{name}.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(packages)}


def of_package(folder: Path, place: str = "probes.inner") -> str:
    """Lay the probe into a package in the current directory, as `inner`, which its main finds at this place; return the
    package's name."""
    (folder / "probes").mkdir()
    (folder / "probes" / "__init__.py").touch()
    (folder / "probes" / "inner.py").write_text(PROBE.read_text())
    (folder / "probes" / "__main__.py").write_text(f"from {place} import main\nmain()\n")
    return "probes"


ARGUMENTS = ("an argument", "${local_rank}")
PROGRAMS: Mapping[str, Callable[[Path], Program]] = {
    "script": lambda folder: script(PROBE, *ARGUMENTS),
    "folder": lambda folder: script(folder / of_package(folder, "inner"), *ARGUMENTS),
    "package": lambda folder: Program(Kind.MODULE, of_package(folder), ARGUMENTS, sys.executable),
    "module": lambda folder: Program(Kind.MODULE, f"{of_package(folder)}.inner", ARGUMENTS, sys.executable),
    "path": lambda folder: Program(Kind.PATH, str(PROBE), ARGUMENTS, sys.executable),
}


@pytest.mark.parametrize(
    ("kind", "pythonpath", "console"),
    [
        ("script", "", False),
        ("script", "", True),
        ("folder", "/nowhere:/tmp", True),
        ("package", "", False),
        ("module", "/nowhere:/tmp", False),
        ("path", "", True),
    ],
)
def test_a_program_finds_nothing_by_which_it_could_tell_a_standby_from_a_fresh_worker(
    make: Callable[..., Node],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    pythonpath: str,
    console: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path) if kind in ("package", "module") else None
    finds_the_same_in_both(make, PROGRAMS[kind](tmp_path), pythonpath, console)


def test_a_function_finds_nothing_by_which_it_could_tell_a_standby_from_a_fresh_worker(
    make: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(PROBE.parent)
    with calling("spawn", import_module("probe").main)() as called:
        finds_the_same_in_both(make, called.program, "", False)


def finds_the_same_in_both(
    make: Callable[..., Node], program: Program | Function, pythonpath: str, console: bool
) -> None:
    """Check recovery's promise: fresh worker and standby print the same, and end in the same way."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": pythonpath} if pythonpath else {}
    node = make(program, environment=environment)
    fresh = node.run(node.spec(console=console))
    node.begin()
    node.becomes_ready()
    (ready,) = node.standbys.pids
    code, out, err = node.run(node.spec(console=console))
    assert not node.standbys.pids and not is_alive(ready)
    assert fresh[2].endswith("last words\n") and fresh[0] == code == 7
    renumbered = re.sub(r"pipe:\[\d+\]", "pipe", out.replace("out.2", "out.1").replace("err.2", "err.1"))
    assert renumbered.splitlines() == re.sub(r"pipe:\[\d+\]", "pipe", fresh[1]).splitlines()
    assert err == fresh[2]
    assert fresh[1].endswith("no line endat exit\n")


@pytest.mark.parametrize(
    ("kind", "pythonpath"),
    [
        *(("script", pythonpath) for pythonpath in (None, "", "/nowhere:/tmp")),
        *(("folder", None), ("package", ""), ("module", "/nowhere:/tmp"), ("path", None)),
    ],
)
def test_a_program_finds_two_traces_of_the_stacks_and_four_of_the_reports(
    make: Callable[..., Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, pythonpath: str | None
) -> None:
    """A signal is caught; two descriptors are open that are closed in every executed child; sys.excepthook, a handler of
    atexit and threading._shutdown are ours."""
    monkeypatch.chdir(tmp_path)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= {} if pythonpath is None else {"PYTHONPATH": pythonpath}
    program = PROGRAMS[kind](tmp_path)
    plain = make(program, environment=environment, stacks_signal=None, reports=False)
    found = make(program, environment=environment)
    told = []
    for node in (plain, found):
        code, out, err = node.run(node.spec())
        assert code == 7 and err.endswith("last words\n")
        told.append(json.loads(out.partition("no line end")[0]))
        (tmp_path / "out.1").unlink()
    before, after = (each["kernel"] for each in told)
    assert found.start_up and found.start_up.stacks
    stacks, number = found.start_up.stacks, found.start_up.reports
    opened = [(int(number), int(flags, 8) & os.O_CLOEXEC) for number, flags in after["descriptors"][-2:]]
    assert opened == [(number, os.O_CLOEXEC), (stacks.descriptor, os.O_CLOEXEC)]
    del after["descriptors"][-2:]
    caught = [int(line.split()[1], 16) for each in (before, after) for line in each["status"] if "SigCgt" in line]
    assert caught[0] ^ caught[1] == 1 << (stacks.signum - 1)
    for each in (before, after):
        each["status"] = [line for line in each["status"] if "SigCgt" not in line]
    hook, shutdown, handlers = told[0].pop("ours")
    assert (hook, shutdown) == (True, "_shutdown")
    assert told[1].pop("ours") == [False, "before_joins.<locals>._shutdown", handlers + 1]
    assert told[0] == told[1]


ENDS = {
    "an exception": "import json\ndef fails():\n    json.loads('{')\nfails()\n",
    "an error of syntax": "import json\nimport (\n",
    "a module that is missing": "import json\nimport nowhere_to_be_found\n",
    "words": "import json, sys\nsys.exit('last words')\n",
    "a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "an interrupt": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
def test_an_end_looks_the_same(make: Callable[..., Node], text: str) -> None:
    node = make(text)
    fresh = node.run(node.spec())
    node.begin()
    node.becomes_ready()
    assert node.run(node.spec()) == fresh
    assert fresh[0] and (fresh[2] or fresh[0] == -signal.SIGSEGV)


@pytest.mark.parametrize("ready", [True, False])
def test_what_imports_print_and_warn_of_comes_out_at_go_as_from_the_program_s_own_lines(
    make: Callable[..., Node], tmp_path: Path, ready: bool
) -> None:
    noisy = (
        "import os, sys, warnings\nprint('imported')\nos.write(2, b'from below\\n')\n"
        "warnings.warn('old', DeprecationWarning, stacklevel=2)\nlogs = sys.stderr\n"
    )
    environment = with_site_packages(tmp_path, noisy=noisy)
    node = make("import sys\nimport noisy\nprint('first line', noisy.logs is sys.stderr)\n", environment=environment)
    fresh = node.run(node.spec())
    node.begin()
    if ready:
        node.becomes_ready()
    assert node.run(node.spec()) == fresh
    assert fresh[1] == "imported\nfirst line True\n"
    assert "from below" in fresh[2] and "program.py:2: DeprecationWarning: old\n  import noisy" in fresh[2]


def test_a_go_takes_the_environment_of_its_round_and_a_start_without_a_standby_is_a_fresh_one(
    make: Callable[..., Node],
) -> None:
    node = make(BEFORE)
    node.begin()
    node.becomes_ready()
    (waiting,) = node.standbys.pids
    assert node.start(node.spec(RANK="5", ELASTIC_ROUND="9")) == waiting
    assert node.end().code == 0
    assert (node.folder / "out.1").read_text() == "5 9\n"
    assert node.run(node.spec()) == (0, "0 3\n", "")


def test_a_standby_has_the_cpus_of_its_worker_in_all_its_threads(make: Callable[..., Node], tmp_path: Path) -> None:
    threaded = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    environment = {**with_site_packages(tmp_path, threaded=threaded), "OMP_NUM_THREADS": "1"}
    program = (
        "import os, threaded\nprint([sorted(os.sched_getaffinity(int(t))) for t in os.listdir('/proc/self/task')])\n"
        "assert {os.sched_getscheduler(int(t)) for t in os.listdir('/proc/self/task')} == {os.SCHED_OTHER}\n"
    )
    node = make(program, environment=environment)
    node.standbys.rest(0.0, busy=True)
    node.begin()
    cpus = os.sched_getaffinity(0)
    (pid,) = node.standbys.pids
    with cut_name():
        policy = os.SCHED_IDLE if _can_end_idling() else os.SCHED_OTHER
    assert os.sched_getscheduler(pid) == policy
    node.becomes_ready()
    assert os.sched_getaffinity(pid) == {max(cpus)}
    _schedule(pid, policy)
    assert node.run(node.spec()) == (0, f"{[sorted(cpus)] * 2}\n", "")
    node.now = 10.0
    node.standbys.rest(0.0, busy=True)
    node.standbys.passed(10.0)
    node.becomes_ready()
    bound = evolve(node.spec(), cpus=frozenset({min(cpus)}))
    assert node.run(bound) == (0, f"{[[min(cpus)]] * 2}\n", "")


def test_standbys_begin_together_and_later_ones_come_one_at_a_time_once_workers_have_run_for_a_while(
    make: Callable[..., Node],
) -> None:
    node = make("import os, sys; sys.exit(0 if 'RANK' in os.environ else 9)", local_world_size=2)
    node.begin()
    assert node.until_and_count() == (None, 2)
    node.becomes_ready(2)
    assert [type(each) for each in node.news] == [StandbysReady]
    node.workers.start([node.spec(0), node.spec(1)])
    assert [node.end().code, node.end().code] == [0, 0]
    node.now = 100.0
    node.standbys.rest(node.now, busy=True)
    assert node.until_and_count() == (102.0, 0)
    node.standbys.passed(101.9)
    assert not node.standbys.pids
    node.standbys.passed(102.0)
    assert node.until_and_count() == (None, 1)
    node.becomes_ready()
    assert node.until_and_count() == (node.now, 1)
    node.standbys.passed(102.0)
    node.becomes_ready(2)
    assert node.until_and_count() == (None, 2)


def test_each_standby_has_the_command_of_its_local_rank(make: Callable[..., Node], tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text("import os, sys\nprint(sys.argv[1], os.environ['RANK'])\n")
    node = make(script(tmp_path / "told.py", "${local_rank}"), local_world_size=2)
    node.begin()
    node.becomes_ready(2)
    pids = set(node.standbys.pids)
    assert set(node.workers.start([node.spec(1), node.spec(0)])) == pids
    assert [node.end().code, node.end().code] == [0, 0]
    assert [(tmp_path / f"out.{number}").read_text() for number in (1, 2)] == ["1 1\n", "0 0\n"]


def test_a_number_of_standbys_may_be_less_or_more_than_that_of_the_workers(make: Callable[..., Node]) -> None:
    node = make(BEFORE, wanted=StandbySettings(3), local_world_size=2)
    node.begin()
    assert len(node.standbys.pids) == 3


def test_a_standby_that_dies_is_replaced_after_a_pause_that_grows(make: Callable[..., Node], tmp_path: Path) -> None:
    """One that had been ready would begin the pauses anew, so none is before the gate is there."""
    gate = tmp_path / "gate"
    stuck = f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"
    node = make("import stuck\n", environment=with_site_packages(tmp_path, stuck=stuck))
    node.begin()
    for pause_s in (1.0, 2.0, 4.0):
        (pid,) = node.standbys.pids
        os.kill(pid, signal.SIGKILL)
        while node.standbys.pids:
            node.listen()
        assert not is_alive(pid) and node.standbys.until == node.now + pause_s
        assert node.standbys.are_settled is (pause_s == 4.0), "nobody waits for what dies again and again"
        node.now += pause_s
        node.standbys.passed(node.now)
    gate.touch()
    node.becomes_ready()
    assert [type(each) for each in node.news] == [StandbysReady]


def test_of_several_standbys_one_alone_says_which_import_is_left_to_the_workers(
    make: Callable[..., Node], tmp_path: Path
) -> None:
    """The others that still import are begun anew with it: they would ask for the same."""
    asks = "import os\nrank = os.environ.get('RANK', 'none')"
    node = make("import asks\n", environment=with_site_packages(tmp_path, asks=asks), local_world_size=3)
    node.begin()
    first = set(node.standbys.pids)
    node.becomes_ready(3)
    assert [each for each in node.news if isinstance(each, Remark)] == [
        Remark("standbys do not import asks: asks asks for RANK when it is imported")
    ]
    assert not first & set(node.standbys.pids)


def test_the_pauses_begin_anew_after_a_standby_that_was_ready(make: Callable[..., Node], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stuck = f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"
    node = make("import stuck\n", environment=with_site_packages(tmp_path, stuck=stuck))
    node.begin()
    for ready in (False, True, True, True, True):
        if ready:
            gate.touch()
            node.becomes_ready()
        (pid,) = node.standbys.pids
        os.kill(pid, signal.SIGKILL)
        while node.standbys.pids:
            node.listen()
        assert node.standbys.until == node.now + 1.0 and not node.standbys.are_settled
        node.now += 1.0
        node.standbys.passed(node.now)


def test_of_two_standbys_the_one_that_is_ready_becomes_the_worker(make: Callable[..., Node], tmp_path: Path) -> None:
    """A worker need not wait for imports that another process has behind it."""
    stuck = (
        "import os, time\n"
        f"while not os.path.exists({str(tmp_path)!r} + f'/gate.{{os.getpid()}}'):\n    time.sleep(0.01)"
    )
    node = make("import stuck\n", wanted=StandbySettings(2), environment=with_site_packages(tmp_path, stuck=stuck))
    node.begin()
    waits, ready = node.standbys.pids
    (tmp_path / f"gate.{ready}").touch()
    node.becomes_ready()
    assert node.start(node.spec()) == ready
    assert list(node.standbys.pids) == [waits]


@contextmanager
def spare_descriptors(count: int) -> Iterator[None]:
    """This process can open so many descriptors more."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(count + 1)]
    for each in opened:
        os.close(each)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened[-1], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_host_without_descriptors_is_asked_again_for_a_standby(make: Callable[..., Node]) -> None:
    node = make("import os, sys; sys.exit(0 if 'RANK' in os.environ else 9)")
    node.begin()
    node.becomes_ready()
    node.start(node.spec())
    node.end()
    node.standbys.rest(node.now, busy=True)
    pauses = []
    for spare in count():
        node.now = node.standbys.until or 0.0
        with spare_descriptors(spare):
            node.standbys.passed(node.now)
        if node.standbys.pids:
            break
        assert node.standbys.until
        pauses.append(node.standbys.until - node.now)
    assert pauses[:3] == [1.0, 2.0, 4.0]


def test_an_import_that_opens_a_gpu_is_named_once(make: Callable[..., Node], tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
    greedy = f"kept = open({str(tmp_path / 'nvidia0')!r})"
    environment = with_site_packages(tmp_path, greedy=greedy, modest="")
    node = make("import modest\nimport greedy\nimport json\n", environment=environment, local_world_size=2)
    node.begin()
    node.becomes_ready(2)
    said, ready = node.news
    assert said == Remark(
        "import greedy opens a GPU, so a standby holds memory of it; name the imports without it by --preload"
    )
    assert isinstance(ready, StandbysReady) and ready.count == 2


def test_a_start_that_meets_a_dead_standby_executes_the_program_afresh(make: Callable[..., Node]) -> None:
    node = make(BEFORE)
    node.begin()
    node.becomes_ready()
    (pid,) = node.standbys.pids
    os.kill(pid, signal.SIGKILL)
    assert dies(pid)
    assert node.run(node.spec()) == (0, "0 3\n", "")
    assert not node.standbys.pids


def test_an_import_that_raises_switches_standbys_off_and_is_named(make: Callable[..., Node], tmp_path: Path) -> None:
    environment = with_site_packages(tmp_path, broken="raise RuntimeError('no such device\\nmore')")
    node = make("import os\nimport broken\n", environment=environment, local_world_size=2)
    node.begin()
    (said,) = node.listen()
    assert said == Remark(
        "standby is off: import broken raises RuntimeError: no such device; fix it, or name other modules with --preload"
    )
    node.standbys.rest(0.0, busy=True)
    assert (list(node.standbys.pids), node.standbys.until) == ([], None)
    code, _, err = node.run(node.spec())
    assert code == 1 and "RuntimeError: no such device" in err


def test_a_worker_whose_standby_s_imports_raise_after_go_fails_as_a_fresh_one(
    make: Callable[..., Node], tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")  # which the first one that imports it waits for, and takes away
    slow = (
        f"import os\nif os.path.exists({gate!r}):\n    open({gate!r}).close()\n    os.unlink({gate!r})\n"
        "print('printed')\nraise RuntimeError(os.getpid())\n"
    )
    os.mkfifo(gate)
    node = make("import slow\n", environment=with_site_packages(tmp_path, slow=slow))
    node.begin()
    pid = node.start(spec := node.spec())
    os.close(os.open(gate, os.O_WRONLY))
    assert node.end().code == 1
    assert spec.stdout.file and spec.stdout.file.read_text() == "printed\n"
    assert spec.stderr.file and spec.stderr.file.read_text().endswith(f"RuntimeError: {pid}\n")


def test_a_module_that_asks_for_its_rank_is_left_to_the_workers_and_what_it_imports_is_not(
    make: Callable[..., Node], tmp_path: Path
) -> None:
    environment = with_site_packages(
        tmp_path,
        **{"no-name": ""},
        heavy="print('heavy', flush=True)",
        asks="import heavy, importlib, multiprocessing, os, sys\nsys.modules['made_up'] = sys\n"
        "importlib.import_module('no-name')\nrank = os.environ.get('RANK', 'none')\n",
        user="import asks\n",
    )
    node = make("import user\nprint(user.asks.rank)\n", environment=environment)
    node.begin()
    assert node.listen() == [Remark("standbys do not import user: asks asks for RANK when it is imported")]
    node.becomes_ready()
    assert [each.statement for each in node.standbys._imports] == ["import heavy"]
    assert node.run(node.spec(RANK="4")) == (0, "heavy\n4\n", "")


def test_a_standby_refuses_a_go_of_an_attempt_before_its_own(make: Callable[..., Node]) -> None:
    node = make(BEFORE)
    assert node.run(node.spec()) == (0, "0 3\n", "")
    node.begin()
    node.becomes_ready()
    node.standbys._attempt = 0
    node.standbys.check = lambda specs: None  # type: ignore[method-assign]
    assert node.run(node.spec()) == (STALE, "", "")


def test_no_standby_outlives_its_agent(nothing_left: str, tmp_path: Path, disk: Disk) -> None:
    """The agent's end closes the socket; the kernel's signal comes sooner, so the socket is tried by itself."""
    node = Node(script(PROBE), tmp_path, disk, environment=dict(os.environ))
    node.begin()
    node.becomes_ready()
    (standby,) = node.standbys._standbys.values()
    standby.control.shutdown(socket.SHUT_RDWR)
    assert dies(standby.process.pid)
    node.workers.close()
    assert not node.standbys.pids


def test_the_end_kills_standbys_that_still_import(make: Callable[..., Node], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    node = make("import slow\n", environment=with_site_packages(tmp_path, slow=f"open({str(tmp_path / 'gate')!r})"))
    node.begin()
    (pid,) = node.standbys.pids
    node.workers.close()
    assert not is_alive(pid) and comes_true(lambda: not node.standbys.pids)


def test_a_sitecustomize_of_the_user_s_runs_once_in_either_kind(make: Callable[..., Node], tmp_path: Path) -> None:
    environment = with_site_packages(tmp_path, sitecustomize="print('customized')\nX = 5\n")
    node = make("import sitecustomize\nprint(sitecustomize.X, sitecustomize.__file__)\n", environment=environment)
    fresh = node.run(node.spec())
    node.begin()
    node.becomes_ready()
    assert node.run(node.spec()) == fresh
    assert fresh[1].startswith("customized\n5 ")


def test_another_python_is_asked_whether_it_can_have_standbys(make: Callable[..., Node], tmp_path: Path) -> None:
    blind, seeing = tmp_path / "blind", tmp_path / "seeing"
    blind.write_text(f'#!/bin/sh\nexec {sys.executable} -E "$@"\n')
    seeing.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "program.py").write_text("import attrs\nprint('ran')\n")
    for python in (blind, seeing):
        python.chmod(0o755)
    node = make(Program(Kind.SCRIPT, str(tmp_path / "program.py"), (), str(blind)))
    node.begin()
    (said,) = node.news
    assert isinstance(said, Remark) and f"PYTHON_EXEC={blind} does not import sitecustomize" in said.text
    assert not node.standbys.pids and node.run(node.spec()) == (0, "ran\n", "")
    (tmp_path / "out.1").unlink()
    node = make(Program(Kind.SCRIPT, str(tmp_path / "program.py"), (), str(seeing)))
    node.begin()
    node.becomes_ready()
    assert [each.module for each in node.standbys._imports] == ["attrs"]
    assert node.run(node.spec())[1] == "ran\n"
