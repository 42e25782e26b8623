"""The rules that every step of a worker group keeps, for events in any order (docs/protocol.md#g-and-f-the-worker-group)."""

from __future__ import annotations

from agents import Broken
from attrs import define, field

from elastic.core.group import Group
from elastic.core.group.state import Command, Event, Start
from elastic.core.properties import group_laws
from elastic.core.properties.facts import Stepped
from elastic.core.properties.judge import Judge as Memory
from elastic.core.properties.law import Strength, asked, findings, laws_of
from elastic.core.world import WorldId

OF_GROUP = asked(laws_of(group_laws))


@define
class Judge:
    """A judge of one group. It must see every step from the first, those without commands too."""

    started: set[WorldId] = field(factory=set)
    memory: Memory = field(factory=Memory)

    def step(self, before: Group, event: Event, after: Group, commands: tuple[Command, ...], at: float) -> None:
        fact = Stepped(before, event, after, commands, at)
        self.memory.past(after.node).stepped(fact)
        for number, text in findings(OF_GROUP, self.memory, fact, Strength()):
            raise Broken(f"{number}: {text}")
        starts = {command.world.id for command in commands if isinstance(command, Start)}
        if self.started & starts:
            raise Broken(f"S17: {before.node} starts the workers of a world twice: {commands}")
        self.started |= starts
