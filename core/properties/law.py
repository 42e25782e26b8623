"""A law is one object: a number, a sentence, when it is armed, and what breaks or excuses it.

Most laws are generators over one fact and what the judge remembers. The name of the generator is the number of its law, its
docstring the sentence. It yields ARMED when what it speaks of is there, so that a breach would be seen. It yields EXCUSED
when it was armed and asks nothing, for a reason that its sentence names. A text says what is wrong.

Other laws are judged elsewhere: by `verify`, by a judge of the simulator. They are objects of the same kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

from attrs import define, field

from ..group import Phase
from ..values import frozen
from ..violation import Finding, check


class Sign(Enum):
    """What a law says of a fact, beside what is wrong."""

    ARMED = "armed"
    EXCUSED = "excused"


ARMED, EXCUSED = Sign.ARMED, Sign.EXCUSED
Answers: TypeAlias = Iterator[Sign | str]
Asks: TypeAlias = Callable[..., Answers]
"""It asks a law about a fact, by the judge's memory; a law of calls about what a step of a rank is."""
Holds: TypeAlias = Callable[..., int]
"""How often what a law speaks of is there: of the register before and after a write, or of a step of a world of calls."""
SERIES = "SVBRLOGFINC"


@define
class Strength:
    """How often each law was armed, and how often excused. A law that was never armed proves nothing."""

    armed: Counter[str] = field(factory=Counter)
    excused: Counter[str] = field(factory=Counter)

    def arms(self, laws: Iterable[str]) -> None:
        """Count that these laws are armed. (`Counter.update` takes longer to ask what it is given than to count it.)"""
        armed = self.armed
        for number in laws:
            armed[number] += 1


@frozen
class Law:
    """A property that must hold. `when` says in words when it is armed."""

    number: str
    sentence: str
    when: str
    facts: tuple[type | Phase, ...] = ()
    """The types of the facts that it is asked about. A phase stands for steps of a group into it. Of writes: `Life` for
    those that begin one, before they are verified; `Restore` for those that restore, `Wrote` for the others. A law of calls
    has the type of what must change to arm it."""
    asks: Asks | None = None
    holds: Holds | None = None
    """Of a law that is not armed where it is judged: what arms it."""
    ends: Holds | None = None
    """Of a law of calls: which ends of a run arm it."""
    is_traced: bool = True
    """False: no trace tells what the law speaks of."""

    def judge(self, *told: Any, **named: Any) -> None:
        """Ask a law of calls where it may be broken. Raises Violation."""
        assert self.asks is not None
        check((self.number, str(what)) for what in self.asks(*told, **named))


def law(
    when: str, *facts: type | Phase, holds: Holds | None = None, ends: Holds | None = None, is_traced: bool = True
) -> Callable[[Asks], Law]:
    """Make a law of a generator."""

    def made(asks: Asks) -> Law:
        sentence = " ".join((asks.__doc__ or "").partition("\n\n")[0].split())
        return Law(asks.__name__.replace("_", " "), sentence, when, facts, asks, holds, ends, is_traced)

    return made


def laws_of(*modules: Any) -> tuple[Law, ...]:
    """Return the laws of these modules, in the order in which they stand there."""
    found = (each for module in modules for each in vars(module).values() if isinstance(each, Law))
    return tuple(dict.fromkeys(found))


def by_number(laws: Iterable[Law]) -> Mapping[str, Law]:
    """Return these laws by their numbers, series after series."""
    return {each.number: each for each in sorted(laws, key=_place)}


def _place(law: Law) -> tuple[int, int, str]:
    series, digits, rest = re.fullmatch(r"(\D)(\d+)(.*)", law.number).groups()  # type: ignore[union-attr]
    return SERIES.index(series), int(digits), rest


def asked(laws: Iterable[Law]) -> tuple[tuple[str, Asks], ...]:
    """Return what asks these laws, each with the law's number."""
    return tuple((each.number, each.asks) for each in laws if each.asks)


def findings(laws: Iterable[tuple[str, Asks]], memory: Any, fact: Any, strength: Strength) -> Iterator[Finding]:
    """Ask these laws about a fact, and count what arms and what excuses them. Yield what it breaks."""
    for number, asks in laws:
        for answer in asks(memory, fact):
            if answer is ARMED:
                strength.armed[number] += 1
            elif answer is EXCUSED:
                strength.excused[number] += 1
            else:
                yield number, str(answer)
