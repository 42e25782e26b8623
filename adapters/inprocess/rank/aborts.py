"""Aborts: they tear down an iteration's communication while the main thread may be blocked in it.

An abort is given as a wrapper's `abort`. It runs in its own thread while the main thread leaves the function, and never
during an atomic section. Afterwards `init_process_group` can be called again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol, cast

from .callbacks import State
from .torch_sockets import shut_gloo, shut_store

_held: list[object] = []
"""The last iteration's groups, which must outlive its frames. A DistributedDataParallel that drops the last reference to a
group waits for gloo's thread while it holds the interpreter's lock, and that thread needs the lock to let go of a collective
(torch 2.13). The group's own Python object, dropped last, releases the lock first."""
_HOOK = "init_process_group.<locals>._distributed_excepthook"


def forget_groups() -> None:
    """Drop the last iteration's groups, when none of its frames holds them any more, torch's count of them and its hooks.

    torch names a group by its number, and begins anew when the groups are destroyed. A rank that was called back from within
    `init_process_group` has counted a group that torch does not know: it would wait for the others under another name.
    """
    _held.clear()
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and not distributed.is_initialized():
        distributed.distributed_c10d._world.group_count = 0
        _drop_hooks()


def has_groups() -> bool:
    """Return True if torch has process groups. They would outlive the first restart."""
    distributed: Any = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and bool(distributed.is_initialized())


def _drop_hooks() -> None:
    """Drop torch's exception hooks. Each `init_process_group` puts one before the last, which writes its rank before each
    line of a traceback: after a thousand of them no traceback could be written."""
    while getattr(hook := cast(Any, sys.excepthook), "__qualname__", "") == _HOOK:
        kept = dict(zip(hook.__code__.co_freevars, hook.__closure__, strict=True))
        if "old_hook" not in kept:
            return  # another version of torch
        sys.excepthook = kept["old_hook"].cell_contents


class Distributed(Protocol):
    """The part of torch.distributed that an abort uses."""

    def groups(self) -> Sequence[object]:
        """Return all process groups."""

    def is_initialized(self) -> bool: ...
    def has_nccl(self) -> bool:
        """Return True if any process group communicates by NCCL."""

    def abort_all(self) -> None:
        """Abort every group's communicators, as one NCCL group, and forget the groups."""

    def destroy(self) -> None:
        """Forget the groups."""


class AbortTorchDistributed:
    """Make every wait in a collective of gloo or NCCL, or for this iteration's TCPStore, raise; then destroy the groups.

    Set TORCH_NCCL_ASYNC_ERROR_HANDLING=0, so that NCCL's own watchdog does not abort as well.
    """

    def __init__(self, distributed: Distributed | None = None) -> None:
        self._distributed = distributed

    def __call__(self, state: State) -> None:
        if self._distributed is None and "torch.distributed" not in sys.modules:
            return
        distributed = self._distributed or Torch()
        _held.extend(distributed.groups())
        with ExitStack() as rest:  # the last comes first, and each part runs even if another fails
            rest.callback(_destroy, distributed)
            rest.callback(_abort_nccl, distributed)
            rest.callback(_shut_store)
            rest.callback(shut_gloo)


def _shut_store() -> None:
    if port := os.environ.get("MASTER_PORT"):
        shut_store(int(port))


def _abort_nccl(distributed: Distributed) -> None:
    if distributed.is_initialized() and distributed.has_nccl():
        distributed.abort_all()


def _destroy(distributed: Distributed) -> None:
    if distributed.is_initialized():
        distributed.destroy()


class Torch:
    """The torch.distributed that the program has imported."""

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
        """Return the groups, the youngest first: a communicator is split off an older one."""
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
