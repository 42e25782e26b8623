"""The end of a launch, for people: one line for a success, else the first cause, its cost, and where to look."""

from __future__ import annotations

from collections.abc import Sequence
from signal import Signals
from typing import assert_never

from ...adapters.report.launch_report import Report
from ...adapters.report.worker_ends import How
from ...adapters.workers.messages.error_files import end_sentence, exit_sentence
from ...core.causes import echo
from ...core.group import Stopped
from ...core.group.state import Drained, Refused, Unawaited
from ...core.rendezvous import Status
from ...core.rendezvous.explain import named, set_aside
from ...core.world import Ending, Fault, Origin, Verdict, Why
from .early_losses import fruitless_rows
from .sentences import PLACES, RANKS, hang, told_places, who
from .text import count, first_line, time_of_day

CALLSTACK_LINES = 24
TAIL_LINES = 10
ECHOES = EARLIER = 3
MISSING = 3
"""How much of each is shown; the report's file has all."""


def render_report(report: Report, paths: Sequence[str]) -> list[str]:
    """Return the lines. `paths` are the files that hold more."""
    return [*_outcome(report, paths), *_node_time(report)]


def _outcome(report: Report, paths: Sequence[str]) -> list[str]:
    outcome = report.result.outcome
    match outcome:
        case Verdict(Ending.SUCCEEDED):
            stays_out = [f"stays out: {text}" for text in _unfit(report)]
            return [" · ".join((_success(report), _cost(report), *stays_out, *_none_here(report)))]
        case Verdict():
            return [_headline(report, outcome), *_rows(report, paths)]
        case Refused():
            return [_refused(outcome, report)]
        case Unawaited():
            return [" · ".join((_unawaited(report), _cost(report)))]
        case Drained(source):
            return [f"drained by {source}: this node left, {_without_it(report)} · {_cost(report)}"]
        case Stopped(signum):
            return [f"stopped by {Signals(signum).name} · {_cost(report)}"]
        case other:
            assert_never(other)


def _success(report: Report) -> str:
    """Return how many workers succeeded; where others went on without some, also which, and how those ended."""
    size, missing = report.world_size, report.missing
    if not size:
        return "the job succeeded"
    if not missing:
        return "1 worker succeeded" if size == 1 else f"all {size} workers succeeded"
    ends = [f"rank {each.rank} did not ({end_sentence(each)})" for each in missing[:MISSING]]
    more = [f"nor did {count(len(missing) - MISSING, 'other')}"] if len(missing) > MISSING else []
    return "; ".join((f"{size - len(missing)} of {count(size, 'worker')} succeeded", *ends, *more))


def _without_it(report: Report) -> str:
    """Return what becomes of the job that this node left."""
    return "the job goes on without it" if report.result.others else "and no other node is known"


def _unawaited(report: Report) -> str:
    """Return the line of a node whose workers have succeeded, and which waited no longer for the others'."""
    state, own = report.result.state, len(report.result.ranks.workers)
    limit = report.settings.group.barrier_timeout
    may_be_conf = limit == report.settings.rendezvous.barrier_timeout
    said_by = " or ".join(
        (
            "--exit-barrier-timeout",
            "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
            *(["barrier_timeout of --rdzv-conf"] if may_be_conf else []),
        )
    )
    others = named(state, state.participants) if state else ""
    return (
        f"this node's {count(own, 'worker')} succeeded; after {limit:g} s ({said_by}) it waits no longer for "
        f"{others or 'the others'}"
    )


def _refused(refused: Refused, report: Report) -> str:
    """Return why this node ended before the job did, and what to do."""
    settings, text = report.settings, refused.text or "the reason is unknown"
    match refused.why:
        case Why.TIMEOUT:
            waited = f"{settings.rendezvous.join_timeout:g} s (--rdzv-conf=join_timeout=...)"
            return f"gave up: no round began within {waited} · {text}"
        case Why.LIMITS:
            return f"refused: {text}; all nodes of a job must be given the same"
        case Why.CLOSED if not report.exit_code:
            return (
                f"nothing ran here: job {settings.run_id} had succeeded with the last start of this node (finished=ok)"
            )
        case Why.CLOSED:
            job, store = settings.run_id, settings.store
            return f"nothing ran here: {text}; store {store} remembers job {job}, a new job has another --rdzv-id"
        case Why.PROGRAM:
            return (
                f"refused: {text}; another job has this --rdzv-id ({settings.run_id}): choose another one, "
                "or allow it with --rdzv-conf=same_program=false"
            )
        case Why.ARGUMENTS:
            return (
                f"refused: {text}; give each job an --rdzv-id of its own, or have this node for a spare by "
                "--rdzv-conf=same_program=false"
            )
        case Why.LOOPBACK:
            return (
                f"refused: {text}; a loopback address leads each host to itself: there, write an address of that host in "
                "--rdzv-endpoint, or --local-addr=ADDRESS"
            )
        case Why.UNFIT:
            return f"this node stays out of job {settings.run_id}: {text}"
        case Why.SUPERSEDED:
            return f"ended: {text}"
        case Why.UNSERVED:
            return f"gave up: this node cannot serve store {settings.store}; see the warnings above"
        case Why.UNCONFIRMED:
            limit = f"{settings.rendezvous.join_timeout:g} s (join_timeout)"
            why = f", {refused.text}" if refused.text else ""
            return f"gave up: store {settings.store} did not answer for {limit}{why}"
        case _:
            return f"ended: {refused.why.value} · store {settings.store}: {text}"


def _cost(report: Report) -> str:
    return ", ".join((count(report.restarts, "restart"), *_smaller_restarts(report), f"{report.duration_s:.1f} s"))


def _smaller_restarts(report: Report) -> list[str]:
    """Return the restarts that cost the job none of its own."""
    alone, of_calls = report.result.alone, report.of_calls
    return [
        *([f"{count(alone, 'worker')} of this node started again alone"] if alone else []),
        *([f"{count(of_calls, 'restart')} of wrapped functions"] if of_calls else []),
    ]


def _none_here(report: Report) -> list[str]:
    """Return a line for a node that never had workers, so that nobody believes that its program has run."""
    if report.result.ranks.workers or report.result.state is None:
        return []
    over = f"job {report.settings.run_id} was over, or had its nodes, when this one came"
    return [f"no worker ran here: {over} (a new job has another --rdzv-id)"]


def _headline(report: Report, verdict: Verdict) -> str:
    if verdict.why is Why.CANNOT_START:
        return "FAILED: cannot start the program (no restart used)"
    if verdict.why is Why.FRUITLESS:
        those = count(len(report.fruitless), "round")
        return f"FAILED: no progress in {those} in a row: do not start it again as it is"
    if verdict.why is Why.OPERATOR:
        return f"{verdict.ending.name} by an operator ({verdict.by.slot}) in round {verdict.round}"
    if verdict.ending is not Ending.FAILED:
        return f"{verdict.ending.name}: {verdict.why.value}, by {verdict.by}"
    allowed = f"{count(report.max_restarts, 'restart') if report.max_restarts else 'no restart'} allowed"
    failed = f"FAILED: {count(report.restarts + 1, 'failure')}, {allowed} (--max-restarts={report.max_restarts})"
    return " · ".join((failed, *_smaller_restarts(report)))


def _rows(report: Report, paths: Sequence[str]) -> list[str]:
    earlier = [] if report.fruitless else _earlier(report)
    rows = [*fruitless_rows(report.fruitless, report.result.state), *_cause(report), *earlier, *_echoes(report)]
    if report.others and report.over_budget:
        rows.append(("others", _others(report)))
    rows.extend(_stacks(report))
    rows.extend(_hang(report))
    rows.extend(("stays out", text) for text in _unfit(report))
    rows.extend(("set aside", text) for text in _set_aside(report))
    rows.extend(("hint", text) for text in _hint(report))
    if report.cause and report.cause.pid:
        rows.extend(("hint", text) for text in _none_here(report))
    rows.extend(("details", path) for path in paths)
    return [_row(*row) for row in rows]


def _row(title: str, text: str) -> str:
    return f"  {title:<13} {text}"


def _node_time(report: Report) -> list[str]:
    """Return rows with where the time of this node went, and of all nodes, if an interruption took some of it."""
    goodput, time = report.result.goodput, report.result.job_time
    if not goodput:
        return []
    from .goodput import is_interrupted, of_job, of_node  # few jobs need it

    rows = [_row("this node", of_node(goodput))] if is_interrupted(goodput) else []
    if time and time.nodes > 1 and is_interrupted(time.shares):
        first, *others = of_job(time)
        rows += [_row("all nodes", first), *(_row("", other) for other in others)]
    return rows


def _cause(report: Report) -> list[tuple[str, str]]:
    fault = report.cause
    if fault is None:
        return []
    place = who(fault.node, fault.host, report.result.state)
    if not fault.pid:
        return [("first cause", f"{place}: {fault.message}")]
    clock = time_of_day(fault.when)
    rows = [
        *_open(report),
        (
            "first cause" if report.is_cause_sure else "",
            f"{place} rank {fault.rank}, round {fault.round}, {clock}: {_failure(fault)}",
        ),
        ("", f"local rank {fault.local_rank}, pid {fault.pid}, after {fault.after_s:.1f} s"),
    ]
    if fault.log:
        rows.append(("", f"log: {fault.log} ({place})"))
    return [*rows, *(("", f"│ {line}") for line in _words(fault))]


def _open(report: Report) -> list[tuple[str, str]]:
    """Return a row that says between which ranks it is open, if it is."""
    if report.is_cause_sure or report.cause is None:
        return []
    ranks = [f"rank {fault.rank}" for fault in (report.cause, *report.suspects)]
    named = [*ranks[:RANKS], *([f"{len(ranks) - RANKS} more"] if len(ranks) > RANKS else [])]
    if not report.suspects:
        return [
            ("first cause", f"{named[0]}, or a rank that reported nothing: it says only that a peer is gone or silent")
        ]
    return [("first cause", f"{' or '.join(named)}: each says only that a peer is gone or silent")]


def _failure(fault: Fault) -> str:
    """Return how a worker ended and what it said: `exit code 1: RuntimeError: … (train.py:88 in step)`."""
    ended = end_sentence(fault)
    remark = f": {fault.remark}" if fault.remark else ""
    said = "" if fault.message == exit_sentence(fault.exit_code) else f": {first_line(fault.message)}"
    where = f" ({fault.where})" if fault.where else ""
    if fault.origin is Origin.RAISE:
        return f"{ended}{said}{where}{f' · {fault.remark}' if fault.remark else ''}"
    return f"{ended}{remark}{said}{where}"


def _words(fault: Fault) -> Sequence[str]:
    """Return the worker's own last lines: the traceback of its error file, else the end of its log."""
    return fault.callstack.splitlines()[-CALLSTACK_LINES:] or fault.tail[-TAIL_LINES:]


def _echoes(report: Report) -> list[tuple[str, str]]:
    """Return a row with the other workers of the cause's round that failed: those of one node with one reason together."""
    groups: dict[tuple[str, str], list[int]] = {}
    for fault in report.echoes:
        place = who(fault.node, fault.host, report.result.state)
        groups.setdefault((place, _again(fault, report.cause) or _too(fault)), []).append(fault.rank)
    told = [f"{place} {_ranks(ranks)} {text}" for (place, text), ranks in list(groups.items())[:ECHOES]]
    rest = sum(map(len, list(groups.values())[ECHOES:]))
    return [("failed, too", " · ".join((*told, *([f"{rest} more"] if rest else []))))] if told else []


def _again(fault: Fault, cause: Fault | None) -> str:
    """Return a short reference to the cause, which is told in full, if this failure is the same; else nothing."""
    return "the same way" if cause and _account(fault) == _account(cause) else ""


def _account(fault: Fault) -> tuple[object, ...]:
    """Return how a worker ended and why: of failures with equal accounts one is told."""
    return fault.origin, fault.exit_code, fault.message, fault.where, fault.callstack, fault.remark


def _too(fault: Fault) -> str:
    """Return how a worker ended that is not the cause. One that raised may have ended well since."""
    raised = fault.origin is Origin.RAISE
    return f"had raised, too: {first_line(fault.message)}" if raised and not echo(fault) else _failure(fault)


def _others(report: Report) -> str:
    """Return what the others did: by rank where this node knows all of them, else a count that every node knows."""
    ends = report.result.ends
    if report.cause is None or len(ends) < report.cause.world_size or ends[0].round != report.cause.round:
        return f"{count(report.others, 'worker')} of that round without a failure on record"
    had = {end.rank for end in ends if end.how is How.FAILED} | {fault.rank for fault in report.echoes}
    running = [end.rank for end in ends if end.how is How.STOPPED and end.rank not in had]
    ended = [end.rank for end in ends if end.how is How.SUCCEEDED and end.rank not in had]
    told = [
        *([f"{_ranks(running)} {'was' if len(running) == 1 else 'were'} running"] if running else []),
        *([f"{_ranks(ended)} ended with 0"] if ended else []),
    ]
    return " · ".join(told)


def _ranks(ranks: Sequence[int]) -> str:
    return _listed("rank", ranks)


def _listed(thing: str, numbers: Sequence[int]) -> str:
    """Return `rank 3`, or `rounds 0, 1` and so on; of many the first, and how many there are more."""
    return f"{thing}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:RANKS]))}{_more(numbers)}"


def _stacks(report: Report) -> list[tuple[str, str]]:
    """Return a row with the places at which the others were stopped: most of them first, the odd ones after it."""
    return [("stacks", " · ".join(told_places(report.stacks)))] if report.stacks else []


def _hang(report: Report) -> list[tuple[str, str]]:
    """Return a row with the hang that this node has suspected last."""
    return [("hang", f"round {each.round}: {hang(each, report.result.state)}") for each in report.result.hangs[-1:]]


def _unfit(report: Report) -> list[str]:
    """Return the nodes that stay out, each with the reason; of many the last ones."""
    unfit, state = report.result.unfit, report.result.state
    told = [f"{who(each.node, each.host, state)} ({first_line(each.reason)})" for each in unfit[-PLACES:]]
    return _last_of(len(unfit), told)


def _set_aside(report: Report) -> list[str]:
    """Return the nodes that were set aside at the end, each with the reason; of many the last ones."""
    state = report.result.state
    if state is None:
        return []
    those = state.those(Status.ASIDE)
    seats = [(node, state.seats[node]) for node in those[-PLACES:]]
    told = [f"{who(node, seat.profile.host, state)} ({set_aside(seat)})" for node, seat in seats]
    return _last_of(len(those), told)


def _last_of(number: int, told: Sequence[str]) -> list[str]:
    """Return the last nodes of this number, after a count of the others."""
    before = number - len(told)
    return [*([f"{count(before, 'node')} before"] if before else []), *told]


def _more(ranks: Sequence[int]) -> str:
    return f" and {len(ranks) - RANKS} more" if len(ranks) > RANKS else ""


def _earlier(report: Report) -> list[tuple[str, str]]:
    """Return a row with the failures of the rounds before, equal ones together: the very first one, and the latest ones.
    Where all are the cause's own the hint says so, and says it alone."""
    groups: dict[tuple[int, str], list[int]] = {}
    for fault in report.earlier:
        groups.setdefault((fault.rank, _again(fault, report.cause) or _failure(fault)), []).append(fault.round)
    if not groups or (report.cause and _fails_alike(report)):
        return []
    first, *others = groups.items()
    others.sort(key=lambda group: group[1][-1])
    shown = sorted((first, *others[1 - EARLIER :]), key=lambda group: group[1][-1])
    told = [f"{_listed('round', rounds)} rank {rank} {text}" for (rank, text), rounds in shown]
    rest = sum(len(rounds) for _, rounds in others[: 1 - EARLIER])
    return [("before that", " · ".join((*told, *([f"{count(rest, 'round')} more"] if rest else []))))]


def _hint(report: Report) -> list[str]:
    """Return what the failures have in common."""
    if report.cause is None or not _is_one_rank(report):
        return []
    rounds = len(report.earlier) + 1
    if _fails_alike(report):
        return [f"rank {report.cause.rank} failed the same way in {rounds} rounds: a restart does not help"]
    place = who(report.cause.node, report.cause.host, report.result.state)
    return [f"rank {report.cause.rank} on {place} failed in {rounds} rounds"]


def _is_one_rank(report: Report) -> bool:
    """Return True if one rank of one host is the first cause of several rounds, for sure."""
    is_sure = bool(report.earlier) and all(cause.is_sure for cause in report.causes)
    return is_sure and len({(cause.fault.host, cause.fault.rank) for cause in report.causes}) == 1


def _fails_alike(report: Report) -> bool:
    return _is_one_rank(report) and len({_account(cause.fault) for cause in report.causes}) == 1
