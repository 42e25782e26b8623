"""What one write of a node costs in the core: apply (with settle), verify, verify_step, at 8, 64 and 512 seats.

    python benchmarks/core_edit.py

Prints medians in microseconds, and whether apply + verify stays within 1 ms at 512 seats.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

from elastic.core.rendezvous import (
    Arrive,
    Done,
    Edit,
    End,
    Evict,
    Limits,
    RendezvousState,
    apply,
    blank,
    verify,
    verify_step,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.world import Endpoint, Life, Node, Profile, Why

SIZES = (8, 64, 512)
BUDGET_US = 1_000.0


def node(number: int) -> Node:
    return Node(f"10.0.{number // 256}.{number % 256}/{number:08x}", 1_700_000_000_000)


def arrival(number: int) -> Arrive:
    return Arrive(Profile(Endpoint(f"10.0.{number // 256}.{number % 256}", 29_500), 8, host=f"gpu-{number:04}"))


def arrived(nodes: int, limits: int) -> RendezvousState:
    state = blank(Life("benchmark"), Limits(1, limits, 3))
    for number in range(nodes):
        state = apply(state, arrival(number), node(number))
    return state


def cases(nodes: int) -> dict[str, tuple[RendezvousState, Edit, Node]]:
    """Name -> (the state before, the edit, who makes it)."""
    full = arrived(nodes, nodes)
    return {
        "last arrival": (arrived(nodes - 1, nodes), arrival(nodes - 1), node(nodes - 1)),
        "done": (full, Done(0), node(nodes // 2)),
        "end": (full, End(0, Why.FAILED), node(nodes // 2)),
        "evict": (full, Evict(frozenset([node(nodes - 1)])), node(0)),
    }


def median_us(act: Callable[[RendezvousState], object], fresh: Callable[[], RendezvousState], runs: int = 200) -> float:
    """Each run on a value of its own: what a value has derived once, it keeps."""
    spans = []
    for _ in range(runs):
        state = fresh()
        start = time.perf_counter()
        act(state)
        spans.append(time.perf_counter() - start)
    return median(spans) * 1e6


def main() -> None:
    worst = 0.0
    print(f"{'nodes':>5}  {'edit':<13}{'apply':>9}{'verify':>9}{'step':>9}{'together':>10}   µs, medians")
    for nodes in SIZES:
        for name, (before, edit, me) in cases(nodes).items():
            data, step = encode(before), encode(apply(before, edit, me))
            applied = median_us(partial(apply, edit=edit, me=me), partial(decode, data))
            verified = median_us(verify, partial(decode, step))
            stepped = median_us(partial(verify_step, before), partial(decode, step))
            worst = max(worst, applied + verified) if nodes == max(SIZES) else worst
            total = applied + verified + stepped
            print(f"{nodes:>5}  {name:<13}{applied:>9.1f}{verified:>9.1f}{stepped:>9.1f}{total:>10.1f}")
    within = "within" if worst <= BUDGET_US else "ABOVE"
    print(f"apply + verify at {max(SIZES)} nodes: {worst:.0f} µs at most, {within} the budget of {BUDGET_US:.0f} µs")


if __name__ == "__main__":
    main()
