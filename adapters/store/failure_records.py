"""A job's record of failures where a store keeps bytes: which of many are shown, and what can be read of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...core.rendezvous import codec
from ...core.world import Fault
from .port import FAULTS_MAX

FAULTS_HALF = FAULTS_MAX // 2
"""So many of the first are shown, and of the last."""


def read_faults(records: Iterable[bytes]) -> tuple[Fault, ...]:
    """In the order in which they were put; by round, as the port has them."""
    return tuple(sorted(_readable(records), key=lambda fault: fault.round))


def _readable(records: Iterable[bytes]) -> Iterator[Fault]:
    for data in records:
        try:
            yield codec.decode_fault(data)
        except codec.Refused:
            continue  # a report does without what nobody can read
