"""A note tells people of a node's standbys. Nothing is decided by it."""

from __future__ import annotations

from attrs import frozen


@frozen
class StandbyNote:
    """The standbys of one node: how many are ready, and how many seconds the imports of the last one took."""

    ready: int
    imports_s: float | None
    """None if no standby has been ready yet."""
