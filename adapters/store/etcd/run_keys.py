"""The keys of one run in an etcd, the requests for them, and the values in the answers. Nothing is sent here.

The register's value is a line with the stamp of its write, then the codec's bytes. The key `life` holds the same stamp: it
is small enough for each write to compare and for each heartbeat to read. Values are bounded and schema-checked, and the two
stamps must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

from attrs import field

from ....core.rendezvous import RendezvousState, Token, codec
from ....core.values import frozen
from ....core.world import NAME_MAX, Life, Node
from ..port import Place, Shown, Unreadable, spelled
from .rpc import rpc

_STAMP = re.compile(
    rf"cluster ([0-9a-f]{{1,16}}) write ([0-9a-f]{{16}}) epoch ([1-9][0-9]{{0,15}}) life (.{{1,{NAME_MAX}}})"
)
ENVELOPE = "elastic 1 "
_ENVELOPE_MAX = 2_048
"""Bytes. A longer first line is none of ours."""


@frozen
class Stamp:
    """The cluster in which a state was written (as its writer knew it), a nonce of that write, and the state's life."""

    cluster: int
    write: str
    life: Life

    def __str__(self) -> str:
        return f"cluster {self.cluster:x} write {self.write} epoch {self.life.epoch} life {self.life.nonce}"


def stamp(text: str) -> Stamp | None:
    """Return the stamp that this text spells, or None."""
    found = _STAMP.fullmatch(text)
    try:
        return Stamp(int(found[1], 16), found[2], Life(found[4], int(found[3]))) if found else None
    except ValueError:
        return None


_ALL = b"elastic/"
"""The keys of all runs begin so. Behind it stands a name, the quoted id of the run."""


def name_of(run_id: str) -> bytes:
    return quote(run_id, safe="").encode()


def beginning(begin: str) -> tuple[bytes, bytes]:
    """Return the range of the keys of all runs whose ids begin so."""
    first = _ALL + name_of(begin)
    return first, first[:-1] + bytes([first[-1] + 1])


def next_name(key: bytes) -> tuple[bytes, bytes]:
    """Return the name in this key, and where the keys of the next one begin."""
    name = key.removeprefix(_ALL).partition(b"/")[0]
    return name, _ALL + name + b"0"


def register_of(name: bytes) -> bytes:
    """Return the key of the agents' register of the run with this name."""
    return _ALL + name + b"/register"


def unquoted(name: bytes) -> str:
    return unquote(name.decode(errors="replace"))


def prefix_of(run_id: str) -> str:
    """Return the beginning of all keys of a run."""
    return f"elastic/{quote(run_id, safe='')}/"


@frozen
class Seen:
    """The register as one answer shows it."""

    cluster: int
    """The cluster that answered."""
    state: RendezvousState | None = None
    stamp: Stamp | None = None
    """The stamp of its last write."""
    revision: int = 0
    """The revision of its last write; 0 when there is no register."""
    lease: int = 0
    at: int = 0
    """The store's revision at the answer."""

    @property
    def token(self) -> Token | None:
        return self.state.token if self.state else None

    @property
    def shown(self) -> Shown:
        """The register for the port. It is `here` if it was written to the cluster that answered, and not to one of which
        this is a snapshot."""
        return Shown(self.state, self.stamp is None or self.stamp.cluster == self.cluster)


@frozen
class Keys:
    """The keys of one register of a run."""

    run_id: str
    place: str
    """The name of the store, for the texts."""
    space: str = ""
    """The name of a register of the run's workers; empty for the agents' register."""
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

    def of(self, place: Place) -> bytes:
        return self.key(place.key)

    def heartbeat(self, node: Node) -> bytes:
        return self.key(f"heartbeat/{spelled(node)}")

    # --- requests

    def both(self, **limits: int) -> Any:
        """Return the request for `life` and `register`, between which there is no key."""
        return rpc.RangeRequest(key=self.life, range_end=self.register + b"\0", **limits)

    def below(self, name: str, **limits: int) -> Any:
        """Return the request for all keys of a folder."""
        return rpc.RangeRequest(key=self.key(f"{name}/"), range_end=self.key(f"{name}0"), **limits)

    def write(self, state: RendezvousState, base: Seen, new: Stamp, lease: int) -> Any:
        """Return the transaction that writes `state` with this stamp over `base`, or else reads the register."""
        compare = [compared(self.register, rpc.Compare.MOD, mod_revision=base.revision)]
        if base.stamp:
            compare.append(compared(self.life, rpc.Compare.VALUE, value=str(base.stamp).encode()))
        envelope = f"{ENVELOPE}{new}\n".encode()
        success = [
            put(self.register, envelope + codec.encode(state), lease),
            put(self.life, str(new).encode(), lease),
        ]
        return rpc.TxnRequest(compare=compare, success=success, failure=[asked(self.both())])

    def restoring(self, kvs: Iterable[Any]) -> Any:
        """Return the transaction that writes `life` again if the answer to `both` shows a register without it, or beside the
        stamp of another write; else None. We write the two together, so somebody has deleted one, or put an older one back.

        It writes nothing if either is another one by then. Raises Unreadable."""
        found = {kv.key: kv for kv in kvs}
        register, life = found.get(self.register), found.get(self.life)
        if register is None or (life is not None and stamp(life.value.decode(errors="replace")) is None):
            return None
        written = self.decoded(register, 0, 0).stamp
        if life is not None and life.value == str(written).encode():
            return None
        compare = [
            compared(self.register, rpc.Compare.MOD, mod_revision=register.mod_revision),
            compared(self.life, rpc.Compare.MOD, mod_revision=life.mod_revision if life is not None else 0),
        ]
        both = ((self.register, register.value), (self.life, str(written).encode()))
        return rpc.TxnRequest(compare=compare, success=[put(key, value, register.lease) for key, value in both])

    # --- answers

    def seen(self, header: Any, kvs: Iterable[Any]) -> Seen:
        """Return the register that an answer to `both` shows. Raises Unreadable."""
        found = {kv.key: kv for kv in kvs}
        register, life = found.get(self.register), found.get(self.life)
        if register is None:
            return Seen(header.cluster_id, at=header.revision)
        seen = self.decoded(register, header.cluster_id, header.revision)
        if life is None or life.value != str(seen.stamp).encode():
            raise self._not_ours("life", "it is not the stamp of the register")
        return seen

    def named(self, header: Any, value: bytes | None) -> Life | None:
        """Return the life in the value of `life`, None on a copy or without a value. Raises Unreadable."""
        if value is None:
            return None
        found = stamp(value.decode(errors="replace"))
        if found is None:
            raise self._not_ours("life", "it is no stamp")
        return found.life if found.cluster == header.cluster_id else None

    def decoded(self, kv: Any, cluster: int, at: int) -> Seen:
        """Return the register in this value. Raises Unreadable."""
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


def compared(key: bytes, target: Any, **value: int | bytes) -> Any:
    return rpc.Compare(key=key, target=target, result=rpc.Compare.EQUAL, **value)
