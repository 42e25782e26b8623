"""One real etcd member for tests: a process, on loopback or wherever a test puts it, that is killed, paused, started again.

Its health and its part in the cluster are read from its metrics port, which needs neither certificate nor password.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from attrs import define, frozen
from certificates import Authority
from processes import comes_true, is_stopped

TIMEOUT_S = 90.0
_TRIES = 5
ANSWER_S = 30
"""For one question. What a test asks may be asked while members are broken, and then costs the whole time."""
FLAGS = (
    *("--logger=zap", "--log-level=warn", "--log-outputs=stderr"),
    *("--heartbeat-interval=50", "--election-timeout=500"),
    "--strict-reconfig-check=false",
)
"""Quick elections; and a member may be added as soon as a lost one is removed, not 5 s later."""


@frozen
class Place:
    """Where a member runs: its address, its ports, and what is put before its command (`ip netns exec ...`)."""

    host: str
    client_port: int
    peer_port: int
    metrics_port: int
    under: tuple[str, ...] = ()


@define(eq=False)
class Member:
    """One etcd process. It is killed and started with the same data."""

    name: str
    place: Place
    data: Path
    log: Path
    tls: Authority | None = None
    joins: tuple[str, ...] = ()
    """The flags that say which cluster it makes or joins, when it has no data."""
    process: subprocess.Popen[bytes] | None = None
    paused: bool = False

    @property
    def endpoint(self) -> str:
        return f"{self.place.host}:{self.place.client_port}"

    @property
    def client_url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.endpoint}"

    @property
    def peer_url(self) -> str:
        return f"http://{self.place.host}:{self.place.peer_port}"

    @property
    def is_up(self) -> bool:
        """It runs, and is not paused."""
        return self.process is not None and self.process.poll() is None and not self.paused

    def start(self) -> None:
        """Returns at once; `wait_until_healthy` comes after all members of a majority are started."""
        assert not self.is_up, f"{self.name} runs already"
        metrics = f"http://{self.place.host}:{self.place.metrics_port}"
        command = [
            *self.place.under,
            *("etcd", f"--name={self.name}", f"--data-dir={self.data}", *self.joins),
            *(f"--listen-client-urls={self.client_url}", f"--advertise-client-urls={self.client_url}"),
            *(f"--listen-peer-urls={self.peer_url}", f"--initial-advertise-peer-urls={self.peer_url}"),
            *(f"--listen-metrics-urls={metrics}", *FLAGS),
            *(_server_flags(self.tls) if self.tls else ()),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment()
            )

    def kill(self) -> None:
        """SIGKILL. Idempotent."""
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process, self.paused = None, False

    def stop(self) -> None:
        """As an operator stops it: SIGTERM, and its end."""
        if self.process:
            self.resume()
            self.process.terminate()
            self.process.wait(TIMEOUT_S)
        self.process = None

    def pause(self) -> None:
        assert self.process
        pid = self.process.pid
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True
        assert comes_true(lambda: is_stopped(pid))

    def resume(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def is_healthy(self) -> bool:
        """It knows a leader and commits. False also when an alarm stands."""
        return self.is_up and b'"true"' in self.asked("/health")

    def is_leader(self) -> bool:
        return self.is_up and b"\netcd_server_is_leader 1\n" in self.asked("/metrics")

    def wait_until_healthy(self) -> None:
        wait_until(self.is_healthy, f"{self.name} to be healthy", self.account)

    def asked(self, path: str) -> bytes:
        """What the metrics port answers; nothing when it does not."""
        connection = http.client.HTTPConnection(self.place.host, self.place.metrics_port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return b""
        finally:
            connection.close()

    def account(self) -> str:
        """The end of what it said, for whoever waits in vain."""
        return "\n".join([f"--- {self.name}", *self.log.read_text().splitlines()[-20:]]) if self.log.exists() else ""


def etcdctl(*arguments: str | Path, given: str = "") -> str:
    """Patient: by itself it gives a busy machine 2 s to connect, and 5 s to answer; and a member that stood still for 6 s
    gives a request up, which it may have done by then. `given` is its standard input. Raises CalledProcessError."""
    command = ["etcdctl", f"--dial-timeout={ANSWER_S}s", f"--command-timeout={ANSWER_S}s", *map(str, arguments)]
    return _etcdctl(command, given, _TRIES)


def _etcdctl(command: list[str], given: str, tries: int) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=environment())
    if tries > 1 and "etcdserver: request timed out" in done.stderr:
        return _etcdctl(command, given, tries - 1)
    if tries == _TRIES or "already exists" not in done.stderr:
        done.check_returncode()
    return done.stdout


def environment() -> dict[str, str]:
    """This process's, without what etcd and etcdctl would take from it."""
    kept = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**{name: text for name, text in kept.items() if not name.startswith("ETCD")}, "ETCDCTL_API": "3"}


def wait_until(claim: Callable[[], bool], what: str, account: Callable[[], str]) -> None:
    """For what etcd tells no event of."""
    ends_at = time.monotonic() + TIMEOUT_S
    while not claim():
        assert time.monotonic() < ends_at, f"waited in vain for {what}\n{account()}"
        time.sleep(0.02)


def _server_flags(tls: Authority) -> tuple[str, ...]:
    made = tls.server
    own = f"--cert-file={made.certificate}", f"--key-file={made.key}"
    return *own, f"--trusted-ca-file={tls.ca}", "--client-cert-auth"
