"""Calls of one rank, as programs for nvidia-resiliency-ext make them: their own classes, and how each call ends."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from typing import Any, cast

import pytest
from spans import TIMEOUT_S

import elastic.adapters.inprocess.wrapper.assembly as assembly
import elastic.inprocess as inprocess
from elastic.adapters.clock import Clock
from elastic.adapters.inprocess.gate.gate import SIGNUM
from elastic.adapters.inprocess.thread_events import Drained
from elastic.adapters.inprocess.user_stack import own
from elastic.adapters.inprocess.wrapper.parameters import LONGEST_S
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.inprocess.exception import HealthCheckError, RestartAbort, RestartError, Stopped
from elastic.inprocess.rank_assignment import RankAssignmentCtx
from elastic.inprocess.state import FrozenState


class Here:
    """A store in this process."""

    place = phrase = "here"
    route = {"relay": "/none", "space": "0"}  # noqa: RUF012 - the monitor reads it
    serves = False

    def connect(self, space: str, clock: Clock) -> Here:
        self.backend = MemoryBackend(MemoryStore(), clock)
        return self

    def starts(self) -> bool:
        return False

    def close(self, timeout_s: float) -> None:
        pass


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_last_state", None)
    for name in ("ELASTIC_RELAY", "ELASTIC_TRACE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)


def wrapper(**given: Any) -> inprocess.Wrapper:
    return inprocess.Wrapper(store_factory=Here, **given)


def of(base: Any, called: Callable[[Any], Any]) -> Any:
    """An instance of a class that a user writes."""
    return type("Own", (base,), {"__call__": lambda self, given: called(given)})()


def fails(given: object = None) -> Any:
    raise ZeroDivisionError("own")


def changes(state: Any) -> Any:
    state.rank = 0


def limited(iterations: int) -> inprocess.initialize.RetryController:
    return inprocess.initialize.RetryController(max_iterations=iterations)


@pytest.mark.usefixtures("nothing_left")
def test_a_call_returns_the_function_s_value_and_may_be_made_again() -> None:
    function = wrapper()(lambda a, *, b: (a, b))
    assert [function(1, b=2), function(1, b=2)] == [(1, 2)] * 2


@pytest.mark.parametrize("limit", [timedelta.max, math.inf, 1e11, 10**400, 1e10], ids=str)
def test_a_section_that_may_take_longer_than_anybody_waits_has_no_limit(limit: Any) -> None:
    def train(call: inprocess.CallWrapper) -> tuple[int, int]:
        with call.section("upload", limit):
            return call._gate.limits()

    assert wrapper(max_iterations=1)(train)() == (0, 0)


def test_the_longest_spans_that_a_wrapper_takes_can_be_measured() -> None:
    least = {"soft_timeout": LONGEST_S / 4, "hard_timeout": LONGEST_S / 2, "heartbeat_timeout": LONGEST_S / 2}
    names = ("barrier", "completion", "unwind", "abort", "callback", "leave", "confirm", "store")
    given = least | {f"{name}_timeout": LONGEST_S for name in names}
    given |= dict.fromkeys(("last_call_wait", "replace_wait", "repeat_window", "termination_grace_time"), LONGEST_S)
    assert wrapper(max_iterations=1, **given)(lambda: 5)() == 5


def test_a_function_that_fails_is_called_until_the_controller_gives_up_each_time_that_it_is_called() -> None:
    iterations: list[int] = []

    @wrapper(initialize=limited(3))
    def function(call: inprocess.CallWrapper = None) -> None:  # type: ignore[assignment]
        call.ping()
        with call.atomic():
            iterations.append(call.iteration)
        raise RuntimeError

    for _ in range(2):
        with pytest.raises(RestartAbort):
            function()
    assert iterations == [0, 1, 2] * 2


def test_a_rank_that_is_not_there_in_time_is_missed_aloud(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(assembly, "FIRST_CALL", 0.001)
    assert wrapper()(lambda: "alone")() == "alone"
    assert "the first iteration begins without 1 of 2 ranks (1), which did not come in 0.12 s" in caplog.text


@pytest.mark.parametrize(("upscale", "warned"), [(True, 1), (False, 2)])
def test_a_later_call_waits_for_no_rank_that_can_come_later_or_that_two_were_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, upscale: bool, warned: int
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(assembly, "FIRST_CALL", 0.001)
    states: list[FrozenState] = []

    @wrapper(upscale=upscale)
    def function(call: inprocess.CallWrapper = None) -> None:  # type: ignore[assignment]
        states.append(call.state)

    for _ in range(3):
        function()
    assert [(each.world_size, each.initial_world_size) for each in states] == [(1, 2)] * 3
    assert caplog.text.count("the first iteration begins without") == warned


def test_user_code_may_ask_for_a_restart() -> None:
    def asks() -> None:
        raise inprocess.monitor_thread.RankShouldRestart

    with pytest.raises(RestartAbort):
        wrapper(initialize=limited(2))(asks)()


@pytest.mark.parametrize("error", [SystemExit, RestartAbort])
def test_what_is_no_exception_ends_the_call_as_itself(error: type[BaseException]) -> None:
    def ends() -> None:
        raise error

    with pytest.raises(error) as ended:
        wrapper()(ends)()
    assert type(ended.value) is error


@pytest.mark.parametrize(("on_interrupt", "code"), [("close", 76), ("leave", 130)])
def test_an_interrupt_ends_the_call_as_one_that_has_an_exit_code(on_interrupt: str, code: int) -> None:
    def ends() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        wrapper(on_interrupt=on_interrupt)(ends)()
    assert isinstance(ended.value, SystemExit) and ended.value.code == code


@own
def is_told_to_go() -> None:
    """The first signal by which the driver hands it on comes to nothing."""
    came, injected = threading.Event(), signal.getsignal(SIGNUM)

    def comes_to_nothing(*_: object) -> None:
        signal.signal(SIGNUM, injected)
        came.set()

    signal.signal(SIGNUM, comes_to_nothing)
    signal.raise_signal(signal.SIGTERM)
    came.wait(TIMEOUT_S)


def test_a_signal_that_comes_while_user_code_calls_the_wrapper_is_user_code_s_at_once() -> None:
    def train() -> None:
        is_told_to_go()
        threading.Event().wait(TIMEOUT_S)

    with pytest.raises(SystemExit) as ended:
        wrapper(max_iterations=1)(train)()
    assert type(ended.value) is Drained


class Mute(Exception):
    """An error that fails to say what it is."""

    def __str__(self) -> str:
        raise AttributeError("text")

    __repr__ = __str__


def test_the_log_names_an_error_that_cannot_be_printed_and_its_place(caplog: pytest.LogCaptureFixture) -> None:
    def train() -> None:
        raise Mute

    with pytest.raises(Stopped):
        wrapper(max_iterations=1)(train)()
    assert "rank 0, iteration 0: function ended by Mute\n" in caplog.text
    assert "in train\n    raise Mute\n" in caplog.text


def test_an_initialize_that_fails_is_a_fault_of_its_rank() -> None:
    own = of(inprocess.initialize.Initialize, fails)
    with pytest.raises(RestartAbort):
        wrapper(initialize=inprocess.Compose(own, limited(2)))(lambda: None)()


@pytest.mark.parametrize("raises", [fails, changes])
def test_what_finalize_raises_is_raised_as_itself(raises: Callable[[Any], Any]) -> None:
    made = wrapper(finalize=of(inprocess.finalize.Finalize, raises))
    with pytest.raises(ZeroDivisionError if raises is fails else FrozenInstanceError) as ended:
        made(lambda: 1 // 0)()
    assert not isinstance(ended.value, RestartError)


@pytest.mark.parametrize("raises", [fails, changes])
def test_what_a_health_check_raises_after_a_fault_is_the_cause_of_the_call_s_end(raises: Callable[[Any], Any]) -> None:
    """Before the function it is a fault; the one after it is the end."""
    check = of(inprocess.health_check.HealthCheck, raises)
    with pytest.raises(HealthCheckError, match="finalize or the health check failed") as ended:
        wrapper(health_check=check)(lambda: None)()
    assert isinstance(ended.value, inprocess.Unhealthy | Stopped) and isinstance(ended.value, SystemExit)
    assert isinstance(ended.value.__cause__, ZeroDivisionError | FrozenInstanceError)


def test_a_health_check_that_fails_once_does_no_harm_where_the_one_after_the_fault_passes() -> None:
    answers: list[Callable[[FrozenState], object]] = [fails, type, type]

    def answer(state: FrozenState) -> FrozenState:
        answers.pop(0)(state)
        return state

    check = of(inprocess.health_check.HealthCheck, answer)
    assert wrapper(health_check=check)(lambda: "trained")() == "trained"
    assert answers == []


def test_a_process_group_that_exists_at_the_call_is_refused() -> None:
    distributed = pytest.importorskip("torch.distributed")
    function = wrapper()(lambda: "trained")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match=r"not torch.distributed.is_initialized()"):
            function()
    finally:
        distributed.destroy_process_group()
    assert function() == "trained"


def test_a_wrapper_shows_the_parameters_that_it_was_given_and_takes_no_others_later() -> None:
    class Own(inprocess.Wrapper):
        def __init__(self, tag: str) -> None:
            super().__init__(store_factory=Here, soft_timeout=timedelta(seconds=30), abort=None)
            self.tag = tag

    made: Any = Own("mine")
    assert (made.tag, made.store_factory, made.soft_timeout, made.hard_timeout) == (
        "mine",
        Here,
        timedelta(seconds=30),
        90,
    )
    assert (made.abort, made.rank_assignment, made.enabled) == (None, None, True)
    with pytest.raises(AttributeError, match=r"^initialize: a wrapper's parameters are given when it is made$"):
        made.initialize = limited(1)
    with pytest.raises(AttributeError, match="Own' object has no attribute 'monitor'"):
        _ = made.monitor
    made.enabled = False
    assert copy(made)(fails) is fails
    assignment = inprocess.rank_assignment.ShiftRanks()
    assert cast(Any, wrapper(rank_assignment=assignment)).rank_assignment is assignment


def test_a_state_is_told_to_each_callback_and_replaced_states_go_to_the_next_part() -> None:
    told: list[tuple[str, int, inprocess.Mode, type[object]]] = []

    def notes(name: str) -> Callable[[FrozenState], FrozenState]:
        def note(state: FrozenState) -> FrozenState:
            told.append((name, state.iteration, state.mode, type(state.fn_exception)))
            return replace(state, iteration=state.iteration + 10)

        return note

    initialize = inprocess.initialize.Initialize
    made = wrapper(
        initialize=inprocess.Compose(of(initialize, notes("second")), of(initialize, notes("first")), limited(2)),
        abort=of(inprocess.abort.Abort, notes("abort")),
        finalize=of(inprocess.finalize.Finalize, notes("finalize")),
        terminate=of(inprocess.terminate.Terminate, notes("terminate")),
        completion=of(inprocess.completion.Completion, notes("completion")),
    )
    with pytest.raises(RestartAbort):
        made(fails)()
    active, nothing = inprocess.Mode.ACTIVE, type(None)
    began = [("first", 0, active, nothing), ("second", 10, active, nothing)]
    again = [("first", 1, active, nothing), ("second", 11, active, nothing)]
    assert told[:2] == began
    assert [each for each in told if each[0] == "finalize"] == [
        ("finalize", n, active, ZeroDivisionError) for n in (0, 1)
    ]
    assert [each[:2] for each in told if each[0] == "abort"][:1] == [("abort", 0)]
    assert [each for each in told if each[1] in (1, 11) and each[0] in ("first", "second")] == again
    assert told[-1][::2] == ("terminate", inprocess.Mode.TERMINATED)
    told.clear()
    made(lambda: None)()
    assert told == [*began, ("completion", 0, active, nothing)]


def test_a_rank_assignment_of_the_user_s_own_places_the_rank() -> None:
    seen: list[RankAssignmentCtx] = []
    modes: dict[int, inprocess.Mode] = {}

    def activates(ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        seen.append(ctx)
        modes[id(ctx)] = ctx.state.mode
        ctx.state = replace(ctx.state, mode=inprocess.Mode.ACTIVE, active_rank=0, active_world_size=1)
        return ctx

    made = wrapper(rank_assignment=of(inprocess.rank_assignment.RankAssignment, activates), initialize=limited(1))
    with pytest.raises(RestartAbort):
        made(fails)()
    assert {(modes[id(ctx)], ctx.state.rank, ctx.state.world_size, ctx.state.iteration) for ctx in seen} == {
        (inprocess.Mode.INITIALIZED, 0, 1, 0),
        (inprocess.Mode.ACTIVE, 0, 1, 0),
    }
