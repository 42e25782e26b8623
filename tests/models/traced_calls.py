"""Small traces of wrapped calls for tests: ranks that share a register in memory, and take real steps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from attrs import define, field, frozen
from traced import Party, Shared
from worlds import but

from elastic.core.caller import Terms, heard, requested, signature
from elastic.core.inprocess import Call, Settings, begin, transition
from elastic.core.inprocess.words import (
    Abort,
    AbortEnded,
    Close,
    Command,
    End,
    Event,
    GateRead,
    How,
    Span,
    SpanEnded,
    Want,
)
from elastic.core.policies import at_most, chain
from elastic.core.rendezvous import Client, Errand, Limits, Notice, Told
from elastic.core.rendezvous import Settings as Rendezvous
from elastic.core.replay.comparison import replayed
from elastic.core.replay.evidence import broken
from elastic.core.replay.history import History, histories
from elastic.core.trace.steps import Calling
from elastic.core.world import Node

TWO = Rendezvous(Limits(2, 2, 100))
EVERYBODY, ONE_ACTIVE = Terms(), Terms(chain(at_most(1)))


@define
class Rank(Party):
    """One rank: the thread that decides. What its main thread does is for a test to say (`ends`)."""

    settings: Rendezvous = TWO
    terms: Terms = EVERYBODY
    incarnation: int = 1
    call: Call = field(init=False)
    depth: int = 0
    """Of sections, for the gate."""
    aborts_by_itself: bool = True

    def begins(self) -> None:
        me = Node(self.name, self.incarnation)
        self.client = Client(but(self.held, node=me, policy=partial(signature, self.terms)))
        self.call, commands = begin(Call())
        self._took(transition, None, commands, self.began_at)
        self._carry_out(commands)

    def noticed(self, notice: Notice) -> None:
        if isinstance(notice, Told) and (event := heard(notice.handler, notice.answer, self.terms, self.held)):
            self.hears(event)

    @property
    def machine(self) -> Calling:
        return Calling(Settings(), 0)

    def hears(self, *events: Event) -> Rank:
        for event in events:
            self.call, commands = transition(self.call, event)
            self._took(transition, event, commands, self.shared.tick())
            self._carry_out(commands)
        return self

    def ends(self, how: How = How.RETURNED, span: Span | None = None) -> Rank:
        """The span under way, which is this one."""
        assert self.call.span is not None and span in (None, self.call.span), self.call
        return self.hears(SpanEnded(self.call.token, how))

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, Close):
                self._submits(Errand(None))
            if request := requested(command, self.held.who.profile):
                self._submits(request)
            if isinstance(command, End):
                self._submits(Errand(None))
            if isinstance(command, Want):
                self.hears(GateRead(command.token, self.depth))
            if isinstance(command, Abort) and self.aborts_by_itself:
                self.hears(AbortEnded())


@frozen
class Ranks:
    """Ranks 0 and 1."""

    a: Rank
    b: Rank

    def run(self) -> Ranks:
        """Until both wait for the register, or for their main threads."""
        stood = None
        while stood != (stood := [(each.client, each.call) for each in (self.a, self.b)]):
            for each in (self.a, self.b):
                each.runs()
        return self

    def run_into(self, span: Span) -> Ranks:
        """Until both are in this span: what comes before returns."""
        self.run()
        while any(each.call.span is not span for each in (self.a, self.b)):
            for each in (self.a, self.b):
                if each.call.span not in (span, None):
                    each.ends()
            self.run()
        return self

    def finish(self) -> Ranks:
        """Everything returns, until both calls are over."""
        self.run()
        while any(each.call.outcome is None for each in (self.a, self.b)):
            for each in (self.a, self.b):
                if each.call.span:
                    each.ends()
            self.run()
        return self

    @property
    def history(self) -> History:
        (found,) = histories([replayed(self.a.trace), replayed(self.b.trace)])
        return found


def ranks(shared: Shared | None = None, terms: Terms = EVERYBODY) -> Ranks:
    """In the function, but for a reserve."""
    shared = shared or Shared()
    made = Ranks(Rank("0", shared, terms=terms), Rank("1", shared, terms=terms)).run()
    for each in (made.a, made.b):
        each.ends(span=Span.INITIALIZE)
    return made.run()


def called_again() -> Ranks:
    """The function failed on rank 1; both are in it again."""
    made = ranks()
    made.b.ends(How.FAILED)
    made.run()
    made.a.ends(How.INJECTED)
    return made.run_into(Span.FUNCTION)


def number(history: History) -> str | None:
    """Of the law that is broken."""
    found = broken(history)
    return found.number if found else None
