"""The keys of one run in an etcd, and what stands under them: requests out, answers in, nothing sent.

The register's value is an envelope: a line that names the cluster in which it was written, then the codec's bytes. What is
read is bounded, schema-checked, and must agree with the key `life`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from ...core.rendezvous import RendezvousState, Token, codec
from ...core.world import Node
from .etcdrpc import rpc
from .port import Unreadable

ENVELOPE = re.compile(rb"elastic 1 written in cluster ([0-9a-f]{1,16})\n")


def prefix_of(run_id: str) -> str:
    """What all keys of a run begin with."""
    return f"elastic/{quote(run_id, safe='')}/"


@frozen
class Seen:
    """The register as one answer showed it."""

    cluster: int
    """That answered."""
    state: RendezvousState | None = None
    written_in: int = 0
    revision: int = 0
    """Of its last write; 0 when it is absent."""
    lease: int = 0
    at: int = 0
    """The store's revision then."""

    @property
    def token(self) -> Token | None:
        return self.state.token if self.state else None

    @property
    def written_here(self) -> bool:
        """By a write to the cluster that answered, not to one of which this is a snapshot."""
        return self.state is None or self.written_in == self.cluster


@frozen
class Keys:
    """Of one run."""

    run_id: str
    place: str
    """The store, for the texts."""
    prefix: str = field(init=False)
    register: bytes = field(init=False)
    life: bytes = field(init=False)

    @prefix.default
    def _prefix(self) -> str:
        return prefix_of(self.run_id)

    @register.default
    def _register(self) -> bytes:
        return self.key("register")

    @life.default
    def _life(self) -> bytes:
        return self.key("life")

    def key(self, name: str) -> bytes:
        return f"{self.prefix}{name}".encode()

    def heartbeat(self, node: Node) -> bytes:
        return self.key(f"heartbeat/{quote(str(node), safe='')}")

    # --- requests

    def both(self, **limits: int) -> Any:
        """Asks for `life` and `register`, between which there is no key."""
        return rpc.RangeRequest(key=self.life, range_end=self.register + b"\0", **limits)

    def below(self, name: str, **limits: int) -> Any:
        """Asks for all keys of a folder."""
        return rpc.RangeRequest(key=self.key(f"{name}/"), range_end=self.key(f"{name}0"), **limits)

    def write(self, state: RendezvousState, base: Seen, lease: int) -> Any:
        """The transaction: `state` in place of what `base` saw, or else what stands."""
        envelope = f"elastic 1 written in cluster {base.cluster:x}\n".encode()
        compare = [compared(self.register, rpc.Compare.MOD, mod_revision=base.revision)]
        success = [put(self.register, envelope + codec.encode(state), lease)]
        if base.state:
            compare.append(compared(self.life, rpc.Compare.VALUE, value=base.state.life.nonce.encode()))
        if base.state is None or base.state.life != state.life:
            success.append(put(self.life, state.life.nonce.encode(), lease))
        return rpc.TxnRequest(compare=compare, success=success, failure=[asked(self.both())])

    # --- answers

    def seen(self, header: Any, kvs: Iterable[Any]) -> Seen:
        """Of an answer to `both`. Raises Unreadable."""
        found = {kv.key: kv for kv in kvs}
        register, life = found.get(self.register), found.get(self.life)
        if register is None:
            return Seen(header.cluster_id, at=header.revision)
        seen = self.decoded(register, header.cluster_id, header.revision)
        if life is None or seen.state is None or life.value != seen.state.life.nonce.encode():
            raise self._not_ours("life", "it does not name the life of the register")
        return seen

    def decoded(self, kv: Any, cluster: int, at: int) -> Seen:
        """Raises Unreadable."""
        envelope = ENVELOPE.match(kv.value)
        if not envelope:
            raise self._not_ours("register", "its first line does not say in which cluster it was written")
        try:
            state = codec.decode(kv.value[envelope.end() :])
        except codec.Refused as error:
            raise self._not_ours("register", str(error)) from error
        return Seen(cluster, state, int(envelope[1], 16), kv.mod_revision, kv.lease, at)

    def _not_ours(self, name: str, reason: str) -> Unreadable:
        remedy = "if somebody else writes there, give the job another --rdzv-id"
        return Unreadable(f"etcd at {self.place} holds no register under {self.prefix} ({name}: {reason}): {remedy}")


def put(key: bytes, value: bytes, lease: int) -> Any:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value, lease=lease))


def asked(request: Any) -> Any:
    return rpc.RequestOp(request_range=request)


def compared(key: bytes, target: Any, **value: int | bytes) -> Any:
    return rpc.Compare(key=key, target=target, result=rpc.Compare.EQUAL, **value)
