"""Failures in an etcd: read in the order in which they were put, a few at a time, and of many the first and the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..failure_records import FAULTS_HALF
from .members import ranged
from .rpc import rpc
from .run_client import Client

FAULTS_PER_PAGE = 8


def records(client: Client) -> Iterator[bytes]:
    first = _some(client, rpc.RangeRequest.ASCEND, 0)
    last = _some(client, rpc.RangeRequest.DESCEND, first[-1].create_revision) if len(first) == FAULTS_HALF else []
    for kv in (*first, *reversed(last)):
        yield kv.value


def _some(client: Client, order: int, after: int) -> list[Any]:
    """Of those that were put after this revision so many, in this order; a few at a time, since each may be large."""
    found: list[Any] = []
    until = 0
    while len(found) < FAULTS_HALF:
        page = client.keys.below(
            "faults",
            sort_target=rpc.RangeRequest.CREATE,
            sort_order=order,
            min_create_revision=after + 1,
            max_create_revision=until,
            limit=FAULTS_PER_PAGE,
        )
        kvs = client.ask(ranged, page).kvs
        found += kvs
        if len(kvs) < FAULTS_PER_PAGE:
            break
        if order == rpc.RangeRequest.ASCEND:
            after = kvs[-1].create_revision
        else:
            until = kvs[-1].create_revision - 1
    return found
