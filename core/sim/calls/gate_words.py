"""The gate between who wants user code to end and the main thread that runs it: the words of a shared page, each with one
writer, and the one question that the signal's handler asks.

The main thread (M) writes `armed`, `armed_round` and `depth`; the monitor thread (T) `want`; the monitor process (P)
`want_p`. Nothing is cleared but by M's disarming.
"""

from __future__ import annotations

from attrs import frozen

from ...evolving import evolve


@frozen
class Page:
    armed: int = 0
    """The token of the user code that M runs; 0: none."""
    armed_round: int = -1
    depth: int = 0
    """How deep in atomic sections M is."""
    want: int = 0
    want_p: int = 0


def wanted(page: Page) -> bool:
    """Somebody wants the very user code that runs to end."""
    return page.armed != 0 and page.armed in (page.want, page.want_p)


def raises(page: Page, in_user_code: bool) -> bool:
    """What the handler does, in M, between two of its steps. `in_user_code`: the interrupted frame is not the wrapper's."""
    return in_user_code and wanted(page) and page.depth == 0


def armed(page: Page, token: int, round: int) -> Page:
    return evolve(page, armed=token, armed_round=round)


def disarmed(page: Page) -> Page:
    """User code is over, however it ended: sections that it left by an exception are over too."""
    return evolve(page, armed=0, depth=0)


def entered(page: Page) -> Page | None:
    """Into an atomic section, under the lock; None: refused, M raises instead."""
    return None if wanted(page) else evolve(page, depth=page.depth + 1)


def left(page: Page) -> Page:
    return evolve(page, depth=page.depth - 1)
