"""A wrapper's `abort`: what frees the main thread from waiting for ranks that are gone. It runs in its own thread."""

from __future__ import annotations

import abc
import sys
from typing import Any

from ..adapters.inprocess.rank import aborts
from .state import FrozenState


class Abort(abc.ABC):
    """Called when an iteration is over, while the main thread leaves the function."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""


class AbortTorchDistributed(Abort):
    """Make every wait in a collective raise, and destroy all process groups."""

    def __init__(self, torch_fr_trace_path: str | None = None) -> None:
        """Raises ValueError for a path: torch writes what its flight recorder holds by itself, on a time-out."""
        if torch_fr_trace_path is not None:
            raise ValueError(
                f"torch_fr_trace_path={torch_fr_trace_path!r}: no trace is written here. Set TORCH_NCCL_DUMP_ON_TIMEOUT "
                "and TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
            )
        self._abort = aborts.AbortTorchDistributed()

    def __call__(self, state: FrozenState) -> FrozenState:
        self._abort(state)
        return state


class AbortTransformerEngine(Abort):
    """Let go of the buffers and groups that Transformer Engine keeps, if the program has imported it."""

    def __call__(self, state: FrozenState) -> FrozenState:
        engine: Any = sys.modules.get("transformer_engine.pytorch")
        if engine is not None:
            engine.module.base.destroy_ub()
        precision: Any = sys.modules.get("transformer_engine.pytorch.fp8")
        if precision is not None:
            precision.FP8GlobalStateManager.reset()
        return state


class AbortPersistentCheckpointProcesses(Abort):
    """End the checkpoint writers of nvidia-resiliency-ext, if the program has imported them."""

    def __call__(self, state: FrozenState) -> FrozenState:
        writers: Any = sys.modules.get("nvidia_resiliency_ext.checkpointing.async_ckpt.core")
        if writers is not None:
            writers.abort_nvrx_checkpoint()
        return state
