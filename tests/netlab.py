"""Several hosts on this machine: network namespaces joined by a bridge, and what goes wrong between them.

The bridge has a namespace of its own, so that no rule of this machine's touches it; one more pair of ends joins this process
to it. A broken path drops packets without a word, as a dead switch does: iptables in the namespace of one of its ends.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from attrs import define, field, frozen

MINE = 254
"""This process's address in the network, as the hosts count theirs from 1."""


@frozen
class Host:
    """One namespace, with one address."""

    name: str
    namespace: str
    address: str

    @property
    def under(self) -> tuple[str, ...]:
        """What is put before a command that runs there. The command has the pid of what is started."""
        return "ip", "netns", "exec", self.namespace

    @property
    def under_its_name(self) -> tuple[str, ...]:
        """The same; the command finds the host's own name."""
        return *self.under, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name


@define(eq=False)
class Network:
    """Hosts by name. `close` removes them with all that was done to them."""

    name: str = field(factory=lambda: f"el-{uuid4().hex[:6]}")
    hosts: dict[str, Host] = field(factory=dict)

    @property
    def net(self) -> str:
        """Of 24 bits, without the last dot: hardly anything else on this machine has it, nor a test beside this one."""
        here = int(self.name[3:], 16)
        return f"10.{128 + (here >> 8) % 100}.{here % 256}"

    def open(self) -> None:
        _ip("netns", "add", self.name)
        _batch(self.name, "link add br0 type bridge", "link set br0 up")
        _ip("link", "add", self.name, "type", "veth", "peer", "name", "tests", "netns", self.name)
        _batch(self.name, "link set tests master br0 up")
        _ip("address", "add", f"{self.net}.{MINE}/24", "dev", self.name)
        _ip("link", "set", self.name, "up")

    def close(self) -> None:
        for host in self.hosts.values():
            shutil.rmtree(_etc(host), ignore_errors=True)
        for namespace in (*(host.namespace for host in self.hosts.values()), self.name):
            _ip("netns", "delete", namespace, check=False)
        _ip("link", "delete", self.name, check=False)

    def host(self, name: str) -> Host:
        """Another host. Names are short: they name the bridge's ends."""
        made = Host(name, f"{self.name}-{name}", f"{self.net}.{len(self.hosts) + 1}")
        self.hosts[name] = made
        _ip("netns", "add", made.namespace)
        _ip(
            "-n",
            self.name,
            "link",
            "add",
            "name",
            name,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            made.namespace,
        )
        _batch(self.name, f"link set dev {name} master br0 up")
        _batch(made.namespace, "link set lo up", f"address add {made.address}/24 dev eth0", "link set eth0 up")
        return made

    def resolves(self, host: Host, *names: tuple[str, str]) -> None:
        """From now on this host knows these names, each with its address; it knows `localhost` as well, and no others."""
        folder = _etc(host)
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"{address} {name}\n" for address, name in (("127.0.0.1", "localhost"), *names))
        (folder / "hosts").write_text("".join(lines))

    def asks(self, host: Host, *lines: str) -> None:
        """From now on these lines are this host's /etc/resolv.conf: which name server it asks, and for how long."""
        folder = _etc(host)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "resolv.conf").write_text("".join(f"{line}\n" for line in lines))

    def cut(self, host: Host, *others: Host) -> None:
        """Nothing passes between this host and those any more, in either direction."""
        for other in others:
            self.deafen(host, other)
            _iptables(host, "-A", "OUTPUT", "-d", other.address, "-j", "DROP")

    def deafen(self, host: Host, *others: Host) -> None:
        """What those send to this host does not arrive; what it sends to them does."""
        for other in others:
            _iptables(host, "-A", "INPUT", "-s", other.address, "-j", "DROP")

    def opens(self, host: Host, ports: range) -> None:
        """A firewall of this host lets new connections of others come to these ports alone."""
        low, high = ports[0], ports[-1]
        _iptables(host, "-A", "INPUT", "-i", "lo", "-j", "ACCEPT")
        _iptables(host, "-A", "INPUT", "-p", "tcp", "--dport", f"{low}:{high}", "-j", "ACCEPT")
        _iptables(host, "-A", "INPUT", "-p", "tcp", "--syn", "-j", "DROP")

    def translates(self, host: Host, address: str, behind: Host) -> None:
        """On this host what goes to an address that nobody has goes to another host, as a service's proxy has it."""
        _run(*host.under, "ip", "route", "add", f"{address}/32", "dev", "eth0")
        if host is not behind:
            to = ("-j", "DNAT", "--to-destination", behind.address)
            _iptables(host, "-t", "nat", "-A", "OUTPUT", "-d", address, *to)

    def heal(self, *hosts: Host) -> None:
        """All that was cut on the side of these hosts passes again; of all hosts if none is named."""
        for host in hosts or tuple(self.hosts.values()):
            _iptables(host, "-F")


@contextmanager
def network() -> Iterator[Network]:
    """Gone at the end, also when the test fails. Skips where this machine does not permit namespaces."""
    skip_where_not_permitted()
    made = Network()
    try:
        made.open()
        yield made
    finally:
        made.close()


def skip_where_not_permitted() -> None:
    if missing := [name for name in ("ip", "iptables") if shutil.which(name) is None]:
        pytest.skip(f"{' and '.join(missing)} not found: no network of hosts; write: apt-get install iproute2 iptables")
    tried = f"el-{uuid4().hex[:6]}"
    try:
        _ip("netns", "add", tried)
        _ip("link", "add", tried, "type", "veth", "peer", "name", "eth0", "netns", tried)
        _run("ip", "netns", "exec", tried, "iptables", "-w", "-S")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network of hosts here, which takes root with CAP_NET_ADMIN and CAP_SYS_ADMIN: {error.stderr}")
    finally:
        _ip("link", "delete", tried, check=False)
        _ip("netns", "delete", tried, check=False)


def _etc(host: Host) -> Path:
    """Return the folder whose files stand in the place of those of /etc, for what is started on this host from now on."""
    return Path("/etc/netns", host.namespace)


def _iptables(host: Host, *arguments: str) -> None:
    _run(*host.under, "iptables", "-w", *arguments)


def _batch(namespace: str, *commands: str) -> None:
    _run("ip", "-n", namespace, "-batch", "-", given="\n".join(commands))


def _ip(*arguments: str, check: bool = True) -> None:
    _run("ip", *arguments, check=check)


def _run(*command: str, given: str = "", check: bool = True) -> None:
    subprocess.run(command, input=given, capture_output=True, text=True, check=check)
