"""Jobs for tests of `what-if`: what came from outside, by hand, and traces of it that the simulator writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elastic.adapters.report.packed_lines import packed
from elastic.core.goodput import Kind
from elastic.core.group import Settings as GroupSettings
from elastic.core.rendezvous import Limits, Settings
from elastic.core.replay.chronicle import Checkpoints, Chronicle, Incident, Outside, Program, Spans, Timing
from elastic.core.trace.forms import Shape
from elastic.core.trace.lines import encoded
from elastic.core.trace.steps import Trace
from elastic.core.world import Endpoint, Profile

SPANS = Spans(
    execs=(0.01, 0.02),
    cold=(2.0,),
    warm=(1.0, 1.2),
    stops=(0.3, 0.4),
    ends=(0.1,),
    lost=(4, 5),
    step_s=0.25,
)
PROGRAM = Program(speaks=True, first=0, last=199)
SAVES = Program(
    speaks=True,
    first=0,
    last=199,
    busy=(("checkpoint", 0.05),),
    checkpoints=Checkpoints(every_s=10.0, stop_s=0.5, busy_s=0.5),
)
"""It saves each ten seconds, for half a second."""
LIMITS = Limits(2, 2, 3)
GROUP = GroupSettings(grace=5.0, shutdown_timeout=5.0)


def starts(*slots: str) -> tuple[Incident, ...]:
    return tuple(Incident(at / 10, Outside.START, slot) for at, slot in enumerate(slots))


def job(
    *incidents: Incident,
    slots: tuple[str, ...] = ("north", "south"),
    limits: Limits = LIMITS,
    spans: Spans | Mapping[str, Spans] = SPANS,
    program: Program = PROGRAM,
    settings: Settings | None = None,
    group: GroupSettings = GROUP,
    links: bool = True,
    until: float = 80.0,
    is_over: bool = True,
) -> Chronicle:
    those = (*starts(*slots), *incidents)
    return Chronicle(
        "by hand",
        until,
        is_over,
        slots,
        Profile(Endpoint("north", 1), 1, link_port=int(links)),
        settings or Settings(limits, last_call_timeout=1.0),
        group,
        tuple(sorted(those, key=lambda each: each.at)),
        {slot: spans if isinstance(spans, Spans) else spans[slot] for slot in slots},
        program,
        Timing((0.0005, 0.001)),
        dict[tuple[str, Kind], int](),
        (),
    )


def fails(at: float, slot: str = "south", **more: float) -> Incident:
    return Incident(at, Outside.FAIL, slot, **more)  # type: ignore[arg-type]


def written(folder: Path, trace: Trace) -> Path:
    """Write a trace to a file, packed as an agent's is."""
    lines, last = list[bytes](), None
    recent: tuple[Shape, ...] = ()
    for each in (trace.header, *trace.steps):
        line, last = encoded(each, last)
        line, recent = packed(line, recent)
        lines.append(line)
    file = folder / f"{trace.header.node}.ndjson"
    file.write_bytes(b"".join(lines))
    return file
