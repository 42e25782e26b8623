"""The web page of a running job: the page itself, once; what it shows, as one line of JSON for each change; its picture.

The page asks for nothing but its own events and picture. Its policy allows the one script and the one style that stand in
it, by their checksums, so that nothing else can run there. The script writes whatever a job says as text, never as markup.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from ...adapters.report.launch_report import breaker, by_round, first_cause
from ...adapters.workers.messages.error_files import end_sentence
from ...core.causes import Cause
from ...core.goodput import TRAINING, JobTime
from ...core.group.state import Alone
from ...core.rendezvous import RendezvousState, Status
from ...core.rendezvous.explain import naming
from ...core.values import frozen
from ...core.world import Fault, Node
from .goodput import of_job, parts, percent
from .history import History, lanes
from .job import Job, aside, data, rows_of, span, standbys, told_by
from .picture import picture
from .text import first_line

EVENTS, PICTURE = "/events", "/timeline.svg"
FAILURES_MAX = 20
PLACES_MAX = 32
"""The most places at which workers were stopped."""
CALLSTACK_LINES = 60
LINE_MAX = 400
"""The most characters of a line of a log or a traceback."""
LOOKS: Mapping[Status, str] = {
    Status.IN: "here",
    Status.EXPECTED: "expected",
    Status.WAITING: "spare",
    Status.RESERVE: "spare",
    Status.ABSENT: "left",
    Status.DONE: "done",
    Status.GONE: "left",
    Status.LEAVING: "left",
    Status.ASIDE: "spare",
}
TIME_LOOKS: Mapping[str, str] = {
    **dict.fromkeys(TRAINING, "running"),
    **dict.fromkeys(("recomputed", "hanging"), "silent"),
    **dict.fromkeys(("starting", "stopping", "checking", "waiting"), "expected"),
    **dict.fromkeys(("spare", "finished", "unknown"), "done"),
}
"""How a bucket of time looks; busy spans have names of their own."""


@frozen
class Page:
    """The text of the page, and its Content-Security-Policy."""

    text: str
    policy: str


def page(title: str) -> Page:
    """Return the page of a job of this name."""
    folder = files(__package__) / "web"
    html, style, script = ((folder / f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    parts = {"title": escape(title), "style": style, "script": script}
    text = re.sub(r"\{(title|style|script)\}", lambda found: parts[found[1]], html)
    policy = (
        f"default-src 'none'; script-src {_checksum(script)}; style-src {_checksum(style)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text, policy)


def _checksum(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def shown(history: History, epoch: float, alone: Alone | None) -> str:
    """Return all that the page shows, as one line of JSON. `epoch` is when the history began, in Unix seconds; `alone` is
    how the job's workers restart alone."""
    job, state = history.job, history.job.state
    last = state or history.last
    of_job: dict[str, Any] = (
        data(job, state) if state else {"job": job.run_id, "store": job.store, "state": "unknown", "round": 0}
    )
    told: dict[str, Any] = {
        **of_job,
        "sentence": of_job.get("sentence", f"store {job.store} has no job {job.run_id} now"),
        "epoch": epoch,
        "at": round(history.at, 3),
        "silent": {"why": silence.why, "since": round(silence.since, 3)} if (silence := history.silence) else None,
        "nodes": [*_tiles(history, job, last), *_gone(history, last)] if last else [],
        "forgotten": state is None,
        "rounds": [
            {
                "round": each.number,
                "nodes": each.nodes,
                "workers": each.workers,
                "began": round(each.began_at, 3),
                "at_most": each.at_most,
                "recovery": None if each.broken_at is None else round(each.began_at - each.broken_at, 3),
                "ended": None if each.ended_at is None else round(each.ended_at, 3),
                "how": each.how,
            }
            for each in history.rounds
        ],
        "events": [{"at": round(each.at, 3), "kind": each.kind, "text": each.text} for each in history.events],
        "stacks": of_job.get("stacks", [])[:PLACES_MAX],
        "stacked": len(of_job.get("stacks", [])),
        "failed": len(job.faults),
        "failures": _failures(job, last, alone) if last else [],
        "goodput": _goodput(time) if (time := job.time) else None,
    }
    return json.dumps(told, separators=(",", ":"))


def _goodput(time: JobTime) -> dict[str, Any]:
    """Return the lines of where the time of all nodes went, and the parts of the bar."""
    of_bar = [
        {
            "text": f"{percent(spent, whole)} {name}",
            "share": round(spent / whole, 5),
            "look": TIME_LOOKS.get(name, "here"),
        }
        for name, spent, whole in parts(time.shares)
    ]
    return {"lines": of_job(time), "bar": of_bar}


def timeline(history: History, at: float) -> str:
    """Return the picture of what was seen until now."""
    return picture(lanes(history, at), f"job {history.job.run_id}, seen for {at:.0f} s")


def _tiles(history: History, job: Job, state: RendezvousState) -> list[dict[str, Any]]:
    return [
        {
            "node": str(row.node),
            "name": row.name,
            "host": state.seats[row.node].profile.host,
            "state": row.what,
            "look": _look(job, state, row.node),
            "ranks": span(row.ranks),
            "workers": state.seats[row.node].profile.local_world_size,
            "role": state.seats[row.node].profile.role,
            "address": state.seats[row.node].profile.endpoint.address,
            "standbys": standbys(job.standbys.get(row.node)),
            "notice": told_by(notice) if (notice := state.seats[row.node].notice) else "",
            "aside": aside(job, state, row.node),
            "since": round(doing.since, 3) if (doing := history.doing.get(row.node)) else 0.0,
            "before": doing is None or doing.since <= history.began_at,
        }
        for row in rows_of(job, state)
    ]


def _gone(history: History, state: RendezvousState) -> list[dict[str, Any]]:
    """Return the tiles of the nodes that are no longer there. None is shown after the job: then all have gone."""
    return [
        {
            "node": each.node,
            "name": each.name,
            "host": each.profile.host,
            "state": each.how,
            "look": "left" if each.how == "left" else "silent",
            "ranks": "",
            "workers": each.profile.local_world_size,
            "role": each.profile.role,
            "address": each.profile.endpoint.address,
            "standbys": "",
            "notice": "",
            "aside": "",
            "since": round(each.at, 3),
            "before": False,
        }
        for each in (() if state.closed else history.gone.values())
    ]


def _look(job: Job, state: RendezvousState, node: Node) -> str:
    status = state.seats[node].status
    if state.closed:
        return "done" if status in (Status.DONE, Status.GONE) else "left"
    if node in job.unheard and status in (Status.IN, Status.DONE):
        return "silent"
    return "running" if status is Status.IN and state.complete else LOOKS[status]


def _failures(job: Job, state: RendezvousState, alone: Alone | None) -> list[dict[str, Any]]:
    """Return the last failures, the newest first. The first cause of each round is the one that the report names."""
    name = naming(state)
    rounds = by_round(job.faults, state.closed, state, alone)
    last = job.faults[-FAILURES_MAX:]
    numbers = {number for fault in last for number in (fault.round, fault.round + 1)}
    causes = [
        _cause(tuple(faults), breaker(number, state.closed, state), alone)
        for number, faults in rounds.items()
        if number in numbers
    ]
    return [
        {
            "key": f"{fault.node} {fault.round} {fault.rank} {fault.pid} {fault.exit_code}",
            "cause": any(fault == cause.fault for cause in causes if cause),
            "sure": any(fault == cause.fault and cause.is_sure for cause in causes if cause),
            "round": fault.round,
            "who": f"{name(fault.node, fault.host)} rank {fault.rank}",
            "ended": end_sentence(fault),
            "said": first_line(fault.message)[:LINE_MAX],
            "where": fault.where[:LINE_MAX],
            "remark": fault.remark[:LINE_MAX],
            "when": fault.when[:LINE_MAX],
            "after": fault.after_s,
            "log": fault.log[:LINE_MAX],
            "traceback": _clipped(fault.callstack.splitlines()[-CALLSTACK_LINES:]),
            "tail": _clipped(fault.tail),
        }
        for fault in reversed(last)
    ]


@lru_cache(maxsize=2 * FAILURES_MAX)
def _cause(faults: tuple[Fault, ...], by: Node | None, alone: Alone | None) -> Cause | None:
    """Return the first cause of a round. Of thousands of failures it takes seconds, and each change asks for it."""
    return first_cause(faults, by, alone)


def _clipped(lines: Sequence[str]) -> str:
    return "\n".join(line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…" for line in lines)
