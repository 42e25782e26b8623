"""A wrapped function that goes wrong as it is told: arguments are ITERATION:RANK:FAULT, and NAME=VALUE for the wrapper.

In an iteration in which somebody is to fail the others sleep; in one without, everybody returns. Each tells when it enters
the function and how the call ended. No limit holds for who waits for the test or for others: a test's limits are short, and
others may take their time.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import stage
from processes import monitor_of

from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.shared_page import seen
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.core.rendezvous import Status
from elastic.inprocess import CallWrapper, FrozenState, Mode, RestartAbort, Wrapper, at_most, shift

LONG_S = 1_000
LATER = 2
FIRST_GATE = 10
"""What is to go wrong in iteration i does when the gate of this number + i is open."""
MINE = int(os.environ["RANK"])
FAULTS = [
    (int(iteration), int(rank), fault) for iteration, rank, fault in (a.split(":") for a in sys.argv[1:] if ":" in a)
]
INTERVALS = dict.fromkeys(("monitor_thread_interval", "monitor_process_interval", "progress_watchdog_interval"), "0.1")
SWALLOWED: list[str] = []
OPTIONS = dict(argument.split("=") for argument in sys.argv[1:] if "=" in argument)


def swallow(call: CallWrapper) -> None:
    """Three times; `finalize` tells, which nobody interrupts."""
    stage.tell("does not listen")
    while len(SWALLOWED) < 3:
        try:
            time.sleep(LONG_S)
        except BaseException as error:  # noqa: BLE001 - what nobody should do
            SWALLOWED.append(type(error).__name__)
    time.sleep(LONG_S)


def atomic(call: CallWrapper) -> None:
    """A section that a restart has to wait for: it is wanted, and the section goes on."""
    with call.atomic():
        stage.tell("in the section")
        while not seen(call._gate._page.words).wanted:
            time.sleep(0.01)
        stage.wait_for_gate(1)
        stage.tell("end of the section")
    stage.tell("after the section")


def load(call: CallWrapper) -> None:
    """An import that a restart has to wait for; `main` tells whether it was one."""
    importlib.import_module("slow_to_import")

    time.sleep(LONG_S)


def livelock(call: CallWrapper) -> None:
    call.ping()
    while True:
        pass


def busy(call: CallWrapper) -> None:
    """Longer than the limit, but it gets on."""
    ends_at = time.monotonic() + 4.5
    while time.monotonic() < ends_at:
        pass


def lose_the_monitor(call: CallWrapper) -> None:
    """And hang in a way that only another one can see. (To start it this process needs the interpreter's lock.)"""
    with call.disable_hang_protection():
        while (first := monitor_of(os.getpid())) is None:
            time.sleep(0.01)
        os.kill(first, signal.SIGKILL)
        while monitor_of(os.getpid()) in (None, first):
            time.sleep(0.01)
        stage.tell("has another monitor")
    ctypes.PyDLL(None).sleep(LONG_S)


def give_up(call: CallWrapper) -> None:
    raise RestartAbort("enough")


def nest(call: CallWrapper) -> None:
    Wrapper()(print)("not to be said")


def fail(call: CallWrapper) -> None:
    raise ValueError("boom")


def fail_later(call: CallWrapper) -> None:
    """When the other is where it is to be."""
    stage.wait_for_gate(LATER)
    fail(call)


def interrupt(call: CallWrapper) -> None:
    signal.raise_signal(signal.SIGINT)


WAYS: dict[str, Callable[[CallWrapper], object]] = {
    "exception": fail,
    "exception later": fail_later,
    "kill": lambda call: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda call: os.kill(os.getpid(), signal.SIGSTOP),
    "sleep": lambda call: time.sleep(LONG_S),
    "c": lambda call: ctypes.CDLL(None).sleep(LONG_S),
    "gil": lambda call: ctypes.PyDLL(None).sleep(LONG_S),
    "interrupt": interrupt,
    "exit": lambda call: sys.exit(3),
    "return": lambda call: None,
    "livelock": livelock,
    "swallow": swallow,
    "atomic": atomic,
    "import": load,
    "busy": busy,
    "abort": give_up,
    "nest": nest,
    "monitor": lose_the_monitor,
}


def wait_to_be_a_reserve() -> None:
    """Until the register says so: a rank that is lost before is one like others."""
    backend = RelayBackend(os.environ["ELASTIC_RELAY"], f"{os.environ['ELASTIC_WORLD']}/0", SystemClock())
    state = backend.get().state
    while state is None or str(MINE) not in {node.slot for node in state.those(Status.RESERVE)}:
        state = backend.wait_for_change(state.token if state else None, math.inf).state
    backend.close()


def initialize(state: FrozenState) -> None:
    if state.mode is Mode.INACTIVE:
        wait_to_be_a_reserve()
        stage.tell("reserve", state.iteration, "as", state.rank)
    if (state.iteration, MINE, "initialize") in FAULTS:
        raise OSError("not yet")


def finalize(state: FrozenState) -> None:
    if SWALLOWED:
        stage.tell("swallowed", *SWALLOWED)
    stage.tell("finalize", state.iteration, type(state.fault).__name__)
    if (state.iteration, MINE, "finalize") in FAULTS:
        raise OSError("past help")


def main() -> None:
    if stage.gate_is_open(FIRST_GATE):  # this process was started again
        stage.wait_for_gate(FIRST_GATE + 1)
    given = {**INTERVALS, **OPTIONS}
    options: dict[str, Any] = {name: float(text) if "." in text else int(text) for name, text in given.items()}
    active = at_most(options.pop("active", 1_000))
    wrapper = Wrapper(initialize=initialize, finalize=finalize, rank_assignment=[shift(), active], **options)

    @wrapper
    def train(call: CallWrapper) -> str:
        here = call.iteration
        if loaded := sys.modules.get("slow_to_import"):
            stage.tell("has the module", "WHOLE" in vars(loaded))
        for record in call.faults if "faults" in sys.argv else ():
            stage.tell("fault", record.round, record.rank, record.message)
        stage.tell("in", here, "of", os.environ["WORLD_SIZE"], "as", os.environ["RANK"])
        mine = [fault for iteration, rank, fault in FAULTS if (iteration, rank) == (here, MINE) and fault in WAYS]
        for fault in mine:
            with call.disable_hang_protection():
                stage.wait_for_gate(FIRST_GATE + here)
            WAYS[fault](call)
        others = [iteration for iteration, rank, fault in FAULTS if iteration == here and fault != "busy"]
        with call.disable_hang_protection():
            while others and not mine:
                time.sleep(0.02)
        return f"{MINE} in {here}"

    try:
        stage.tell("returned", train())
    except BaseException as error:
        stage.tell("raised", type(error).__name__, error)
        raise


if __name__ == "__main__":
    main()
