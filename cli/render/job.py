"""A job as its store shows it, for people and for programs: the sentence, the nodes with their ranks, the failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen

from ...adapters.report.launch_report import unfit_as_json
from ...adapters.report.stack_records import grouped
from ...adapters.store.notes import StandbyNote
from ...adapters.workers.error_files import exit_sentence
from ...core.ranks import assign
from ...core.rendezvous import RendezvousState, Status, explain
from ...core.rendezvous.explain import set_aside
from ...core.world import Fault, Node, Notice, Stacks, Unfit
from .sentences import names_of
from .text import count, first_line, table

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
    stacks: tuple[Stacks, ...] = ()
    """They tell where the workers of each node were when they were stopped last."""
    unfit: tuple[Unfit, ...] = ()
    """These nodes stay out, because their checks found them unfit."""


@frozen
class Row:
    """One node."""

    node: Node
    name: str
    what: str
    ranks: range
    heard: bool


def lines(job: Job, state: RendezvousState) -> list[str]:
    """Return the lines for people: bounded, whatever the size of the job."""
    rows = rows_of(job, state)
    shown = [[row.name, row.what, span(row.ranks), state.seats[row.node].profile.endpoint.address] for row in rows]
    head = ["node", "state", "ranks", "address"]
    if job.standbys:
        head.append("standbys")
        shown = [[*cells, standbys(job.standbys.get(row.node))] for cells, row in zip(shown, rows, strict=True)]
    told = [f"job {job.run_id} at {job.store} · {explain(state, None)} · {_spent(state)}"]
    if rows:
        told += ["", *table(head, shown[:NODES_SHOWN])]
    if len(rows) > NODES_SHOWN:
        told.append(f"and {count(len(rows) - NODES_SHOWN, 'node')} more (--json has all)")
    return [*told, *_set_aside(job, state), *_unfit(job.unfit), *_failures(job.faults)]


def data(job: Job, state: RendezvousState) -> dict[str, Any]:
    """Return all of it for programs; docs/launch.md has the fields."""
    closed = state.closed
    return {
        "format": FORMAT,
        "job": job.run_id,
        "store": job.store,
        "sentence": explain(state, None),
        "state": closed.ending.value if closed else "running" if state.complete else "forming",
        "round": state.round,
        "nodes_min": state.limits.min_nodes,
        "nodes_max": state.limits.max_nodes,
        "restarts": restarts(state),
        "max_restarts": state.limits.max_restarts,
        "nodes": [
            {
                "node": str(row.node),
                "host": row.name,
                "state": row.what,
                "ranks": list(row.ranks),
                "workers": state.seats[row.node].profile.local_world_size,
                "role": state.seats[row.node].profile.role,
                "address": state.seats[row.node].profile.endpoint.address,
                "heartbeat": row.heard,
                "labels": dict(state.seats[row.node].profile.labels),
                "standbys": asdict(job.standbys[row.node]) if row.node in job.standbys else None,
                "notice": asdict(notice) if (notice := state.seats[row.node].notice) else None,
                "failing": asdict(failing) if (failing := state.seats[row.node].failing) else None,
            }
            for row in rows_of(job, state)
        ],
        "failures": [
            {
                "round": fault.round,
                "rank": fault.rank,
                "host": fault.host,
                "exit_code": fault.exit_code,
                "message": fault.message,
                "where": fault.where,
                "when": fault.when,
            }
            for fault in job.faults
        ],
        "stacks": _stacks(job.stacks),
        "unfit": [unfit_as_json(unfit) for unfit in job.unfit],
    }


def _stacks(stacks: tuple[Stacks, ...]) -> list[dict[str, Any]]:
    """Return the places of the last round of which there are any, with the ranks that were there."""
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
    since = last.rpartition(" ")[2]
    return f"{set_aside(seat)}{f' since {since}' if since else ''}"


def restarts(state: RendezvousState) -> int:
    """Return how many restarts are spent: the failure that ends a job costs none."""
    return min(state.failures, state.limits.max_restarts)


def _spent(state: RendezvousState) -> str:
    return f"{restarts(state)} of {count(state.limits.max_restarts, 'restart')} spent"


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


def _unfit(unfit: Sequence[Unfit]) -> Iterator[str]:
    if not unfit:
        return
    yield ""
    yield f"{count(len(unfit), 'node')} out of the job by their checks:"
    for each in unfit[-FAILURES_SHOWN:]:
        yield f"  {each.host}  {each.when}  {first_line(each.reason)}"


def _failures(faults: Sequence[Fault]) -> Iterator[str]:
    if not faults:
        return
    left_out = len(faults) - FAILURES_SHOWN
    yield ""
    yield f"{count(len(faults), 'failure')}{f', the last {FAILURES_SHOWN}' if left_out > 0 else ''}:"
    for fault in faults[-FAILURES_SHOWN:]:
        ended = exit_sentence(fault.exit_code)
        said = f" · {first_line(fault.message)}" if fault.message and fault.message != ended else ""
        where = f" · {fault.where}" if fault.where else ""
        yield f"  round {fault.round}  {fault.host} rank {fault.rank}: {ended}{said}{where}"
