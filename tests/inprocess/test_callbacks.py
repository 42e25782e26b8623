"""What is composed, and the callbacks that many wrappers use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, fields, replace
from datetime import timedelta
from typing import Any

import pytest

from elastic.adapters.inprocess.rank.callbacks import Composed
from elastic.adapters.inprocess.wrapper.health_checks import within
from elastic.inprocess import Compose, FrozenState, Mode, RestartAbort, State, shift
from elastic.inprocess.abort import (
    Abort,
    AbortPersistentCheckpointProcesses,
    AbortTorchDistributed,
    AbortTransformerEngine,
)
from elastic.inprocess.completion import Completion
from elastic.inprocess.exception import TimeoutError
from elastic.inprocess.finalize import Finalize, ThreadedFinalize
from elastic.inprocess.health_check import CudaHealthCheck, FaultCounter, FaultCounterExceeded, HealthCheck
from elastic.inprocess.initialize import Initialize, RetryController
from elastic.inprocess.nested_restarter import (
    NestedRestarterAborted,
    NestedRestarterFinalized,
    NestedRestarterHandlingCompleted,
    NestedRestarterHandlingStarting,
    NestedRestarterLogger,
)
from elastic.inprocess.rank_assignment import Layer
from elastic.inprocess.store import FileStore
from elastic.inprocess.terminate import Terminate

STATE = FrozenState(0, 4, 0, 3, 0, 4, iteration=2)
FAULTY = replace(STATE, fn_exception=ValueError("nan"))


@pytest.mark.parametrize("name", [FileStore, NestedRestarterLogger])
def test_a_name_of_the_other_package_says_what_to_use(name: type) -> None:
    with pytest.raises(TypeError, match=f"^{name.__name__}: leave "):
        name()


def test_who_has_set_up_the_other_package_s_logger_has_set_up_ours(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    theirs, ours = logging.getLogger("nvrx"), logging.getLogger("elastic.inprocess")
    handlers = [(each, Handler()) for each in (theirs, logging.getLogger("elastic"))]
    try:
        for each, handler in handlers:
            each.addHandler(handler)
        theirs.setLevel(logging.ERROR)
        ours.warning("below")
        ours.error("told")
    finally:
        theirs.setLevel(logging.NOTSET)
        for each, handler in handlers:
            each.removeHandler(handler)
    assert (told, caplog.messages) == (["told", "told"], ["told"])


def test_composed_callables_are_called_from_the_last_to_the_first_and_hand_on_what_they_return() -> None:
    told: list[tuple[object, ...]] = []

    def first(*given: object) -> str:
        told.append(("first", *given))
        return "end"

    def middle(state: object) -> tuple[int, int]:
        told.append(("middle", state))
        return 1, 2

    def last(state: object) -> str:
        told.append(("last", state))
        return "changed"

    assert Compose(first, middle, last)(STATE) == "end"
    assert told == [("last", STATE), ("middle", "changed"), ("first", 1, 2)]


def test_composed_callables_may_take_nothing() -> None:
    told: list[int] = []
    assert Compose(lambda: told.append(1), lambda: told.append(2))() is None
    assert told == [2, 1]
    assert Compose(lambda given: given, lambda given: given)(None) is None


def test_what_follows_a_callable_that_returns_nothing_gets_the_same_and_a_warning_says_so() -> None:
    got: list[object] = []
    with pytest.warns(UserWarning, match=r"Compose: .*<lambda> returned nothing, not what the next is to get"):
        assert Compose(lambda state: [got.append(state)], lambda state: None)(STATE) == [None]  # type: ignore[func-returns-value]
    assert got == [STATE]


def test_what_is_composed_is_of_the_nearest_class_of_all() -> None:
    class Twice(RetryController):
        pass

    both: Any = Compose(Twice(), RetryController())
    assert isinstance(both, RetryController)
    assert not isinstance(both, Twice)
    aborts: Any = Compose(Compose(AbortTorchDistributed(), AbortTransformerEngine()), Compose(AbortTransformerEngine()))
    assert [isinstance(aborts, kind) for kind in (Abort, Compose, Composed, AbortTransformerEngine)] == [True] * 3 + [
        False
    ]
    mixed: Any = Compose(AbortTorchDistributed(), RetryController())
    assert not isinstance(mixed, Abort | Initialize)
    assert isinstance(Compose(len, lambda state: state), Compose)
    policy: Any = Compose(shift(), shift())
    assert policy.name == "shift + shift"


def part(name: str, called: list[tuple[str, int]], error: BaseException | None = None) -> Abort:
    """An abort that hands on the state of the next iteration, or fails."""

    def aborts(self: object, state: FrozenState) -> FrozenState:
        called.append((name, state.iteration))
        if error:
            raise error
        return replace(state, iteration=state.iteration + 1)

    made: Abort = type("Part", (Abort,), {"__call__": aborts})()
    return made


def test_each_of_several_aborts_runs_even_if_another_fails_and_gets_what_the_one_before_returned() -> None:
    called: list[tuple[str, int]] = []
    inner: Any = Compose(part("c", called), part("d", called, ValueError("first")), part("e", called))
    outer: Any = Compose(part("a", called, KeyError("second")), part("b", called), inner, part("f", called))
    with pytest.raises(ValueError, match="first"):
        outer.each(STATE)
    assert called == [("f", 2), ("e", 3), ("d", 4), ("c", 4), ("b", 3), ("a", 4)]


def test_several_aborts_of_which_none_fails_return_what_the_last_one_did() -> None:
    called: list[tuple[str, int]] = []
    aborts: Any = Compose(part("a", called), Compose(part("b", called), part("c", called)))
    assert aborts.each(STATE) == replace(STATE, iteration=5)
    assert called == [("c", 2), ("b", 3), ("a", 4)]


def test_what_cannot_be_called_is_not_composed() -> None:
    with pytest.raises(TypeError, match="Compose: 3 cannot be called"):
        Compose(print, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("base", [Abort, Completion, Finalize, HealthCheck, Initialize, Terminate])
def test_a_base_class_has_one_method_to_write(base: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        base()
    own = type("Own", (base,), {"__call__": lambda self, state: replace(state, iteration=3)})
    assert own()(STATE).iteration == 3


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_iterations": 2}, "iteration 2: at most 2"),
        ({"min_world_size": 5}, "4 ranks: at least 5"),
        ({"min_active_world_size": 4}, "3 active ranks: at least 4"),
    ],
)
def test_the_job_is_given_up_at_its_limits(limits: dict[str, Any], text: str) -> None:
    with pytest.raises(RestartAbort, match=text):
        RetryController(**limits)(STATE)


def test_within_its_limits_the_job_goes_on() -> None:
    assert RetryController(max_iterations=3, min_world_size=4, min_active_world_size=3)(STATE) is STATE
    assert RetryController()(STATE) is STATE


def test_a_rank_that_has_failed_too_often_is_unhealthy() -> None:
    check = FaultCounter(1)
    assert check(FAULTY) is FAULTY
    assert check(STATE) is STATE
    with pytest.raises(FaultCounterExceeded, match="rank 0: 2 faults of its own, at most 1"):
        check(FAULTY)
    assert FaultCounter()(FAULTY) is FAULTY


@pytest.mark.parametrize(
    "made",
    [lambda s: ThreadedFinalize(s, print), CudaHealthCheck, lambda s: within(s, print)],
    ids=["finalize", "cuda", "within"],
)
def test_a_time_limit_that_no_thread_can_wait_for_is_refused(made: Callable[[timedelta], object]) -> None:
    with pytest.raises(ValueError, match=r"^timeout: at most 1000000000 seconds, not"):
        made(timedelta.max)


def test_a_finalize_in_a_thread_ends_in_its_time_and_tells_its_error() -> None:
    called: list[object] = []

    def finalize(*each: int, **named: int) -> None:
        called.append((each, named))

    assert ThreadedFinalize(timedelta(seconds=60), finalize, (1,), {"b": 2})(STATE) is STATE
    assert called == [((1,), {"b": 2})]
    with pytest.raises(ZeroDivisionError):
        ThreadedFinalize(60, lambda: 1 // 0)(STATE)


def test_a_finalize_in_a_thread_that_takes_too_long_is_left_behind() -> None:
    import threading

    ended = threading.Event()
    with pytest.raises(TimeoutError, match=r"finalize by .*wait: not done within 0.01 s"):
        ThreadedFinalize(0.01, ended.wait)(STATE)
    ended.set()


def test_an_abort_of_what_the_program_never_imported_does_nothing() -> None:
    for abort in (AbortTransformerEngine(), AbortPersistentCheckpointProcesses()):
        assert abort(STATE) is STATE


def test_a_path_for_the_flight_recorder_is_refused() -> None:
    with pytest.raises(ValueError, match="torch_fr_trace_path='/t': no trace is written here"):
        AbortTorchDistributed("/t")


def test_a_restarter_around_the_job_reads_each_step_from_one_rank(capsys: pytest.CaptureFixture[str]) -> None:
    began = NestedRestarterHandlingCompleted()
    for each in (began, NestedRestarterHandlingStarting(), began, NestedRestarterFinalized(), NestedRestarterAborted()):
        assert each(STATE) is STATE
        each(replace(STATE, initial_rank=1))
    steps = [line.partition(" name=[InProcess] ")[2] for line in capsys.readouterr().out.splitlines()]
    assert steps == [
        "state=initialize",
        "state=handling stage=starting",
        "state=handling stage=completed",
        "state=finalized",
        "state=aborted",
    ]
    bases = [Initialize, Abort, Completion, Terminate]
    kinds = [began, NestedRestarterHandlingStarting(), NestedRestarterFinalized(), NestedRestarterAborted()]
    assert all(isinstance(each, base) for each, base in zip(kinds, bases, strict=True))


def test_a_program_may_make_and_replace_values_as_dataclasses() -> None:
    assert asdict(FrozenState(rank=0, world_size=1)) == asdict(
        FrozenState(0, 1, None, None, None, None, 0, Mode.INITIALIZED, None)  # type: ignore[arg-type]
    )
    layer = Layer(1, 2, "rack")
    assert replace(layer, max_ranks=3) == Layer(1, 3, "rack")
    assert [each.name for each in fields(layer)] == ["min_ranks", "max_ranks", "key_or_fn", "flag"]


def test_a_state_can_be_changed_copied_and_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    state = State.from_env()
    assert state == State(3, 4, None, None, 3, 4, 0, Mode.INITIALIZED, None)
    state.fn_exception = ValueError()
    state.advance()
    assert state == State(3, 4, iteration=1)
    other = replace(state, active_rank=2, active_world_size=3, mode=Mode.ACTIVE)
    state.copy_from(other, fields=["active_rank"])
    assert (state.active_rank, state.active_world_size) == (2, None)
    state.copy_from(other)
    assert state == other
    state.set_distributed_vars()
    assert State.from_env() == State(2, 3)
    frozen: Any = state.freeze()
    assert frozen.freeze() is frozen and asdict(frozen) == asdict(state)
    with pytest.raises(FrozenInstanceError):
        frozen.rank = 1
