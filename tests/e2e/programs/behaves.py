"""A wrapped function, its callbacks and the ways of calling it: `behaves.py WAY [RANK:CALLBACK:WHAT] [NAME=VALUE] [HOW]`.

In the first iteration rank 1 does as WAY says and the others sleep, or return where WAY is one that they would wait for in
vain; in later iterations all return. No limit holds for who waits for the test or for others: a test's limits are short. A
callback of a rank may raise, hang or kill. NAME=VALUE is for the wrapper.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import gc
import math
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import stage

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.core.rendezvous import Status
from elastic.inprocess import (
    AbortTorchDistributed,
    CallWrapper,
    FrozenState,
    Mode,
    OutcomeUnknown,
    TCPStore,
    Wrapper,
    at_most,
    by,
    count_at_least,
    filter_groups,
    shift,
)
from elastic.inprocess.rank_assignment import FilterCountGroupedByKey

LONG_S = 1_000
LONGER_US = 2_500_000
"""Than the limits of the test of long stretches."""
GATE = 10
"""What is to go wrong does when it is open."""
SECOND_GATE = 20
"""The same in a second call of the function."""
MINE = int(os.environ["RANK"])
WAY = sys.argv[1]
HOW = [argument for argument in sys.argv[2:] if ":" not in argument and "=" not in argument]
FAULTS = [tuple(argument.split(":")) for argument in sys.argv[2:] if argument.count(":") == 2]
INTERVALS = dict.fromkeys(("monitor_thread_interval", "monitor_process_interval", "progress_watchdog_interval"), 0.1)
CALLED: list[str] = []
GATES = [GATE, SECOND_GATE]
"""Of the calls that have yet to be over."""
HELD: list[weakref.ref[object]] = []
LISTENING: list[socket.socket] = []


def value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


OPTIONS = {name: value(text) for name, _, text in (a.partition("=") for a in sys.argv[2:] if "=" in a)}

# --- what rank 1 does


def fail(call: CallWrapper) -> None:
    raise ValueError("boom")


def interrupt(call: CallWrapper) -> None:
    signal.raise_signal(signal.SIGINT)


def take_long_and_say_so(call: CallWrapper) -> None:
    """With Python's own lock held: one rank in a section, the other in a stretch without limits."""
    if MINE == 0:
        with call.section("load", 60):
            ctypes.PyDLL(None).usleep(LONGER_US)
        return
    with call.disable_hang_protection():
        with call.disable_hang_protection():
            pass
        ctypes.PyDLL(None).usleep(LONGER_US)


def hang_in_a_section(call: CallWrapper) -> None:
    with call.atomic():
        time.sleep(LONG_S)


def wait_for_one(status: Status) -> None:
    """Until the register shows one."""
    backend = RelayBackend(os.environ["ELASTIC_RELAY"], f"{os.environ['ELASTIC_WORLD']}/0", SystemClock())
    state = backend.get().state
    while state is None or not state.those(status):
        state = backend.wait_for_change(state.token if state else None, math.inf).state
    backend.close()


WAYS: dict[str, Callable[[CallWrapper], object]] = {
    "returns": lambda call: None,
    "fails": fail,
    "sleeps": lambda call: time.sleep(LONG_S),
    "interrupted": interrupt,
    "killed": lambda call: os.kill(os.getpid(), signal.SIGKILL),
    "long": take_long_and_say_so,
    "atomic": hang_in_a_section,
    "stays": lambda call: time.sleep(LONG_S),
}
RETURN = ("returns", "stays")
"""Ways in which the others return at once."""

# --- what is wrapped


class Large:
    """What an iteration has, and its exception's frames keep: with a reference to itself, as models have."""

    def __init__(self) -> None:
        self.itself = self
        HELD.append(weakref.ref(self))


def train(call: CallWrapper) -> str:
    if "held" in HOW:
        stage.tell("holds", sum(each() is not None for each in HELD), "of", len(HELD))
        gc.disable()
    large = Large()
    CALLED.append(f"function {call.iteration}")
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"], "as", os.environ["RANK"])
    if call.iteration == 0:
        with call.disable_hang_protection():
            stage.wait_for_gate(GATES[0])
    if call.iteration == 0 and (MINE == 1 or "both" in HOW):
        WAYS[WAY](call)
    elif call.iteration == 0 and WAY not in RETURN:
        wait(call)
    elif "newcomer" in HOW and call.iteration == 1:
        wait_for_one(Status.WAITING)
        raise ValueError("boom")
    if "twice" in HOW and call.iteration == 1:
        nest()
    assert large.itself is large
    return f"{MINE} in {call.iteration}"


def again(call: CallWrapper) -> str:
    """A second call, of another function."""
    stage.tell("again in", call.iteration, "of", os.environ["WORLD_SIZE"], "as", os.environ["RANK"])
    return f"{MINE} in {call.iteration}"


def nest() -> None:
    try:
        Wrapper()(print)("not to be said")
    except RuntimeError as error:
        stage.tell("nested:", error)


def wait(call: CallWrapper) -> None:
    with call.disable_hang_protection():
        if "thread" not in HOW:
            time.sleep(LONG_S)
        while True:
            call.check()
            time.sleep(0.01)


def callback(name: str, state: FrozenState) -> None:
    CALLED.append(f"{name} {state.iteration} {state.mode.value}")
    faults = [what for rank, of, what in FAULTS if (int(rank), of) == (MINE, name)]
    if faults and state.mode is Mode.INACTIVE:
        wait_for_one(Status.RESERVE)
    if faults and (state.fault or name != "health_check"):
        match faults[0]:
            case "raise":
                raise OSError("not yet")
            case "hang":
                time.sleep(LONG_S)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case other:
                raise ValueError(other)


def policies() -> Any:
    match OPTIONS.pop("policy", None):
        case "own":
            return at_most(10 + MINE)
        case "one" | "two" as most:
            return [shift(), at_most(("one", "two").index(most) + 1)]
        case "broken":
            return filter_groups(by(lambda seat: str(1 // 0)), count_at_least(1))
        case "key":
            return FilterCountGroupedByKey(lambda state: 1 // (1 - MINE), lambda count: True)
        case _:
            return None


def store() -> dict[str, Any]:
    port = OPTIONS.pop("port", None)
    return {"store_factory": TCPStore, "store_kwargs": {"host_name": "localhost", "port": port}} if port else {}


def listen_on_the_last_port() -> None:
    """The port of the last iteration is a program's: one of the ranks listens there, and serves no store."""
    try:
        LISTENING.append(socket.create_server(("", int(os.environ["MASTER_PORT"]))))
    except OSError:
        pass  # another rank does


def called() -> object:
    names = ("initialize", "finalize", "health_check", "completion", "terminate")
    callbacks = {name: functools.partial(callback, name) for name in names}

    def abort(state: FrozenState) -> None:
        callback("abort", state)
        AbortTorchDistributed()(state)

    own = {**callbacks, **store(), "rank_assignment": policies(), "abort": abort}
    options: dict[str, Any] = {**own, **INTERVALS, **OPTIONS}
    wrapper = Wrapper(**options)
    wrapped = wrapper(train)
    first = wrapped()
    GATES.pop(0)
    if "listens" in HOW:
        listen_on_the_last_port()
    if "again" in HOW:
        return wrapper(again)()
    return wrapped() if "twice" in HOW else first


def main() -> None:
    try:
        stage.tell("returned", called())
    except BaseException as error:
        kept = f" with {error.value}" if isinstance(error, OutcomeUnknown) else ""
        stage.tell("raised", type(error).__name__, f"{error}{kept}")
        raise
    finally:
        stage.tell("called", ", ".join(CALLED))


if {"again", "newcomer"} & set(HOW) and stage.gate_is_open(GATE):
    stage.wait_for_gate(GATE + 1)  # this process was started again
if "thread" in HOW:
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
else:
    main()
