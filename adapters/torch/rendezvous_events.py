"""The events of this node's rendezvous under torch's agent, as torch's own rendezvous sends them: `RdzvEvent`s.

They go to torch's handler `dynamic_rendezvous`, which keeps nothing unless a program has put one of its own in its place.
"""

from __future__ import annotations

from attrs import frozen
from torch.distributed.elastic.events import construct_and_record_rdzv_event
from torch.distributed.elastic.events.api import NodeState


@frozen
class RendezvousEvents:
    """The events of one node in one job; `place` names the store."""

    run_id: str
    node: str
    host: str
    place: str

    def joins(self) -> None:
        self._record("next_rendezvous", f"{self._who} attempts to join the next round of {self._what}.", NodeState.INIT)

    def joined(self, round: int, rank: int, size: int) -> None:
        said = f"{self._who} has joined round {round} of {self._what} as rank {rank} in a world of size {size}."
        self._record("next_rendezvous", said, NodeState.RUNNING, rank)

    def failed(self, doing: str, error: Exception) -> None:
        """Tell of a failure. Call it while `error` is handled: torch adds the traceback."""
        self._record(doing, f"{type(error).__name__}: {error}", NodeState.FAILED)

    def closed(self) -> None:
        self._record("set_closed", f"{self._who} has closed {self._what}.", NodeState.SUCCEEDED)

    @property
    def _who(self) -> str:
        return f"The node '{self.node}'"

    @property
    def _what(self) -> str:
        return f"the rendezvous '{self.run_id}'"

    def _record(self, doing: str, message: str, state: NodeState, rank: int | None = None) -> None:
        construct_and_record_rdzv_event(
            self.run_id, message, state, f"ElasticRendezvous.{doing}", self.host, master_endpoint=self.place, rank=rank
        )
