"""A drained node's word to its workers, and theirs to it: two files in a folder of the agent's own.

ELASTIC_NOTICE names a file that appears when the node must be gone soon. A worker reads it by `notice`, saves what it has
to save, and calls `ready_to_leave`, which writes its rank into the pipe beside that file. The agent makes both when there
is something to tell: a node that nobody drains has neither. What the pipe says is bounded, and counts for this node alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..watch.watcher import Watcher

VARIABLE = "ELASTIC_NOTICE"
"""The variable that tells a worker the file's path."""
FILE, _PIPE = "notice.json", "ready"
_BYTES_MAX = 65_536
_LINES_MAX = 4_096


class Notice(NamedTuple):
    """The word that this node must be gone. Times are in seconds since the epoch."""

    deadline: float
    """When the node must be gone."""
    stops_at: float
    """When its workers get SIGTERM, if they are not ready before."""
    source: str
    """It says for people who or what wants that."""


# --- the worker's side


def notice() -> Notice | None:
    """Return the notice of this worker's node; None while nobody has asked the node to leave. Cheap enough for each step."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(_BYTES_MAX))
        return Notice(float(told["deadline"]), float(told["stops_at"]), str(told["source"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ready_to_leave() -> None:
    """Say that this worker has saved what it has to save. Without a notice this does nothing.

    When all workers of a drained node have said so, the node leaves at once, and they get SIGTERM.
    """
    path = os.environ.get(VARIABLE)
    if not path or notice() is None:
        return
    with suppress(OSError):  # the agent is gone, or leaves already
        pipe = os.open(os.path.join(os.path.dirname(path), _PIPE), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, f"{int(os.environ.get('RANK', '0'))}\n".encode())
        finally:
            os.close(pipe)


# --- the agent's side


def notice_path(relay: str) -> str:
    """Return the path of an agent's notice, in the folder that is its relay's."""
    return os.path.join(os.path.dirname(relay), FILE)


class NoticeBoard:
    """An agent tells its workers there, and hears them. The agent's own thread calls."""

    def __init__(
        self, path: str, watcher: Watcher | None = None, on_ready: Callable[[float], None] = lambda at: None
    ) -> None:
        """The `watcher`'s thread calls `on_ready` when a worker has said that it is ready."""
        self._path = path
        self._watcher = watcher
        self._on_ready = on_ready
        self.pipe: int | None = None
        """This descriptor is readable when a worker has said that it is ready; None before anything was told."""
        self._rest = b""

    def tell(self, notice: Notice) -> None:
        """Let the file appear, or replace it. Raises OSError."""
        if self.pipe is None:
            pipe = os.path.join(os.path.dirname(self._path), _PIPE)
            with suppress(FileExistsError):
                os.mkfifo(pipe, 0o600)
            self.pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        draft = f"{self._path}.draft"
        with open(draft, "w") as file:
            json.dump(notice._asdict(), file)
        os.replace(draft, self._path)
        self._watch()

    def ready(self) -> tuple[int, ...]:
        """Return the ranks that have said they are ready since the last call. The next one is watched for."""
        if self.pipe is None:
            return ()
        data = self._rest
        with suppress(OSError):  # nobody has said anything
            data += os.read(self.pipe, _BYTES_MAX)
        self._watch()
        *lines, self._rest = data[-_BYTES_MAX:].split(b"\n")
        return tuple(dict.fromkeys(int(line) for line in lines[:_LINES_MAX] if line.isdigit() and len(line) < 10))

    def _watch(self) -> None:
        if self._watcher and self.pipe is not None:
            self._watcher.forget(self.pipe)
            self._watcher.watch(self.pipe, self._on_ready)

    def close(self) -> None:
        if self.pipe is not None:
            if self._watcher:
                self._watcher.forget(self.pipe)
            os.close(self.pipe)
            self.pipe = None
        with suppress(OSError):
            os.unlink(self._path)
