"""The store in which the ranks meet without a launcher of ours."""

from __future__ import annotations

from typing import Any

from ..adapters.inprocess.wrapper.stores import TCPStore

__all__ = ["FileStore", "TCPStore"]


class FileStore:
    """A name of nvidia-resiliency-ext's, which says what to use: a file cannot wake the ranks that wait for a change."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises TypeError."""
        raise TypeError(
            "FileStore: leave store_factory out under `elastic launch`; elsewhere write store_factory=TCPStore"
        )
