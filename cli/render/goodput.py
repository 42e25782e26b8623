"""Says where the time of a job's nodes went: in a line, a table by bucket and cause, the dearest events, and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...adapters.report.launch_report import shares_data
from ...adapters.terminal import printable
from ...core.goodput import BUCKETS, NO_LOSS, TRAINING, Book, Cause, JobTime, Kind, Loss, bucket, by_kind, losses
from ...core.goodput.record import SHORT
from ...core.world import Node
from .text import count, shortened, table

FORMAT = 1
EVENTS_MAX = 10
"""The most events that people are shown."""
SHOWN_LEAST = 0.0005
"""A bucket with a smaller share is not in the line."""
_NO_LOSS = {kind.value for kind in NO_LOSS}
_EXPECTED = {*_NO_LOSS, Kind.FIRST.value}
_LOST_TO = {Kind.LOSS.value: "loss of nodes"}
CAME_MAX = 8
"""The most nodes that came for one event whose names people are shown."""
DEAR_MAX = 4
"""The most causes that people are shown of what was lost."""
BUCKET_MAX = 24
"""The longest name of a bucket that people are shown whole: a program gives busy spans theirs."""

Names = Mapping[Node, str]


def rendered(book: Book, known: Names) -> Iterator[str]:
    """Yield the lines that people read of one job."""
    yield f"  {summary(book, known)}"
    kinds = by_kind(book)
    total = sum(kinds.values())
    rows = sorted(kinds.items(), key=lambda row: (_place(row[0][0]), -row[1], row[0][1].value))
    cells = [(_named(bucket), kind.value, span(spent), percent(spent, total)) for (bucket, kind), spent in rows]
    yield ""
    yield from (f"  {line}" for line in table(("bucket", "cause", "node time", "share"), cells))
    if found := losses(book):
        began = min(book.began.values())
        dear = [(span(loss.began - began), said(loss.cause, known), span(loss.total), _of(loss)) for loss in found]
        yield ""
        yield from (f"  {line}" for line in table(("at", "event", "node time", "in which"), dear[:EVENTS_MAX]))
        if len(found) > EVENTS_MAX:
            yield f"  and {len(found) - EVENTS_MAX} more: --json"


def _named(bucket: str) -> str:
    return shortened(printable(bucket), BUCKET_MAX)


def _place(bucket: str) -> tuple[int, str]:
    """Return the place of a bucket in a table; busy spans come behind what is done again."""
    return (BUCKETS.index(bucket), "") if bucket in BUCKETS else (BUCKETS.index("recomputed"), bucket)


def summary(book: Book, known: Names) -> str:
    """Return the one line: "96.1 % running · 1.2 % starting · … · lost in all: 3 h 12 min of 2 agents"."""
    buckets, lost = _buckets(by_kind(book)), sum(loss.total for loss in losses(book))
    total = sum(buckets.values())
    order = [(bucket, spent) for bucket, spent in _ordered(buckets) if spent >= SHOWN_LEAST * total]
    parts = [_part(bucket, spent, total, book, known) for bucket, spent in order]
    agents = count(len({share.node for share in book.shares}), "agent")
    return " · ".join((*parts, f"lost in all: {span(lost)} of {agents}"))


def is_interrupted(goodput: Mapping[tuple[str, str], int]) -> bool:
    """Return True for a node, there for long, that waited, started or computed again because of something that happened."""
    those = {name for (name, kind), spent in goodput.items() if spent and kind not in _EXPECTED}
    return bool(those - {"stopping"}) and sum(goodput.values()) >= SHORT


def of_node(goodput: Mapping[tuple[str, str], int]) -> str:
    """Return the line of one node: "96.1 % training · 1.2 % recomputed · … of 3 h 12 min"."""
    return f"{_percents(goodput)} of {span(sum(goodput.values()))}"


def of_job(time: JobTime) -> list[str]:
    """Return the line of all nodes: "96.1 % training · 1.2 % recomputed · … · lost in all: 3 h 12 min of 128 agents"; and
    one that says to what, the dearest first, if anything was lost."""
    lost = lost_to(time.shares)
    in_all = f"lost in all: {span(sum(map(sum, (each.values() for _, each in lost))))} of {count(time.nodes, 'agent')}"
    return [f"{_percents(time.shares)} · {in_all}", *([f"lost to {_dearest(lost)}"] if lost else [])]


def lost_to(goodput: Mapping[tuple[str, str], int]) -> Sequence[tuple[str, Mapping[str, int]]]:
    """Return the causes of lost time, the dearest first, each with the time in its buckets."""
    lost = dict[str, Counter[str]]()
    for (name, kind), spent in goodput.items():
        if kind not in _NO_LOSS and spent > 0:
            lost.setdefault(kind, Counter())[name] += spent
    return sorted(lost.items(), key=lambda each: (-sum(each[1].values()), each[0]))


def _dearest(lost: Sequence[tuple[str, Mapping[str, int]]]) -> str:
    dear = lost[:DEAR_MAX]
    told = [f"{_LOST_TO.get(kind, kind)} {span(sum(each.values()))} ({_each(each)})" for kind, each in dear]
    return " · ".join((*told, *([f"{len(lost) - DEAR_MAX} more"] if len(lost) > DEAR_MAX else [])))


def _percents(goodput: Mapping[tuple[str, str], int]) -> str:
    return " · ".join(f"{percent(spent, whole)} {name}" for name, spent, whole in parts(goodput))


def parts(goodput: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each bucket that people are shown, with its time and that of all."""
    buckets = _buckets(goodput)
    total = sum(buckets.values())
    for name, spent in _ordered(buckets):
        if spent >= SHOWN_LEAST * total:
            yield _named(name), spent, total


def _buckets(kinds: Mapping[tuple[str, Any], int]) -> Counter[str]:
    """Return the time in each bucket, for all of its causes."""
    buckets = Counter[str]()
    for (name, _), spent in kinds.items():
        buckets[name] += spent
    return buckets


def _ordered(buckets: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    """Return training first, and the others after it, the dearest first."""
    return sorted(buckets.items(), key=lambda each: (each[0] not in TRAINING, -each[1], each[0]))


def _part(bucket: str, spent: int, total: int, book: Book, known: Names) -> str:
    awaited = _awaited(book) if bucket == "waiting" else Counter[Node]()
    node = min(awaited, key=lambda node: (-awaited[node], node), default=None)
    most = f", most for {known.get(node, node.slot)}" if node and 2 * awaited[node] >= spent else ""
    return f"{percent(spent, total)} {_named(bucket)}{most}"


def _awaited(book: Book) -> Counter[Node]:
    """Return for how long others waited for each node."""
    found = Counter[Node]()
    for (_, node), spent in book.awaited.items():
        found[node] += spent
    return found


def _of(loss: Loss) -> str:
    return _each(loss.buckets)


def _each(buckets: Mapping[str, int]) -> str:
    """Return the buckets of an event, the dearest first."""
    order = sorted(buckets.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{span(spent)} {_named(bucket)}" for bucket, spent in order)


def said(its: Cause, known: Names) -> str:
    """Return a cause in words."""
    by = known.get(its.by, its.by.slot) if its.by else ""
    came = ", ".join((*_names(its.came[:CAME_MAX], known), *_more(len(its.came) - CAME_MAX)))
    match its.kind:
        case Kind.FAILURE | Kind.HANG if its.rank is not None:
            what = f"{its.kind.value} of rank {its.rank} ({by})"
        case Kind.UPSCALE:
            what = f"upscale ({came})" if came else "upscale"
        case Kind.LOSS:
            died = f" ({count(len(its.died), 'agent')} died)" if its.died else ""
            what = f"loss of {', '.join(its.lost) or 'a node'}{died}{f', {came} came' if came else ''}"
        case Kind.DRAIN if came:
            what = f"drain ({by}), {came} came"
        case Kind.UNKNOWN if its.round is not None:
            what = "no trace tells why"
        case _:
            what = f"{its.kind.value} ({by})" if by else its.kind.value
    return what if its.round is None else f"{what}, in round {its.round}"


def _names(nodes: Sequence[Node], known: Names) -> list[str]:
    return [known.get(each, each.slot) for each in nodes]


def _more(number: int) -> list[str]:
    return [f"{number} more"] if number > 0 else []


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def span(micros: int) -> str:
    """Return a time in the two largest units that it has: 3 h 12 min, 2 min 5 s, 1.25 s, 3 ms."""
    if micros < 999_500:
        return f"{micros / 1_000:.3g} ms"
    if micros < 59_950_000:
        return f"{micros / 1_000_000:.3g} s"
    seconds = round(micros / 1_000_000)
    minutes, hours = seconds // 60, seconds // 3_600
    if not hours:
        return f"{minutes} min {seconds % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


# --- for programs


def job_data(job: str, book: Book, known: Names, agents: Mapping[Node, Any]) -> Any:
    """Return a job as data. All times are whole microseconds but `began`, which is seconds since the epoch."""
    from ...core.trace.plain import plain  # brings all that a trace may hold

    nodes, awaited = dict[Node, Counter[str]](), _awaited(book)
    for share, spent in book.shares.items():
        nodes.setdefault(share.node, Counter())[bucket(book, share)] += spent
    return {
        "job": job,
        **shares_data({(name, kind.value): spent for (name, kind), spent in by_kind(book).items()}),
        "events": [_loss_data(loss) for loss in losses(book)],
        "nodes": [
            {
                "node": plain(node, Node),
                "name": known.get(node, node.slot),
                **agents[node],
                "micros": sum(buckets.values()),
                "buckets": dict(sorted(buckets.items())),
                "awaited_micros": awaited[node],
            }
            for node, buckets in sorted(nodes.items())
        ],
    }


def _loss_data(loss: Loss) -> Any:
    from ...core.trace.plain import plain

    its = loss.cause
    return {
        "cause": its.kind.value,
        "round": its.round,
        "by": its.by and plain(its.by, Node),
        "rank": its.rank,
        "lost": list(its.lost),
        "came": [plain(each, Node) for each in its.came],
        "died": [plain(each, Node) for each in its.died],
        "began": loss.began / 1_000_000,
        "micros": loss.total,
        "buckets": dict(sorted(loss.buckets.items())),
    }
