"""A job as its store shows it, for people and for programs: the sentence, the nodes with their ranks, the failures."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from ...adapters.clock import iso
from ...adapters.report.launch_report import fruitless_as_json, job_time_data, shares_data, unfit_as_json
from ...adapters.report.stack_records import grouped
from ...adapters.store.notes import EarlyEnds, StandbyNote
from ...adapters.workers.messages.error_files import end_sentence, exit_sentence
from ...core.ranks import assign
from ...core.rendezvous import Limits, RendezvousState, Status, explain
from ...core.rendezvous.explain import Naming, naming, set_aside
from ...core.rendezvous.state import known_as
from ...core.values import field, frozen
from ...core.world import Fault, Node, Notice, Profile, Stacks, Unfit, Why
from .early_losses import fruitless_rows
from .sentences import names_of, ranks_of
from .text import at, count, first_line, table, time_of_day

if TYPE_CHECKING:
    from ...core.goodput import JobTime, NodeRecord

FORMAT = 1
"""The version of `data`. Readers of an older one find every field again that they know."""
NODES_SHOWN = 64
FAILURES_SHOWN = 5
WORDS: Mapping[Status, str] = {
    Status.EXPECTED: "expected back",
    Status.DONE: "workers done",
    Status.GONE: "left, done",
    Status.RESERVE: "in reserve",
    Status.ABSENT: "reserve, away",
    Status.WAITING: "waits to join",
    Status.LEAVING: "leaves",
    Status.ASIDE: "set aside",
}


@frozen
class Job:
    """A job as its store shows it. `unheard` are the nodes that have no heartbeat there; `state` None: there is no job."""

    run_id: str
    store: str
    state: RendezvousState | None
    unheard: frozenset[Node] = frozenset()
    faults: tuple[Fault, ...] = ()
    standbys: Mapping[Node, StandbyNote] = field(factory=dict)
    """The standbys of the nodes that have told of some."""
    ended: Mapping[Node, EarlyEnds] = field(factory=dict)
    """The workers of the nodes that have ended with 0."""
    stacks: tuple[Stacks, ...] = ()
    """They tell where the workers of each node were when they were stopped last."""
    unfit: tuple[Unfit, ...] = ()
    """These nodes stay out, because their checks found them unfit or they cannot start workers."""
    times: Mapping[Node, NodeRecord] = field(factory=dict)
    """They say where the time of each node went, and of those that have gone."""

    @property
    def time(self) -> JobTime | None:
        """Return where the time of all nodes has gone by now; None if no record tells. The workers of members run on."""
        if not self.times:
            return None
        from ...core.goodput import job_time, micros  # a job that has just begun needs none of it
        from ...core.goodput.record import lasting

        state, now = self.state, micros(time.time())
        runs = state.participants if state and state.complete and not state.closed else ()
        found = job_time(
            lasting(each, now) if node in runs and not each.ended else each for node, each in self.times.items()
        )
        return found if found.shares else None


@frozen
class Gone:
    """A node that has gone, how it went, and when that was seen."""

    node: str
    name: str
    profile: Profile
    how: str
    at: float


@frozen
class Watched:
    """What somebody knows who has looked on for a while: since when each node does what it does, how old its heartbeat is,
    and who has gone. `epoch` is when the look began, in Unix seconds; other times are in seconds since then."""

    epoch: float = 0.0
    since: Mapping[Node, float] = field(factory=dict)
    ages_s: Mapping[Node, float] = field(factory=dict)
    unmoved: Collection[Node] = ()
    """The nodes whose heartbeat has not changed since the look began: it is older than its age here."""
    gone: Sequence[Gone] = ()
    silent_since: float | None = None

    def when(self, at: float | None) -> str | None:
        """Return a time by ISO 8601."""
        return None if at is None else iso(self.epoch + at)


ONCE = Watched()
"""Somebody who has looked once knows nothing of that."""


@frozen
class Row:
    """One node."""

    node: Node
    name: str
    what: str
    ranks: range
    heard: bool


def lines(job: Job, state: RendezvousState, watched: Watched = ONCE) -> list[str]:
    """Return the lines for people: bounded, whatever the size of the job."""
    rows = rows_of(job, state)
    shown = [
        [row.name, _shown_state(row, state), span(row.ranks), state.seats[row.node].profile.endpoint.address]
        for row in rows
    ]
    head = ["node", "state", "ranks", "address"]
    if job.standbys:
        head.append("standbys")
        shown = [[*cells, standbys(job.standbys.get(row.node))] for cells, row in zip(shown, rows, strict=True)]
    for title, cells in (("since", _since(rows, watched)), ("heartbeat", _ages(rows, watched))):
        if any(cells):
            head.append(title)
            shown = [[*row, cell] for row, cell in zip(shown, cells, strict=True)]
    shown += [_cells(each, len(head)) for each in _gone(state, watched)]
    told = [f"job {job.run_id} {at(job.store)} · {explain(state, None)} · {_spent(state)}"]
    if rows:
        told += ["", *table(head, shown[:NODES_SHOWN])]
    if len(shown) > NODES_SHOWN:
        told.append(f"and {count(len(shown) - NODES_SHOWN, 'node')} more (--json has all)")
    return [
        *told,
        *_time(job),
        *_fruitless(state),
        *_ended_early(job, state),
        *_set_aside(job, state),
        *_unfit(job.unfit, naming(state)),
        *_failures(job.faults, naming(state)),
    ]


def _fruitless(state: RendezvousState) -> Iterator[str]:
    """Yield what each round ended by, if the job has given up because of them."""
    if state.closed and state.closed.why is Why.FRUITLESS:
        rows = fruitless_rows(state.fruitless, state)
        yield from ("", f"no progress in {count(len(state.fruitless), 'round')} in a row:")
        yield from (f"  {title:<13} {text}" for title, text in rows)


def _own_time(record: NodeRecord) -> dict[str, Any]:
    """Return where the time of this node went. Of what another record has of it, nothing is less than no time."""
    return shares_data({key: micros for key, micros in record.own.whole.items() if micros > 0})


def _time(job: Job) -> Iterator[str]:
    if spent := job.time:
        from .goodput import of_job

        first, *others = of_job(spent)
        yield from ("", f"node time: {first}", *others)


def _since(rows: Sequence[Row], watched: Watched) -> list[str]:
    return [time_of_day(watched.when(watched.since.get(row.node)) or "") for row in rows]


def _ages(rows: Sequence[Row], watched: Watched) -> list[str]:
    ages = [(watched.ages_s.get(row.node), "over " if row.node in watched.unmoved else "") for row in rows]
    return ["" if age is None else f"{over}{age:.1f} s ago" for age, over in ages]


def _cells(gone: Mapping[str, str | None], width: int) -> list[str]:
    """Return the row of a node that has gone."""
    when = time_of_day(gone["when"] or "")
    return [gone["name"] or "", f"{gone['how']}{when and f', {when}'}", *[""] * (width - 2)]


def _gone(state: RendezvousState, watched: Watched) -> list[dict[str, str | None]]:
    """Return the nodes that have gone: those that were seen to go, and those that the register still names as lost."""
    if state.closed:
        return []
    known = {*known_as(state, state.seats), *(each.name for each in watched.gone)}
    names = [name for name in (state.ended.lost if state.ended else ()) if name not in known]
    return [
        *(
            {"node": each.node, "name": each.name, "how": each.how, "when": watched.when(each.at)}
            for each in watched.gone
        ),
        *({"node": None, "name": name, "how": "lost", "when": None} for name in names),
    ]


def _shown_state(row: Row, state: RendezvousState) -> str:
    return f"{row.what}, serves the store" if state.seats[row.node].profile.serves_store else row.what


def _as_dict(value: Any) -> dict[str, Any]:
    return asdict(value)


def _limits(limits: Limits) -> dict[str, Any]:
    """Return the limits of the job for programs; None for one that is not given."""
    names, given = {"min_nodes": "nodes_min", "max_nodes": "nodes_max"}, _as_dict(limits)
    return {names.get(name, name): None if each == "" else each for name, each in given.items() if name != "agreed"}


def _fault(fault: Fault, name: Naming) -> dict[str, Any]:
    """Return a failure on record for programs."""
    return {
        "round": fault.round,
        "rank": fault.rank,
        "node": str(fault.node),
        "name": name(fault.node, fault.host),
        "host": fault.host,
        "exit_code": fault.exit_code,
        "message": fault.message,
        "where": fault.where,
        "when": fault.when,
    }


def data(job: Job, state: RendezvousState, watched: Watched = ONCE) -> dict[str, Any]:
    """Return all of it for programs; docs/launch.md has the fields."""
    closed, name = state.closed, naming(state)
    return {
        "format": FORMAT,
        "at": iso(time.time()),
        "silent_since": watched.when(watched.silent_since),
        "job": job.run_id,
        "store": job.store,
        "sentence": explain(state, None),
        "state": closed.ending.value if closed else "running" if state.complete else "forming",
        "round": state.round,
        **_limits(state.limits),
        "restarts": restarts(state),
        "nodes": [
            {
                "node": str(row.node),
                "name": row.name,
                "host": state.seats[row.node].profile.host,
                "state": row.what,
                "ranks": list(row.ranks),
                "workers": state.seats[row.node].profile.local_world_size,
                "role": state.seats[row.node].profile.role,
                "address": state.seats[row.node].profile.endpoint.address,
                "since": watched.when(watched.since.get(row.node)),
                "heartbeat": row.heard,
                "heartbeat_age_s": None if (age := watched.ages_s.get(row.node)) is None else round(age, 3),
                "serves_store": bool(state.seats[row.node].profile.serves_store),
                "labels": dict(state.seats[row.node].profile.labels),
                "ended": [{"rank": rank, "when": when} for rank, when in ended_early(job, state, row.node).items()],
                "standbys": _as_dict(job.standbys[row.node]) if row.node in job.standbys else None,
                "goodput": _own_time(job.times[row.node]) if row.node in job.times else None,
                "notice": _as_dict(notice) if (notice := state.seats[row.node].notice) else None,
                "failing": _as_dict(failing) if (failing := state.seats[row.node].failing) else None,
            }
            for row in rows_of(job, state)
        ],
        "gone": _gone(state, watched),
        "failures": [_fault(fault, name) for fault in job.faults],
        "fruitless": [fruitless_as_json(ended, name) for ended in state.fruitless],
        "stacks": _stacks(job.stacks),
        "unfit": [unfit_as_json(unfit, name) for unfit in job.unfit],
        "goodput": job_time_data(spent) if (spent := job.time) else None,
    }


def _stacks(stacks: tuple[Stacks, ...]) -> list[dict[str, Any]]:
    """Return the places of the last round that has any, with the ranks that were there."""
    last = max((each.round for each in stacks), default=0)
    places = groups(tuple(each for each in stacks if each.round == last))
    return [{"round": last, **each} for each in places]


def groups(stacks: tuple[Stacks, ...]) -> list[dict[str, Any]]:
    """Return the places for programs, the largest group first."""
    return [{"place": place, "ranks": list(ranks)} for place, ranks in grouped(stacks).items()]


def rows_of(job: Job, state: RendezvousState) -> list[Row]:
    """Return the nodes in the order of their seats."""
    ranks, names = _ranks(state), names_of(state)
    return [
        Row(
            node,
            names[node],
            _what(job, state, node),
            ranks.get(node, range(0)),
            node not in job.unheard,
        )
        for node in state.seats
    ]


def _ranks(state: RendezvousState) -> Mapping[Node, range]:
    """Return the global ranks of each node's workers; nobody has any while no round is complete."""
    if not state.complete:
        return {}
    firsts = {node: (its.workers[0].rank, len(its.workers)) for node, its in assign(state.world).items()}
    return {node: range(first, first + size) for node, (first, size) in firsts.items()}


def _what(job: Job, state: RendezvousState, node: Node) -> str:
    status = state.seats[node].status
    if status is Status.IN:
        what = "running" if state.complete and not state.closed else "here"
    elif status is Status.WAITING and node in state.redundancy_list:
        what = "spare"
    else:
        what = WORDS[status]
    if state.seats[node].notice and status is not Status.LEAVING and not state.closed:
        what = f"{what}, drained"
    silent = node in job.unheard and node in state.present and not state.closed
    return f"{what}, no heartbeat" if silent and status is not Status.EXPECTED else what


def span(ranks: range) -> str:
    """Return the ranks as people write them: 0-7."""
    return "" if not ranks else f"{ranks[0]}" if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"


def standbys(note: StandbyNote | None) -> str:
    """Return a node's note of its standbys as people read it; nothing for none."""
    if note is None:
        return ""
    took = "" if note.imports_s is None else f", imports took {note.imports_s:.1f} s"
    return f"{note.ready} ready{took}"


def told_by(notice: Notice) -> str:
    """Return a drained node's notice as people read it."""
    return f"by {notice.source}, within {notice.deadline_s:g} s"


def aside(job: Job, state: RendezvousState, node: Node) -> str:
    """Return why a node is set aside, for how long and, if its last failure is on record, since when; else nothing."""
    seat = state.seats[node]
    if seat.status is not Status.ASIDE:
        return ""
    last = next((fault.when for fault in reversed(job.faults) if fault.node == node), "")
    since, until = time_of_day(last), seat.failing and time_of_day(last, seat.failing.cooldown_s)
    return f"{set_aside(seat)}{f' since {since}, until {until}' if since and until else ''}"


def restarts(state: RendezvousState) -> int:
    """Return how many restarts are spent: the failure that ends a job costs none."""
    return min(state.failures, state.limits.max_restarts)


def _spent(state: RendezvousState) -> str:
    return f"{restarts(state)} of {count(state.limits.max_restarts, 'restart')} spent"


def ended_early(job: Job, state: RendezvousState, node: Node) -> Mapping[int, str]:
    """Return which ranks of this node have ended with 0 while others of this world run on, and when by its host's clock."""
    note = job.ended.get(node)
    runs = note is not None and state.complete and not state.closed and note.round == state.round
    return dict(note.ends) if note and runs else {}


def _ended_early(job: Job, state: RendezvousState) -> Iterator[str]:
    ended = {rank: when for node in state.seats for rank, when in ended_early(job, state, node).items()}
    done = [rank for node, its in _ranks(state).items() if state.seats[node].status is not Status.IN for rank in its]
    others = [rank for its in _ranks(state).values() for rank in its if rank not in {*ended, *done}]
    if ended and others:
        run = "runs" if len(others) == 1 else "run"
        yield ""
        yield (
            f"{ranks_of(sorted(ended))} ended with exit code 0, {time_of_day(max(ended.values()))}, "
            f"and {ranks_of(others)} {run} on"
        )


def _set_aside(job: Job, state: RendezvousState) -> Iterator[str]:
    those = state.those(Status.ASIDE)
    if not those:
        return
    names = names_of(state)
    yield ""
    for node in those[:FAILURES_SHOWN]:
        yield f"{names[node]} is {aside(job, state, node)}"
    if len(those) > FAILURES_SHOWN:
        yield f"and {count(len(those) - FAILURES_SHOWN, 'node')} more"


def _unfit(unfit: Sequence[Unfit], name: Naming) -> Iterator[str]:
    if not unfit:
        return
    yield ""
    yield f"{count(len(unfit), 'node')} out of the job:"
    for each in unfit[-FAILURES_SHOWN:]:
        yield f"  {name(each.node, each.host)}  {time_of_day(each.when)}  {first_line(each.reason)}"


def _failures(faults: Sequence[Fault], name: Naming) -> Iterator[str]:
    if not faults:
        return
    left_out = len(faults) - FAILURES_SHOWN
    yield ""
    yield f"{count(len(faults), 'failure')}{f', the last {FAILURES_SHOWN}' if left_out > 0 else ''}:"
    for fault in faults[-FAILURES_SHOWN:]:
        ended = end_sentence(fault)
        said = f" · {first_line(fault.message)}" if fault.message not in ("", exit_sentence(fault.exit_code)) else ""
        where, who = f" · {fault.where}" if fault.where else "", name(fault.node, fault.host)
        yield f"  {time_of_day(fault.when)}  round {fault.round}  {who} rank {fault.rank}: {ended}{said}{where}"
