"""What becomes of a world of calls by a move: each is one step of one thread, one fault, or one limit that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ...inprocess.words import Interrupted, Terminated
from . import (
    call_faults as faults,
)
from . import (
    driver_steps as monitor_thread,
)
from . import (
    main_thread_steps as main_thread,
)
from . import (
    monitor_steps as monitor_process,
)
from .call_world import Hang, Note, Shape, World, born, changed, settings_of
from .moves import Move
from .register import When


def beginning(shape: Shape) -> World:
    """A world before its first step."""
    settings = settings_of(shape)
    ranks = (born(str(slot), 1, settings, shape.terms, shape.calls) for slot in range(shape.ranks))
    return World(None, tuple(map(monitor_thread.started, ranks)), shape.terms, shape.budget, shape.kinds, shape.calls)


def step(world: World, move: Move, note: Note) -> World:
    """After this move. Raises Broken, or a Violation, when it breaks a law."""
    return STEPS[move.what](world, move, note)


STEPS: Mapping[str, Callable[[World, Move, Note], World]] = {
    "M arms": main_thread.arms,
    "M ends": main_thread.ends,
    "M disarms": main_thread.disarms,
    "M tells": main_thread.tells,
    "M enters a section": main_thread.enters,
    "M leaves the section": main_thread.leaves_section,
    "M is signalled": main_thread.is_signalled,
    "T hears": monitor_thread.hears,
    "T asks": monitor_thread.asks,
    "T asks late": partial(monitor_thread.asks, when=When.LATE),
    "T is too late": partial(monitor_thread.asks, when=When.TOO_LATE),
    "abort ends": monitor_thread.abort_ends,
    "P starts again": lambda world, move, note: changed(world, move.rank, monitor=True),
    "P speaks": monitor_process.speaks,
    "P wants": monitor_process.wants,
    "P signals again": lambda world, move, note: changed(world, move.rank, signalled=True),
    "P leaves": monitor_process.leaves,
    "P ends": monitor_process.ends,
    "P kills": monitor_process.kills,
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
    "starves": partial(faults.fault, starved=True),
    "has time again": lambda world, move, note: changed(world, move.rank, starved=False),
    "is cut off": faults.is_cut_off,
    "is reached again": faults.is_reached,
    "P dies": partial(faults.fault, monitor=False),
    "is suspected": faults.is_suspected,
    "starts again": faults.starts_again,
    "time passes": faults.time_passes,
    "gives the store up": faults.gives_up,
}
