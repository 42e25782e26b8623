"""How the job ended, in one value that every node makes alike: what the final report shows and `report.json` holds."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...core.causes import Cause, choose, echo
from ...core.group import Outcome, Stopped
from ...core.group.state import Alone, Drained, Refused, Unawaited
from ...core.ranks import Ranks
from ...core.rendezvous import Ended, RendezvousState, Status
from ...core.rendezvous.explain import Naming, naming
from ...core.values import frozen
from ...core.world import Ending, Fault, Node, Stacks, Unfit, Verdict, Why
from ..launch_settings import LaunchSettings
from ..workers.messages.error_files import end_sentence
from .news import SuspectedHang
from .stack_records import grouped
from .worker_ends import UNSTARTABLE, WorkerEnd

if TYPE_CHECKING:
    from ...core.goodput import JobTime


@frozen
class Result:
    """The end of this agent's part, and the job's record: the same on every node that heard the verdict.

    `state` is the register as this node saw it last; `ends` are those of the last workers that it had, `round` and `ranks`
    those with which it started them. `alone` counts the workers of this node that were started again alone.
    """

    node: Node
    outcome: Outcome
    faults: tuple[Fault, ...]
    state: RendezvousState | None
    round: int = 0
    ranks: Ranks = Ranks(0, 0, 0, "", 0, ())
    ends: tuple[WorkerEnd, ...] = ()
    alone: int = 0
    standbys: Mapping[str, float | None] | None = None
    """How many standbys are ready, and the like, by name; None: none were wanted."""
    stacks: tuple[Stacks, ...] = ()
    """They tell, node by node, where the workers of that round were when they were stopped."""
    unfit: tuple[Unfit, ...] = ()
    """The nodes that stay out of the job, because their checks found them unfit or they cannot start workers."""
    hangs: tuple[SuspectedHang, ...] = ()
    """The hangs that this node has suspected, the last ones."""
    had_a_seat: bool = False
    """An earlier start of this node took part in the job, with the same program and arguments."""
    goodput: Mapping[tuple[str, str], int] | None = None
    """Where the time of this node went: microseconds by bucket and cause; None for a short part without a restart."""
    job_time: JobTime | None = None
    """It says where the time of all nodes went, as far as their records tell; None if they were not read."""

    @property
    def others(self) -> frozenset[Node]:
        """The other nodes that are in the job, as far as this one knows."""
        return frozenset(self.state.present if self.state else ()) - {self.node}


@frozen
class Report:
    """One launch after its end. `of_calls` counts the restarts of wrapped functions inside their processes."""

    settings: LaunchSettings
    result: Result
    exit_code: int
    duration_s: float
    of_calls: int = 0

    @property
    def max_restarts(self) -> int:
        return self.settings.rendezvous.limits.max_restarts

    @property
    def over_budget(self) -> bool:
        outcome = self.result.outcome
        return isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED and outcome.why is Why.FAILED

    @property
    def restarts(self) -> int:
        """The number of restarts that the job has made."""
        if self.over_budget:
            return self.max_restarts
        state = self.result.state
        if state is None:
            return 0
        is_to_come = not state.complete and state.ended is not None and state.ended.why is Why.FAILED
        return state.failures - is_to_come

    @property
    def world_size(self) -> int:
        """The number of workers of the last world; 0 if there was none, or none is known."""
        state = self.result.state
        return sum(profile.local_world_size for profile in state.world.profiles) if state and state.complete else 0

    @property
    def others(self) -> int:
        """The number of workers of the last failed round that have no failure on record. (A worker that was started again
        alone may have several.)"""
        if self.cause is None:
            return 0
        return max(self.cause.world_size - len({fault.rank for fault in (self.cause, *self.echoes)}), 0)

    @property
    def cause(self) -> Fault | None:
        """The first failure of the last round in which a worker failed, as `core/causes.py` chooses it. None if the job has
        not failed: what was fixed by a restart is no cause."""
        return self._last_cause.fault if self._last_cause else None

    @property
    def is_cause_sure(self) -> bool:
        """Return False if it is open which failure came first: all that are on record are echoes of a peer's."""
        return self._last_cause is None or self._last_cause.is_sure

    @property
    def suspects(self) -> tuple[Fault, ...]:
        """The failures that may be the first cause as well, if that is open."""
        return self._last_cause.others if self._last_cause else ()

    @property
    def causes(self) -> Sequence[Cause]:
        """The first cause of each round in which a worker failed."""
        rounds, verdict, alone = self._rounds, self._verdict, self.settings.group.alone
        found = (first_cause(rounds[each], breaker(each, verdict, self.result.state), alone) for each in sorted(rounds))
        return [cause for cause in found if cause]

    @property
    def _last_cause(self) -> Cause | None:
        outcome = self.result.outcome
        has_failed = isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED
        has_failed = has_failed and not (self.fruitless and self.fruitless[-1].why is not Why.FAILED)
        return self.causes[-1] if has_failed and self.result.faults else None

    @property
    def fruitless(self) -> tuple[Ended, ...]:
        """The ends of the rounds in a row without progress, if the job has ended because of them."""
        gave_up = self._verdict is not None and self._verdict.why is Why.FRUITLESS
        return self.result.state.fruitless if gave_up and self.result.state else ()

    @property
    def missing(self) -> tuple[Fault, ...]:
        """The failures of the workers of the last world that stayed missing, one for each: where workers restart alone, the
        others may go on without them. Once the job has spent a restart, only those of the last round count."""
        alone, state = self.settings.group.alone, self.result.state
        if alone is None or state is None:
            return ()
        since = state.round if state.failures else 0
        those = [each for each in self.result.faults if each.round >= since and each.node in state.members]
        return tuple({(each.node, each.local_rank): each for each in _not_fixed(those, alone)}.values())

    @property
    def stacks(self) -> Mapping[str, tuple[int, ...]]:
        """The ranks of the last failed round by the place at which they were stopped, the largest group first."""
        last = max(self._rounds) if self.cause else None
        return grouped(tuple(each for each in self.result.stacks if each.round == last))

    @property
    def echoes(self) -> tuple[Fault, ...]:
        """The other failures of that round, in the order in which they were put on record."""
        cause, rounds = self.cause, self._rounds
        return tuple(each for each in rounds[max(rounds)] if each is not cause) if cause else ()

    @property
    def earlier(self) -> tuple[Fault, ...]:
        """The first cause of each round before that one."""
        return tuple(cause.fault for cause in self.causes if cause.fault is not self.cause)

    @property
    def _rounds(self) -> Mapping[int, Sequence[Fault]]:
        return by_round(self.result.faults, self._verdict, self.result.state, self.settings.group.alone)

    @property
    def _verdict(self) -> Verdict | None:
        return self.result.outcome if isinstance(self.result.outcome, Verdict) else None


def unstarted(
    faults: tuple[Fault, ...], unfit: tuple[Unfit, ...], verdict: Verdict
) -> tuple[tuple[Fault, ...], tuple[Unfit, ...]]:
    """Return the failures and the nodes that stay out: the one whose workers could not be started, and that has ended the
    job for that, is a failure."""
    if verdict.why is not Why.CANNOT_START:
        return faults, unfit
    those = [each for each in unfit if each.node == verdict.by]
    failed = [
        Fault(each.node, verdict.round, 0, 0, 0, UNSTARTABLE, 0.0, 1, each.host, each.when, each.reason)
        for each in those[-1:]
    ]
    return (*faults, *failed), tuple(each for each in unfit if each not in those)


def by_round(
    faults: Sequence[Fault], verdict: Verdict | None, state: RendezvousState | None, alone: Alone | None
) -> Mapping[int, Sequence[Fault]]:
    """Return the failures by the round to which they count. Where workers restart `alone`, a node may fail on its way into a
    world, and end that as it begins. The record of its failure has the number of the round before: no other was known."""
    found: dict[int, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.round, []).append(fault)
    for end in (state.ended if state else None, verdict):
        if alone and end and end.why is Why.FAILED and all(fault.node != end.by for fault in found.get(end.round, ())):
            before = found.get(end.round - 1, [])
            if late := [fault for fault in _not_fixed(before, alone) if fault.node == end.by]:
                found[end.round - 1] = [fault for fault in before if fault not in late]
                found[end.round] = [*late, *found.get(end.round, ())]
    return found


def breaker(round: int, verdict: Verdict | None, state: RendezvousState | None) -> Node | None:
    """Return the node whose write ended the round, as far as the register still tells: all nodes see its order."""
    if verdict and verdict.round == round:
        return verdict.by
    ended = state.ended if state else None
    return ended.by if ended and ended.round == round else None


def first_cause(faults: Sequence[Fault], by: Node | None, alone: Alone | None = None) -> Cause | None:
    """Return the first cause among the failures of one round, which the node `by` ended. Where workers restart `alone`, only
    those count after which one stayed missing. Where they do, or where ranks have heard from another one that the job is
    over, a rank that ended the job comes first, unless others were missing and their failures are known."""
    if not faults:
        return None
    # A job in which nothing fails needs none of this machine.
    from ...core.inprocess.exits import HEARD, JOB_OVER, MISSED

    wrapped = alone or any(fault.exit_code in HEARD for fault in faults)
    ended = [fault for fault in faults if wrapped and fault.exit_code in JOB_OVER]
    own = [fault for fault in ended if fault.exit_code not in MISSED]
    lasting = _not_fixed(faults, alone) if alone else faults
    missing = [fault for fault in lasting if ended and fault.exit_code not in JOB_OVER | HEARD]
    cause = choose(own or missing or ended or lasting or faults, by)
    return Cause(cause.fault) if cause and (own or (ended and not missing)) else cause


def _not_fixed(faults: Sequence[Fault], alone: Alone) -> Sequence[Fault]:
    """Return those of these failures of one round after which a worker was not started again."""
    restarted, found = Counter[Node](), []
    for fault in faults:
        if fault.exit_code not in alone.final and restarted[fault.node] < alone.restarts_max:
            restarted[fault.node] += 1
        else:
            found.append(fault)
    return found


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain values: the same on every node but for `here`. `format` moves when a key changes or goes."""
    name = naming(report.result.state)
    return {
        "format": 1,
        "run_id": report.settings.run_id,
        "ending": _ending(report),
        "restarts": report.restarts,
        "max_restarts": report.max_restarts,
        "cause": report.result.faults.index(report.cause) if report.cause else None,
        "cause_is_sure": report.is_cause_sure if report.cause else None,
        "stacks": [{"place": place, "ranks": list(ranks)} for place, ranks in report.stacks.items()],
        "failures": [_fault_as_json(fault, name) for fault in report.result.faults],
        "unfit": [unfit_as_json(unfit, name) for unfit in report.result.unfit],
        "set_aside": _set_aside(report.result.state, name),
        "fruitless": [fruitless_as_json(ended, name) for ended in report.fruitless],
        "here": {
            "node": str(report.result.node),
            "exit_code": report.exit_code,
            "duration_s": round(report.duration_s, 3),
            "workers_started_again": report.result.alone,
            "restarts_of_wrapped_functions": report.of_calls,
            "workers": [_end_as_json(end) for end in report.result.ends],
            **({"hangs": [_hang_as_json(hang) for hang in report.result.hangs]} if report.settings.hang else {}),
            **({} if report.result.standbys is None else {"standbys": report.result.standbys}),
            **({} if report.result.goodput is None else {"goodput": shares_data(report.result.goodput)}),
            **({} if report.result.job_time is None else {"job_goodput": job_time_data(report.result.job_time)}),
        },
    }


def _ending(report: Report) -> dict[str, Any]:
    match report.result.outcome:
        case Verdict(ending, round, by, why):
            return {"state": ending.value, "why": why.value, "round": round, "by": str(by)}
        case Refused(why, text):
            return {"state": "refused", "why": why.value, "text": text}
        case Unawaited():
            return {"state": "unawaited"}
        case Drained(source):
            return {"state": "drained", "source": source}
        case Stopped(signum):
            return {"state": "stopped", "signal": signum}


def _fault_as_json(fault: Fault, name: Naming) -> dict[str, Any]:
    return {
        "round": fault.round,
        "node": str(fault.node),
        "name": name(fault.node, fault.host),
        "host": fault.host,
        "rank": fault.rank,
        "local_rank": fault.local_rank,
        "pid": fault.pid,
        "exit_code": fault.exit_code,
        "exit": end_sentence(fault),
        "known_by": fault.origin.value,
        "echo": echo(fault),
        "remark": fault.remark,
        "when": fault.when,
        "after_s": round(fault.after_s, 3),
        "message": fault.message,
        "where": fault.where,
        "callstack": fault.callstack,
        "error_file": fault.error_file,
        "log": fault.log,
        "tail": list(fault.tail),
    }


def _hang_as_json(hang: SuspectedHang) -> dict[str, Any]:
    return {
        "round": hang.round,
        "silent_s": round(hang.silent_s, 3),
        "stacks": [{"place": place, "ranks": list(ranks)} for place, ranks in grouped(hang.stacks).items()],
        "odd": hang.odd,
        "missing": [str(node) for node in hang.missing],
        "overdue": [{"rank": rank, "busy": name} for rank, name in sorted(hang.overdue.items())],
    }


def shares_data(goodput: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return the time in all, and by bucket and cause."""
    shares = [{"bucket": bucket, "cause": cause, "micros": spent} for (bucket, cause), spent in sorted(goodput.items())]
    return {"micros": sum(goodput.values()), "shares": shares}


def job_time_data(time: JobTime) -> dict[str, Any]:
    """Return the same of all nodes, with their number."""
    return {"nodes": time.nodes, **shares_data(time.shares)}


def _set_aside(state: RendezvousState | None, name: Naming) -> list[dict[str, Any]]:
    """Return the nodes that are set aside, with what they told of their failures."""
    those = state.those(Status.ASIDE) if state else ()
    seats = [(node, state.seats[node]) for node in those] if state else []
    return [
        {
            "node": str(node),
            "name": name(node, seat.profile.host),
            "host": seat.profile.host,
            "failures": failing.failures,
            "cooldown_s": failing.cooldown_s,
        }
        for node, seat in seats
        if (failing := seat.failing)
    ]


def fruitless_as_json(ended: Ended, name: Naming) -> dict[str, Any]:
    """Return the end of a round that was not old enough to be progress."""
    return {"round": ended.round, "why": ended.why.value, "by": name(ended.by, ""), "lost": list(ended.lost)}


def unfit_as_json(unfit: Unfit, name: Naming) -> dict[str, str]:
    of_node = {"node": str(unfit.node), "name": name(unfit.node, unfit.host), "host": unfit.host}
    return {**of_node, "when": unfit.when, "reason": unfit.reason}


def _end_as_json(end: WorkerEnd) -> dict[str, Any]:
    return {
        "round": end.round,
        "rank": end.rank,
        "local_rank": end.local_rank,
        "pid": end.pid,
        "exit_code": end.exit_code,
        "state": end.how.value,
    }


def write_report(path: str, report: Report) -> None:
    """Write it as `write_whole` does. Raises OSError."""
    write_whole(path, json.dumps(as_json(report), indent=2) + "\n")


def write_whole(path: str, text: str) -> None:
    """Write a file whole or not at all, and through no link that somebody else has put beside it. A pipe, a device and this
    process's own output keep their place: the text is written into them. Raises OSError."""
    if keeps_its_place(path):
        into = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        os.set_blocking(into, True)  # only the open waits for nobody
        with open(into, "w", encoding="utf-8") as file:
            file.write(text)
        return
    path = os.path.realpath(path)
    temporary = f"{path}.{os.urandom(8).hex()}"
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def keeps_its_place(path: str) -> bool:
    """Return True for a pipe, a device, and this process's own output: a report is written into it, and replaces nothing."""
    if os.path.isfile(path):
        return os.path.realpath(path) in map(os.path.realpath, ("/proc/self/fd/1", "/proc/self/fd/2"))
    return os.path.exists(path) and not os.path.isdir(path)
