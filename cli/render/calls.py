"""What simulated calls showed, for people and for programs."""

from __future__ import annotations

from ...adapters.simulations.campaign import Calls
from ...core.sim.calls.walk import Walk
from ...core.sim.tally import Tally
from .simulation import ENOUGH, TIE, line, rarest_of, row, span, violations_of
from .words import many

FAULT = "fault: "


def summary(what: Calls, tally: Tally, took_s: float) -> list[str]:
    """The closing table."""
    head = many(tally.runs, "run"), many(tally.steps, "step"), f"{tally.steps / took_s:,.0f} steps/s", span(took_s)
    again = f"elastic simulate --calls --seed {what.seed:#x} --only RUN"
    warns = tally.runs >= ENOUGH and tally.never
    return [
        f" {' · '.join(head)}",
        *row("faults", "  ".join(_faults(tally)) or "none"),
        *row("seen", rarest_of(tally)),
        *(row("never seen", ", ".join(tally.never)) if tally.never else ()),
        *(row("WARNING", "in so many runs all should be seen: these prove nothing about it") if warns else ()),
        *row("violations", violations_of(tally)),
        line("seed", f"{what.seed:#x} · any run again: {again}"),
    ]


def _faults(tally: Tally) -> list[str]:
    """The most frequent first."""
    counted = [(often, what.removeprefix(FAULT)) for what, often in tally.counts.items() if what.startswith(FAULT)]
    return [
        f"{what.replace(' ', TIE)}{TIE}{often:,}"
        for often, what in sorted(counted, key=lambda each: (-each[0], each[1]))
    ]


def told(walk: Walk) -> list[str]:
    """One run: a line for each step of a thread, each fault, each limit that passes, with the rank that it is of."""
    steps = [f"{number:6}  rank {move}" for number, move in enumerate(walk.moves, 1)]
    end = line("VIOLATION", walk.broken[1]) if walk.broken else f" no violation · {many(walk.steps, 'step')}"
    return [*steps, "", end]


def data(what: Calls, tally: Tally, took_s: float) -> dict[str, object]:
    return {
        "seed": f"{what.seed:#x}",
        "runs": tally.runs,
        "steps": tally.steps,
        "took_s": took_s,
        "steps_per_s": tally.steps / took_s,
        "sometimes": {each: {"runs": tally.seen[each], "times": tally.counts[each]} for each in tally.sometimes},
        "never": list(tally.never),
        "violations": [
            {"run": run, "number": number, "fact": broken.fact}
            for number, all_of in tally.broken.items()
            for run, broken in all_of
        ],
    }


def told_data(number: int, walk: Walk) -> dict[str, object]:
    broken = {"number": walk.broken[0], "fact": walk.broken[1]} if walk.broken else None
    return {"run": number, "steps": walk.steps, "violation": broken, "told": [str(move) for move in walk.moves]}
