"""The token that the agents of one job share: read from a file or given as text, and never shown.

Anybody who reads the token can write the job's register. So a file that everybody on the host can read is refused: a warning
scrolls by, and the remedy is one command. A group may read the file, because Kubernetes mounts a secret so for a program
that is not root.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from ...core.values import field, frozen
from ..terminal import why

if TYPE_CHECKING:
    from attrs import Attribute

BYTES_MIN = 16
"""A shorter token can be guessed from one value that it sealed."""
BYTES_MAX = 4_096
_EVERYBODY = stat.S_IROTH | stat.S_IWOTH
_MAKE = "(umask 077; openssl rand -hex 32 > FILE) makes one"


@frozen
class Secret:
    """A token. Its text and its errors leave the value out."""

    value: bytes = field(repr=False)

    @value.validator
    def _hard_to_guess(self, attribute: Attribute[bytes], value: bytes) -> None:
        if not BYTES_MIN <= len(value) <= BYTES_MAX:
            raise ValueError(f"has {len(value)} bytes, and {BYTES_MIN} to {BYTES_MAX} are wanted; {_MAKE}")


def spoken(text: bytes) -> Secret:
    """Return the secret in these bytes, without the blanks and line ends around it. Raises ValueError, with the remedy."""
    return Secret(text.strip())


def read_secret(path: str) -> Secret:
    """Return the secret in this file. Raises ValueError, with the remedy, if we cannot read it, or if everybody can."""
    try:
        return spoken(_held(path))
    except OSError as error:
        raise ValueError(f"{why(error)}; name a file that holds the token") from None


def _held(path: str) -> bytes:
    """Return the beginning of the file. Its mode is checked on the descriptor, so another file cannot take its place."""
    descriptor = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("is no file; name one that holds the token")
        if mode & _EVERYBODY:
            raise ValueError(
                f"everybody on this host can read or change it (mode {mode & 0o777:o}); write chmod o= {path}"
            )
        return os.read(descriptor, 2 * BYTES_MAX)
    finally:
        os.close(descriptor)
