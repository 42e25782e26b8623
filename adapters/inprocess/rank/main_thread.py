"""The main thread, which called the wrapped function: it carries out the driver's orders until the call is over.

A handler that the program has put on a signal may raise while no user code runs. What it raises is raised in the next
initialize or function. If none follows, the call raises it.
"""

from __future__ import annotations

import gc
import signal
import traceback
from functools import partial
from queue import SimpleQueue
from typing import NoReturn

from ....core.inprocess.words import GUARDED
from ....core.values import evolve
from ...signals import taken
from ..gate.gate import Gate
from ..thread_events import Finished, Order, Release, ToMain
from ..user_stack import related
from .aborts import forget_groups
from .master_wait import wait_in_python


def serve(gate: Gate, orders: SimpleQueue[ToMain]) -> Finished:
    """Carry out the orders until the call is over. Return how it ended; in a child that user code forked, how that code
    did."""
    may_freeze, frozen = not gc.get_freeze_count(), False  # what the program has frozen stays frozen
    late: BaseException | None = None
    while True:
        order: ToMain | None = None
        try:
            order = taken(orders)
            if isinstance(order, Release):
                wait_in_python()
                _let_go(order.errors)
                if may_freeze and not frozen:
                    gc.freeze()  # objects from before the call need no look after each iteration
                    frozen = True
        except BaseException as error:  # noqa: BLE001 - of a handler of the program's own
            late = error
            if not isinstance(error, Exception):
                gate.signalled(signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM, None)
        if isinstance(order, Order):
            if late is not None and order.span in GUARDED:
                order, late = evolve(order, code=partial(_raise, late)), None
            if finished := gate.run(order):
                return finished
        elif isinstance(order, Finished):
            if frozen:
                gc.unfreeze()
            goes_first = late is not None and (order.error is None or not isinstance(late, Exception))
            return Finished(None, late) if goes_first else order
        del order


def _raise(error: BaseException) -> NoReturn:
    raise error


def _let_go(errors: tuple[BaseException, ...]) -> None:
    """Clear the errors' frames, which hold the iteration's models and process groups, and collect the garbage."""
    for error in errors:
        for each in related(error):
            traceback.clear_frames(each.__traceback__)
    if errors:
        del errors
        gc.collect()
    forget_groups()
