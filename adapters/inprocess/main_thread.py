"""The main thread, which called the wrapped function: it carries out the driver's orders until the call is over."""

from __future__ import annotations

import gc
import traceback
from queue import SimpleQueue

from .aborts import forget_groups
from .gate import Gate
from .master_wait import wait_in_python
from .thread_events import Finished, Order, Release, ToMain


def serve(gate: Gate, orders: SimpleQueue[ToMain]) -> Finished:
    """Carry out the orders until the call is over. Return how it ended; in a child that user code forked, how that code
    did."""
    frozen = False
    while True:
        order = orders.get()
        match order:
            case Order():
                if finished := gate.run(order):
                    return finished
            case Release(errors):
                _let_go(errors)
                wait_in_python()
                if not frozen:
                    gc.freeze()  # objects from before the call need no look after each iteration
                    frozen = True
            case Finished():
                if frozen:
                    gc.unfreeze()
                return order
        del order


def _let_go(errors: tuple[BaseException, ...]) -> None:
    """Clear the errors' frames, which hold the iteration's models and process groups, and collect the garbage."""
    for error in errors:
        seen: set[int] = set()
        each: BaseException | None = error
        while each is not None and id(each) not in seen:
            seen.add(id(each))
            traceback.clear_frames(each.__traceback__)
            each = each.__cause__ or each.__context__
    if errors:
        del errors
        gc.collect()
    forget_groups()
