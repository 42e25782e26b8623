"""The store in which the ranks meet without a launcher of ours."""

from __future__ import annotations

from ..adapters.inprocess.rank.stores import TCPStore

__all__ = ["TCPStore"]
