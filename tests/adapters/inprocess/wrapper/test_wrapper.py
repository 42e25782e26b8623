"""What a wrapper refuses when it is made, and what it leaves alone."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from ports import reserved
from processes import TIMEOUT_S

import elastic
from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.wrapper.parameters import labels, party, slot
from elastic.adapters.inprocess.wrapper.stores import NoStore, master_at_first
from elastic.adapters.inprocess.wrapper.wrapper import Wrapper as PlainWrapper
from elastic.core.inprocess.exits import INTERNAL
from elastic.core.policies import at_most, shift
from elastic.core.world import Party
from elastic.inprocess import CallWrapper, Wrapper

HERE = """
import os, signal, time
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.inprocess import Wrapper

class Here:
    place = phrase = "here"
    route = {"relay": "/none", "space": "0"}
    serves = False
    starts = lambda self: False
    close = lambda self, timeout_s: None

    def connect(self, space, clock):
        self.backend = MemoryBackend(MemoryStore(), clock)
        return self
"""
"""A store in this process."""

TOLD_LATE = (
    HERE
    + """
Here.serves = property(lambda self: os.kill(os.getpid(), signal.SIGTERM))
signal.signal(signal.SIGTERM, lambda signum, frame: print("told to go"))
print(Wrapper(store_factory=Here)(lambda: "trained")())
"""
)
"""The main thread asks whether it serves the store when it knows how the call ended, and not before."""


FORKED = """
import os
from elastic.inprocess import CallWrapper, Wrapper

@Wrapper()
def train(call: CallWrapper = None):
    return call.state.rank, call.state.world_size

print(train())
read, write = os.pipe()
for rank in range(2):
    if os.fork() == 0:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_PORT=os.environ["OTHER_PORT"])
        os.write(write, f"{train()}\\n".encode())
        os._exit(0)
for _ in range(2):
    os.wait()
os.close(write)
print(*sorted(open(read).read().splitlines()), sep="\\n")
"""

FORKED_WITHIN = """
import os
from elastic.inprocess import CallWrapper, Wrapper

parent = os.getpid()

@Wrapper()
def train(call: CallWrapper = None):
    if port := os.environ.pop("OTHER_PORT", None):
        for rank in range(2):
            if os.fork() == 0:
                os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_PORT=port)
                return "forked"
        for _ in range(2):
            os.wait()
    return call.state.rank, call.state.world_size

first = train()
print(first if os.getpid() == parent else (first, train()), flush=True)
"""


def test_spans_are_timedeltas_or_seconds() -> None:
    made = Wrapper(soft_timeout=timedelta(minutes=1), hard_timeout=90, heartbeat_timeout=2.5).plan.settings
    assert (made.soft_timeout, made.hard_timeout, made.heartbeat_timeout) == (60, 90, 2.5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"soft_timeout": "1"}, "soft_timeout: a timedelta or seconds, not '1'"),
        ({"hard_timeout": True}, "hard_timeout: a timedelta or seconds, not True"),
        ({"initialize": 3}, "initialize: something to call, or None, not 3"),
        ({"abort": "now"}, "abort: something to call, or None, not 'now'"),
        ({"rank_assignment": [shift(), 3]}, "rank_assignment: policies"),
        ({"store_kwargs": 3}, "store_kwargs"),
        ({"store_factory": 3}, "store_factory"),
        ({"enabled": 1}, "enabled: True or False, not 1"),
        ({"max_iterations": 1.5}, "max_iterations: a whole number or None, not 1.5"),
        ({"min_world_size": None}, "min_world_size: a whole number, not None"),
        ({"monitor_process_logfile": 3}, "monitor_process_logfile: a path or None, not 3"),
        ({"trace": 3}, "trace: a path or None, not 3"),
    ],
)
def test_a_wrong_type_is_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Wrapper(**given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"soft_timeout": 90}, r"soft_timeout \(90 s\) must be below hard_timeout \(90 s\)"),
        ({"hard_timeout": 500}, r"hard_timeout \(500 s\) must be below barrier_timeout \(120 s\)"),
        ({"heartbeat_interval": 40}, r"heartbeat_interval \(40 s\) must be below heartbeat_timeout \(30 s\)"),
        ({"soft_timeout": -1}, "soft_timeout: a span above 0 seconds, not -1"),
        ({"unwind_timeout": 1e12}, "^unwind_timeout: at most 1000000000 seconds, not 1e[+]12$"),
        ({"callback_timeout": timedelta.max}, "^callback_timeout: at most 1000000000 seconds, not 8.64e[+]13$"),
        ({"soft_timeout": 10**400}, "^soft_timeout: at most 1000000000 seconds, not inf$"),
        ({"min_world_size": 0}, "min_world_size: at least 1, not 0"),
        ({"max_iterations": 0}, "max_iterations: at least 1"),
        ({"max_repeats": -1}, "max_repeats: at least 0"),
        ({"repeat_window": 0}, "repeat_window: a span above 0 seconds, not 0"),
        ({"replace_wait": -1}, "replace_wait: a span of 0 or more seconds, not -1"),
        ({"monitor_process_logfile": "monitor.log"}, "an absolute path, not 'monitor.log'"),
        ({"monitor_process_pidfile": "pid"}, "monitor_process_pidfile: an absolute path, not 'pid'"),
        ({"on_interrupt": "ask"}, "^on_interrupt: close or leave, not 'ask'$"),
    ],
)
def test_what_cannot_work_is_refused_with_both_values(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Wrapper(**given)


def test_policies_may_be_given_one_after_the_other() -> None:
    assert Wrapper(rank_assignment=[shift(), at_most(3)]).plan.terms.policy.name == "shift + at most 3"
    assert Wrapper().plan.terms.policy.name == "shift"


@pytest.mark.parametrize(("standbys", "given", "waits"), [("2", None, 0.5), ("0", None, 0.0), ("2", 0.25, 0.25)])
def test_a_replacement_is_waited_for_where_the_launcher_keeps_standbys(
    monkeypatch: pytest.MonkeyPatch, standbys: str, given: float | None, waits: float
) -> None:
    monkeypatch.setenv("ELASTIC_STANDBYS", standbys)
    assert Wrapper(replace_wait=given).plan.settings.replace_wait == waits


def test_the_labels_of_the_node_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_LABELS", "zone=b,rack=r7=x")
    assert labels() == (("rack", "r7=x"), ("zone", "b"))
    monkeypatch.delenv("ELASTIC_LABELS")
    assert labels() == ()


def test_the_party_of_a_rank_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_PARTY", "8 my node#17")
    assert party() == Party("my node#17", 8)
    monkeypatch.delenv("ELASTIC_PARTY")
    assert party().size == 1


@pytest.mark.parametrize("given", ["8", "0 a#1", "x a#1", "-1 a#1", "99999 a#1"])
def test_a_party_that_is_none_is_refused_by_its_value(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ELASTIC_PARTY", given)
    with pytest.raises(ValueError, match=f"ELASTIC_PARTY={given}: a number and a node"):
        party()


@pytest.mark.parametrize(
    ("came_in", "generation", "slot_"), [("0", None, "3"), ("2", None, "3"), ("2", "2", "3"), ("4", "2", "3+4")]
)
def test_a_rank_is_named_by_its_number_and_if_its_node_came_later_by_that_round_too(
    monkeypatch: pytest.MonkeyPatch, came_in: str, generation: str | None, slot_: str
) -> None:
    monkeypatch.setenv("ELASTIC_ROUND", came_in)
    if generation is None:
        monkeypatch.delenv("ELASTIC_GENERATION", raising=False)
    else:
        monkeypatch.setenv("ELASTIC_GENERATION", generation)
    assert slot(3) == slot_


def test_a_wrapper_that_is_not_enabled_leaves_the_function_alone() -> None:
    def function(call: CallWrapper | None = None) -> object:
        return call

    assert Wrapper(enabled=False)(function) is function
    assert function() is None


def test_a_wrapped_function_keeps_its_name_and_says_where_ranks_could_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ELASTIC_RELAY", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)

    @Wrapper()
    def train() -> None:
        """Train."""

    assert (train.__name__, train.__doc__) == ("train", "Train.")
    with pytest.raises(NoStore, match="elastic launch"):
        train()


def test_programs_that_change_their_import_find_the_names_that_they_use() -> None:
    """The documented example of nvidia-resiliency-ext, in our words."""
    import elastic.inprocess as inprocess

    made = inprocess.Wrapper(
        initialize=inprocess.initialize.RetryController(max_iterations=4, min_world_size=2),
        abort=inprocess.abort.AbortTorchDistributed(),
        health_check=inprocess.Compose(
            inprocess.health_check.CudaHealthCheck(timedelta(seconds=10)), inprocess.health_check.FaultCounter(3)
        ),
        rank_assignment=inprocess.Compose(
            inprocess.rank_assignment.MaxActiveWorldSize(8), inprocess.rank_assignment.ShiftRanks()
        ),
        soft_timeout=timedelta(seconds=50),
        hard_timeout=timedelta(seconds=60),
    )
    assert made.plan.terms.policy.name == "ShiftRanks + MaxActiveWorldSize 8"
    assert elastic.inprocess is inprocess


def test_where_there_is_no_launcher_what_is_said_of_the_store_is_for_a_tcpstore(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ELASTIC_RELAY", raising=False)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    with socket.create_server(("localhost", 0)) as others:
        port = others.getsockname()[1]
        store = Wrapper(store_kwargs={"port": port, "timeout": timedelta(seconds=9)}).plan.store()
        assert store.connect("0", SystemClock()).route["port"] == port
    monkeypatch.setenv("ELASTIC_RELAY", "/run/relay")
    monkeypatch.setenv("ELASTIC_WORLD", "0")
    assert Wrapper(store_kwargs={"port": port}).plan.store().connect("0", SystemClock()).route["relay"] == "/run/relay"


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK": "x"}, "RANK=x: a whole number, at least 0"),
        ({"RANK": "-1"}, "RANK=-1: a whole number, at least 0"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE=0: a whole number, at least 1"),
        ({"RANK": "3", "WORLD_SIZE": "2"}, "RANK=3, WORLD_SIZE=2: ranks begin at 0, so the last is 1"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT=http: a whole number, at least 1"),
    ],
)
def test_a_number_of_the_environment_that_is_none_is_named(
    variables: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody is waited for."""
    master_at_first.cache_clear()
    monkeypatch.delenv("ELASTIC_RELAY", raising=False)
    for name, value in {"MASTER_ADDR": "localhost", "RANK": "0", "WORLD_SIZE": "1", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"^{text}$"):
        Wrapper()(lambda: None)()


async def later() -> None:
    """Nothing."""


def in_parts() -> Iterator[int]:
    yield 1


class Later:
    async def __call__(self) -> None:
        """Nothing."""

    def __repr__(self) -> str:
        return "Later()"


@pytest.mark.parametrize("wrap", [PlainWrapper, Wrapper])
def test_a_function_that_is_wrapped_already_is_refused(wrap: type[PlainWrapper]) -> None:
    """Also where another decorator stands between the two."""

    @wrap()
    def train() -> None:
        """Nothing."""

    @functools.wraps(train)
    def decorated() -> None:
        train()

    for each in train, decorated:
        with pytest.raises(TypeError, match=r"^train: it is wrapped already; write @Wrapper\(\.\.\.\) once$"):
            wrap()(each)


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (3, "3: no function; write @Wrapper(...) above one"),
        (later, "later: a call of it runs nothing yet; wrap what runs it"),
        (in_parts, "in_parts: a call of it runs nothing yet; wrap what runs it"),
        (Later(), "Later(): a call of it runs nothing yet; wrap what runs it"),
    ],
)
def test_what_runs_nothing_when_it_is_called_is_refused(function: Any, answer: str) -> None:
    with pytest.raises(TypeError) as refused:
        Wrapper()(function)
    assert str(refused.value) == answer


def test_a_wrapper_without_parentheses_is_told_where_they_go() -> None:
    with pytest.raises(TypeError, match=r"write @Wrapper\(\.\.\.\) above it$"):

        @Wrapper  # type: ignore[arg-type]
        def train() -> None: ...


def test_a_call_that_does_not_fit_is_refused_and_not_made_again_for_ever() -> None:
    @Wrapper()
    def train(options: int, call: CallWrapper | None = None) -> int:
        return options

    for arguments in ((), (1, None, 3)):
        with pytest.raises(TypeError, match=r"missing a required argument: 'options'; it is train|too many positional"):
            train(*arguments)


ALONE, OF_TWO = "(0, 1)", ["(0, 2)", "(1, 2)"]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("program", "told"),
    [(FORKED, [ALONE, *OF_TWO]), (FORKED_WITHIN, [*(f"('forked', {place})" for place in OF_TWO), ALONE])],
    ids=["after", "within"],
)
def test_a_process_that_is_forked_after_a_call_or_within_is_the_rank_that_its_own_variables_say(
    program: str, told: list[str]
) -> None:
    with reserved() as first, reserved() as other:
        places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(first), "OTHER_PORT": str(other)}
        alone = {name: value for name, value in os.environ.items() if not name.startswith("ELASTIC_")}
        ran = subprocess.run(
            [sys.executable, "-c", program], env={**alone, **places}, capture_output=True, text=True, check=False
        )
    assert (ran.returncode, sorted(ran.stdout.splitlines())) == (0, sorted(told))


def test_calls_that_are_refused_leave_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "localhost")

    @Wrapper()
    def train(options: int) -> int:
        return options

    def refused() -> set[str]:
        with pytest.raises(TypeError):
            train()
        return set(os.listdir("/proc/self/fd"))

    assert refused() == refused()


@pytest.mark.usefixtures("nothing_left")
def test_a_signal_that_comes_when_the_call_has_just_ended_is_the_program_s() -> None:
    ran = subprocess.run([sys.executable, "-c", TOLD_LATE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "told to go\ntrained\n", "")


UNSUPERVISED = (
    HERE
    + """
from elastic.adapters.inprocess.gate.alarm import Alarm
Alarm.beat = lambda self: 1 / 0
Wrapper(store_factory=Here)(lambda: time.sleep(1_000))()
"""
)
"""An error that nobody foresaw ends the thread that watches the monitor."""


@pytest.mark.usefixtures("nothing_left")
def test_a_process_whose_monitor_nobody_would_start_again_ends_and_says_why() -> None:
    command = [sys.executable, "-c", UNSUPERVISED]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ran.returncode == INTERNAL and "ZeroDivisionError" in ran.stderr


UNSEEN = """
import os, sys, threading
from contextlib import suppress
from elastic.adapters import threads
from elastic.adapters.inprocess.rank.driver import end_process

def fail():
    raise ValueError("nobody sees this")

if sys.argv[1] == "closed":
    sys.stderr.close()
else:
    os.set_blocking(2, False)
    with suppress(BlockingIOError):
        while True:
            os.write(2, bytes(65_536))
    os.set_blocking(2, True)
threading.Thread(target=threads.guarded(fail, end_process)).start()
"""


@pytest.mark.parametrize("stderr", ["closed", "full"])
def test_an_error_that_ends_the_process_does_so_though_nobody_can_be_told(stderr: str) -> None:
    with subprocess.Popen([sys.executable, "-c", UNSEEN, stderr], stderr=subprocess.PIPE) as ends:
        try:
            assert ends.wait(TIMEOUT_S) == INTERNAL
        finally:
            ends.kill()
