"""What the options say of nodes and of where they meet -> the rendezvous' settings, and the connection to the store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import fields, frozen

from ..adapters.clock import Clock
from ..adapters.store.connection import AgentConnection, MemoryConnection, TCPStoreConnection
from ..adapters.store.tcpstore.serving import CannotServe, address_towards
from ..adapters.store.tcpstore.wire import Address
from ..core import rendezvous
from . import etcd, values
from .mistakes import Mistake

if TYPE_CHECKING:
    from ..adapters.store.secret import Secret

PORT = 29_400
"""torch's c10d listens there by default."""
MASTER_PORT = 29_500
"""And its static rendezvous there."""
STATIC = ("node_rank", "master_addr", "master_port")
AFTER_THE_GRACE_S = 15.0
"""How much longer than its workers' grace a node may take to come back."""
THEIRS = ("timeout", "read_timeout", "heartbeat_timeout", "is_host", "store_type")
"""Keys of torch's --rdzv-conf that are no spans of ours."""
NO_KEYS = ("limits", "leased", "first_call_timeout")
"""Of the rendezvous' settings: what is said by other options, or by the store, or by no launcher."""
OURS = ("token_file",)
"""Keys that torch does not know, and that are no spans."""


@frozen
class Place:
    """Where the nodes meet: at an endpoint, or (None) in this process."""

    endpoint: Address | None
    is_host: bool | None
    token: Secret | None = None
    said_by: str = "--rdzv-endpoint"

    def open(self, run_id: str, clock: Clock, settings: rendezvous.Settings) -> AgentConnection:
        """Raises Mistake if this host was told to serve the store and cannot."""
        if self.endpoint is None:
            return MemoryConnection(clock)
        try:
            return TCPStoreConnection(
                self.endpoint, run_id, clock, self.is_host, settings.keep_alive_interval, self.token
            )
        except CannotServe as reason:
            raise Mistake(f"{self.said_by}={reason}") from None

    @property
    def name(self) -> str:
        return str(self.endpoint) if self.endpoint else "in memory"

    def own_address(self) -> str:
        """How the other nodes reach this one, as far as it can tell by itself."""
        return address_towards(self.endpoint) if self.endpoint else "localhost"


def place(
    given: Mapping[str, Any], environment: Mapping[str, str], token: Secret | None = None
) -> Place | etcd.EtcdPlace:
    """Raises Mistake when it is not said where several nodes meet."""
    min_nodes, max_nodes = given["nnodes"]
    nnodes = f"--nnodes={min_nodes}" if min_nodes == max_nodes else f"--nnodes={min_nodes}:{max_nodes}"
    if given["standalone"] and min_nodes > 1:
        raise Mistake(f"--standalone: that is one node, not {nnodes}; write --rdzv-endpoint=HOST:{PORT} in its place")
    if given["standalone"]:
        return Place(None, None)
    if etcd.is_meant(given):
        if token:
            why = "who may write to an etcd is said by its users and certificates (docs/etcd.md)"
            print(f"elastic: the store's token makes no difference: {why}", file=sys.stderr)
        return etcd.place(given, environment)
    backend = given["rdzv_backend"] or _backend(given)
    if backend not in ("c10d", "static"):
        raise Mistake(
            f"--rdzv-backend={backend}: this version knows c10d (a TCPStore), static (the same, at --master-addr) and etcd "
            f"(v3); {_remedy(backend)}"
        )
    is_host = _yes_or_no("is_host", given["rdzv_conf"].get("is_host", "auto"))
    if backend == "static":
        return _static(given, is_host, token)
    host, port = _one(given["rdzv_endpoint"])
    if not host and max_nodes > 1:
        raise Mistake(
            f"{nnodes}: several nodes must know where they meet; write --rdzv-endpoint=HOST:{PORT}, or --node-rank=N "
            "--master-addr=HOST"
        )
    if port == 0 and max_nodes > 1:
        raise Mistake(
            f"--rdzv-endpoint={Address(host, 0)}: several nodes must know the port; write {Address(host, PORT)}"
        )
    return Place(Address(host, PORT if port is None else port) if host else None, is_host, token)


def _backend(given: Mapping[str, Any]) -> str:
    """torchrun's default is static; an endpoint alone is enough for c10d, which needs no node rank."""
    if etcd.is_meant(given):
        return "etcd"
    return "static" if any(given[name] is not None for name in STATIC) else "c10d"


def _static(given: Mapping[str, Any], is_host: bool | None, token: Secret | None) -> Place:
    """The agent of node rank 0 serves the store at --master-addr; a node alone needs none."""
    rank, nodes = given["node_rank"], given["nnodes"][1]
    if rank is not None and rank >= nodes:
        raise Mistake(f"--node-rank={rank}: with --nnodes={nodes} the last is {nodes - 1}; write --nnodes={rank + 1}")
    if nodes == 1:
        return Place(None, None)
    host, port = _one(given["rdzv_endpoint"])
    address = Address(host or given["master_addr"] or "127.0.0.1", port or given["master_port"] or MASTER_PORT)
    if rank is not None and is_host is None:
        is_host = rank == 0
    return Place(address, is_host, token, "--rdzv-endpoint" if host else "--master-addr")


def is_static(given: Mapping[str, Any]) -> bool:
    return (given["rdzv_backend"] or _backend(given)) == "static" and not given["standalone"]


def slot(given: Mapping[str, Any]) -> str | None:
    """A node with a node rank of a static job has that place, and a later start of it takes it over."""
    return str(given["node_rank"]) if is_static(given) and given["node_rank"] is not None else None


def _remedy(backend: str) -> str:
    return "write --rdzv-backend=etcd" if backend.startswith("etcd") else "write --rdzv-backend=c10d"


def _one(endpoint: values.Endpoints | None) -> tuple[str, int | None]:
    """Where a TCPStore is served."""
    if endpoint is None:
        return "", None
    if endpoint.scheme or len(endpoint.addresses) > 1:
        raise Mistake(
            "--rdzv-endpoint: a TCPStore is served at one HOST:PORT; several, or a URL, are an etcd's: write "
            "--rdzv-backend=etcd"
        )
    return endpoint.addresses[0]


def settings(given: Mapping[str, Any]) -> rendezvous.Settings:
    """The limits and spans. What torch knows and we have no use for is taken silently; what nobody knows is named."""
    min_nodes, max_nodes = _limits(given)
    conf = given["rdzv_conf"]
    ours = {field.name: field for field in fields(rendezvous.Settings) if field.name not in NO_KEYS}
    if conf.get("store_type", "").lower() == "file":
        raise Mistake("--rdzv-conf: store_type=file: a file is no store for a job; leave it out")
    known = etcd.KEYS if etcd.is_meant(given) else ()
    spans: dict[str, Any] = {
        "overdue_timeout": given["grace"] + AFTER_THE_GRACE_S,
        "leased": etcd.is_meant(given),
    }
    for key, text in conf.items():
        if key in ours:
            spans[key] = _span(key, text, whole=not isinstance(ours[key].default, float))
        elif key not in (*OURS, *THEIRS, *known):
            _warn_unknown(key, (*ours, *OURS, *THEIRS, *known))
    if given["last_call"] is not None:
        spans["last_call_timeout"] = given["last_call"]
    try:
        return rendezvous.Settings(rendezvous.Limits(min_nodes, max_nodes, given["max_restarts"]), **spans)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {reason}") from None


def _limits(given: Mapping[str, Any]) -> tuple[int, int]:
    """A static job has its size from the start: the larger one."""
    low, high = given["nnodes"]
    return (high, high) if is_static(given) else (low, high)


def _span(key: str, text: str, whole: bool) -> Any:
    try:
        return values.whole(text) if whole else values.seconds(text)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {key}={text}: {reason}") from None


def _yes_or_no(key: str, text: str) -> bool | None:
    """torch's spellings; `auto` decides later."""
    word = text.lower()
    if word in ("1", "true", "t", "yes", "y"):
        return True
    if word in ("0", "false", "f", "no", "n"):
        return False
    if word == "auto":
        return None
    raise Mistake(f"--rdzv-conf: {key}={text}: write true, false or auto")


def _warn_unknown(key: str, known: tuple[str, ...]) -> None:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1, 0.5)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    names = ", ".join(known)
    print(f"elastic: --rdzv-conf: '{key}' is not a key{suggestion} (known: {names})", file=sys.stderr)
