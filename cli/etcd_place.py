"""An etcd in which the nodes of a job meet, as the options say it: its members, and what this agent signs in with.

A secret is read from a file or from the environment. One on the command line is refused, since every user of the host can
read it there. No message repeats a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapters.clock import Clock
from ..adapters.secret_variables import ETCD_PASSWORD
from ..adapters.store.connection import AgentConnection, EtcdConnection
from ..adapters.store.port import Denied
from ..adapters.store.tcpstore.serving import address_towards, has_route
from ..adapters.store.tcpstore.wire import Address
from ..adapters.terminal import why
from ..core import rendezvous
from ..core.values import frozen
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .places import await_route

if TYPE_CHECKING:
    from ..adapters.store.etcd.access import Access

PORT = 2_379
KEYS = ("cacert", "cert", "key", "user", "password_file")
"""Keys of --rdzv-conf that are for an etcd."""
FROM_A_FILE = f"password_file=FILE, or set {ETCD_PASSWORD}"


@frozen
class EtcdPlace:
    """An etcd: its members, and what this agent signs in with."""

    addresses: tuple[Address, ...]
    access: Access

    def open(
        self, run_id: str, clock: Clock, settings: rendezvous.Settings, warn: Callable[[str], None] = lambda text: None
    ) -> AgentConnection:
        """Return a connection to the etcd, which may be out of reach. Raises Mistake if it refuses this agent."""
        if find_spec("etcd3") is None:
            raise Mistake(
                "--rdzv-backend=etcd: needs the package etcd3; install elastic-launch as before, with [etcd] behind it"
            )
        try:
            return EtcdConnection(self.addresses, self.access, run_id, clock, settings)
        except ImportError as reason:
            raise Mistake(f"--rdzv-backend=etcd: {reason}") from None
        except Denied as reason:
            raise Mistake(f"--rdzv-endpoint: {reason}") from None

    @property
    def name(self) -> str:
        """Return the store's name, for people."""
        return ",".join(map(str, self.addresses))

    @property
    def port(self) -> int:
        """Return the store's port on this host; 0 if it has none."""
        return 0

    def own_address(self) -> str:
        """Return the address at which the other nodes reach this one, as far as this host can tell."""
        return address_towards(next(filter(has_route, self.addresses), self.addresses[0]))

    def await_route(self, patience_s: float) -> bool:
        """Wait for a route to one of the members; `await_route` of `places` has the rule."""
        return await_route(self.addresses, patience_s)


def etcd_place(options: LaunchOptions, environment: Mapping[str, str]) -> EtcdPlace:
    """Return the etcd that the options name. Raises Mistake."""
    endpoint, conf = options.rdzv_endpoint, options.rdzv_conf
    if options.rdzv_backend not in (None, "etcd"):
        raise Mistake(
            f"--rdzv-backend={options.rdzv_backend}: --rdzv-endpoint is an etcd's (etcd://); write --rdzv-backend=etcd, or "
            "an endpoint without etcd://"
        )
    if endpoint is None:
        raise Mistake(f"--rdzv-backend=etcd: name its members; write --rdzv-endpoint=HOST:{PORT},HOST:{PORT}")
    if not options.rdzv_id:
        raise Mistake(
            "--rdzv-id: it tells the jobs in an etcd apart; write --rdzv-id=NAME, the same on all nodes and "
            "another for each job"
        )
    safe = any(key in conf for key in ("cacert", "cert", "key"))
    if endpoint.scheme == "http" and safe:
        raise Mistake("--rdzv-endpoint: http:// has no certificates; write https://, or leave them out")
    addresses = tuple(Address(host, PORT if port is None else port) for host, port in endpoint.addresses)
    return EtcdPlace(addresses, _access(conf, safe or endpoint.scheme == "https", environment))


def _access(conf: Mapping[str, str], tls: bool, environment: Mapping[str, str]) -> Access:
    """Return what this agent signs in with. Raises Mistake if a part is missing or cannot be used."""
    from ..adapters.store.etcd.access import Access, Unusable

    if ("cert" in conf) != ("key" in conf):
        raise Mistake("--rdzv-conf: a certificate and its key belong together; write cert=FILE,key=FILE")
    user = conf.get("user")
    if "password_file" in conf and not user:
        raise Mistake("--rdzv-conf: password_file: whose password? write user=NAME,password_file=FILE")
    password = _password(conf, environment)
    if user and password is None:
        raise Mistake(f"--rdzv-conf: user={user}: its password is missing; write {FROM_A_FILE}")
    access = Access(tls, conf.get("cacert"), conf.get("cert"), conf.get("key"), user, password if user else None)
    try:
        if tls:
            access.context()
    except Unusable as reason:
        raise Mistake(f"--rdzv-conf: {reason}; name files in PEM form, without a password") from None
    return access


def _password(conf: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    path = conf.get("password_file")
    if path is None:
        return environment.get(ETCD_PASSWORD)
    try:
        text = Path(path).read_text().rstrip("\r\n")
    except OSError as error:
        raise _no_password(path, why(error)) from None
    except UnicodeDecodeError:
        raise _no_password(path, "is not text") from None
    if not text:
        raise _no_password(path, "is empty")
    return text


def _no_password(path: str, reason: str) -> Mistake:
    return Mistake(f"--rdzv-conf: password_file={path}: {reason}; name a file that holds the password")
