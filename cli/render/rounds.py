"""The rounds of a job, for people: the members of each, why it ended, and how the next one came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from signal import SIGKILL
from typing import TypeVar

from ...adapters.workers.messages.error_files import exit_sentence, signal_name
from ...core.caller import WHY_OVER
from ...core.group.state import (
    Elapsed,
    End,
    Exited,
    Noticed,
    Over,
    Raised,
    ReadyToLeave,
    Refused,
    Signal,
    Signalled,
    Unstartable,
)
from ...core.inprocess import words
from ...core.replay.call_restarts import Restart
from ...core.replay.timeline import Recovery, Round
from ...core.world import Node, Why, name_of
from .text import count

NAMES_MAX = 8

Between = TypeVar("Between", Recovery, Restart)


def names(hosts: Mapping[Node, str]) -> dict[Node, str]:
    """Return each node's name: its id, else its host; its slot where several share that; with the incarnation where slots
    repeat."""
    known = {node: name_of(node, host) for node, host in hosts.items()}
    alike, slots = Counter(known.values()), Counter(node.slot for node in hosts)
    return {
        node: name if alike[name] == 1 else node.slot if slots[node.slot] == 1 else str(node)
        for node, name in known.items()
    }


def rank_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return each rank's name: its number, and the number of its start if there were several."""
    starts = Counter[str]()
    known = {}
    for node in sorted(set(nodes)):
        starts[node.slot] += 1
        known[node] = f"rank {node.slot}" + (f" (start {starts[node.slot]})" if starts[node.slot] > 1 else "")
    return known


def rendered(rounds: Sequence[Round], recoveries: Sequence[Recovery], known: Mapping[Node, str]) -> list[str]:
    """Return a line for each round, and between two rounds a line for the recovery."""
    return _in_order(rounds, recoveries, _round, _recovery, known)


def rendered_call(rounds: Sequence[Round], restarts: Sequence[Restart], known: Mapping[Node, str]) -> list[str]:
    """Return the same for a wrapped function: its iterations and restarts."""
    return _in_order(rounds, restarts, _iteration, _restart, known)


def _in_order(
    rounds: Sequence[Round],
    between: Sequence[Between],
    line: Callable[[Round, Mapping[Node, str]], str],
    line_between: Callable[[Between, Mapping[Node, str]], str],
    known: Mapping[Node, str],
) -> list[str]:
    lines = []
    for round in rounds:
        lines += [line_between(each, known) for each in between if each.began == round.number]
        lines.append(line(round, known))
    return lines


def _round(round: Round, known: Mapping[Node, str]) -> str:
    who = f"{count(len(round.members), 'node')} ({_named(round.members, known)}), {count(round.workers, 'worker')}"
    return _told("round", who, round, known, WHY)


def _iteration(round: Round, known: Mapping[Node, str]) -> str:
    who = f"{count(len(round.members), 'rank')} ({_named(round.members, known)})"
    return _told("iteration", who, round, known, WHY_OVER)


def _told(what: str, who: str, round: Round, known: Mapping[Node, str], words: Mapping[Why, str]) -> str:
    complete = "not complete" if round.complete_at is None else f"{who} · complete at {round.complete_at:.1f} s"
    return f"  {what} {round.number}   {complete} · {_end(round, known, words)}"


def _end(round: Round, known: Mapping[Node, str], words: Mapping[Why, str]) -> str:
    if round.over_at is None:
        return "stands at the end of the traces"
    by = f" ({_named([round.by], known)})" if round.by else ""
    if round.verdict:
        return f"{round.verdict.ending.value} at {round.over_at:.1f} s: {round.verdict.why.value}{by}"
    why = words.get(round.why, round.why.value) if round.why else "no trace tells why"
    return f"over at {round.over_at:.1f} s: {why}{by}"


WHY = {
    Why.FAILED: "a worker failed",
    Why.LOST: "a node was lost, noticed by another",
    Why.LEFT: "a node left",
    Why.UPSCALE: "a node waited and there was room",
    Why.FENCED: "a node had lost the store and stopped its workers",
}


def _recovery(recovery: Recovery, known: Mapping[Node, str]) -> str:
    moments = (
        ("workers stopped", recovery.stopped_at),
        ("all back", recovery.joined_at),
        ("complete", recovery.complete_at),
        ("workers started", recovery.started_at),
        ("first progress of all", recovery.progressed_at),
    )
    seen = _seen(recovery, _named([recovery.first], known))
    return _then(recovery.detected_at, seen, moments)


def _restart(restart: Restart, known: Mapping[Node, str]) -> str:
    moments = (
        ("all out of it", restart.interrupted_at),
        ("aborted", restart.aborted_at),
        ("all back", restart.joined_at),
        ("complete", restart.complete_at),
        ("called again", restart.called_at),
    )
    seen = _noticed(restart, _named([restart.first], known))
    return _then(restart.detected_at, seen, moments)


def _then(detected_at: float, seen: str, moments: Iterable[tuple[str, float | None]]) -> str:
    told = [f"{what} +{span(at - detected_at)}" for what, at in moments if at is not None]
    return f"     then   {detected_at:.1f} s: {seen} · {', '.join(told)}"


def span(seconds: float) -> str:
    """Return seconds, or milliseconds below 0.1 s."""
    return f"{seconds:.1f} s" if abs(seconds) >= 0.1 else f"{seconds * 1000:.0f} ms"


def _seen(recovery: Recovery, node: str) -> str:
    match recovery.event:
        case Exited(code=0) | Noticed() | ReadyToLeave():
            return f"{node} left"
        case Raised(local_rank):
            return f"worker {local_rank} of {node} raised an exception"
        case Exited(local_rank, code):
            return f"worker {local_rank} of {node} failed ({exit_sentence(code)})"
        case Over():
            return f"{node} heard that the round is over"
        case Signalled(signum):
            return f"{node} got {signal_name(signum)}"
        case Unstartable():
            return f"{node} could not start its workers"
        case Elapsed() if Signal(SIGKILL) in recovery.commands:
            return f"{node} had lost the store and stopped its workers"
        case Elapsed() if End(Why.FAILED) in recovery.commands:
            return f"{node} waited in vain for another node to end the round"
        case Elapsed():
            return f"{node} left"
        case Refused(why):
            return f"{node} was refused ({why.value})"
        case _:
            return f"{node} heard that the job is over"


def _noticed(restart: Restart, rank: str) -> str:
    match restart.event:
        case words.SpanEnded(how=how):
            return f"{restart.span.value if restart.span else 'user code'} {how.value} on {rank}"
        case words.Elapsed(deadline):
            return f"{rank} passed its {deadline.timer.value} limit"
        case words.Interrupted() | words.Terminated():
            return f"{rank} was told to stop"
        case words.Over():
            return f"{rank} heard that the iteration is over"
        case words.Refused(why):
            return f"{rank} was refused ({why.value})"
        case _:
            return f"{rank} heard that the job is over"


def _named(nodes: Sequence[Node], known: Mapping[Node, str]) -> str:
    told = [known.get(node, node.slot) for node in nodes]
    return ", ".join(told[:NAMES_MAX]) + (f" and {len(told) - NAMES_MAX} more" if len(told) > NAMES_MAX else "")
