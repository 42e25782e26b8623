"""The function call of one rank, as a machine: `transition(call, event) -> (call, commands)`.

A driver (a thread of the wrapper, or the simulator) holds the `Call` and begins it with `begin`. For every event that is
posted it makes a step, and then begins the commands in their order:

- To the rendezvous go `Join`, `End`, `MarkDone`, `MarkReserve`, `Leave` and `Close`. They form one queue. Each lasts until
  the register answers, by `Ready`, `Over`, `Closed`, `Left` or `Refused`. `StoreLost` and `StoreBack` say that the store is
  out of reach, or in reach again.
- To the main thread, which waits, goes `Run(span, token)`. `SpanEnded(token, how, mark)` answers it, after the gate is
  disarmed. `Finish(outcome)` is the last command.
- To the gate goes `Want(token)`. `GateRead(token, depth)` answers it at once. `AtomicLeft(token)` follows when the main
  thread leaves an outermost section. `Inject(token)` is the signal. Nothing answers it: `Timer.AGAIN` repeats it until
  `SpanEnded`.
- `Abort` runs in its own thread, and `AbortEnded` answers it. `Kill` goes to the monitor process.
- After each step, `timers.running` gives the deadlines that run, `timers.until` the time to sleep, and `timers.passed` the
  `Elapsed` to post. `monitoring` judges the same for the monitor process, which sees only the marks of progress.
"""

from ..violation import Violation
from . import progress_limits, timers, words
from .settings import OnInterrupt, Settings
from .state import Call, Phase, deadlines
from .table import MOVES, diagram
from .transition import Step, begin, transition
from .verify import verify, verify_step
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
    "progress_limits",
    "timers",
    "transition",
    "verify",
    "verify_step",
    "words",
]
