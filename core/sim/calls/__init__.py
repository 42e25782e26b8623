"""A simulation of ranks whose function is restarted inside their processes, step by step and under faults: each rank's
threads, the gate between them, its monitor process, and the register that the ranks share.

All decisions are the core's own: `inprocess.transition`, `rendezvous.turn`, `agenda` and `caller`. The simulation models
the rest: the main thread with the places where a signal may interrupt it (`main_thread_steps`), the gate's words
(`gate_words`), the driver and the abort thread (`driver_steps`), the monitor process (`monitor_steps`), and faults
(`call_faults`). Time moves when nothing else can, and sometimes earlier. The store answers at once; a thread that gets no
turn stands for a late answer. In some worlds each step takes time instead (`clockwork`): the core's own timers and monitor
decide there (`monitor_sight`), and `time_laws` judges them. `moves` lists the moves that are possible, `effects` maps each
move to its effect, `laws` judges each step and the end, `call_strength` counts how often each law was armed, and `walk`
takes moves at random.

The names of this package are its surface; its modules may change.

    from elastic.core.sim import calls

    walk = calls.walked(seed=1, shape=calls.Shape(ranks=3))

To drive a world by hand, begin one, choose a move of those that are possible, and take it:

    world = calls.beginning(calls.Shape(ranks=2))
    while moves := calls.prompt(world):
        world = calls.step(world, moves[0], note=print)
"""

from __future__ import annotations

from ...caller import Terms
from ...inprocess import Settings
from ...properties.law import Strength
from ...violation import Violation
from .call_sometimes import SOMETIMES
from .call_strength import LAWS
from .call_world import At, Budget, Hang, Main, Rank, Shape, World
from .effects import beginning, step
from .moves import FAULTS, Move, faults, prompt, timed
from .walk import Property, Walk, drawn, walked

__all__ = [
    "FAULTS",
    "LAWS",
    "SOMETIMES",
    "At",
    "Budget",
    "Hang",
    "Main",
    "Move",
    "Property",
    "Rank",
    "Settings",
    "Shape",
    "Strength",
    "Terms",
    "Violation",
    "Walk",
    "World",
    "beginning",
    "drawn",
    "faults",
    "prompt",
    "step",
    "timed",
    "walked",
]
