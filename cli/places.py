"""Where the nodes of a job meet, as the options say it: in this process, at a TCPStore's endpoint, or in an etcd."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..adapters.clock import Clock
from ..adapters.store.connection import IN_MEMORY, AgentConnection, MemoryConnection, TCPStoreConnection
from ..adapters.store.tcpstore.port_owner import HIDDEN, stranger
from ..adapters.store.tcpstore.serving import CannotServe, address_towards, check_is_here, has_route, is_loopback
from ..adapters.store.tcpstore.wire import Address
from ..adapters.workers.watch.death_causes import process_deaths
from ..core import rendezvous
from ..core.values import frozen
from . import slurm, values
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .render.text import say

if TYPE_CHECKING:
    from ..adapters.store.secret import Secret
    from .etcd_place import EtcdPlace

PORT = 29_400
"""An endpoint's port, if it names none; as in torch, whose static rendezvous refuses such an endpoint."""
MASTER_PORT = 29_500
"""The port of a master, if none is given, as in torch."""
_LOOK_EVERY_S = 0.2
"""How often this host is looked at again while something is missing."""
_PORT_PATIENCE_S = 30.0
"""A program that has the store's port may end for this time."""


@frozen
class Place:
    """A TCPStore at an endpoint, or the memory of this process if there is no endpoint."""

    endpoint: Address | None
    is_host: bool | None
    token: Secret | None = None
    said_by: str = "--rdzv-endpoint"
    """The option that named the endpoint."""
    is_placed: bool = False
    """The node's rank says who serves the store, at an address of its own."""
    run_id: str = ""
    """The name of the job that goes with the endpoint; empty if none does."""

    def open(
        self, run_id: str, clock: Clock, settings: rendezvous.Settings, warn: Callable[[str], None] = lambda text: None
    ) -> AgentConnection:
        """Return a connection to the store. Raises Mistake if this host was told to serve the store and cannot."""
        if self.endpoint is None:
            return MemoryConnection(clock)
        if self.is_host is None:
            self._await_port(min(settings.join_timeout, _PORT_PATIENCE_S))
        try:
            if self.is_host and self.is_placed:
                check_is_here(self.endpoint)
            connection = TCPStoreConnection(
                self.endpoint,
                run_id,
                clock,
                self.is_host,
                settings.keep_alive_interval,
                self.token,
                warn,
                ttl_s=settings.ttl,
                end=process_deaths(),
                is_alone=settings.limits.max_nodes == 1,
            )
        except CannotServe as reason:
            raise Mistake(f"{self.said_by}={reason}") from None
        if connection.serves and settings.limits.max_nodes > 1 and is_loopback(self.endpoint):
            say(
                f"elastic: {self.endpoint} is this host's loopback, so no agent of another host can join; "
                f"if there are any, write an address of this host in {self.said_by}",
                err=True,
            )
        return connection

    def _await_port(self, patience_s: float) -> None:
        """Wait while the store's port on this host belongs to a program that serves no store: a predecessor may end soon.
        Raises Mistake."""
        assert self.endpoint
        ends_at: float | None = None
        while owner := stranger(self.endpoint):
            if owner == HIDDEN:  # it may be an agent in another container that starts its store
                return
            text = f"{self.said_by}={self.endpoint}: the port belongs to {owner}, which serves no store"
            if ends_at is None:  # the first look may take longer than the patience, on a busy machine
                ends_at = time.monotonic() + patience_s
                say(f"elastic: {text}; waiting for up to {patience_s:g} s", err=True)
            elif time.monotonic() >= ends_at:
                raise Mistake(f"{text}; name another port, or end that program")
            time.sleep(_LOOK_EVERY_S)

    @property
    def name(self) -> str:
        """Return the store's name, for people."""
        return str(self.endpoint) if self.endpoint else IN_MEMORY

    @property
    def port(self) -> int:
        """Return the store's port on this host; 0 if it has none."""
        return self.endpoint.port if self.endpoint else 0

    def own_address(self) -> str:
        """Return the address at which the other nodes reach this one, as far as this host can tell."""
        if self.endpoint is None:
            return "localhost"
        address = address_towards(self.endpoint)
        if address != "localhost" and is_loopback(self.endpoint):
            say(
                f"elastic: {self.endpoint.host} is this host's loopback, so other nodes are told {address}, of its default "
                "route; --local-addr=ADDRESS names another one",
                err=True,
            )
        return address

    def await_route(self, patience_s: float) -> bool:
        """Wait for a route to the store; `await_route` of this module has the rule. Its host needs none to itself."""
        return self.endpoint is None or bool(self.is_host) or await_route([self.endpoint], patience_s)


def await_route(endpoints: Sequence[Address], patience_s: float) -> bool:
    """Wait until this host knows the name of one of these hosts, and has a route there: a pod may start before its service
    has a name, and a host before its interface is up. Before that a node has no address that others reach. Return False if
    there is none after `patience_s`."""
    ends_at, has_told = time.monotonic() + patience_s, False
    while not any(map(has_route, endpoints)):
        if time.monotonic() >= ends_at:
            return False
        if not has_told:
            hosts = " or ".join(each.host for each in endpoints)
            say(
                f"elastic: this host does not know {hosts}, or has no route there; waiting for up to {patience_s:g} s",
                err=True,
            )
            has_told = True
        time.sleep(_LOOK_EVERY_S)
    return True


def place(options: LaunchOptions, environment: Mapping[str, str], token: Secret | None = None) -> Place | EtcdPlace:
    """Return where the nodes meet. Raises Mistake if several nodes are not told where."""
    _check_standalone(options)
    if options.standalone:
        return Place(None, None)
    if options.uses_etcd:
        if token:
            reason = "an etcd's users and certificates decide who may write to it"
            remedy = "write user=NAME,password_file=FILE or cacert=FILE,cert=FILE,key=FILE into --rdzv-conf"
            say(f"elastic: the store's token makes no difference: {reason}; {remedy}", err=True)
        from .etcd_place import etcd_place  # few jobs have an etcd

        return etcd_place(options, environment)
    if options.backend not in ("c10d", "static"):
        near = "etcd" if options.backend.startswith("etcd") else "c10d"
        raise Mistake(
            f"--rdzv-backend={options.backend}: this version knows c10d (a TCPStore), static (the same, at --master-addr) "
            f"and etcd (v3); write --rdzv-backend={near}"
        )
    is_host = _is_host(options.rdzv_conf.get("is_host", "auto"))
    return _static(options, is_host, token) if options.is_static else _c10d(options, environment, is_host, token)


def _check_standalone(options: LaunchOptions) -> None:
    if options.standalone and options.nnodes.min_nodes > 1:
        remedy = f"write --rdzv-endpoint=HOST:{PORT} in its place"
        raise Mistake(f"--standalone: that is one node, not {_nnodes(options)}; {remedy}")


def _nnodes(options: LaunchOptions) -> str:
    low, high = options.nnodes.min_nodes, options.nnodes.max_nodes
    return f"--nnodes={low}" if low == high else f"--nnodes={low}:{high}"


def _c10d(options: LaunchOptions, environment: Mapping[str, str], is_host: bool | None, token: Secret | None) -> Place:
    (host, port), several = _one(options), options.nnodes.max_nodes > 1
    if not host and several and (address := slurm.endpoint(environment)):
        return Place(address, is_host, token, "SLURM_JOB_NODELIST", run_id=slurm.run_id(environment))
    if not host and several:
        raise Mistake(
            f"{_nnodes(options)}: several nodes must know where they meet; write --rdzv-endpoint=HOST:{PORT}, or "
            "--node-rank=N --master-addr=HOST"
        )
    return Place(Address(host, PORT if port is None else port) if host else None, is_host, token)


def _static(options: LaunchOptions, is_host: bool | None, token: Secret | None) -> Place:
    """Return the master's place: the agent of node rank 0 serves the store there. One node alone needs none."""
    rank, nodes = options.node_rank, options.nnodes.max_nodes
    if nodes == 1:
        return Place(None, None)
    if rank is not None and rank >= nodes:
        raise Mistake(f"--node-rank={rank}: with --nnodes={nodes} the last is {nodes - 1}; write --nnodes={rank + 1}")
    if options.master_port == 0:
        raise Mistake(f"--master-port=0: several nodes must know the port; write --master-port={MASTER_PORT}")
    host, port = _one(options)
    port = port or options.master_port or (PORT if host else MASTER_PORT)
    address = Address(host or options.master_addr or "127.0.0.1", port)
    is_placed = rank is not None and is_host is None
    if is_placed:
        is_host = rank == 0
    return Place(address, is_host, token, "--rdzv-endpoint" if host else "--master-addr", is_placed)


def _one(options: LaunchOptions) -> tuple[str, int | None]:
    """Return the host and port of a TCPStore. Raises Mistake for what only an etcd or a node alone can have."""
    endpoint = options.rdzv_endpoint
    if endpoint is None:
        return "", None
    if endpoint.scheme or len(endpoint.addresses) > 1:
        raise Mistake(
            "--rdzv-endpoint: a TCPStore is served at one HOST:PORT; several, or a URL, are an etcd's: write "
            "--rdzv-backend=etcd"
        )
    host, port = endpoint.addresses[0]
    if port == 0 and options.nnodes.max_nodes > 1:
        raise Mistake(
            f"--rdzv-endpoint={Address(host, 0)}: several nodes must know the port; write {Address(host, PORT)}"
        )
    return host, port


def _is_host(text: str) -> bool | None:
    """Read torch's spellings of yes and no; None for `auto`."""
    if text.lower() == "auto":
        return None
    try:
        return values.yes_or_no(text)
    except ValueError:
        raise Mistake(f"--rdzv-conf: is_host={text}: write true, false or auto") from None
