"""Aborts: what tears down an iteration's means of communication, beside the main thread that may be blocked in them.

To be given as a wrapper's `abort`. It runs in a thread of its own while the main thread leaves the function, in no atomic
section. Afterwards `init_process_group` can be called again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Protocol, cast

from .callback_state import State
from .connections import shut_gloo, shut_store

_held: list[object] = []
"""Groups of the last iteration. They must outlive its frames: a DistributedDataParallel that is the last to drop a group
waits for gloo's thread with the interpreter's lock held, which that thread needs to let go of a collective (torch 2.13). As
the last to go, the group's own Python object gives the lock up first."""


def forget_groups() -> None:
    """Nothing of the last iteration holds them any more."""
    _held.clear()


class Distributed(Protocol):
    """What is used of torch.distributed."""

    def groups(self) -> Sequence[object]:
        """All process groups."""

    def is_initialized(self) -> bool: ...
    def has_nccl(self) -> bool:
        """Whether any process group communicates by NCCL."""

    def abort_all(self) -> None:
        """Abort every group's communicators, as one NCCL group, and forget the groups."""

    def destroy(self) -> None:
        """Forget the groups."""


class AbortTorchDistributed:
    """Whatever waits in a collective of gloo or NCCL, or for this iteration's TCPStore, raises; the groups are destroyed.

    NCCL's own watchdog should not abort as well: set TORCH_NCCL_ASYNC_ERROR_HANDLING=0.
    """

    def __init__(self, distributed: Distributed | None = None) -> None:
        self._distributed = distributed

    def __call__(self, state: State) -> None:
        if self._distributed is None and "torch.distributed" not in sys.modules:
            return
        distributed = self._distributed or Torch()
        _held.extend(distributed.groups())
        shut_gloo()
        if port := os.environ.get("MASTER_PORT"):
            shut_store(int(port))
        if distributed.is_initialized() and distributed.has_nccl():
            distributed.abort_all()
        if distributed.is_initialized():
            distributed.destroy()


class Torch:
    """The torch that the program has imported."""

    def __init__(self) -> None:
        import torch.distributed

        self._torch: Any = torch
        self._c10d: Any = torch.distributed.distributed_c10d

    def is_initialized(self) -> bool:
        return cast(bool, self._torch.distributed.is_initialized())

    def has_nccl(self) -> bool:
        return any(self._nccl(group) is not None for group in self.groups())

    def abort_all(self) -> None:
        if hasattr(self._c10d, "_abort_process_group"):
            self._c10d._abort_process_group()
            return
        for group in self.groups():  # before torch 2.6
            if (backend := self._nccl(group)) is not None:
                backend._shutdown()

    def destroy(self) -> None:
        self._torch.distributed.destroy_process_group()

    def groups(self) -> list[Any]:
        """The youngest first: a communicator is split off an older one."""
        names = self._c10d._world.pg_names
        return sorted(names, key=lambda group: names[group], reverse=True)

    def _nccl(self, group: Any) -> Any:
        if not self._torch.distributed.is_nccl_available():
            return None
        try:
            backend = group._get_backend(self._torch.device("cuda"))
        except RuntimeError:
            return None  # none for that device
        return backend if isinstance(backend, self._c10d.ProcessGroupNCCL) else None
