"""Keeps what somebody who looks on has seen of a job: its events, its rounds with their recoveries, and what each node did.

A history is a value; `observed` returns the next one for each reading of the store. Times are the onlooker's own, in seconds
since it began to look, so they say when it learned of a thing. What a store forgets, the history keeps: the nodes put
the same job back. Everything here is bounded: an onlooker may stay for months.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...adapters.store.notes import FAULTS_MAX
from ...adapters.workers.messages.error_files import end_sentence, exit_sentence
from ...core.node import lost
from ...core.rendezvous import RendezvousState, Status, explain
from ...core.rendezvous.explain import naming, set_aside
from ...core.replay.lanes import Lanes, Mark, Span, SpanKind
from ...core.values import evolve, frozen
from ...core.world import Fault, Node, WorldId
from .job import Gone, Job, Watched, told_by
from .parting import NOBODY, Quiet, ttl_of, why_lost
from .sentences import names_of, who
from .text import count, first_line, lasted

EVENTS_MAX = 200
ROUNDS_MAX = 50
SPANS_MAX = 1_000
MARKS_MAX = 500
LANES_MAX = 16
"""The most nodes in the picture."""
SAID_MAX = 200
"""The most characters of a message in an event."""
NAMES_MAX = 4
"""The most nodes that an event names; it counts the others."""
GAPS_MAX = 50
GONE_MAX = 64
REFUSED_S = 3.0
"""A store that refuses for this long is a silent one. Shorter gaps are nothing that people are told."""
SILENT_S = 5.0
"""And so is one that has not answered for this long: a question without an answer is given up then."""

DOES: Mapping[Status, SpanKind] = {
    Status.IN: "joining",
    Status.EXPECTED: "stopping",
    Status.WAITING: "waiting",
    Status.RESERVE: "waiting",
    Status.DONE: "barrier",
    Status.GONE: "ended",
    Status.ABSENT: "ended",
    Status.LEAVING: "stopping",
    Status.ASIDE: "waiting",
}
"""A seat's status says this of its node while no world stands."""


@frozen
class Event:
    """One thing that happened. `kind` is note, good or bad."""

    at: float
    kind: str
    text: str


@frozen
class Round:
    """A complete round. `broken_at` is when the round before it ended, if that was seen. `at_most`: the recovery took less
    time, since not all of it was seen."""

    id: WorldId | None
    number: int
    nodes: int
    workers: int
    began_at: float
    broken_at: float | None
    at_most: bool = False
    ended_at: float | None = None
    how: str = ""


@frozen
class Doing:
    """It says what a node does, and since when."""

    kind: SpanKind
    label: str
    since: float


@frozen
class Silence:
    """The store does not answer. `since` is its last answer, `refused_at` the first question that had none since."""

    why: str
    since: float
    refused_at: float
    lasts: bool = False
    """It has lasted for so long that people are told."""


@frozen
class History:
    """It holds what was seen until `at`. `silent` is None while the store answers."""

    job: Job
    at: float = 0.0
    began_at: float = math.inf
    """The first reading. What nodes did then they may have done before."""
    last: RendezvousState | None = None
    """The last register that was seen, also while the store remembers none."""
    gone: Mapping[Node, Gone] = {}
    """The nodes that are no longer there, until they are seated again."""
    events: tuple[Event, ...] = ()
    rounds: tuple[Round, ...] = ()
    doing: Mapping[Node, Doing] = {}
    names: Mapping[Node, str] = {}
    """The names of the nodes that were ever seen, as far as spans or marks are about them."""
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    broken_at: float | None = None
    ends: Mapping[str, int] = {}
    """How often a round was seen to end before the job did, by the cause."""
    silent: Silence | None = None
    gaps: tuple[tuple[float, float], ...] = ()
    """From when to when the store did not answer."""

    @property
    def silence(self) -> Silence | None:
        """The silence of the store, if it has lasted for so long that people are told."""
        return self.silent if self.silent and self.silent.lasts else None


def observed(
    history: History, job: Job, at: float, since: float | None = None, quiet: Mapping[Node, Quiet] = NOBODY
) -> History:
    """Return the history with one more reading of the store, which has answered, as it had `since` (None: at the last
    reading). `quiet` is for how long each node's heartbeat had not been a new one."""
    before, after = history.job, job
    told = evolve(
        _heard(history, at), job=job, at=at, began_at=min(history.began_at, at), last=job.state or history.last
    )
    if (after.state and after.state.token) != (before.state and before.state.token):
        told = _moved(told, history.last, after.state, history.at if since is None else since, at)
        told = _parted(told, history.last, after.state, quiet, at)
    if before.state and after.state and after.faults != before.faults:
        known = set(map(_worker, before.faults))
        told = _failed(told, after.state, [fault for fault in after.faults if _worker(fault) not in known], at)
    name = naming(job.state)
    out = [each for each in after.unfit if each not in before.unfit]
    said = (f"{name(each.node, each.host)} stays out: {first_line(each.reason)[:SAID_MAX]}" for each in out)
    return _bounded(evolve(told, events=(*told.events, *(Event(at, "bad", text) for text in said))))


def _worker(fault: Fault) -> tuple[Node, int, int, int]:
    """Return what the records of one failure have in common."""
    return fault.node, fault.round, fault.local_rank, fault.pid


def kept(known: Sequence[Fault], found: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return the failures that a store shows, and those of the same job that it has forgotten."""
    here = set(map(_worker, found))
    forgotten = [fault for fault in known if _worker(fault) not in here]
    if not forgotten or len(found) + len(forgotten) > FAULTS_MAX:
        return found
    return tuple(sorted((*forgotten, *found), key=lambda fault: fault.round))


def _heard(history: History, at: float) -> History:
    """Note that the store answers."""
    if not history.silence:
        return evolve(history, silent=None)
    since = history.silence.since
    back = Event(at, "good", f"the store answers again after {at - since:.1f} s")
    return evolve(history, silent=None, gaps=(*history.gaps, (since, at)), events=(*history.events, back))


def unanswered(history: History, why: str, since: float, at: float) -> History:
    """Return the history with one more question that the store did not answer. Its last answer was `since`."""
    was = history.silent or Silence(why, since, at)
    lasts = was.lasts or at - was.refused_at >= REFUSED_S or at - was.since >= SILENT_S
    events = history.events
    if lasts and not was.lasts:
        events = (*events, Event(was.since, "bad", f"the store answers no longer: {why}"))
    return _bounded(evolve(history, silent=evolve(was, why=why, lasts=lasts), events=events))


def _bounded(history: History) -> History:
    spans, marks = history.spans[-SPANS_MAX:], history.marks[-MARKS_MAX:]
    drawn = {*history.doing, *(span.node for span in spans), *(mark.node for mark in marks)}
    return evolve(
        history,
        events=history.events[-EVENTS_MAX:],
        rounds=history.rounds[-ROUNDS_MAX:],
        gaps=history.gaps[-GAPS_MAX:],
        spans=spans,
        marks=marks,
        names={node: name for node, name in history.names.items() if node in drawn},
    )


# --- changes of the register


def _moved(
    history: History, before: RendezvousState | None, after: RendezvousState | None, since: float, at: float
) -> History:
    if after is None:
        return evolve(history, events=(*history.events, Event(at, "bad", "the store remembers this job no longer")))
    if before and before.job != after.job:
        another = Event(at, "bad", "another job meets under this id now")
        return _moved(evolve(history, events=(*history.events, another)), None, after, since, at)
    if before and before.life != after.life:
        back = Event(at, "good", "the store had lost this job; its nodes have put it back")
        history = evolve(history, events=(*history.events, back))
    cause = after.ended.why.value if before and after.ended and after.ended != before.ended else None
    ends = {**history.ends, cause: history.ends.get(cause, 0) + 1} if cause else history.ends
    named = evolve(history, names={**history.names, **names_of(after)}, ends=ends)
    ended = _ended(named, before, after, at)
    events = tuple(_changes(ended, before, after, at))
    return _begun(_done(evolve(ended, events=(*ended.events, *events)), after, at), before, after, since, at)


def _changes(history: History, before: RendezvousState | None, after: RendezvousState, at: float) -> Iterator[Event]:
    if before is None:
        yield Event(at, "note", f"first look · {explain(after, None)}")
        return
    gone = [node for node in before.seats if node not in after.seats]
    come = [node for node in after.seats if node not in before.seats]
    if gone:
        yield Event(at, "bad", f"gone: {_names(history, gone)}")
    if come:
        yield Event(at, "note", f"arrived: {_names(history, come)}")
    for node, seat in after.seats.items():
        was = before.seats.get(node)
        if seat.notice and (was is None or was.notice != seat.notice):
            yield Event(at, "note", f"drained: {_names(history, [node])}, {told_by(seat.notice)}")
        if seat.status is Status.ASIDE and (was is None or was.status is not Status.ASIDE):
            yield Event(at, "bad", f"{set_aside(seat)}: {_names(history, [node])}")


def _names(history: History, nodes: Sequence[Node]) -> str:
    named = [history.names.get(node, node.slot) for node in nodes[:NAMES_MAX]]
    more = len(nodes) - NAMES_MAX
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _ended(history: History, before: RendezvousState | None, after: RendezvousState, at: float) -> History:
    """Note the end of the round that was running, or of the job."""
    if before is None or not before.complete or before.closed or (after.round == before.round and not after.closed):
        return history
    how, by = (after.closed.ending.value, after.closed.by) if after.closed else ("ended", None)
    ended = after.ended
    if not after.closed and ended and ended.round == before.round:
        how, by = ended.why.value, ended.by
    bad = how not in ("succeeded", "upscale", "left")
    name = history.names.get(by, by.slot) if by else ""
    marks = [Mark(by, at, "closed" if after.closed else "end", f"ends round {before.round} ({how})")] if by else []
    text = f"round {before.round} ended: {how}{f', by {name}' if name else ''}"
    rounds = history.rounds
    if rounds and rounds[-1].ended_at is None:
        rounds = (*rounds[:-1], evolve(rounds[-1], ended_at=at, how=how))
    return evolve(
        history,
        rounds=rounds,
        broken_at=at,
        events=(*history.events, Event(at, "bad" if bad else "good", text)),
        marks=(*history.marks, *(mark for mark in marks if mark.node in history.names)),
    )


def _begun(
    history: History, before: RendezvousState | None, after: RendezvousState, since: float, at: float
) -> History:
    """Note the round that is complete, if it was not before. A store that came back may show an earlier one again."""
    if not after.complete or after.closed:
        return history
    if any(each.id == after.world_id for each in history.rounds):
        return evolve(history, rounds=tuple(_standing(each, after.world_id) for each in history.rounds), broken_at=None)
    nodes = after.world.nodes
    workers = sum(profile.local_world_size for profile in after.world.profiles)
    broken_at, unseen = history.broken_at, bool(history.gaps) and history.gaps[-1][1] == at
    if broken_at == at:
        broken_at, unseen = since, True
    took = ""
    if broken_at is not None:
        took = f" · {'at most ' if unseen else ''}{lasted(at - broken_at)} after the round before"
    text = f"round {after.round} runs: {count(len(nodes), 'node')}, {count(workers, 'worker')}{took}"
    return evolve(
        history,
        rounds=(*history.rounds, Round(after.world_id, after.round, len(nodes), workers, at, broken_at, unseen)),
        broken_at=None,
        events=(*history.events, *([Event(at, "good", text)] if before else ())),
        marks=(*history.marks, *([Mark(nodes[-1], at, "complete", f"round {after.round}")] if before else ())),
    )


def _standing(round: Round, id: WorldId | None) -> Round:
    return evolve(round, ended_at=None, how="") if round.id == id else round


def _parted(
    history: History,
    before: RendezvousState | None,
    after: RendezvousState | None,
    quiet: Mapping[Node, Quiet],
    at: float,
) -> History:
    """Note the nodes that are no longer there, and how they went, as far as that is known."""
    if after is None:
        return history
    names, slots = set(names_of(after).values()), {node.slot for node in after.seats}
    gone = {node: each for node, each in history.gone.items() if node.slot not in slots and each.name not in names}
    if before and before.job == after.job and not after.closed:
        evicted, called = lost(before, after), names_of(before)
        unseen = bool(history.gaps) and history.gaps[-1][1] == at
        for node, seat in before.seats.items():
            if node not in after.seats and node.slot not in slots:
                how = "lost" if node in evicted else "left" if after.round - before.round <= 1 else "gone"
                if how == "lost" and not unseen:
                    how += why_lost(quiet.get(node), ttl_of(after.limits))
                gone[node] = Gone(str(node), called[node], seat.profile, how, at)
    return evolve(history, gone=dict(list(gone.items())[-GONE_MAX:]))


def _done(history: History, state: RendezvousState, at: float) -> History:
    """Note what each node does now; a span ends where that changes."""
    doing: dict[Node, Doing] = {}
    spans = list(history.spans)
    for node in (*state.seats, *(node for node in history.doing if node not in state.seats)):
        was, now = history.doing.get(node), _does(state, node)
        if was and now and (was.kind, was.label) == now:
            doing[node] = was
            continue
        if was:
            spans.append(Span(node, was.since, at, was.kind, was.label))
        if now:
            doing[node] = Doing(now[0], now[1], at)
    return evolve(history, doing=doing, spans=tuple(spans))


def _does(state: RendezvousState, node: Node) -> tuple[SpanKind, str] | None:
    seat = state.seats.get(node)
    if seat is None:
        return None
    if state.closed:
        return "ended", ""
    if seat.status is Status.IN and state.complete:
        return "running", f"round {state.round}"
    return DOES[seat.status], f"round {state.round}" if seat.status is Status.DONE else ""


def _failed(history: History, state: RendezvousState, faults: Sequence[Fault], at: float) -> History:
    """Note failures that are new on record; those before the first look are no events."""
    told = [Event(at, "bad", failure(fault, who(fault.node, fault.host, state))) for fault in faults[-EVENTS_MAX:]]
    marks = [Mark(fault.node, at, "failure", f"rank {fault.rank}") for fault in faults if fault.node in history.names]
    return evolve(history, events=(*history.events, *told), marks=(*history.marks, *marks))


def failure(fault: Fault, name: str) -> str:
    """Return a failure in one line: who, and how it ended."""
    ended = end_sentence(fault)
    said = (
        f" · {first_line(fault.message)[:SAID_MAX]}"
        if fault.message not in ("", exit_sentence(fault.exit_code))
        else ""
    )
    return f"{name} rank {fault.rank} failed in round {fault.round}: {ended}{said}"


# --- the picture


def watched(history: History, epoch: float, ages_s: Mapping[Node, float], unmoved: Collection[Node] = ()) -> Watched:
    """Return what is known by now beyond a single reading. `epoch` is when the history began, in Unix seconds."""
    since = {node: each.since for node, each in history.doing.items() if each.since > history.began_at}
    silent = history.silence.since if history.silence else None
    return Watched(epoch, since, ages_s, unmoved, tuple(history.gone.values()), silent)


def lanes(history: History, at: float) -> Lanes:
    """Return the lanes of some nodes: those that went or have a mark, the last ones first, then others.

    A node that returns to a host takes the lane of its predecessor.
    """
    open_ = (Span(node, each.since, at, each.kind, each.label) for node, each in history.doing.items())
    spans = sorted((*history.spans, *open_), key=lambda span: (span.start, span.end))
    last = dict.fromkeys((history.names[span.node] for span in spans), -1.0)
    went = ((span.node, span.end) for span in history.spans if span.node not in history.doing)
    for node, when in (*went, *((mark.node, mark.at) for mark in history.marks)):
        name = history.names[node]
        last[name] = max(when, last.get(name, -1.0))
    chosen = sorted(last, key=last.__getitem__, reverse=True)[:LANES_MAX]
    shown = {node: Node(name, node.incarnation) for node, name in history.names.items() if name in chosen}
    return Lanes(
        tuple(sorted(set(shown.values()))),
        tuple(evolve(span, node=shown[span.node]) for span in spans if span.node in shown),
        tuple(evolve(mark, node=shown[mark.node]) for mark in history.marks if mark.node in shown),
        (*history.gaps, *([(history.silence.since, at)] if history.silence else [])),
    )
