"""Who is in the next round: the register, the edits that nodes make of it, and the operations that decide which.

A node is a `Client`, and `step` is its whole loop but for the doing. A driver, in production or in a simulator, has four
duties:

1. Feed `step` one input at a time, with the time on the node's own clock, and keep the client that it returns. The first
   input is `Passed`. Before any other input feed `Woke` if the process stood still for longer than a TTL.
2. Tell the owner of the notices, in their order, before the ask is carried out: what the owner submits then comes first.
3. Carry out the ask. A question (`Look`, `Write`, `Observe`, `Propose`, `Gather`, an `Errand`) is asked once and answered
   once: by its own answer, `Unknown` (a write that may have landed), `Silent` or `NoState`. Until then only what may come at
   any time is fed, and `step` returns no ask for it. Feed what came meanwhile before the answer. A rest (`Wait`, `Pause`,
   `Draw`, `Idle`) is dropped for any input.
4. Keep one waiter. A `Wait` with `arm` gives it a token; once the register is no longer what that names, feed `Pushed` with
   the time at which the waiter's request was sent, or `Missed` if the waiter could not see.

The whole loop, for a backend that always answers and an inbox that returns what comes, `Passed` when nothing came in time,
and None at the end:

    def drive(client, backend, inbox, waiter, clock, chance, tell):
        input = Passed()
        while input is not None:
            client, ask, notices = step(client, input, clock())
            for notice in notices:
                tell(notice)
            match ask:
                case Look():
                    input = backend.get()
                case Write(state, token):
                    input = backend.set(state, token)
                case Observe(nodes):
                    input = backend.heartbeats(nodes)
                case Propose(proposal):
                    input = Counted(backend.notes.put_proposal(client.held.node, proposal))
                case Gather(nodes, era):
                    input = Proposals(backend.notes.proposals(nodes, era))
                case Errand(what):
                    input = what() or Did()
                case Draw():
                    input = Drawn(chance())
                case Wait() | Pause() | Idle():
                    waiter(ask)
                    input = inbox(ask)
"""

from ..violation import Violation
from .actions import (
    Action,
    Arrive,
    Close,
    Complete,
    Done,
    Drain,
    Edit,
    End,
    Evict,
    Fail,
    Finish,
    Leave,
    Outcome,
    Over,
    Overdue,
    Proceed,
    Proposal,
    Reserve,
    Settled,
    Sync,
    Together,
)
from .agenda import Agenda, Prepared, Request
from .apply import apply
from .client import FIRST_PAUSE_S, Client, Misfit, step
from .context import Contact, Context, Doubt, Held, Operation, Past, View, Who
from .errands import Errand
from .exchange import (
    Advance,
    Answer,
    Ask,
    Counted,
    Did,
    Draw,
    Drawn,
    Heartbeats,
    Idle,
    Input,
    Linked,
    Look,
    Missed,
    NoState,
    Notice,
    Passed,
    Pause,
    Proposals,
    Pushed,
    Question,
    Rest,
    Restored,
    Seen,
    Shown,
    Silent,
    Standstill,
    StoreBack,
    StoreSilent,
    Submitted,
    Told,
    Unknown,
    Woke,
)
from .explain import explain
from .handlers import close, done, drain, end, join, leave, linger, reserve, watch
from .lives import Deed, Restore, outranks, restored, verify_restore
from .memory import gathered, heard, introduced, joined, proposed, saw, silent, unanswered, unreadable, woke
from .operations import operation
from .settings import Comparison, FailureLimit, Settings
from .state import Ended, Failing, Limits, RendezvousState, Seat, Status, Token, blank
from .turn import Decision, Gather, Observe, Propose, Raise, Return, Wait, Write, turn
from .verify import verify, verify_step

__all__ = [
    "FIRST_PAUSE_S",
    "Action",
    "Advance",
    "Agenda",
    "Answer",
    "Arrive",
    "Ask",
    "Client",
    "Close",
    "Comparison",
    "Complete",
    "Contact",
    "Context",
    "Counted",
    "Decision",
    "Deed",
    "Did",
    "Done",
    "Doubt",
    "Drain",
    "Draw",
    "Drawn",
    "Edit",
    "End",
    "Ended",
    "Errand",
    "Evict",
    "Fail",
    "Failing",
    "FailureLimit",
    "Finish",
    "Gather",
    "Heartbeats",
    "Held",
    "Idle",
    "Input",
    "Leave",
    "Limits",
    "Linked",
    "Look",
    "Misfit",
    "Missed",
    "NoState",
    "Notice",
    "Observe",
    "Operation",
    "Outcome",
    "Over",
    "Overdue",
    "Passed",
    "Past",
    "Pause",
    "Prepared",
    "Proceed",
    "Proposal",
    "Proposals",
    "Propose",
    "Pushed",
    "Question",
    "Raise",
    "RendezvousState",
    "Request",
    "Reserve",
    "Rest",
    "Restore",
    "Restored",
    "Return",
    "Seat",
    "Seen",
    "Settings",
    "Settled",
    "Shown",
    "Silent",
    "Standstill",
    "Status",
    "StoreBack",
    "StoreSilent",
    "Submitted",
    "Sync",
    "Together",
    "Token",
    "Told",
    "Unknown",
    "View",
    "Violation",
    "Wait",
    "Who",
    "Woke",
    "Write",
    "apply",
    "blank",
    "close",
    "done",
    "drain",
    "end",
    "explain",
    "gathered",
    "heard",
    "introduced",
    "join",
    "joined",
    "leave",
    "linger",
    "operation",
    "outranks",
    "proposed",
    "reserve",
    "restored",
    "saw",
    "silent",
    "step",
    "turn",
    "unanswered",
    "unreadable",
    "verify",
    "verify_restore",
    "verify_step",
    "watch",
    "woke",
]
