"""The relay: the agent offers its store to its workers and their monitor processes, over a unix socket.

So no worker needs a client of the job's store or its password, and none serves the store: rank 0's death takes nothing away.
Each register has a name, its *space*. A space is a run of its own in the agent's store, beside the agents'.

A launch whose workers never connect pays for a socket and a thread, and imports no codec.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.values import frozen
from ... import threads
from ...clock import boot
from ..port import Backend

if TYPE_CHECKING:
    from .relay_session import Connection, Follow, Spaces

VARIABLE = "ELASTIC_RELAY"
"""The variable that tells a worker the socket's path."""
_SUN_PATH_MAX = 107
_BACKLOG = 1_024
_JOIN_S = 5.0
PLAIN = Path("/tmp")
"""The directory for temporary files where the environment names none."""
_PREFIX = "elastic-relay-"
_SETTLED_S = 60.0
"""A folder that is younger may belong to an agent that does not listen yet."""
_PAUSE_S = 0.1
"""The pause before the next try, after a client could not be accepted."""


@frozen
class OwnJob:
    """The agents' job, which this user's commands ask about. `open` makes a client of its register."""

    run_id: str
    store: str
    open: Callable[[], Backend]


class Relay:
    """The relay's server, until `close`. `open_space` makes a client of the register of that name. `follow` is given each
    register that is in use, until what it returned is called. `own` is the agents' job."""

    def __init__(
        self,
        open_space: Callable[[str], Backend],
        follow: Follow = lambda backend: lambda: None,
        own: OwnJob | None = None,
    ) -> None:
        """Serve at once. Raises OSError if no socket can be made."""
        self._open_space, self._follow, self._own = open_space, follow, own
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._socket_name = _socket_name()
        self.path = str(self._directory / self._socket_name)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._spaces: Spaces | None = None
        self._connections: set[Connection] = set()
        self._thread = threading.Thread(target=self._run, name="elastic-relay", daemon=True)
        try:
            self._listen()
            threads.start(self._thread)
        except OSError:
            self._remove()
            raise

    @property
    def restarts(self) -> int:
        """How often wrapped functions were restarted inside their processes, as far as this node's ranks have read."""
        return self._spaces.restarts if self._spaces else 0

    def close(self) -> None:
        """Stop serving, and leave nothing behind, whatever fails on the way. Idempotent."""
        with self._lock:
            self._closing.set()
            connections = list(self._connections)
        with ExitStack() as last_to_first:
            last_to_first.callback(self._remove)
            for connection in connections:
                last_to_first.callback(connection.join, _JOIN_S)
            if self._spaces:
                last_to_first.callback(self._spaces.close)
            for connection in connections:
                last_to_first.callback(connection.hang_up)
            last_to_first.callback(self._thread.join)
            try:
                self._listening.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed before

    def _listen(self) -> None:
        """Listen on a socket in a directory that is ours alone. If its path is too long for the kernel, use /tmp."""
        if _is_too_long(self.path):
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=PLAIN))
            self.path = str(self._directory / self._socket_name)
        self._listening.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listening.listen(_BACKLOG)

    def _run(self) -> None:
        _remove_left_over(self._directory.parent, self._socket_name)
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                if self._closing.wait(_PAUSE_S):
                    return
                continue  # the client was gone again, or there is no descriptor for it now
            try:
                self._serve(accepted)
            except (OSError, RuntimeError, MemoryError, ImportError):
                # No thread, descriptor or memory for this client. It tries again, and the next one may be served.
                accepted.close()
                self._closing.wait(_PAUSE_S)

    def _opened(self) -> Spaces:
        from .relay_session import Spaces  # with the codec behind it, when somebody comes

        self._spaces = self._spaces or Spaces(self._open_space, self._follow, self._own)
        return self._spaces

    def _serve(self, accepted: socket.socket) -> None:
        from .relay_session import Connection

        with self._lock:
            if self._closing.is_set():
                accepted.close()
                return
            connection = Connection(accepted, self._opened(), self._forget)
            self._connections.add(connection)
        try:
            connection.start(self._closing.is_set)
        except threads.NoThread:
            self._forget(connection)
            raise

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            self._connections.discard(connection)

    def _remove(self) -> None:
        """Remove the folder with the socket, and whatever workers have put there. Only to look for that takes a descriptor,
        and there may be none left."""
        self._listening.close()
        with suppress(OSError):  # it was not made
            os.unlink(self.path)
        with suppress(OSError):
            os.rmdir(self._directory)
            return
        shutil.rmtree(self._directory, ignore_errors=True)


def _socket_name() -> str:
    """Return the name of a relay's socket on this host. Agents of other hosts may share the directory, and a socket refuses
    these."""
    return boot()[-12:]


def _is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > _SUN_PATH_MAX


def parent_here() -> Path:
    """Return the directory of this user's relays: that for temporary files, or /tmp if paths are too long there."""
    parent = Path(tempfile.gettempdir())
    return PLAIN if _is_too_long(str(parent / f"{_PREFIX}12345678" / _socket_name())) else parent


def sockets_here(parent: Path | None = None) -> list[str]:
    """Return the sockets of this user's relays on this host, in `parent_here()` if no directory is named. Others of the host
    cannot enter their folders. Those that nobody serves are removed."""
    parent, name = parent or parent_here(), _socket_name()
    _remove_left_over(parent, name)
    folders = [folder for folder in parent.glob(f"{_PREFIX}*") if _is_private(folder)]
    return sorted(str(folder / name) for folder in folders if _is_socket(folder / name))


def _is_socket(path: Path) -> bool:
    """Return True for a socket. A folder may be empty, or of another host."""
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Return True for a folder of this user's that nobody else can enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _remove_left_over(parent: Path, socket_name: str) -> None:
    """Remove the folders of this host's relays in which nobody listens any more: an agent that was killed could not remove
    its own."""
    with suppress(OSError):  # no descriptor is left to look by
        for folder in parent.glob(f"{_PREFIX}*"):
            with suppress(OSError):  # another host's; or another agent has removed it
                found = folder.lstat()
                ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
                if ours and time.time() - found.st_mtime > _SETTLED_S and _refuses(folder / socket_name):
                    shutil.rmtree(folder, ignore_errors=True)


def _refuses(path: Path) -> bool:
    """Return True if no process listens on this socket. Raises OSError if that cannot be told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PAUSE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False
