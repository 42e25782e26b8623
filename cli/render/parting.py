"""How a node that the register names as lost went, as far as somebody knows who has looked on.

The register says who was thrown out, and not on what evidence. Without a heartbeat for a TTL anybody may throw a node out;
sooner only one whose link to its agent has ended, and whose port refuses. So the age of the last heartbeat tells them apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType

from ...core.rendezvous import Limits
from ...core.values import frozen
from ...core.world import Node

_BEATS = re.compile(r"keep_alive_interval=(?P<interval>[\d.e+-]{1,20}),keep_alive_max_attempt=(?P<attempts>\d{1,9})")


LOOKS_S = 2.0
"""Whoever has not looked for longer than this does not know when a heartbeat came."""


@frozen
class Quiet:
    """A node's heartbeat had not been a new one for this long, at least and at most: between two looks nobody knows."""

    least_s: float
    most_s: float


LONG = Quiet(math.inf, math.inf)
"""A lease is gone: a TTL has passed, and nobody knows how much more."""
NOBODY: Mapping[Node, Quiet] = MappingProxyType({})


def ttl_of(limits: Limits) -> float | None:
    """Return after how much silence the agents of this job hold a node for lost; None if they have not written it down."""
    beats = _BEATS.search(limits.agreed)
    try:
        return float(beats["interval"]) * int(beats["attempts"]) if beats else None
    except ValueError:
        return None


def why_lost(quiet: Quiet | None, ttl: float | None) -> str:
    """Return on what evidence a node was thrown out, after a colon; nothing if that is not known."""
    if quiet is None or ttl is None or (quiet.least_s < ttl <= quiet.most_s > quiet.least_s + LOOKS_S):
        return ""
    if quiet.most_s < ttl:
        return ": its agent died"
    return f": no heartbeat for {ttl if quiet == LONG else max(quiet.least_s, ttl):.1f} s"
