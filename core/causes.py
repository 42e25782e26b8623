"""Which failure of a round came first: the records of one failure, the echoes of a peer's, and the choice of the cause.

When one rank fails, its peers fail too: their libraries tell them that a connection is closed. Such a failure is an *echo*.
The tables below know its words, one table for each library. The choice is a pure function of the records of one round:

- what is no echo comes before an echo;
- a failure whose moment is known (an exception when it was raised, an interpreter that began to end, a death by a signal)
  comes before the end of a process that says no more than its exit code: that comes late, after the clean-up of libraries;
- between nodes the order decides in which the register heard of them, within a node the time of its own host.

No clocks of two hosts are compared. If only echoes are on record, the cause is open, and the choice says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from .values import evolve, frozen
from .world import Fault, Node, Origin

SIGABRT = 6
SIGKILL = 9
SIGTERM = 15
LINE_MAX = 512
"""The words of an echo stand at the beginning of a log's line. A job may have thousands of failures with long lines."""
NOT_SEEN = "not seen by us"
"""In the place of a version: the words are from the library's source, and no run of ours has shown them."""


@frozen
class Echo:
    """The words by which a library reports that a peer failed, as a pattern. `seen_in` is the version that showed them."""

    name: str
    words: str
    seen_in: str


GLOO = (
    Echo("gloo: connection closed", r"[Gg]loo\b.*Connection closed by peer", "torch 2.13.0"),
    Echo("gloo: connection reset", r"[Gg]loo\b.*Connection reset by peer", "torch 2.13.0"),
    Echo("gloo: connection refused", r"[Gg]loo\b.*(?:Connection refused|connectFullMesh failed)", NOT_SEEN),
    Echo("gloo: broken pipe", r"[Gg]loo\b.*Broken pipe", NOT_SEEN),
    Echo("gloo: no answer", r"[Gg]loo\b.*Timed out waiting \d+ ?ms for (?:recv|send)", "torch 2.13.0"),
)
TCPSTORE = (
    Echo(
        "TCPStore: broken pipe",
        r"(?:sendBytes|recvValue|recvVector|recvBuffer)\S* failed\b.*Broken pipe",
        "torch 2.13.0",
    ),
    Echo(
        "TCPStore: connection lost",
        r"(?:DistNetworkError|DistStoreError|sendBytes|recvValue|recvVector)\b.*"
        r"(?:Connection reset by peer|Connection was likely closed|failed to recv, got 0 bytes|Broken pipe)",
        "torch 2.13.0",
    ),
)
NCCL = (
    Echo("NCCL: remote error", r"ncclRemoteError\b|NCCL error: remote process exited", NOT_SEEN),
    Echo("NCCL: watchdog", r"Watchdog caught collective operation timeout", NOT_SEEN),
    Echo("NCCL: communicator aborted", r"communicator was aborted on rank", NOT_SEEN),
    Echo("NCCL: another rank's abort", r"Received a dump signal (?:due to a collective timeout )?from", NOT_SEEN),
)
WRAPPER = (Echo("wrapper: another rank's key", r"\brank \S+: a key of rank_assignment raised\b", "elastic 0.3"),)
ECHOES = (*GLOO, *TCPSTORE, *NCCL, *WRAPPER)
_CHAINED = (
    r"\n(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):\n"
)


def echo_of(text: str, exit_code: int | None) -> str:
    """Return the name of the row of the tables that this text of a failure matches; "" for no echo.

    Of exceptions that were raised while others were handled the first one counts. Of a process that a signal has killed only
    an abort can be an echo: libraries abort the process, and send no other signal.
    """
    if exit_code is not None and exit_code < 0 and exit_code != -SIGABRT:
        return ""
    first = re.split(_CHAINED, text, maxsplit=1)[0]
    return next((echo.name for echo in ECHOES if re.search(echo.words, first)), "")


def echo(fault: Fault) -> str:
    """Return the row of the tables that this failure matches by itself; "" for no echo. A worker that began to end by itself
    has decided that on its own, whatever its libraries have written meanwhile."""
    match fault.origin:
        case Origin.RAISE:
            return echo_of(_first_raised(fault), None)
        case Origin.ENDING:
            return ""
        case Origin.END:
            return echo_of("\n".join((fault.message, *(line[:LINE_MAX] for line in fault.tail))), fault.exit_code)
        case other:
            assert_never(other)


def _first_raised(fault: Fault) -> str:
    """Return the text of the exception that was raised first: the last one, unless others were handled meanwhile."""
    return fault.callstack if re.search(_CHAINED, fault.callstack) else fault.message


@frozen
class Cause:
    """The failure that is held for the first of a round."""

    fault: Fault
    is_sure: bool = True
    """False: all that is on record are echoes of a failure that nobody has reported."""
    others: tuple[Fault, ...] = ()
    """If it is open, the first failures of the other ranks: each may be the cause as well."""


def choose(faults: Sequence[Fault], by: Node | None) -> Cause | None:
    """Return the cause among the failures of one round, in their order on record. `by` is the node whose write has ended the
    round: the register heard of its failure first. None: not known."""
    if not faults:
        return None
    own = [fault for fault in faults if not _is_echo(fault, faults)]
    if not own:
        first = _first(faults, by)
        return Cause(first, False, tuple(_of_other_ranks(faults, first)))
    own = [fault for fault in own if not _is_cut_short(fault)] or own
    return Cause(_first([fault for fault in own if _is_exact(fault)] or own, by))


def _is_cut_short(fault: Fault) -> bool:
    """Return True if a worker began to end, and may have ended well: a signal such as the agent's own came before that."""
    return fault.origin is Origin.ENDING and fault.exit_code in (-SIGTERM, -SIGKILL)


def _is_echo(fault: Fault, faults: Sequence[Fault]) -> bool:
    """Return True if this is an echo. So is the end of a worker that began to end after an echo of its own node."""
    if fault.origin is not Origin.ENDING:
        return bool(echo(fault))
    before = (each for each in faults if each.node == fault.node and 0 < each.at_s < fault.at_s)
    return any(echo(each) for each in before)


def _is_exact(fault: Fault) -> bool:
    """Return True if the moment of the failure is known, and not only that of the process's end."""
    if fault.origin is not Origin.END:
        return True
    return fault.exit_code is not None and fault.exit_code < 0 and fault.exit_code != -SIGABRT


def _first(faults: Sequence[Fault], by: Node | None) -> Fault:
    node = next((fault.node for fault in faults if fault.node == by), faults[0].node)
    its = [fault for fault in faults if fault.node == node]
    return min(its, key=lambda fault: fault.at_s) if all(fault.at_s for fault in its) else its[0]


def _of_other_ranks(faults: Sequence[Fault], first: Fault) -> Iterable[Fault]:
    seen = {first.rank}
    for fault in faults:
        if fault.rank not in seen:
            seen.add(fault.rank)
            yield fault


# --- the records of one failure ---------------------------------------------------------------------------------------
#
# A raise is put on record when it is reported, without an exit code. When the worker has ended, a second record of the same
# worker completes the first. A store only appends, so readers merge the two.


def completed(first: Fault, later: Fault) -> Fault:
    """Return one record of two of the same worker: how and when it failed is in the first, how it ended in the later."""
    failed = {
        name: getattr(first, name) or getattr(later, name) for name in ("message", "where", "callstack", "error_file")
    }
    ended = {name: getattr(later, name) or getattr(first, name) for name in ("log", "tail", "remark")}
    return evolve(first, exit_code=later.exit_code, **failed, **ended)


def merged(records: Iterable[Fault]) -> list[Fault]:
    """Return the failures that these records tell, each in the place of its first record."""
    found: list[Fault] = []
    open_at: dict[tuple[Node, int, int, int], int] = {}
    for fault in records:
        place = open_at.pop(_worker(fault), None) if fault.exit_code is not None else None
        if place is not None:
            found[place] = completed(found[place], fault)
            continue
        if fault.exit_code is None:
            open_at[_worker(fault)] = len(found)
        found.append(fault)
    return found


def completes(record: Fault) -> bool:
    """Return True if this is the second record of a failure: of a worker that raised and has ended since."""
    return record.origin is Origin.RAISE and record.exit_code is not None


def is_told(record: Fault, failures: Iterable[Fault]) -> bool:
    """Return True if these failures, each of one record or of two, tell what this record does."""
    same = (each for each in failures if _worker(each) == _worker(record))
    return any(each.exit_code is not None or record.exit_code is None for each in same)


def _worker(fault: Fault) -> tuple[Node, int, int, int]:
    return fault.node, fault.round, fault.local_rank, fault.pid
