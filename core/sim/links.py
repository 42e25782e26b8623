"""The links between simulated agents, and what befalls them. The counterpart of the adapters' links.

Each node connects to its neighbours and obeys the core's ladder. What comes of a connection depends on the node at its other
end: one that lives answers, one that stands still accepts and is silent, and so does the reaper of a killed agent while its
workers die. The port of a dead node refuses, or another program or a later incarnation has it by now. The network may break
links, carry nothing, or refuse connections in the name of a node that lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from attrs import define, field

from ..properties.facts import Reaped
from ..rendezvous import Input, Linked
from ..rendezvous.links import Answered, Connect, Ended, Event, Failed, Link, Refused, Tell, neighbours, transition
from ..world import Node
from . import sometimes
from .chance import Choose
from .future import Future
from .network import ANSWER_TIMEOUT_S, Network
from .process import Process
from .story import Kind
from .witness import Witness

OF_LINKS = (Kind.UNLINK, Kind.REFUSE, Kind.MUTE)
"""Faults that befall nothing but links."""
TAKEN_ONE_IN = 8
"""The port of so many dead nodes is another program's when somebody connects to it."""


@define(eq=False)
class Line:
    """The observer's end of a connection, with the ladder."""

    link: Link
    tries: int = 0
    """The number of the connection; what happened to an earlier one says nothing."""
    accepted: bool = False
    """It was accepted, and has not ended."""
    heard_at: float = 0.0
    """When the observer hears what happened to it last: nothing that happens later is heard before."""


@define
class Links:
    future: Future
    network: Network
    choose: Choose
    steady: bool
    by_node: Mapping[Node, Process]
    by_slot: Mapping[str, Sequence[Process]]
    witness: Witness
    hear: Callable[[Process, Input], None]
    lines: dict[Node, dict[Node, Line]] = field(factory=dict)
    """Observer -> node -> the link."""

    def follow(self, process: Process) -> None:
        """Link this node to the neighbours that its register names, and to nobody else."""
        lines = self.lines.setdefault(process.node, {})
        wanted = neighbours(process.held.state, process.node)
        for node in [node for node in lines if node not in wanted]:
            del lines[node]
        for node in wanted:
            if node not in lines:
                lines[node] = Line(Link(node))
                self._connects(process, lines[node])

    def befall(self, process: Process, kind: Kind, span: float) -> None:
        """Apply a fault of links to a node."""
        now = self.future.now
        if kind is Kind.MUTE:
            process.mute_until = max(process.mute_until, now + span)
            return
        if kind is Kind.REFUSE:
            process.refuses_until = max(process.refuses_until, now + span)
        self.breaks(process)
        if kind is Kind.UNLINK:
            for node, line in self.lines.get(process.node, {}).items():
                self._ends(process, line, self.by_node[node])

    def breaks(self, process: Process, goodbye: bool = False) -> None:
        """End every connection to this node."""
        for node, lines in self.lines.items():
            if process.node in lines:
                self._ends(self.by_node[node], lines[process.node], process, goodbye)

    def dies(self, process: Process) -> None:
        """The workers of a killed agent are dead, and so the reaper has closed the port."""
        process.workers.clear()
        self.witness.judge.saw(Reaped(process.node))
        self.breaks(process)

    # --- a connection

    def _connects(self, process: Process, line: Line) -> None:
        if self._is_current(process, line) and not self.network.waits(process, self._connects, process, line):
            line.tries += 1
            self.future.at(self.future.now + self.network.delay(process), self._arrives, process, line, line.tries)

    def _arrives(self, process: Process, line: Line, number: int) -> None:
        """The connection comes to the other host, or is still open there."""
        now, other = self.future.now, self.by_node[line.link.node]
        if line.tries != number or not self._is_current(process, line):
            return
        if max(process.mute_until, other.mute_until) > now:
            line.accepted = False
            self._tells(process, line, now + ANSWER_TIMEOUT_S, Failed())
            return
        event = self._comes_of(other)
        line.accepted = event is None or isinstance(event, Answered)
        if event is not None:
            self._tells(process, line, now + self.network.delay(process), event)
        elif other.alive:
            self.future.at(other.stopped_until, self._arrives, process, line, number)

    def _comes_of(self, other: Process) -> Event | None:
        """Return what a connection to this node shows; None while it is accepted and nobody answers."""
        if other.refuses_until > self.future.now:
            other.refused_at = self.future.now
            return Refused()
        if other.alive:
            return Answered(other.node.incarnation) if other.stopped_until <= self.future.now else None
        if other.workers:
            return None
        heir = next((each for each in reversed(self.by_slot[other.node.slot]) if each.alive), None)
        if heir is not None:
            return Answered(heir.node.incarnation)
        other.port_taken |= not self.steady and self.choose(TAKEN_ONE_IN) == 0
        return Failed() if other.port_taken else Refused()

    def _ends(self, process: Process, line: Line, other: Process, goodbye: bool = False) -> None:
        """End an open connection. Through a network that carries nothing its end is heard late."""
        if line.accepted:
            line.accepted = False
            at = max(self.future.now, process.mute_until, other.mute_until) + self.network.delay(process)
            self._tells(process, line, at, Ended(goodbye))

    def _tells(self, process: Process, line: Line, at: float, event: Event) -> None:
        line.heard_at = max(line.heard_at, at)
        self.future.at(line.heard_at, self._hears, process, line, line.tries, event)

    def _hears(self, process: Process, line: Line, number: int, event: Event) -> None:
        if line.tries != number or not self._is_current(process, line):
            return
        if self.network.waits(process, self._hears, process, line, number, event):
            return
        now = process.clock(self.future.now)
        before = line.link
        line.link, commands = transition(before, event, now)
        for command in commands:
            match command:
                case Connect(at):
                    self.future.at(process.true(at), self._connects, process, line)
                case Tell(says):
                    told = Linked(before.node, says, process.beaten_at)
                    sometimes.linked(self.witness.counts, process.held, told, event)
                    self.hear(process, told)
                case other:
                    assert_never(other)

    def _is_current(self, process: Process, line: Line) -> bool:
        return self.lines.get(process.node, {}).get(line.link.node) is line
