"""A recorded job beside its runs in the simulator, as it was and as it is supposed: a table, and the doubts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...adapters.terminal import printable
from ...core.goodput import BUCKETS, Kind
from ...core.replay.chronicle import CHECKPOINT, Checkpoints, Chronicle, Outside
from ...core.sim.programs import Follows, goes_on, saves_each_s
from ...core.sim.what_if import BAD, GOOD, Forecast
from .goodput import percent, span
from .text import count, table

FORMAT = 1
OTHERWISE = 0.01
"""An interval that differs by less is the same."""


def rendered(replayed: Forecast, supposed: Forecast | None) -> Iterator[str]:
    """Yield the lines that people read: what was recorded, replayed and supposed, by bucket and cause."""
    chronicle = replayed.chronicle
    nodes, runs = count(len(chronicle.slots), "node"), count(len(replayed.played), "run")
    yield f"elastic  job {printable(chronicle.run_id or chronicle.job)} of {nodes}, {runs} of it"
    yield ""
    head = ("bucket", "cause", "recorded", "replayed", *(("supposed",) if supposed else ()))
    columns = (replayed, supposed) if supposed else (replayed,)
    cells = [
        (printable(bucket), kind.value, span(chronicle.recorded.get((bucket, kind), 0)), *_cells(columns, bucket, kind))
        for bucket, kind in _keys(columns)
    ]
    cells.append(("all", "", span(sum(chronicle.recorded.values())), *(_total(column) for column in columns)))
    yield from (f"  {line}" for line in table(head, cells))
    yield ""
    yield f"  rounds     {_rounds(replayed)}"
    yield f"  known      {_known(replayed)}"
    if supposed:
        yield f"  supposed   {_ended(supposed)}"


def _keys(columns: Sequence[Forecast]) -> Sequence[tuple[str, Kind]]:
    """Return the buckets and causes of any column, in the order of buckets, the dearest cause first."""
    spent = Counter[tuple[str, Kind]](columns[0].chronicle.recorded)
    for column in columns:
        for played in column.played:
            spent.update({key: micros // len(column.played) for key, micros in played.spent.items()})
    return sorted(spent, key=lambda key: (_place(key[0]), -spent[key], key[1].value))


def _place(bucket: str) -> tuple[int, str]:
    return (BUCKETS.index(bucket), "") if bucket in BUCKETS else (BUCKETS.index("recomputed"), bucket)


def _cells(columns: Sequence[Forecast], bucket: str, kind: Kind) -> Iterator[str]:
    for column in columns:
        mean, spread = column.mean(bucket, kind)
        yield f"{span(round(mean))} ± {span(round(spread))}" if spread >= 500 else span(round(mean))


def _total(column: Forecast) -> str:
    each = [sum(played.spent.values()) for played in column.played]
    return span(round(sum(each) / len(each)))


def _rounds(replayed: Forecast) -> str:
    ends = ", ".join(kind.value for kind in replayed.chronicle.ends) or "none"
    return f"ended by {ends}; so in {replayed.agreeing} of {count(len(replayed.played), 'run')}"


def _known(replayed: Forecast) -> str:
    """Return how well the simulator knows the job."""
    worst = replayed.worst
    if worst is None or worst.off <= GOOD:
        return (
            f"each bucket of 1 % or more is as recorded, within {percent(int(1e6 * replayed.off), 1_000_000)} of itself"
        )
    by = f"{worst.bucket} is off by {_off(worst.off)}: {span(worst.recorded)} recorded, {span(round(worst.mean))} replayed"
    return by if worst.off <= BAD else f"not well enough to suppose anything; {by}"


def _off(off: float) -> str:
    return "all of it" if off > 10 else percent(int(1e6 * off), 1_000_000)


def _ended(supposed: Forecast) -> str:
    ended = sum(played.is_over for played in supposed.played)
    lasted = sum(played.lasted for played in supposed.played) / len(supposed.played)
    many = count(len(supposed.played), "run")
    ends = f"the job ends in {ended} of {many}"
    return f"{ends}; a run lasts {span(round(lasted * 1e6))} on average"


def doubts(replayed: Forecast, supposed: Forecast | None, follows: Follows) -> Iterator[str]:
    """Yield what the traces do not tell, and what is assumed instead."""
    for text in _strays(replayed):
        yield f"  doubtful   {text}"
    for text in _assumed(replayed, supposed, follows):
        yield f"  assumed    {text}"


def _strays(replayed: Forecast) -> Iterator[str]:
    """Yield where the runs come to what was recorded in another way."""
    if 2 * replayed.agreeing < len(replayed.played):
        yield "the rounds of most runs do not end as those that were recorded"
    for kind, recorded, mean in replayed.strays:
        yield f"cause {kind.value}: {span(recorded)} recorded, {span(round(mean))} replayed"


def _assumed(replayed: Forecast, supposed: Forecast | None, follows: Follows) -> Iterator[str]:
    chronicle = replayed.chronicle
    failures = sum(each.kind is Outside.FAIL for each in chronicle.incidents)
    if failures:
        comes = {
            Follows.TIME: "at its time",
            Follows.NODE: "when its node's workers have run for as long",
            Follows.PROGRAM: "at the same step, or as long after a start",
        }
        those = count(failures, "failure")
        yield f"each of {those} of a worker comes again {comes[follows]} (--follows=time, node or program)"
    program = chronicle.program
    if program.first is None and chronicle.is_over:
        does = "goes on where it stopped" if any(map(goes_on, chronicle.spans.values())) else "begins anew"
        yield f"the program tells no steps (elastic.progress): after a restart it {does}"
    if program.checkpoints and replayed.setting.checkpoint_every:
        yield from _saving(program.checkpoints)
        if supposed and supposed.setting.checkpoint_every:
            yield from _rounded_up(chronicle, program.checkpoints, supposed.setting.checkpoint_every)
    elif program.first is not None and not any(each.lost for each in chronicle.spans.values()):
        yield "no restart told its steps: after one the program would do all of them again"
    if any(each.kind is Outside.KILL for each in chronicle.incidents):
        yield "until the loss of a node is noticed, the workers of the others train on, as if they never waited for it"
    if supposed and not chronicle.is_over:
        yield "the job had not ended: its runs last as long as its traces do"
    elif supposed and not chronicle.has_succeeded:
        yield "no worker succeeded: how much was left to do is not known, so the runs last as long as the traces at most"


def _saving(known: Checkpoints) -> Iterator[str]:
    every = f"each restart begins after the last save; one came each {span(round(1e6 * known.every_s))}"
    if known.stop_s:
        yield f"{every}, and stopped the training for {span(round(1e6 * known.stop_s))} (busy span {CHECKPOINT})"
    else:
        yield f"{every}, and cost nothing: no worker that told of one was busy with {CHECKPOINT}"


def _rounded_up(chronicle: Chronicle, known: Checkpoints, asked_s: float) -> Iterator[str]:
    """Yield how often the supposed saves come, where that is another interval than the one that was asked for."""
    each_s = saves_each_s(chronicle, known, asked_s)
    if math.isfinite(each_s) and abs(each_s - asked_s) > OTHERWISE * asked_s:
        asked, each = (span(round(1e6 * seconds)) for seconds in (asked_s, each_s))
        yield f"a save comes at the end of a step: where one each {asked} is supposed, one came each {each}"


def job_data(replayed: Forecast, supposed: Forecast | None, follows: Follows) -> Any:
    """Return the same as data."""
    chronicle = replayed.chronicle
    return {
        "format": FORMAT,
        "job": chronicle.job,
        "run_id": chronicle.run_id,
        "follows": follows.value,
        "runs": len(replayed.played),
        "off": replayed.off if math.isfinite(replayed.off) else None,
        "agreeing": replayed.agreeing,
        "ends": [kind.value for kind in chronicle.ends],
        "shares": list(_shares(replayed, supposed)),
        "assumed": list(_assumed(replayed, supposed, follows)),
        "doubtful": list(_strays(replayed)),
    }


def _shares(replayed: Forecast, supposed: Forecast | None) -> Iterator[Any]:
    columns = {"replayed": replayed, **({"supposed": supposed} if supposed else {})}
    for bucket, kind in _keys(tuple(columns.values())):
        row: dict[str, Any] = {
            "bucket": bucket,
            "cause": kind.value,
            "recorded_micros": replayed.chronicle.recorded.get((bucket, kind), 0),
        }
        for name, column in columns.items():
            mean, spread = column.mean(bucket, kind)
            row[f"{name}_micros"], row[f"{name}_spread_micros"] = round(mean), round(spread)
        yield row
