"""Registers with many seats, as if so many nodes had come."""

from __future__ import annotations

from attrs import evolve

from elastic.core.rendezvous import Limits, RendezvousState, verify
from elastic.core.rendezvous.state import Seat, Status, blank
from elastic.core.world import Endpoint, Life, Node, Profile


def seated(nodes: int, workers: int) -> RendezvousState:
    """A register of a running round of so many nodes, each with so many workers."""
    life = Life("many")
    profiles = [
        Profile(Endpoint(f"10.0.{n // 256}.{n % 256}", 29_400), workers, host=f"gpu-{n:04d}") for n in range(nodes)
    ]
    seats = {Node(f"gpu-{n:04d}", 1): Seat(Status.IN, n, profile) for n, profile in enumerate(profiles)}
    state = evolve(
        blank(life, Limits(1, nodes, 3)),
        version=1,
        complete=True,
        seats=seats,
        next_order=nodes,
        completed_in=life,
        quorum_at=1,
        base=(),
    )
    verify(state)
    return state
