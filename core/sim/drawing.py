"""The lanes of a simulated run: from the facts that the judge is told, and from the operations.

The pen is one more property of the run. It breaks nothing, and writes down what was the case when. A run that is not drawn
does not know it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from attrs import define, field

from ..group import Phase
from ..properties.facts import Fact, Stepped, Wrote
from ..properties.judge import Judge, Property
from ..rendezvous import Status
from ..replay.lanes import SPANS, Lanes, Mark, MarkKind, Span, SpanKind, marked
from ..violation import Finding
from ..world import Node
from .kinds import Kind, On
from .narration import verb
from .own import CORE, Own
from .process import Process
from .run import Run, told
from .simulation import World
from .story import Operation, Story

STORE = Node("store", 0)
OPERATOR = Node("operator", 0)


def drawn(story: Story, also: tuple[Property, ...] = (), own: Own = CORE) -> tuple[Run, Lanes]:
    """Run this story; return the run and its lanes."""
    world = World(story.setting, own=own)
    pen = Pen(world)
    world.witness.judge.also = (*also, pen.saw)
    run = told(world, story, does=pen.does)
    world.witness.judge.also = also  # the pen draws this run alone, and none that is made of it
    return run, pen.lanes(run)


@define
class Stroke:
    """A span that has not ended."""

    since: float
    kind: SpanKind
    label: str = ""


@define
class Pen:
    world: World
    known: int = 0
    """How many of the processes that were ever started are already drawn."""
    strokes: dict[Node, Stroke] = field(factory=dict)
    spans: list[Span] = field(factory=list)
    marks: list[Mark] = field(factory=list)

    def lanes(self, run: Run) -> Lanes:
        """Return the lanes when the run is over."""
        self._welcomes()
        for node in list(self.strokes):
            self._lift(node)
        if run.violation:
            self._mark(next(iter(self.world.by_node), STORE), "violation", str(run.violation))
        marked = [mark.node for mark in self.marks]
        others = [node for node in (OPERATOR, STORE) if node in marked]
        slots = self.world.setting.slots
        nodes = sorted(self.world.by_node, key=lambda node: (slots.index(node.slot), node.incarnation))
        return Lanes((*nodes, *others), tuple(self.spans), tuple(self.marks))

    # --- what is done

    def does(self, world: World, operation: Operation) -> None:
        """Do the operation and draw it. Raises Violation, as the world does."""
        self._welcomes()
        kind, before = operation.kind, world.at(operation.slot)
        often, at = world.done[kind], world.future.now
        marks = len(self.marks)
        try:
            world.does(operation)
        finally:
            if world.done[kind] > often and not self._first_start(operation):
                self.marks.insert(marks, Mark(_whom(world, operation, before), at, "fault", _label(operation)))
            if kind in (Kind.CRASH, Kind.KILL) and before is not None:
                self._lift(before.node)

    def _first_start(self, operation: Operation) -> bool:
        """Return True for the first start of a slot: the lane shows it, so it needs no mark."""
        return operation.kind is Kind.START and Node(operation.slot, 2) not in self.world.by_node

    # --- what is the case

    def saw(self, judge: Judge, fact: Fact) -> Iterable[Finding]:
        self._welcomes()
        match fact:
            case Stepped(_, _, after):
                world = after.world
                self._draws(after.node, SPANS[after.phase], f"round {world.round}" if world else "")
                if after.phase is Phase.ENDED:
                    self._lift(after.node)
            case Wrote():
                self._wrote(fact)
            case _:
                pass
        return ()

    def _welcomes(self) -> None:
        """Open a lane for each process that was started since the last call."""
        for process in islice(self.world.by_node.values(), self.known, None):
            self.strokes[process.node] = Stroke(process.launch.at, "joining")
        self.known = len(self.world.by_node)

    def _wrote(self, fact: Wrote) -> None:
        after, who = fact.after, fact.node if fact.node in self.world.by_node else OPERATOR
        self.marks.append(marked(who, self.world.future.now, verb(fact.edit), (fact.before, fact.edit, after)))
        for node, stroke in list(self.strokes.items()):
            seat = after.seats.get(node)
            waits = seat is not None and seat.status in (Status.WAITING, Status.ASIDE)
            if stroke.kind in ("joining", "waiting"):
                self._draws(node, "waiting" if waits else "joining", stroke.label)

    def _draws(self, node: Node, kind: SpanKind, label: str) -> None:
        now, stroke = self.world.future.now, self.strokes[node]
        if (stroke.kind, stroke.label) != (kind, label):
            self._lift(node)
            self.strokes[node] = Stroke(now, kind, label)

    def _lift(self, node: Node) -> None:
        stroke = self.strokes.pop(node, None)
        if stroke is not None and stroke.kind != "ended":
            self.spans.append(Span(node, stroke.since, self.world.future.now, stroke.kind, stroke.label))

    def _mark(self, node: Node, kind: MarkKind, label: str) -> None:
        self.marks.append(Mark(node, self.world.future.now, kind, label))


def _whom(world: World, operation: Operation, before: Process | None) -> Node:
    """Return the node to which the operation was done, after it was done."""
    match operation.kind.row.on:
        case On.JOB:
            return OPERATOR
        case On.STORE:
            return STORE
        case On.SLOT:
            return next(node for node in reversed(world.by_node) if node.slot == operation.slot)
        case _:
            assert before is not None
            return before.node


def _label(operation: Operation) -> str:
    if operation.kind is Kind.START:
        return "started again"
    span = f" {operation.span:g} s" if operation.kind.takes_span else ""
    return f"{operation.kind.value}{span}"
