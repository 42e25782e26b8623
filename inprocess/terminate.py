"""The base class of a wrapper's `terminate`."""

from __future__ import annotations

import abc

from .state import FrozenState


class Terminate(abc.ABC):
    """Called when this rank leaves for good."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""
