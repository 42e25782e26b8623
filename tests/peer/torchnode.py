"""torch's own agent on one simulated node: its rendezvous handler, its agent loop, and the end of its launcher.

All decisions are made by torch's code as installed: `C10dRendezvousBackend`, `_BackendRendezvousStateHolder`,
`_DistributedRendezvousOpExecutor` with its operations, `DynamicRendezvousHandler.next_rendezvous`, and
`SimpleElasticAgent.run` with `_invoke_run`, `_restart_workers`, `_rendezvous`, `_assign_worker_ranks` and `_exit_barrier`.
The subclasses replace only what needs a machine:

- the heartbeats' thread and the handler's lock, in virtual time (`rendezvous/utils.py`, _PeriodicTimer);
- a round's store, which in torch is a PrefixStore of the C++ library (`_wrap_store`);
- workers: `_start_workers`, `_stop_workers`, `_monitor_workers`, `_shutdown`, as `local_elastic_agent.py` has them: a failed
  worker stops its peers, success is 0 from all, and stopping is SIGTERM, a grace, SIGKILL and a wait for the last;
- the launcher's end, as `launcher/api.py`, launch_agent, from `shutdown_rdzv = True` on;
- telemetry, which does nothing, because each record walks the Python stack and costs milliseconds.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from attrs import define, field
from fibres import Fibre, this
from torch.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from torch.distributed.elastic.events.api import Event, EventSource
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.rendezvous import RendezvousInfo
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousSettings,
    RendezvousTimeout,
    _BackendRendezvousStateHolder,
    _DistributedRendezvousOpExecutor,
    _NodeDesc,
)
from torchstore import Connection

if TYPE_CHECKING:
    from torchworld import TorchWorld

LAST_CALL_MIN_S = 1.0
"""torch takes whole seconds, and at least one."""

RUN_ID = "job"


@define(eq=False)
class TorchProcess:
    """One agent's process: its threads, its clocks, its workers and its faults.

    Its monotonic clock shows `offset + rate × true time`, as in core/sim. Its wall clock shows the true time plus `skew`.
    """

    name: str
    desc: _NodeDesc
    offset: float
    rate: float
    skew: float
    heard_at: float = -math.inf
    """The true time at which its last heartbeat reached the store."""
    fibres: list[Fibre] = field(factory=list)
    main: Fibre | None = None
    """The thread that a signal interrupts."""
    handler: TorchHandler | None = None
    alive: bool = True
    outcome: str | None = None
    raising: str | None = None
    """The name of the exception that ends it, while it shuts its rendezvous down."""
    phase: str = "joins"
    stopped_until: float = 0.0
    sound_from: float = 0.0
    """The time from which on nothing is wrong with the node or its network."""

    workers: dict[int, int] = field(factory=dict)
    """The start that each living worker belongs to, by local rank."""
    codes: list[int] = field(factory=list)
    starts: int = 0
    ran: tuple[int, tuple[str, ...]] | None = None
    """The round and the members that its workers were started with."""
    hung: bool = False
    unstartable: bool = False
    spent: int = 0
    """The restarts that its agent has taken from its budget."""

    delay: float = 0.0
    cut_out_until: float = 0.0
    cut_in_until: float = 0.0
    lose_reply: bool = False
    late_write: float = 0.0
    late_reply: float = 0.0

    @property
    def slot(self) -> str:
        return str(self.desc.addr)

    def true(self, at: float) -> float:
        """Return the true time at which its monotonic clock shows `at`."""
        return (at - self.offset) / self.rate

    def clock(self, now: float) -> float:
        return self.offset + self.rate * now


class VirtualLock:
    """A lock for fibres, in place of threading.Lock."""

    def __init__(self, world: TorchWorld, process: TorchProcess) -> None:
        self._world, self._process = world, process
        self._held = False
        self._waiting: list[tuple[Fibre, int]] = []

    def __enter__(self) -> None:
        while self._held:
            fibre = this()
            self._waiting.append((fibre, fibre.ticket))
            fibre.wait()
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False
        waiting, self._waiting = self._waiting, []
        for fibre, ticket in waiting:
            self._world.future.at(self._world.future.now, self._world.wakes, self._process, fibre, ticket)


class VirtualTimer:
    """A timer for fibres, in place of `_PeriodicTimer`. `cancel` waits for the end of its thread."""

    def __init__(self, world: TorchWorld, process: TorchProcess, interval: float, function: Callable[[], None]) -> None:
        self._world, self._process = world, process
        self._interval, self._function = interval, function
        self._cancelled = False
        self._ended: list[tuple[Fibre, int]] = []
        self._fibre: Fibre | None = None
        self._asleep = -1

    def start(self) -> None:
        self._fibre = self._world.begins(self._process, self._runs)

    def cancel(self) -> None:
        if self._fibre is None or self._cancelled:
            return
        self._cancelled = True
        now = self._world.future.now
        self._world.future.at(now, self._world.wakes, self._process, self._fibre, self._asleep)
        while not self._fibre.over:
            fibre = this()
            self._ended.append((fibre, fibre.ticket))
            fibre.wait()

    def _runs(self) -> None:
        while not self._cancelled:
            self._asleep = this().ticket
            self._world.sleeps(self._interval)
            if not self._cancelled:
                self._function()
        for fibre, ticket in self._ended:
            self._world.future.at(self._world.future.now, self._world.wakes, self._process, fibre, ticket)


class Executor(_DistributedRendezvousOpExecutor):
    """torch's executor without telemetry."""

    def _record(self, *_: Any, **__: Any) -> None:
        pass


class TorchHandler(DynamicRendezvousHandler):
    """torch's handler with virtual threads, over the store of the simulated world."""

    def __init__(self, world: TorchWorld, process: TorchProcess) -> None:
        self.world, self.process = world, process
        setting = world.setting
        settings = RendezvousSettings(
            RUN_ID,
            setting.limits.min_nodes,
            setting.limits.max_nodes,
            RendezvousTimeout(
                join=timedelta(seconds=world.peers.join),
                last_call=timedelta(seconds=max(setting.last_call, LAST_CALL_MIN_S)),
            ),
            keep_alive_interval=timedelta(seconds=setting.interval),
            keep_alive_max_attempt=setting.attempts,
        )
        connection = Connection(world, process)
        backend = C10dRendezvousBackend(connection, RUN_ID)  # type: ignore[arg-type]
        holder = _BackendRendezvousStateHolder(backend, settings)
        super().__init__(process.desc, settings, backend.name, connection, holder)  # type: ignore[arg-type]
        self._op_executor = Executor(process.desc, holder, settings)
        self._heartbeat_lock = VirtualLock(world, process)  # type: ignore[assignment]
        self.round = 0
        self.members: tuple[str, ...] = ()
        self.size = 0

    def _record(self, *_: Any, **__: Any) -> None:
        pass

    def next_rendezvous(self) -> RendezvousInfo:
        self.world.becomes(self.process, "joins")
        return super().next_rendezvous()

    def _start_heartbeats(self) -> None:
        timer = VirtualTimer(
            self.world, self.process, self._settings.keep_alive_interval.total_seconds(), self._keep_alive
        )
        self._keep_alive_timer = timer  # type: ignore[assignment]
        timer.start()

    def _get_world(self) -> tuple[int, int]:
        state = self._state_holder.state
        self.round = state.round
        self.members = tuple(spelled(desc) for desc in sorted(state.participants))
        rank, self.size = super()._get_world()
        return rank, self.size

    def _wrap_store(self, store: Any) -> Any:
        return store.under(f"torch.rendezvous.{RUN_ID}.{self._state_holder.state.round}")

    def leaves(self) -> None:
        """Run `_RendezvousExitOp` alone. torch itself runs it only at the start of `next_rendezvous`."""
        from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _RendezvousExitOp

        self._stop_heartbeats()
        self._op_executor.run(_RendezvousExitOp(), self._get_deadline(self._settings.timeout.join))


class TorchAgent(SimpleElasticAgent):
    """torch's agent with simulated workers."""

    def __init__(self, world: TorchWorld, process: TorchProcess, handler: TorchHandler) -> None:
        self.world, self.process, self.handler = world, process, handler
        spec = WorkerSpec(
            role="default",
            local_world_size=world.setting.workers,
            rdzv_handler=handler,
            entrypoint="worker",
            max_restarts=world.setting.limits.max_restarts,
            monitor_interval=world.peers.monitor_interval,
        )
        super().__init__(spec, exit_barrier_timeout=world.peers.exit_barrier)

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        self.world.starts_workers(self.process, worker_group)
        return {worker.local_rank: worker.global_rank for worker in worker_group.workers}

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown()

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        self.world.stops_workers(self.process)

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        codes = self.process.codes
        if any(codes):
            self.world.stops_workers(self.process)
            return RunResult(WorkerState.FAILED)
        if len(codes) == len(worker_group.workers):
            return RunResult(WorkerState.SUCCEEDED, {worker.global_rank: None for worker in worker_group.workers})
        return RunResult(WorkerState.HEALTHY)

    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        self.process.spent = worker_group.spec.max_restarts - self._remaining_restarts
        super()._restart_workers(worker_group)

    def _exit_barrier(self) -> None:
        self.world.becomes(self.process, "at the exit barrier")
        super()._exit_barrier()  # type: ignore[no-untyped-call]

    def _construct_event(
        self, state: str, source: EventSource, worker: Worker | None = None, *_: Any, **__: Any
    ) -> Event:
        return Event(state, source)

    def _record_worker_events(self, result: RunResult) -> None:
        pass


def launches(world: TorchWorld, process: TorchProcess) -> None:
    """Run an agent's main thread: launch_agent of `launcher/api.py`, and the exit that its caller makes of the result."""
    try:
        outcome = _launched(world, process)
    except SignalException as error:
        outcome = f"stopped by signal {int(error.sigval)}"
    except Exception as error:  # noqa: BLE001  the process ends with its traceback
        outcome = f"raised {type(error).__name__}"
    world.ends(process, outcome)


def _launched(world: TorchWorld, process: TorchProcess) -> str:
    handler = process.handler = TorchHandler(world, process)
    agent = TorchAgent(world, process, handler)
    shuts_down = True
    try:
        result = agent.run()
        return "failed" if result.is_failed() else "succeeded"
    except SignalException:
        shuts_down = False
        raise
    except Exception as error:
        process.raising = type(error).__name__
        raise
    finally:
        if shuts_down:
            handler.shutdown()


def spelled(desc: _NodeDesc) -> str:
    """Return a node's name as in the stories: `a` is the first incarnation of slot a, `a#2` its second."""
    return str(desc.addr) if desc.pid == 1 else f"{desc.addr}#{desc.pid}"
