"""The seal on a value: it proves that an agent of this job wrote the value under this very key.

A TCPStore has neither passwords nor TLS, so anybody who reaches its port can write anything. With a token that all agents
of the job share, each value carries an HMAC-SHA256 over its key (which begins with the run id) and itself. A value that a
foreigner made up is refused, and so is one that was copied from another key, another run or a job with another token.

A seal does not hide a value. It does not keep a foreigner from deleting or overwriting it, which stops the job. It does not
tell an older value of the same key from the newest: for that, each version of the register has a key of its own and names
its life, and a heartbeat that goes back counts as one that stands still (`tcpstore.py`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

from ....core.values import field, frozen

if TYPE_CHECKING:
    from ..secret import Secret
    from .wire import WireClient

MAGIC = b"elastic-sealed-1:"
"""The first bytes of each sealed value, and of no other."""
_SIZE = 32
_NAME = b"elastic-secret-name-1"
"""No sealed value is this, so no seal is the name of a key."""
_SAME = "give every agent of the job the same token_file (or ELASTIC_STORE_TOKEN), or the job another --rdzv-id"


class Forged(ValueError):
    """No agent with our token wrote this value under this key. The text says what is wrong, and the remedy."""


class Seal(Protocol):
    """How a value becomes the bytes under a key, and back."""

    def sealed(self, key: str, value: bytes) -> bytes:
        """Return the bytes to write."""

    def opened(self, key: str, data: bytes) -> bytes:
        """Return the value in these bytes. Raises Forged."""

    def secret_name(self, key: str) -> str | None:
        """Return a name for this key that nobody without the token can guess; None for a job without a token."""


@frozen
class _NoSeal:
    """The seal of a job without a token: values as they are."""

    def sealed(self, key: str, value: bytes) -> bytes:
        return value

    def opened(self, key: str, data: bytes) -> bytes:
        if data.startswith(MAGIC):
            raise Forged(
                "is sealed with a token, and none was given: write --rdzv-conf=token_file=FILE, or set "
                "ELASTIC_STORE_TOKEN, as for the job's agents"
            )
        return data

    def secret_name(self, key: str) -> str | None:
        return None


@frozen
class TokenSeal:
    """The seal of a job with a token."""

    token: Secret = field(repr=False)

    def sealed(self, key: str, value: bytes) -> bytes:
        return MAGIC + self._mac(key, value) + value

    def opened(self, key: str, data: bytes) -> bytes:
        if not data.startswith(MAGIC):
            raise Forged(
                f"is not sealed: an agent without the job's token wrote it, or somebody who is no agent; {_SAME}"
            )
        mac, value = data[len(MAGIC) : len(MAGIC) + _SIZE], data[len(MAGIC) + _SIZE :]
        if not _same(mac, self._mac(key, value)):
            raise Forged(f"is sealed with another token, or was copied or changed by somebody; {_SAME}")
        return value

    def secret_name(self, key: str) -> str | None:
        return self._mac(key, _NAME)[:16].hex()

    def _mac(self, key: str, value: bytes) -> bytes:
        """Return the HMAC. The length of the key comes first, so no other pair of key and value spells the same."""
        from hmac import digest  # with OpenSSL behind it: 5 ms for a job that has a token

        spelled = key.encode()
        return digest(self.token.value, MAGIC + struct.pack("<Q", len(spelled)) + spelled + value, "sha256")


def _same(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not depend on where they differ."""
    from hmac import compare_digest

    return compare_digest(one, other)


UNSEALED: Seal = _NoSeal()


def seal(token: Secret | None) -> Seal:
    return TokenSeal(token) if token else UNSEALED


def put(seal: Seal, client: WireClient, key: str, value: bytes) -> None:
    """Write the value, sealed."""
    client.set(key, seal.sealed(key, value))


def trusted(seal: Seal, key: str, data: bytes) -> bytes:
    """Return the value, or b"" if it is forged or not there."""
    try:
        return seal.opened(key, data)
    except Forged:
        return b""
