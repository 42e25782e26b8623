"""`torchrun --rdzv-backend=elastic`: torch's parameters -> settings -> our rendezvous under torch's agent.

torch loads `handler` in every torchrun that finds this package, so nothing is imported until a rendezvous is made.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters

    from .launch_options import LaunchOptions

STORES = ("c10d", "etcd", "memory")
GRACE_S = 30.0
"""How long torch's agent lets its workers end before it comes back."""


def handler() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """Return the maker of the handler, as the entry points of `torchrun.handlers` must."""
    return create


def create(parameters: RendezvousParameters) -> RendezvousHandler:
    """Return the handler. Raises ValueError for a bad parameter, in the words in which `elastic launch` refuses it."""
    from ..adapters.clock import SystemClock
    from ..adapters.torch.torchrun_plugin import ElasticRendezvous
    from . import places, tokens
    from .mistakes import Mistake, one_line
    from .rendezvous_settings import ports, rendezvous_settings

    clock = SystemClock()
    try:
        options = _options(parameters)
        where = places.place(options, os.environ, tokens.store_token(options.rdzv_conf, os.environ))
        settings, listens_at = rendezvous_settings(options), ports(options, where.port)
        address = parameters.local_addr or where.own_address()
        connection = where.open(parameters.run_id, clock, settings, _warn)
    except Mistake as mistake:
        raise ValueError(one_line(mistake)) from None
    return ElasticRendezvous(connection, parameters.run_id, address, settings, clock, listens_at)


def _warn(text: str) -> None:
    from ..adapters.terminal import printable

    logging.getLogger(__name__).warning("%s", printable(text))


def _options(parameters: RendezvousParameters) -> LaunchOptions:
    """Return the options of `elastic launch` that say the same. Raises Mistake.

    torch's agents count their restarts by themselves, so the register allows any number. The limit also keeps out agents of
    `elastic launch`, whose workers would not find those of torch.
    """
    from ..core.rendezvous import Limits
    from ..core.world import COUNT_MAX
    from . import values
    from .launch_options import LaunchOptions
    from .mistakes import Mistake

    conf = {key: str(value).strip() for key, value in parameters.config.items()}
    conf.pop("timeout", None)  # torch puts it in, whether or not its user did
    try:
        endpoint = values.endpoints(parameters.endpoint or "")
    except ValueError as reason:
        raise Mistake(f"--rdzv-endpoint={parameters.endpoint}: {reason}") from None
    store = conf.pop("store", endpoint.scheme if endpoint and endpoint.scheme == "etcd" else "c10d")
    if store not in STORES:
        raise Mistake(f"--rdzv-conf: store={store}: write {', '.join(STORES[:-1])} or {STORES[-1]}")
    if store == "memory" and parameters.max_nodes > 1:
        raise Mistake(f"--rdzv-conf: store=memory: is for one node, not {parameters.max_nodes}; write store=c10d")
    return LaunchOptions(
        nnodes=Limits(parameters.min_nodes, parameters.max_nodes),
        standalone=store == "memory",
        rdzv_backend=store,
        rdzv_endpoint=endpoint,
        rdzv_id=parameters.run_id,
        rdzv_conf=conf,
        max_restarts=COUNT_MAX - 1,
        grace=GRACE_S,
    )
