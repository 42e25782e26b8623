"""The clock that torch's modules read in a simulated world. It is the only part of torch that is replaced.

`time` and `datetime` in the modules of the rendezvous and the agent show the clocks of the process whose thread runs. The
only random value in torch (a delay of up to 0.3 s before the first round) is seeded, and logging is off. Agents do not share
their store with the workers (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1). With sharing, the default, torch 2.13 cannot let a new
agent into a later round at all, and little would be left to compare.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

import torch.distributed.elastic.agent.server.api as agent
import torch.distributed.elastic.rendezvous.dynamic_rendezvous as dynamic
import torch.distributed.elastic.rendezvous.utils as utils

EPOCH_S = 1_700_000_000.0
SHARING_OFF = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


class Clocks(Protocol):
    """The clocks of a world, as torch's modules read them."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def sleeps(self, span: float) -> None: ...


class _Time:
    def __init__(self, clocks: Clocks) -> None:
        self.monotonic = self.perf_counter = clocks.monotonic
        self.time = clocks.wall
        self.sleep = clocks.sleeps


class _Datetime:
    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks

    def now(self, tz: tzinfo | None = None) -> datetime:
        return datetime.fromtimestamp(EPOCH_S + self._clocks.wall(), tz or UTC)


@contextmanager
def clocked(clocks: Clocks, seed: int) -> Iterator[None]:
    """Let torch's elastic modules read these clocks while the context lasts."""
    rendezvous: Any = dynamic
    modules: tuple[Any, ...] = (rendezvous, utils, agent)
    times, dates = [module.time for module in modules], rendezvous.datetime
    chance, sharing, disabled = random.getstate(), os.environ.get(SHARING_OFF), logging.root.manager.disable
    for module in modules:
        module.time = _Time(clocks)
    rendezvous.datetime = _Datetime(clocks)
    random.seed(seed)
    logging.disable(logging.CRITICAL)
    os.environ[SHARING_OFF] = "1"
    try:
        yield
    finally:
        for module, time in zip(modules, times, strict=True):
            module.time = time
        rendezvous.datetime = dates
        random.setstate(chance)
        logging.disable(disabled)
        if sharing is None:
            del os.environ[SHARING_OFF]
        else:
            os.environ[SHARING_OFF] = sharing
