"""The events that runs of calls must show sometimes, by the text with which a step notes them.

If a run never shows them, the laws that it keeps prove nothing.
"""

from __future__ import annotations

SOMETIMES: tuple[str, ...] = (
    *(
        "injected",
        "injected by the monitor",
        "monitor injects",
        "monitor ends for the driver",
        "monitor leaves for the driver",
        "monitor speaks for a dead rank",
    ),
    *("a dead rank's seat is kept", "a dead rank's seat is given up", "no replacement came", "replaced in time"),
    "a rank ends to be replaced",
    *("declined in: waits", "declined in: ordered, not armed", "declined in: user code over, not disarmed"),
    *("declined in: disarmed, not told", "declined in: user code", "declined in: atomic"),
    *("gate busy", "atomic refused", "raised at the end of atomic", "killed at a limit", "starts again"),
    *("the function is called again", "result dropped when returned", "reserve → unwinding"),
    *("short → joining", "short → leaving", "completing → ended"),
    *(f"end by {why}" for why in ("failed", "lost", "left", "upscale")),
    *(f"closed {ending}" for ending in ("SUCCEEDED", "FAILED", "LIMIT", "CANCELLED")),
    *("returned True", "returned False", "one writes for all that returned", "one writes for all that come"),
    *("leaves: user code exited", "leaves: interrupted", "leaves: user code gave up", "leaves: told to stop"),
    *("leaves: a reserve failed to initialize", "leaves: finalize or the health check failed"),
    *("leaves: abort did not end", "leaves: too many faults of this rank"),
    *("leaves: the same failure of this rank again and again", "leaves: the outcome is unknown"),
    "leaves: the same failure or a hang of this rank again and again, before any progress",
    *("leaves: the store is out of reach", "leaves: no round was complete in time"),
    *("leaves: max_iterations is reached", "leaves: too few ranks for too long"),
    *("leaves: the job failed", "leaves: the job spent its restarts", "leaves: the job was cancelled"),
    *(
        f"timer: {name}"
        for name in ("soft", "steady", "moving", "limit", "again", "unwind", "abort", "short", "completion")
    ),
    *(f"timer: {name}" for name in ("confirm", "store", "leave")),
    *("fault: fails here", "fault: fails there", "fault: failed", "fault: exited", "fault: interrupted"),
    *("fault: gave up", "fault: hangs", "fault: is stuck", "fault: swallows", "fault: dies", "fault: is lost"),
    *("fault: is told to stop", "fault: is interrupted", "fault: abort hangs", "fault: starves"),
    *("fault: abort fails", "fault: is shown part", "leaves: abort failed"),
    *("fault: is cut off", "fault: monitor dies", "fault: is suspected"),
    *("fault: stands still", "takes long", "monitor terminates", "a hung rank ends by SIGTERM"),
    *("fault: the store forgets", "fault: an answer is lost", "fault: a write is late"),
    *("restored by a rank", "restored over a forming job", "a write, and the answer is lost"),
    *("a write, and the write is late", "a late write lands", "a late write is refused"),
)
