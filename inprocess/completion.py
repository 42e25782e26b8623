"""The base class of a wrapper's `completion`."""

from __future__ import annotations

import abc

from .state import FrozenState


class Completion(abc.ABC):
    """Called when the call has succeeded on all ranks. What it raises is logged."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""
