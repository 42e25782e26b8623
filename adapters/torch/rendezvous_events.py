"""The events of this node's rendezvous as torch's own rendezvous sends them (`RdzvEvent`): it joins, has joined, has failed.

They go to the handler `dynamic_rendezvous`, whatever --event-log-handler says. Torch's own keeps nothing, so without another
one in its place none is made. Torch's heartbeats and synchronisations are not among them: here they are no news.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core.group import Phase
from ...core.group.state import Gone, Join, Ready, Refused
from ...core.ranks import assign
from ...core.rendezvous import RendezvousState
from ...core.values import frozen
from ...core.world import Node, Verdict, Why
from ..report.news import News, Seen, Step

Record = Callable[[str, str, str, int | None], None]
"""Takes an event's name, message and state, and the node's rank if it has one."""
RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"
_HANDLER, _EXECUTOR = "DynamicRendezvousHandler", "_DistributedRendezvousOpExecutor"
_ERRORS: Mapping[Why, str] = {
    Why.CLOSED: "RendezvousClosedError",
    Why.TIMEOUT: "RendezvousTimeoutError",
    Why.UNCONFIRMED: "RendezvousConnectionError",
    Why.ILLEGAL: "RendezvousStateError",
}
_LISTS: Mapping[str, tuple[str, Callable[[RendezvousState, Node], bool], int]] = {
    "participants": ("_add_to_participants", lambda state, node: node in state.participants, 0),
    "wait list": ("_add_to_wait_list", lambda state, node: node in state.wait_list, 1),
    "redundancy list": ("_add_to_redundancy_list", lambda state, node: node in state.redundancy_list, 1),
}
"""torch's list of nodes -> its method, the same in our register, and how many rounds ahead it is."""


@frozen
class RendezvousEvents:
    """The events of one node in one job."""

    run_id: str
    node: str
    record: Record

    def joins(self) -> None:
        said = f"{self._who} attempts to join the next round of {self._what}."
        self.record(f"{_HANDLER}.next_rendezvous", said, RUNNING, None)

    def listed(self, name: str, round: int) -> None:
        method, _, ahead = _LISTS[name]
        said = f"{self._who} added itself to the {name} of round {round + ahead} of {self._what}."
        self.record(f"{_EXECUTOR}.{method}", said, RUNNING, None)

    def joined(self, round: int, rank: int, size: int) -> None:
        said = f"{self._who} has joined round {round} of {self._what} as rank {rank} in a world of size {size}."
        self.record(f"{_HANDLER}.next_rendezvous", said, RUNNING, rank)

    def failed(self, error: str) -> None:
        self.record(f"{_HANDLER}.next_rendezvous", error, FAILED, None)

    def leaves(self, round: int) -> None:
        said = f"{self._who} removed itself from the participants of round {round} of {self._what}."
        self.record(f"{_EXECUTOR}._remove_from_participants", said, RUNNING, None)

    def closed(self) -> None:
        self.record(f"{_HANDLER}._close", f"{self._who} has closed {self._what}.", SUCCEEDED, None)

    @property
    def _who(self) -> str:
        return f"The node '{self.node}'"

    @property
    def _what(self) -> str:
        return f"the rendezvous '{self.run_id}'"


class Rendezvous:
    """The rendezvous of one agent, told from its news."""

    def __init__(self, run_id: str, record: Record) -> None:
        self._run_id = run_id
        self._record = record
        self._events: RendezvousEvents | None = None
        self._node: Node | None = None
        self._lists: tuple[str, ...] = ()
        self._round = 0

    def saw(self, news: News) -> None:
        """Record the events that torch's rendezvous would have sent for this."""
        match news:
            case Step():
                self._moved(news)
            case Seen(state) if self._events and self._node:
                lists = tuple(name for name, (_, holds, _) in _LISTS.items() if holds(state, self._node))
                for name in lists:
                    if name not in self._lists or state.round != self._round:
                        self._events.listed(name, state.round)
                self._lists, self._round = lists, state.round
            case _:
                return

    def _moved(self, step: Step) -> None:
        node = step.after.node
        events = self._events = self._events or RendezvousEvents(self._run_id, str(node), self._record)
        self._node = node
        if any(isinstance(command, Join) for command in step.commands):
            events.joins()
        match step.event:
            case Ready(world) if step.after.phase is Phase.HELD:
                ranks = assign(world)[node]
                events.joined(world.round, ranks.group_rank, ranks.group_world_size)
            case Refused(why, text) if not step.before.refused:
                events.failed(f"{_ERRORS.get(why, 'RendezvousError')}: {text}")
            case Gone():
                events.leaves(self._round)
            case _:
                pass
        if isinstance(step.after.outcome, Verdict) and not step.before.outcome:
            events.closed()
