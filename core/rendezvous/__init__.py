"""Who is in the next round: the register, the edits that nodes make of it, and the operations that decide which."""

from .actions import (
    Action,
    Arrive,
    Close,
    Complete,
    Done,
    Edit,
    End,
    Evict,
    Fail,
    Finish,
    Leave,
    Outcome,
    Over,
    Overdue,
    Settled,
    Sync,
)
from .apply import apply
from .context import Context, Held, Operation
from .explain import explain
from .handlers import close, done, end, join, leave, linger, watch
from .lives import Deed, Restore, outranks, restored, verify_restore
from .memory import heard, introduced, joined, saw, silent, unanswered, unreadable, woke
from .operations import operation
from .settings import Settings
from .state import Ended, Limits, RendezvousState, Seat, Status, Token, blank
from .turn import Ask, Observe, Raise, Return, Wait, Write, turn
from .verify import Violation, verify, verify_step

__all__ = [
    "Action",
    "Arrive",
    "Ask",
    "Close",
    "Complete",
    "Context",
    "Deed",
    "Done",
    "Edit",
    "End",
    "Ended",
    "Evict",
    "Fail",
    "Finish",
    "Held",
    "Leave",
    "Limits",
    "Observe",
    "Operation",
    "Outcome",
    "Over",
    "Overdue",
    "Raise",
    "RendezvousState",
    "Restore",
    "Return",
    "Seat",
    "Settings",
    "Settled",
    "Status",
    "Sync",
    "Token",
    "Violation",
    "Wait",
    "Write",
    "apply",
    "blank",
    "close",
    "done",
    "end",
    "explain",
    "heard",
    "introduced",
    "join",
    "joined",
    "leave",
    "linger",
    "operation",
    "outranks",
    "restored",
    "saw",
    "silent",
    "turn",
    "unanswered",
    "unreadable",
    "verify",
    "verify_restore",
    "verify_step",
    "watch",
    "woke",
]
