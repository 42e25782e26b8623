"""`torchrun --rdzv-backend=elastic`: torch's parameters -> settings -> our rendezvous under torch's agent.

torch loads `handler` in every torchrun that finds this package, so nothing is imported before somebody asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters

STORES = ("c10d", "etcd", "memory")
GRACE_S = 30.0
"""torch's agent gives its workers so long to end before it comes back."""


def handler() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """What the entry point group `torchrun.handlers` is to give: who makes the handler."""
    return create


def create(parameters: RendezvousParameters) -> RendezvousHandler:
    """Raises ValueError for a parameter that cannot be meant, in the words in which `elastic launch` refuses it."""
    from ..adapters.clock import SystemClock
    from ..adapters.torch.torchrun_plugin import ElasticRendezvous
    from . import nodes, tokens
    from .mistakes import Mistake, one_line

    clock = SystemClock()
    try:
        given = _given(parameters)
        where = nodes.place(given, os.environ, tokens.store_token(given["rdzv_conf"], os.environ))
        settings = nodes.settings(given)
        address = parameters.local_addr or where.own_address()
        connection = where.open(parameters.run_id, clock, settings)
    except Mistake as mistake:
        raise ValueError(one_line(mistake)) from None
    return ElasticRendezvous(connection, parameters.run_id, address, settings, clock)


def _given(parameters: RendezvousParameters) -> Mapping[str, Any]:
    """The options of `elastic launch` that say the same. torch's agents count their restarts by themselves, so the register
    allows any number; by that an agent of `elastic launch`, whose workers would not find these, is refused."""
    from ..core.world import COUNT_MAX
    from . import values
    from .mistakes import Mistake

    conf = {key: str(value).strip() for key, value in parameters.config.items()}
    try:
        endpoint = values.endpoints(parameters.endpoint or "")
    except ValueError as reason:
        raise Mistake(f"--rdzv-endpoint={parameters.endpoint}: {reason}") from None
    store = conf.pop("store", endpoint.scheme if endpoint and endpoint.scheme == "etcd" else "c10d")
    if store not in STORES:
        raise Mistake(f"--rdzv-conf: store={store}: write {', '.join(STORES[:-1])} or {STORES[-1]}")
    if store == "memory" and parameters.max_nodes > 1:
        raise Mistake(f"--rdzv-conf: store=memory: is for one node, not {parameters.max_nodes}; write store=c10d")
    return {
        "nnodes": (parameters.min_nodes, parameters.max_nodes),
        "standalone": store == "memory",
        "rdzv_backend": store,
        "rdzv_endpoint": endpoint,
        "rdzv_id": parameters.run_id,
        "rdzv_conf": conf,
        "max_restarts": COUNT_MAX - 1,
        "grace": GRACE_S,
        "last_call": None,
    }
