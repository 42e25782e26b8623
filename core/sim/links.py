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
from ..rendezvous.links import Answered, Connect, Ended, Event, Failed, Link, Refused, Tell, followed, transition
from ..world import Node
from . import sometimes
from .chance import Choose
from .future import Future
from .link_laws import LinkLaws, LinkPast
from .network import ANSWER_TIMEOUT_S, Network
from .process import Process, Thread
from .witness import Witness

TAKEN_ONE_IN = 8
"""How many dead nodes have a port that is another program's when somebody connects to it."""


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
    past: LinkPast = field(factory=LinkPast)


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
    taken_one_in: int | None = TAKEN_ONE_IN
    """None: no port is ever another program's."""
    lines: dict[Node, dict[Node, Line]] = field(factory=dict)
    """Observer -> node -> the link."""
    laws: LinkLaws = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.laws = LinkLaws(self.witness.judge.strength)

    def follow(self, process: Process) -> None:
        """Link this node to the neighbours that its register names, and to nobody else."""
        lines, held = self.lines.setdefault(process.node, {}), process.held
        links = {node: line.link for node, line in lines.items()}
        wanted = followed(links, held.view.state, process.node, held.contact.silent_since is not None)
        for node in [node for node, line in lines.items() if wanted.get(node) is not line.link]:
            del lines[node]
        for node, link in wanted.items():
            if node not in lines:
                lines[node] = Line(link)
                self._connects(process, lines[node])
        self.laws.follows(held, {node: line.past for node, line in lines.items()})

    def is_mute(self, process: Process, span: float) -> None:
        """Let no link of this node carry anything for this long."""
        process.trouble.mute_until = max(process.trouble.mute_until, self.future.now + span)

    def refuses(self, process: Process, span: float) -> None:
        """Let the network break the links to this node, and refuse new ones in its name for this long."""
        process.trouble.refuses_until = max(process.trouble.refuses_until, self.future.now + span)
        self.breaks(process)

    def breaks_all(self, process: Process) -> None:
        """End every connection to this node and from it."""
        self.breaks(process)
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
        if max(process.trouble.mute_until, other.trouble.mute_until) > now:
            line.accepted = False
            self._tells(process, line, now + ANSWER_TIMEOUT_S, Failed())
            return
        event = self._comes_of(other)
        line.accepted = event is None or isinstance(event, Answered)
        if event is not None:
            self._tells(process, line, now + self.network.delay(process), event)
        elif other.alive:
            self.future.at(other.stalls.ends[Thread.PROCESS], self._arrives, process, line, number)

    def _comes_of(self, other: Process) -> Event | None:
        """Return what a connection to this node shows; None while it is accepted and nobody answers."""
        if other.trouble.refuses_until > self.future.now:
            other.trouble.refused_at = self.future.now
            return Refused()
        if other.alive:
            return Answered(other.node.incarnation) if other.stalls.ends[Thread.PROCESS] <= self.future.now else None
        if other.workers:
            return None
        heir = next((each for each in reversed(self.by_slot[other.node.slot]) if each.alive), None)
        if heir is not None:
            return Answered(heir.node.incarnation)
        if self.taken_one_in and not self.steady:
            other.trouble.port_taken |= self.choose(self.taken_one_in) == 0
        return Failed() if other.trouble.port_taken else Refused()

    def _ends(self, process: Process, line: Line, other: Process, goodbye: bool = False) -> None:
        """End an open connection. Through a network that carries nothing its end is heard late."""
        if line.accepted:
            line.accepted = False
            at = max(self.future.now, process.trouble.mute_until, other.trouble.mute_until)
            self._tells(process, line, at + self.network.delay(process), Ended(goodbye))

    def _tells(self, process: Process, line: Line, at: float, event: Event) -> None:
        line.heard_at = max(line.heard_at, at)
        self.future.at(line.heard_at, self._hears, process, line, line.tries, event)

    def _hears(self, process: Process, line: Line, number: int, event: Event) -> None:
        if line.tries != number or not self._is_current(process, line):
            return
        if self.network.waits(process, self._hears, process, line, number, event):
            return
        now = process.clock.shows(self.future.now)
        before, is_silent = line.link, process.held.contact.silent_since is not None
        line.link, commands = transition(before, event, now, is_silent)
        self.laws.hears(line.past, before.node, event, is_silent, commands, now)
        for command in commands:
            match command:
                case Connect(at):
                    self.future.at(process.clock.true(at), self._connects, process, line)
                case Tell(says):
                    told = Linked(before.node, says, process.heart.beaten_at)
                    sometimes.linked(self.witness.counts, process.held, told, event)
                    self.hear(process, told)
                case other:
                    assert_never(other)
        if is_silent and (line.link.over or line.link.is_gone):
            self.follow(process)

    def _is_current(self, process: Process, line: Line) -> bool:
        return self.lines.get(process.node, {}).get(line.link.node) is line
