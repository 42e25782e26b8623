"""torch's events of the agent, rendered from its news (each step of the group, as it was taken) and nothing else.

Names and fields are those of torch.distributed.elastic 2.13, so that what reads its events reads ours; the values are true
where torch's are not: points in time, the agent's end, and pids. Each worker that starts also ends, in every round.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from attrs import evolve

from ...core.group import Outcome, Phase, Stopped
from ...core.group.state import Drained, Exited, Join, Ready, Record, Refused, Unawaited
from ...core.ranks import Ranks, WorkerRanks, assign
from ...core.values import frozen
from ...core.world import Ending, Fault, Verdict, World
from ..clock import Clock
from ..launch_settings import Function, LaunchSettings
from ..report.news import News, Recorded, Started, StartedAgain, Step, WatchdogTold
from ..report.worker_ends import how_it_ended
from ..workers.messages.error_files import error_data, signal_name

Source: TypeAlias = Literal["AGENT", "WORKER"]


@frozen
class Event:
    """An event. `timestamp` is in milliseconds since 1970."""

    name: str
    source: Source
    timestamp: int
    metadata: Mapping[str, Any]

    def serialize(self) -> str:
        """Return the event in one line, as torch does."""
        content = {"name": self.name, "source": self.source, "timestamp": self.timestamp, "metadata": self.metadata}
        return json.dumps(content)


class Events:
    """The events of one agent. `backend` is the rendezvous' name."""

    def __init__(self, settings: LaunchSettings, backend: str, clock: Clock) -> None:
        self._settings = settings
        self._backend = backend
        self._clock = clock
        self._host = os.uname().nodename
        self._began_at = self._joined_at = clock.now()
        self._world: World | None = None
        self._ranks: Ranks | None = None
        self._pids: dict[int, int] = {}
        """The process ids of the workers that run, by local rank."""
        self._died_at: dict[int, list[float]] = {}
        """The times of failures that are not on record yet, by local rank."""
        self._end: tuple[Outcome, float] | None = None

    def of(self, news: News) -> Iterator[Event]:
        """Yield the events that torch's agent would have sent for this."""
        match news:
            case Step():
                yield from self._moved(news)
            case Started(_, pids, at):
                self._pids, self._died_at = dict(enumerate(pids)), {}
                for worker in self._workers():
                    yield self._of_worker("START", worker, at, self._pids[worker.local_rank])
            case WatchdogTold(name, timer, at):
                told = self._event("RUNNING", "AGENT", at, {}, None, None)
                details = json.dumps({"watchdog_event": name, **timer})
                yield evolve(told, name=name, metadata={**told.metadata, "metadata": details})
            case StartedAgain(local_rank, pid, at) if self._ranks:
                self._pids[local_rank] = pid
                yield self._of_worker("START", self._ranks.workers[local_rank], at, pid)
            case Recorded(fault) if self._is_ours(fault) and fault.exit_code is not None:
                worker, waiting = self._workers()[fault.local_rank], self._died_at.get(fault.local_rank)
                at = waiting.pop(0) if waiting else self._clock.now()
                if fault.pid:
                    error = json.dumps(error_data(fault))
                    yield self._of_worker("FAILED", worker, at, fault.pid, fault.exit_code, error)
            case _:
                return

    def last(self) -> Iterator[Event]:
        """Yield the end of the agent itself, which comes after all events of its workers; nothing if it did not begin."""
        if self._end is None:
            return
        outcome, at = self._end
        error = _failure(outcome)
        yield self._of_agent("FAILED" if error else "SUCCEEDED", at, error=error)

    def _moved(self, step: Step) -> Iterator[Event]:
        if any(isinstance(command, Join) for command in step.commands):
            self._joined_at = step.at
        if step.after.outcome and not step.before.outcome:
            self._end = step.after.outcome, step.at
        match step.event:
            case Ready(world, at) if step.after.phase is Phase.HELD:
                self._world, self._ranks = world, assign(world)[step.after.node]
                yield self._of_agent("RENDEZVOUS", at, at - self._joined_at)
                yield self._of_agent("ASSIGN_WORKER_RANKS", at, 0.0)  # a world has them
            case Exited(local_rank, _, died_at) if any(isinstance(command, Record) for command in step.commands):
                self._died_at.setdefault(local_rank, []).append(died_at)
            case Exited(local_rank, code, died_at) if self._ranks:
                end = how_it_ended(code, died_at, step.before.stop.at)
                worker = self._ranks.workers[local_rank]
                yield self._of_worker(end.torch_s, worker, died_at, self._pids[local_rank], code)

    def _workers(self) -> tuple[WorkerRanks, ...]:
        return self._ranks.workers if self._ranks else ()

    def _is_ours(self, fault: Fault) -> bool:
        return bool(self._world and self._world.round == fault.round and len(self._workers()) > fault.local_rank)

    # --- their fields

    def _of_agent(self, state: str, at: float, duration_s: float | None = None, error: str | None = None) -> Event:
        return self._event(state, "AGENT", at, {}, error, duration_s)

    def _of_worker(
        self, state: str, worker: WorkerRanks, at: float, pid: int, code: int | None = None, error: str | None = None
    ) -> Event:
        details = {
            "local_rank": (worker.local_rank,),
            "role_rank": (worker.role_rank,),
            "role_world_size": (self._ranks.role_world_size if self._ranks else None,),
            "exit_code": (code,),
            "worker_pid": (pid,),
        }
        return self._event(state, "WORKER", at, details, error, None, worker.rank, str(pid))

    def _event(
        self,
        state: str,
        source: Source,
        at: float,
        details: Mapping[str, Any],
        error: str | None,
        duration_s: float | None,
        rank: int | None = None,
        worker: str | None = None,
    ) -> Event:
        ranks, settings = self._ranks, self._settings
        own = {"group_world_size": ranks.group_world_size if ranks else None, "entry_point": _entry_point(settings)}
        metadata = {
            "run_id": settings.run_id,
            "global_rank": rank,
            "group_rank": ranks.group_rank if ranks else None,
            "worker_id": worker,
            "role": settings.role,
            "hostname": self._host,
            "state": state,
            "total_run_time": int(at - self._began_at),
            "rdzv_backend": self._backend,
            "raw_error": error,
            "metadata": json.dumps({**own, **details}),
            "agent_restarts": self._world.failures if self._world else 0,
            "duration_ms": None if duration_s is None else duration_s * 1000,
        }
        return Event(f"torchelastic.worker.status.{state}", source, self._timestamp(at), metadata)

    def _timestamp(self, at: float) -> int:
        return int((self._clock.wall() - (self._clock.now() - at)) * 1000)


def _entry_point(settings: LaunchSettings) -> str:
    program = settings.program
    return program.name if isinstance(program, Function) else os.path.basename(program.command[0])


def _failure(outcome: Outcome) -> str | None:
    """Return why the agent did not succeed; None if it did."""
    match outcome:
        case Verdict(Ending.SUCCEEDED) | Unawaited():
            return None
        case Verdict(ending, round, by, why):
            return f"{ending.value}: {why.value} (round {round}, by {by})"
        case Refused(why, text):
            return f"{why.value}: {text}"
        case Drained(source):
            return f"drained by {source}"
        case Stopped(signum):
            return f"stopped by {signal_name(signum)}"
