"""Judge what agents put on record of the workers that they stop, by the steps of their groups (O12).

People are told what the workers were doing when one of them failed, or when a node was lost. So an agent looks at its
workers while they still do it: a signal may end them.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from ..agent import Effect, PutStacks, See, Stepped, Suspect
from ..group import Phase
from ..group.state import Closed, Event, Exited, Over, Raised, Signal, StartAgain
from ..properties.law import Law, Strength
from ..violation import Finding, check
from ..world import Ending, Node, Why

O12 = Law(
    "O12",
    "An agent that stops its workers because a worker failed or a node was lost looks at them before their first "
    "signal, and puts on record once what they were doing, unless their hang is there; of others it puts nothing there.",
    "workers that run are stopped because of a failure, or go on record",
)
FAILURES = (Why.FAILED, Why.LOST, Why.FENCED)
"""A round that is over for one of these reasons has failed."""


@define
class StackJudge:
    strength: Strength = field(factory=Strength)
    hung: dict[Node, int] = field(factory=dict)
    """The round of each node whose workers have a hang on record."""

    def hear(self, stepped: Stepped, effects: tuple[Effect, ...], round: int | None) -> None:
        """Judge the effects of a step; `round` is that of the workers that run, or ran last. Raises Violation."""
        check(self._hears(stepped, effects, round))

    def suspects(self, node: Node, suspect: Suspect) -> None:
        """Note that this node puts a hang on record, or withdraws it."""
        if suspect.seen:
            self.hung[node] = suspect.round
        else:
            self.hung.pop(node, None)

    def _hears(self, stepped: Stepped, effects: tuple[Effect, ...], round: int | None) -> Iterator[Finding]:
        node, stops = (
            stepped.after.node,
            stepped.before.phase is Phase.RUNNING and stepped.after.phase is Phase.STOPPING,
        )
        failed, puts = stops and _is_failure(stepped.event), [each.round for each in effects if type(each) is PutStacks]
        if any(type(each) is StartAgain for each in effects):
            self.hung.pop(node, None)
        if failed or puts:
            self.strength.armed["O12"] += 1
        if failed and self.hung.get(node) == round:
            self.strength.excused["O12"] += 1
            failed = False
        if puts != ([round] if failed else []):
            yield "O12", f"{node} puts stacks of the rounds {puts} on record in a step of round {round}"
        looks = [type(each) for each in effects if type(each) in (See, Signal)]
        if failed and looks[:1] != [See]:
            yield "O12", f"{node} looks at its workers after their signal, or not at all"


def _is_failure(event: Event | None) -> bool:
    match event:
        case Over(why=why):
            return why in FAILURES
        case Closed(verdict):
            return verdict.ending is Ending.FAILED
        case _:
            return isinstance(event, Exited | Raised)
