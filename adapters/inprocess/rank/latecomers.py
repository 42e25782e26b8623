"""Warnings of ranks that come too late for the first iteration of a call. Nobody waits for them for ever, and they return
None if no other iteration follows."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ....core.rendezvous import Seen, Settings, Told
from ....core.world import Node, World
from ...rendezvous.loop import LoopNotice

log = logging.getLogger("elastic.inprocess")

NAMED = 8
"""How many of the missing ranks are named."""


class Latecomers:
    """The news of one rank's register, read for ranks that are late before it is posted."""

    def __init__(self, post: Callable[[LoopNotice], None], me: Node, settings: Settings, world_size: int) -> None:
        """`world_size` is the launcher's."""
        self._post, self._me, self._settings, self._world_size = post, me, settings, world_size
        self._is_told = False

    def told(self, notice: LoopNotice) -> None:
        """Warn on the first rank of those that are missing, and on a late rank of itself: each once."""
        self._warn(notice)
        self._post(notice)

    def _warn(self, notice: LoopNotice) -> None:
        match notice:
            case Told(answer=World() as world) if not self._is_told:
                self._is_told = True
                if world.round == 0 and world.nodes[0] == self._me:
                    self._tell_missing(world)
            case Seen(state) if not self._is_told and state.complete and self._me not in state.members:
                self._is_told = True
                if self._settings.upscale_after:
                    text = "rank %s comes too late: it waits for the next iteration, and returns None if there is none"
                    log.warning(text, self._me.slot)

    def _tell_missing(self, world: World) -> None:
        if len(world.nodes) >= self._settings.first_target:
            return
        here = {node.slot.partition("+")[0] for node in world.nodes}
        missing = [str(rank) for rank in range(self._world_size) if str(rank) not in here]
        log.warning(
            "the first iteration begins without %s of %s ranks (%s%s), which did not come in %g s (barrier_timeout)",
            len(missing),
            self._world_size,
            ", ".join(missing[:NAMED]),
            ", …" if len(missing) > NAMED else "",
            self._settings.first_call_timeout,
        )
