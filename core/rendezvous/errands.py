"""The errands of a node: what it puts on record beside the register, such as a failure.

A store may not take an errand, or forget it. So the node remembers its errands. One that the store did not take is due again
when the register has moved: the store takes writes then. After a loss of the store's memory all are due again, once. Both
come before anything else is asked, so that the failures are on record before the verdict. Another job gets none of them.
"""

from __future__ import annotations

from ..values import frozen

ERRANDS_MAX = 64
"""How many errands a node remembers: the first half of them, and the last."""


@frozen
class Errand:
    """Work that the shell does in its turn, and that no register knows of."""

    what: object


@frozen
class Errands:
    """The errands that were asked for, in the order of their answers."""

    done: tuple[Errand, ...] = ()
    """These are on record."""
    missing: tuple[Errand, ...] = ()
    """The store did not take these."""
    due: tuple[Errand, ...] = ()
    """These are asked for again, the first one first."""


NONE = Errands()


def succeeded(errands: Errands, errand: Errand) -> Errands:
    """Return the errands after the store took this one."""
    return _of_few(Errands((*errands.done, errand), errands.missing, errands.due))


def failed(errands: Errands, errand: Errand) -> Errands:
    """Return the errands after the store did not take this one. None is due before the register moves."""
    return _of_few(Errands(errands.done, (*errands.missing, errand, *errands.due)))


def moved(errands: Errands) -> Errands:
    """Return the errands after the register has moved in its life."""
    return Errands(errands.done, (), (*errands.due, *errands.missing)) if errands.missing else errands


def forgotten(errands: Errands) -> Errands:
    """Return the errands after the store has lost its memory, and the register of the job stands again."""
    return Errands((), (), (*errands.done, *errands.due, *errands.missing))


def next_due(errands: Errands) -> tuple[Errand, Errands]:
    """Return the errand that is due first, and the others."""
    first, *rest = errands.due
    return first, Errands(errands.done, errands.missing, tuple(rest))


def _of_few(errands: Errands) -> Errands:
    """Return the errands without one in the middle, if they are too many."""
    if len(errands.done) + len(errands.missing) + len(errands.due) <= ERRANDS_MAX:
        return errands
    done, missing, half = errands.done, errands.missing, ERRANDS_MAX // 2
    if len(done) > half:
        return Errands((*done[:half], *done[half + 1 :]), missing, errands.due)
    return Errands(done, missing[1:], errands.due)
