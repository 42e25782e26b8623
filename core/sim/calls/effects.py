"""The effect of each move on a world of calls. A move is one step of one thread, one fault, or one limit that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ...inprocess.words import Interrupted, Terminated
from ...values import evolve
from . import (
    call_faults as faults,
)
from . import (
    driver_steps as driver,
)
from . import (
    main_thread_steps as main_thread,
)
from . import (
    monitor_steps as monitor,
)
from .call_world import Hang, Note, Shape, Unheard, World, born, changed, settings_of
from .moves import FAULTS, HOWS, LOSSES, Move
from .register import When


def beginning(shape: Shape) -> World:
    """Return a world before its first step. Raises ValueError for a kind of faults that there is not."""
    if unknown := shape.kinds.difference(FAULTS, LOSSES, HOWS):
        kinds = ", ".join((*FAULTS, *LOSSES, *HOWS))
        raise ValueError(f"kinds: there is no {', '.join(sorted(unknown))}; there are {kinds}")
    settings, calls = settings_of(shape), evolve(shape.calls, replace_wait=shape.replace_s)
    ranks = (born(str(slot), 1, settings, shape.terms, calls) for slot in range(shape.ranks))
    return World(None, tuple(map(driver.started, ranks)), shape.terms, shape.budget, shape.kinds, calls)


def step(world: World, move: Move, note: Note) -> World:
    """Return the world after this move. Raises Broken, or a Violation, when the move breaks a law."""
    return STEPS[move.what](world, move, note)


STEPS: Mapping[str, Callable[[World, Move, Note], World]] = {
    "main thread arms": main_thread.arms,
    "main thread ends": main_thread.ends,
    "main thread disarms": main_thread.disarms,
    "main thread tells": main_thread.tells,
    "main thread enters a section": main_thread.enters,
    "main thread leaves the section": main_thread.leaves_section,
    "main thread is signalled": main_thread.is_signalled,
    "driver hears": driver.hears,
    "driver asks": driver.asks,
    "driver asks late": partial(driver.asks, when=When.LATE),
    "driver is too late": partial(driver.asks, when=When.TOO_LATE),
    "abort ends": driver.abort_ends,
    "monitor starts again": lambda world, move, note: changed(world, move.rank, monitor=True),
    "monitor speaks": monitor.speaks,
    "monitor waits no longer": partial(monitor.speaks, waited=True),
    "monitor wants": monitor.wants,
    "monitor signals again": lambda world, move, note: changed(world, move.rank, signalled=True),
    "monitor leaves": monitor.leaves,
    "monitor ends": monitor.ends,
    "monitor kills": monitor.kills,
    "monitor terminates": monitor.terminates,
    "monitor quits": lambda world, move, note: changed(world, move.rank, monitor=False),
    "user code ends": faults.user_code_ends,
    "fails here": faults.fails,
    "fails there": faults.fails,
    "hangs": partial(faults.hangs, hang=Hang.YES),
    "is stuck": partial(faults.hangs, hang=Hang.STUCK),
    "swallows": faults.swallows,
    "dies": partial(faults.fault, alive=False),
    "is lost": partial(faults.fault, alive=False, monitor=False),
    "is told to stop": partial(faults.is_told, event=Terminated()),
    "is interrupted": partial(faults.is_told, event=Interrupted()),
    "abort hangs": partial(faults.fault, abort_hangs=True),
    "abort fails": faults.abort_fails,
    "is shown part": partial(faults.fault, shown_part=True),
    "starves": partial(faults.fault, starved=True),
    "has time again": lambda world, move, note: changed(world, move.rank, starved=False),
    "is cut off": faults.is_cut_off,
    "is reached again": faults.is_reached,
    "monitor dies": partial(faults.fault, monitor=False),
    "is suspected": faults.is_suspected,
    "the store forgets": faults.store_forgets,
    "an answer is lost": partial(faults.is_unheard, how=Unheard.LOST),
    "a write is late": partial(faults.is_unheard, how=Unheard.LATE),
    "a late write arrives": driver.write_arrives,
    "starts again": faults.starts_again,
    "time passes": faults.time_passes,
    "stands still": faults.fault,
    "gives the store up": faults.gives_up,
}
