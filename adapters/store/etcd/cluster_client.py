"""A client of an etcd cluster: it asks one member after the other.

The client asks the member that answered last. If that one is out of reach or slow, it asks the next. It does not repeat a
write that may have been made: the outcome of that write is unknown. An error that etcd itself returns is final, except that
an expired token is replaced, since etcd did nothing for a question that it refused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from ...threads import NoThread
from ..port import Denied, OutcomeUnknown, OutOfReach, Unreadable
from ..tcpstore.wire import Address
from .access import diagnosed
from .members import Begin, Members, Method, Stubs, authenticated, ranged
from .rpc import grpc, rpc
from .watch_stream import WatchStream

_PASSWORD_TIMEOUT_S = 5.0
"""How long etcd may take to check a password."""
_HAS_LEADER = ("hasleader", "true")
"""This header makes a member that knows no leader say so at once."""
_NOT_SENT = ("failed to connect to all addresses", "errors resolving", "etcdserver: no leader")
_OLD_TOKEN = (
    "etcdserver: invalid auth token",
    "etcdserver: revision of auth store is old",
    "etcdserver: user name is empty",
)
_TAKES_NO_PASSWORDS = "authentication is not enabled"
_IS_FULL = (
    "its space is used up, so it takes no write; write: etcdctl compact REVISION, etcdctl defrag, etcdctl alarm disarm"
)


class LeaseGone(OutOfReach):
    """Nothing was written, because the lease of the keys is over."""


class Full(Denied):
    """The cluster has no space left. etcd says so to a write that took the last space, too: that one was made."""


class ClusterClient:
    """The calls of one client. The thread that owns it makes them; `close` may come from any thread."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._lock = threading.Lock()
        self._closed = False
        self._stubs: dict[Address, Stubs] = {}

    def ask(self, method: Method, request: Any, writes: bool = False) -> Any:
        """Return the answer of the first member that gives one. Raises OutOfReach, Denied, Full, LeaseGone, Unreadable, and
        OutcomeUnknown for a write that may have been made."""
        reason = ""
        for address in self.members.in_turn():
            try:
                answer = self._asked(self._of(address), method, request)
            except grpc.RpcError as error:
                reason = f"{address}: {self._spelled(error)}"
                self._refuse_if_final(error)
                self.members.failed(address)
                if writes and not _is_unsent(error):
                    raise OutcomeUnknown(f"etcd at {address} did not say whether it wrote ({reason})") from error
            else:
                self.members.answered(address)
                return answer
        raise OutOfReach(
            f"no answer from etcd at {self.members} (last {reason}): a majority of its members must run there, and this "
            "host must be able to reach one of them"
        )

    def watch(self, key: bytes, revision: int) -> WatchStream:
        """Open a stream of this key's changes from this revision on, from the member that answered last."""
        stubs = self._of(self.members.in_turn()[0])
        try:
            return WatchStream(stubs, self._metadata(stubs), key, revision, self.members.failed)
        except grpc.RpcError as error:
            self._refuse_if_final(error)
            raise OutOfReach(f"no answer from etcd at {stubs.address} ({self._spelled(error)})") from error
        except NoThread as error:
            raise OutOfReach(f"no watch on etcd at {stubs.address} ({error.strerror})") from error
        except ValueError:
            self._refuse_if_closed()
            raise

    def probe(self) -> None:
        """Raises Denied, with cause and remedy, if no member accepts us, and OutOfReach if none answers."""
        try:
            self.ask(ranged, rpc.RangeRequest(key=self.members.prefix.encode(), count_only=True))
        except Denied:
            raise
        except OutOfReach:
            for address in self.members.addresses:
                if found := diagnosed(address, self.members.access, self.members.timeout_s):
                    raise Denied(f"etcd at {address}: {found}") from None
            raise

    def close(self) -> None:
        """End what is under way at once. Idempotent."""
        with self._lock:
            self._closed = True
            left = [*self._stubs.values()]
            self._stubs.clear()
        for stubs in left:
            stubs.channel.close()

    def _of(self, address: Address) -> Stubs:
        with self._lock:
            self._refuse_if_closed()
            if address not in self._stubs:
                self._stubs[address] = self.members.stubs(address)
            return self._stubs[address]

    def _asked(self, stubs: Stubs, method: Method, request: Any) -> Any:
        metadata = self._metadata(stubs)
        try:
            return self._run(method(stubs), request, metadata, self.members.timeout_s)
        except grpc.RpcError as error:
            if not (self.members.access.user and _says(error, _OLD_TOKEN)):
                raise
            self._forget(metadata)
            return self._run(method(stubs), request, self._metadata(stubs), self.members.timeout_s)

    def _metadata(self, stubs: Stubs) -> tuple[tuple[str, str], ...]:
        """Return the headers of a call. Authenticates if there is no token."""
        with self.members.lock:
            token = self.members.token
        if token is None:
            token = self._authenticate(stubs)
        return (_HAS_LEADER, ("token", token)) if token else (_HAS_LEADER,)

    def _forget(self, metadata: Iterable[tuple[str, str]]) -> None:
        """Drop this expired token, unless another client has drawn a new one already."""
        with self.members.lock:
            if (self.members.token or None) == dict(metadata).get("token"):
                self.members.token = None

    def _authenticate(self, stubs: Stubs) -> str:
        access = self.members.access
        request = rpc.AuthenticateRequest(name=access.user, password=access.password or "")
        try:
            token = str(self._run(authenticated(stubs), request, (), _PASSWORD_TIMEOUT_S).token)
        except grpc.RpcError as error:
            if not _says(error, (_TAKES_NO_PASSWORDS,)):
                raise
            token = ""
        with self.members.lock:
            self.members.token = token
        return token

    def _run(self, begin: Begin, request: Any, metadata: Sequence[tuple[str, str]], timeout_s: float) -> Any:
        self._refuse_if_closed()
        try:
            return begin(request, timeout=timeout_s, metadata=metadata)
        except ValueError:  # gRPC's word for a channel that is closed, by `close` in this very moment
            self._refuse_if_closed()
            raise

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise OutOfReach("this client is closed")

    # --- what an error says

    def _refuse_if_final(self, error: grpc.RpcError) -> None:
        """Raise our error for an error that etcd itself returned."""
        self._refuse_if_closed()
        code, text = error.code(), error.details() or ""
        if "requested lease not found" in text:
            raise LeaseGone(f"etcd at {self.members}: the lease of our keys is over") from error
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in text:
            raise Unreadable(f"etcd at {self.members}: what stands under {self.members.prefix} is too large") from error
        if "database space exceeded" in text:
            raise Full(f"etcd at {self.members}: {_IS_FULL}") from error
        if remedy := self._remedy(code, text):
            raise Denied(f"etcd at {self.members}: {remedy}") from error

    def _remedy(self, code: grpc.StatusCode, text: str) -> str | None:
        user, prefix = self.members.access.user, self.members.prefix
        if "permission denied" in text:
            return (
                f"{f'user {user}' if user else 'this client'} may not read and write {prefix}; write: etcdctl role "
                "grant-permission ROLE readwrite elastic/ --prefix=true"
            )
        if "authentication failed" in text:
            return f"it refuses user {user} with this password; see password_file=, or ELASTIC_ETCD_PASSWORD"
        if "user name is empty" in text or (code is grpc.StatusCode.UNAUTHENTICATED and not user):
            return "it asks for a user; write --rdzv-conf=user=NAME,password_file=FILE"
        if "request is too large" in text:
            return "it takes no value of this size; start its members with --max-request-bytes=16777216"
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return "what listens there does not know the v3 API; elastic needs etcd 3.4 or later"
        return None

    def _spelled(self, error: grpc.RpcError) -> str:
        text = error.details() or ""
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"silent for {self.members.timeout_s:g} s"
        if found := re.search(r"CERTIFICATE_VERIFY_FAILED: ([^:]+)", text):
            return f"its certificate is not to be trusted: {found[1]}"
        if "TSI_DATA_CORRUPTED" in text:
            return "TLS was refused"
        return text.rpartition("Failed to connect to remote host: ")[2].rpartition("last error: ")[2] or str(
            error.code()
        )


def _says(error: grpc.RpcError, texts: Iterable[str]) -> bool:
    return any(text in (error.details() or "") for text in texts)


def _is_unsent(error: grpc.RpcError) -> bool:
    """Return True if the request did not reach the member, or was refused before anything was done."""
    final = (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
    return error.code() in final or _says(error, _NOT_SENT)
