"""The result of simulated calls, for people and for programs."""

from __future__ import annotations

from ...adapters.simulations.campaign import FAULT, Calls
from ...core.sim.calls.call_strength import LAWS
from ...core.sim.calls.node_laws import LAWS as OVER_NODES
from ...core.sim.calls.walk import Walk
from ...core.sim.tally import Tally
from .node_runs import ENOUGH, TIE, duration, found, found_data, line, verdict
from .text import many


def summary(what: Calls, tally: Tally, took_s: float, strengths: bool = False) -> list[str]:
    """Return the closing table, as `node_runs` does."""
    head = many(tally.runs, "run"), many(tally.steps, "step"), f"{tally.steps / took_s:,.0f} steps/s", duration(took_s)
    own = "".join(f" --property={path}:{name}" for path, name in what.properties)
    over = "" if what.nodes is None else f" --nodes {what.nodes}"
    again = f"elastic simulate --calls{over}{own} --seed {what.seed:#x} --only RUN"
    proves_nothing = "so many runs should show all of them: these runs prove nothing about what they never showed"
    missed = tally.runs >= ENOUGH and (tally.never or tally.unarmed)
    return [
        f" {' · '.join(head)}",
        *verdict(tally, f"{what.seed:#x} · any run again: {again}"),
        *found(tally, _faults(tally), proves_nothing if missed else "", strengths, {**LAWS, **OVER_NODES}),
    ]


def _faults(tally: Tally) -> list[str]:
    """Return the faults, the most frequent first."""
    counted = [(often, what.removeprefix(FAULT)) for what, often in tally.counts.items() if what.startswith(FAULT)]
    return [
        f"{what.replace(' ', TIE)}{TIE}{often:,}"
        for often, what in sorted(counted, key=lambda each: (-each[0], each[1]))
    ]


def told(walk: Walk) -> list[str]:
    """Return one run: a line for each step of a thread, each fault and each limit that passes, with its rank."""
    times = [f"{at:10.3f} s  " for at in walk.times] or [""] * len(walk.moves)
    steps = [f"{number:6}  {at}rank {move}" for number, (at, move) in enumerate(zip(times, walk.moves, strict=True), 1)]
    end = line("VIOLATION", walk.broken[1]) if walk.broken else f" no violation · {many(walk.steps, 'step')}"
    return [*(walk.told or steps), "", end]


def data(what: Calls, tally: Tally, took_s: float) -> dict[str, object]:
    return {
        "seed": f"{what.seed:#x}",
        "runs": tally.runs,
        "steps": tally.steps,
        "took_s": took_s,
        "steps_per_s": tally.steps / took_s,
        **found_data(tally),
    }


def told_data(number: int, walk: Walk) -> dict[str, object]:
    broken = {"number": walk.broken[0], "fact": walk.broken[1]} if walk.broken else None
    told_moves = [*walk.told] or [str(move) for move in walk.moves]
    return {"run": number, "steps": walk.steps, "violation": broken, "told": told_moves}
