"""The failure records of a job in a store that keeps bytes: how many are shown, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...core.rendezvous import codec
from ...core.world import Fault
from .port import FAULTS_MAX

FAULTS_HALF = FAULTS_MAX // 2
"""The number of first failures that are shown, and of last ones."""


def read_faults(records: Iterable[bytes]) -> tuple[Fault, ...]:
    """Return the faults that these records hold, by round. A record that cannot be read is left out."""
    return tuple(sorted(_readable(records), key=lambda fault: fault.round))


def _readable(records: Iterable[bytes]) -> Iterator[Fault]:
    for data in records:
        try:
            yield codec.decode_fault(data)
        except codec.Refused:
            continue
