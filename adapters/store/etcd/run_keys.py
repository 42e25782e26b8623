"""The keys of one run in an etcd, and what stands under them: requests out, answers in, nothing sent.

The register's value is an envelope: a line with the stamp of its write, then the codec's bytes. The key `life` holds the
same stamp: small enough to be _compared by each write, and to be read beside each heartbeat. What is read is bounded and
schema-checked, and the two must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from ....core.rendezvous import RendezvousState, Token, codec
from ....core.rendezvous.state import NODES_MAX
from ....core.world import NAME_MAX, Life, Node
from ..port import Shown, Unreadable
from .rpc import rpc

_STAMP = re.compile(
    rf"cluster ([0-9a-f]{{1,16}}) write ([0-9a-f]{{16}}) epoch ([1-9][0-9]{{0,15}}) life (.{{1,{NAME_MAX}}})"
)
ENVELOPE = "elastic 1 "
_ENVELOPE_MAX = 2_048
"""Bytes: a longer first line is none of ours."""


@frozen
class Stamp:
    """The cluster in which a state was written, as its writer knew it; a nonce of that very write; and the state's life."""

    cluster: int
    write: str
    life: Life

    def __str__(self) -> str:
        return f"cluster {self.cluster:x} write {self.write} epoch {self.life.epoch} life {self.life.nonce}"


def stamp(text: str) -> Stamp | None:
    """None if it is none."""
    found = _STAMP.fullmatch(text)
    try:
        return Stamp(int(found[1], 16), found[2], Life(found[4], int(found[3]))) if found else None
    except ValueError:
        return None


def prefix_of(run_id: str) -> str:
    """What all keys of a run begin with."""
    return f"elastic/{quote(run_id, safe='')}/"


@lru_cache(maxsize=2 * NODES_MAX)
def spelled(node: Node) -> str:
    """As the name of a key."""
    return quote(str(node), safe="")


@frozen
class Seen:
    """The register as one answer showed it."""

    cluster: int
    """That answered."""
    state: RendezvousState | None = None
    stamp: Stamp | None = None
    """Of its last write."""
    revision: int = 0
    """Of its last write; 0 when it is absent."""
    lease: int = 0
    at: int = 0
    """The store's revision then."""

    @property
    def token(self) -> Token | None:
        return self.state.token if self.state else None

    @property
    def shown(self) -> Shown:
        """Written here: to the cluster that answered, not to one of which this is a snapshot."""
        return Shown(self.state, self.stamp is None or self.stamp.cluster == self.cluster)


@frozen
class Keys:
    """Of one register of a run."""

    run_id: str
    place: str
    """The store, for the texts."""
    space: str = ""
    """Of the run's workers, who keep registers of their own; empty: the agents'."""
    prefix: str = field(init=False)
    register: bytes = field(init=False)
    life: bytes = field(init=False)

    @prefix.default
    def _prefix(self) -> str:
        below = f"workers/{quote(self.space, safe='')}/" if self.space else ""
        return f"{prefix_of(self.run_id)}{below}"

    @register.default
    def _register(self) -> bytes:
        return self.key("register")

    @life.default
    def _life(self) -> bytes:
        return self.key("life")

    def key(self, name: str) -> bytes:
        return f"{self.prefix}{name}".encode()

    def wish(self, node: Node) -> bytes:
        return self.key(f"wish/{spelled(node)}")

    def heartbeat(self, node: Node) -> bytes:
        return self.key(f"heartbeat/{spelled(node)}")

    # --- requests

    def both(self, **limits: int) -> Any:
        """Asks for `life` and `register`, between which there is no key."""
        return rpc.RangeRequest(key=self.life, range_end=self.register + b"\0", **limits)

    def below(self, name: str, **limits: int) -> Any:
        """Asks for all keys of a folder."""
        return rpc.RangeRequest(key=self.key(f"{name}/"), range_end=self.key(f"{name}0"), **limits)

    def write(self, state: RendezvousState, base: Seen, new: Stamp, lease: int) -> Any:
        """The transaction: `state` with this stamp in place of what `base` saw, or else what stands."""
        compare = [_compared(self.register, rpc.Compare.MOD, mod_revision=base.revision)]
        if base.stamp:
            compare.append(_compared(self.life, rpc.Compare.VALUE, value=str(base.stamp).encode()))
        envelope = f"{ENVELOPE}{new}\n".encode()
        success = [
            put(self.register, envelope + codec.encode(state), lease),
            put(self.life, str(new).encode(), lease),
        ]
        return rpc.TxnRequest(compare=compare, success=success, failure=[asked(self.both())])

    # --- answers

    def seen(self, header: Any, kvs: Iterable[Any]) -> Seen:
        """Of an answer to `both`. Raises Unreadable."""
        found = {kv.key: kv for kv in kvs}
        register, life = found.get(self.register), found.get(self.life)
        if register is None:
            return Seen(header.cluster_id, at=header.revision)
        seen = self.decoded(register, header.cluster_id, header.revision)
        if life is None or life.value != str(seen.stamp).encode():
            raise self._not_ours("life", "it is not the stamp of the register")
        return seen

    def named(self, header: Any, value: bytes | None) -> Life | None:
        """The life that stands where it was written, by the value of `life`. Raises Unreadable."""
        if value is None:
            return None
        found = stamp(value.decode(errors="replace"))
        if found is None:
            raise self._not_ours("life", "it is no stamp")
        return found.life if found.cluster == header.cluster_id else None

    def decoded(self, kv: Any, cluster: int, at: int) -> Seen:
        """Raises Unreadable."""
        first, _, data = kv.value[:_ENVELOPE_MAX].partition(b"\n")
        written = stamp(first.decode(errors="replace").removeprefix(ENVELOPE))
        if written is None or not data:
            raise self._not_ours("register", "its first line does not say where and when it was written")
        try:
            state = codec.decode(kv.value[len(first) + 1 :])
        except codec.Refused as error:
            raise self._not_ours("register", str(error)) from error
        if state.life != written.life:
            raise self._not_ours("register", f"its stamp names {written.life}, and it is of {state.life}")
        return Seen(cluster, state, written, kv.mod_revision, kv.lease, at)

    def _not_ours(self, name: str, reason: str) -> Unreadable:
        remedy = "if somebody else writes there, give the job another --rdzv-id"
        return Unreadable(f"etcd at {self.place} holds no register under {self.prefix} ({name}: {reason}): {remedy}")


def deleted(key: bytes) -> Any:
    return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key))


def put(key: bytes, value: bytes, lease: int, **how: bool) -> Any:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value, lease=lease, **how))


def asked(request: Any) -> Any:
    return rpc.RequestOp(request_range=request)


def _compared(key: bytes, target: Any, **value: int | bytes) -> Any:
    return rpc.Compare(key=key, target=target, result=rpc.Compare.EQUAL, **value)
