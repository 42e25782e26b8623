"""A wrapper's `finalize`: it tidies up on the main thread, when an iteration is over and its communication torn down."""

from __future__ import annotations

import abc
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from ..adapters.inprocess.wrapper.health_checks import TimedOut, within
from ..adapters.inprocess.wrapper.parameters import Duration, span
from .exception import TimeoutError
from .state import FrozenState


class Finalize(abc.ABC):
    """Called after each fault, before the health check. The call raises what it raises: its rank leaves."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""


class ThreadedFinalize(Finalize):
    """Calls a function in its own thread, on the GPU of the calling thread. Raises its error, or TimeoutError."""

    def __init__(
        self,
        timeout: Duration | timedelta,
        fn: Callable[..., object],
        args: tuple[Any, ...] | None = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._timeout_s = span("timeout", timeout)
        self._fn, self._args, self._kwargs = fn, args or (), kwargs or {}

    def __call__(self, state: FrozenState) -> FrozenState:
        torch: Any = sys.modules.get("torch")
        has_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
        device = torch.cuda.current_device() if has_gpu else None

        def run(_: FrozenState) -> None:
            if device is not None:
                torch.cuda.set_device(device)
            self._fn(*self._args, **self._kwargs)

        try:
            within(self._timeout_s, run)(state)
        except TimedOut as late:
            name = getattr(self._fn, "__qualname__", self._fn)
            raise TimeoutError(f"finalize by {name}: not done within {self._timeout_s:g} s") from late
        return state
