"""What this rank's function call does: `transition(call, event) -> (call, commands)`.

A driver (the wrapper's monitor thread, or the simulator) holds the `Call`, begins it with `begin`, and for every event that
is posted makes a step and begins the commands in their order:

- rendezvous: `Join`, `End`, `MarkDone`, `MarkReserve`, `Leave`, `Close`. One queue in order, each until the register
  answers; answers are `Ready`, `Over`, `Closed`, `Left`, `Refused`. `StoreLost` and `StoreBack` tell whether it is in reach.
- main thread, which waits: `Run(span, token)`, answered by `SpanEnded(token, how, mark)`, posted after the gate is disarmed;
  and `Finish(outcome)`, the last command.
- gate: `Want(token)`, answered at once by `GateRead(token, depth)`; `AtomicLeft(token)` when an outermost section is left.
  `Inject(token)`: the signal. It needs no answer: `Timer.AGAIN` repeats it until `SpanEnded`.
- `Abort`: runs in a thread of its own, answered by `AbortEnded`. `Kill`: for the monitor process.
- after each step, `timers.running` says which deadlines run, `timers.until` how long to sleep, `timers.passed` which
  `Elapsed` to post. `watchdog` is the same judgement for who sees only the marks: the monitor process.
"""

from . import progress_limits as watchdog
from . import timers, words
from .settings import OnInterrupt, Settings
from .state import Call, Phase, deadlines
from .table import MOVES, diagram
from .transition import Step, begin, transition
from .verify import Violation, verify, verify_step
from .words import Command, Event, Outcome

__all__ = [
    "MOVES",
    "Call",
    "Command",
    "Event",
    "OnInterrupt",
    "Outcome",
    "Phase",
    "Settings",
    "Step",
    "Violation",
    "begin",
    "deadlines",
    "diagram",
    "timers",
    "transition",
    "verify",
    "verify_step",
    "watchdog",
    "words",
]
