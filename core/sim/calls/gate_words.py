"""The gate's words on the shared page, each with one writer, and the one question that the signal's handler asks.

The main thread writes `armed`, `armed_round` and `depth`; the driver writes `want`; the monitor process writes
`want_monitor`. Only the main thread's disarming clears anything.
"""

from __future__ import annotations

from ...values import evolve, frozen


@frozen
class Page:
    armed: int = 0
    """The token of the span whose user code runs; 0: none."""
    armed_round: int = -1
    depth: int = 0
    """How many atomic sections the main thread is in."""
    want: int = 0
    want_monitor: int = 0
    hung: bool = False
    """The monitor has sent SIGTERM at a limit."""


def wanted(page: Page) -> bool:
    """Return True if the span that runs must end."""
    return page.armed != 0 and page.armed in (page.want, page.want_monitor)


def raises(page: Page, in_user_code: bool) -> bool:
    """Return True if the signal's handler raises. `in_user_code`: the interrupted frame is the user's."""
    return in_user_code and wanted(page) and page.depth == 0


def armed(page: Page, token: int, round: int) -> Page:
    return evolve(page, armed=token, armed_round=round)


def disarmed(page: Page) -> Page:
    """Return the page after the end of user code, which also ends the sections that an exception left."""
    return evolve(page, armed=0, depth=0)


def entered(page: Page) -> Page | None:
    """Return the page inside an atomic section; None if it is refused, and the main thread raises instead."""
    return None if wanted(page) else evolve(page, depth=page.depth + 1)


def left(page: Page) -> Page:
    return evolve(page, depth=page.depth - 1)
