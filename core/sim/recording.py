"""What simulated agents write down, as real ones do under `elastic launch --trace`: each step, when it is taken.

What workers came to is written before their agent hears that they ended, as in production.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from attrs import define

from .. import agent
from ..group import Group
from ..group.state import Exited
from ..rendezvous import Ask, Input
from ..trace.lines import FORMAT, NAME
from ..trace.steps import Asked, Header, Step, Stepped, Working
from .process import Process

Hears: TypeAlias = Callable[[Process, Step, Group | None], None]
"""Hears a step of this agent; of its worker group with the group after it."""


@define
class Recording:
    hears: Hears
    ended: Callable[[Process, int], Iterable[Step]] = lambda process, rank: ()
    """Returns what is written of a worker that has ended, by its local rank."""

    def asked(self, process: Process, fed: Input, now: float, ask: Ask | None) -> None:
        """Write down a step of the rendezvous' client."""
        if not process.launch.operator:
            self.hears(process, Asked(fed, now, ask), None)

    def stepped(self, process: Process, taken: agent.Stepped, now: float) -> None:
        """Write down a step of the worker group."""
        if isinstance(taken.event, Exited):
            for step in self.ended(process, taken.event.local_rank):
                self.hears(process, step, None)
        self.hears(process, Stepped(taken.event, taken.commands, now), taken.after)


def header(process: Process, at: float) -> Header:
    """Return the first line of this agent's trace, which it wrote at this time."""
    who, clock, working = process.held.who, process.clock.shows(at), Working(process.group.settings)
    host, boot = process.node.slot, "simulated"
    return Header(NAME, FORMAT, who.node, host, boot, at, clock, who.profile, who.nonce, who.settings, working)
