"""The cause of a round: what is an echo, which failure came first, and what two records of one failure tell."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import node

from elastic.core.causes import ECHOES, NOT_SEEN, Cause, choose, completes, echo, echo_of, is_told, merged
from elastic.core.world import Fault, Origin

CLOSED = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:33861"
)
CHAINED = f"""Traceback (most recent call last):
  File "train.py", line 3, in step
{CLOSED}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 9, in clean_up
KeyError: 'model'
"""
TURNED = f"""Traceback (most recent call last):
ValueError: the loss is nan

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
{CLOSED}
"""


def fault(
    rank: int, message: str = "", origin: Origin = Origin.RAISE, at_s: float = 0.0, code: int | None = 1, of: str = "a"
) -> Fault:
    return Fault(node(of), 0, rank, rank, 100 + rank, code, 1.0, 8, message=message, origin=origin, at_s=at_s)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CLOSED, "gloo: connection closed"),
        (CLOSED.replace("closed", "reset"), "gloo: connection reset"),
        ("[/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation",
         "gloo: no answer"),
        ("RuntimeError: Gloo connectFullMesh failed with [/gloo/tcp/pair.cc:150] no error", "gloo: connection refused"),
        ("torch.distributed.DistNetworkError: failed to recv, got 0 bytes", "TCPStore: connection lost"),
        ("RuntimeError: sendBytes failed on SocketImpl(fd=3): Broken pipe", "TCPStore: broken pipe"),
        ("torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
         "NCCL: remote error"),
        ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)", "NCCL: watchdog"),
        ("NCCL communicator was aborted on rank 3.", "NCCL: communicator aborted"),
        ("ValueError: rank 1: a key of rank_assignment raised KeyError: 1", "wrapper: another rank's key"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", ""),
        ("ValueError: the loss is nan", ""),
        ("terminate called without an active exception", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_an_echo_is_known_by_the_words_of_its_library(text: str, name: str) -> None:
    assert echo_of(text, 1) == echo_of(text, None) == echo_of(text, -6) == name
    assert echo_of(text, -9) == ""


def test_each_row_of_the_tables_has_its_name_and_where_it_was_seen() -> None:
    assert len({each.name for each in ECHOES}) == len(ECHOES)
    assert all(each.seen_in == NOT_SEEN or each.seen_in.startswith(("torch 2.", "elastic ")) for each in ECHOES)


def test_of_a_chain_of_exceptions_the_one_that_was_raised_first_counts() -> None:
    assert echo(evolve(fault(0, "KeyError: 'model'"), callstack=CHAINED)) == "gloo: connection closed"
    assert echo(evolve(fault(0, CLOSED), callstack=TURNED)) == ""
    assert echo_of(CHAINED, 1) and not echo_of(TURNED, 1)


def test_the_end_of_the_output_tells_an_echo_only_where_nothing_else_is_known() -> None:
    loud = evolve(fault(0, "killed by SIGABRT", code=-6), tail=("terminate called after …", f"  what():  {CLOSED}"))
    assert not echo(loud)
    assert not echo(evolve(loud, origin=Origin.ENDING))
    assert echo(evolve(loud, origin=Origin.END))


def test_without_a_failure_there_is_no_cause() -> None:
    assert choose((), None) is None


def test_what_is_no_echo_comes_before_an_echo_whichever_was_put_first() -> None:
    late = fault(1, "exit code 7", Origin.END, at_s=9.0, code=7, of="b")
    assert choose((fault(0, CLOSED, at_s=5.0), late), node("a")) == Cause(late)


def test_a_raise_or_an_ending_comes_before_an_end_whose_moment_says_little() -> None:
    for first in (fault(1, "boom", at_s=9.0), fault(1, "exit code 7", Origin.ENDING, at_s=9.0, code=7)):
        for code in (1, -6):
            assert choose((fault(0, "exit code 1", Origin.END, 5.0, code), first), node("a")) == Cause(first)


def test_a_death_by_a_signal_is_known_to_the_moment() -> None:
    killed, raised = fault(0, "killed by SIGKILL", Origin.END, 5.0, -9), fault(1, "boom", at_s=5.1)
    assert choose((raised, killed), None) == Cause(killed)
    assert choose((evolve(raised, at_s=4.9), killed), None) == Cause(evolve(raised, at_s=4.9))


def test_within_a_node_the_time_decides_and_between_nodes_the_register() -> None:
    later, earlier, elsewhere = fault(0, "x", at_s=6.0), fault(1, "y", at_s=5.0), fault(2, "z", at_s=1.0, of="b")
    those = (later, elsewhere, earlier)
    assert choose(those, node("a")) == Cause(earlier)
    assert choose(those, node("b")) == Cause(elsewhere)
    assert choose(those, None) == Cause(earlier)
    assert choose(those, node("c")) == Cause(earlier)
    assert choose((evolve(later, at_s=0.0), earlier), None) == Cause(evolve(later, at_s=0.0))
    assert choose((later, evolve(earlier, at_s=0.0)), None) == Cause(later), "a time that nobody knows is no early one"


def test_a_worker_that_began_to_end_before_an_echo_is_the_cause_and_after_one_it_is_another_echo() -> None:
    ended, heard = fault(0, "killed by SIGABRT", Origin.ENDING, 5.0, -6), fault(1, CLOSED, at_s=5.2)
    assert choose((heard, ended), None) == Cause(ended)
    caught = evolve(ended, at_s=5.3, exit_code=1)
    elsewhere = fault(2, "boom", at_s=99.0, of="b")
    assert choose((heard, caught, elsewhere), node("a")) == Cause(elsewhere)
    assert choose((evolve(heard, node=node("c")), caught), node("a")) == Cause(caught)


def test_of_echoes_alone_the_cause_is_open() -> None:
    first, second, again = fault(0, CLOSED, at_s=5.0), fault(1, CLOSED, at_s=6.0), fault(0, CLOSED, at_s=7.0)
    assert choose((second, first, again), None) == Cause(first, False, (second,))
    assert choose((first,), None) == Cause(first, is_sure=False)


def test_an_end_that_a_signal_cut_short_is_the_cause_of_echoes_alone() -> None:
    """It may have ended well: whoever raised is the cause before it."""
    cut, peer = fault(0, "", Origin.ENDING, at_s=5.0, code=-15), fault(1, CLOSED, at_s=6.0)
    assert choose((cut, peer), None) == Cause(cut)
    assert choose((cut, raised := fault(1, "ValueError: boom", at_s=6.0)), None) == Cause(raised)


def test_two_records_of_one_failure_are_one() -> None:
    raised = evolve(fault(0, "ValueError: boom", at_s=5.0, code=None), where="train.py:3")
    ended = evolve(
        fault(0, "exit code 1", at_s=6.0), tail=("bye",), log="log", where="elsewhere", callstack="Traceback"
    )
    other = fault(1, "exit code 2", Origin.END, code=2)
    whole = evolve(raised, exit_code=1, tail=("bye",), log="log", callstack="Traceback")
    assert merged((raised, other, ended)) == [whole, other]
    assert merged((raised, other)) == [raised, other]
    assert merged((other, ended, other)) == [other, ended, other]
    assert merged((raised, evolve(ended, pid=7), evolve(ended, round=1))) == [
        raised,
        evolve(ended, pid=7),
        evolve(ended, round=1),
    ]


def test_only_the_end_of_a_worker_that_raised_completes_a_record() -> None:
    assert completes(fault(0, code=1))
    assert not completes(fault(0, code=None)) and not completes(fault(0, origin=Origin.END))


def test_a_record_is_told_by_a_failure_that_says_as_much() -> None:
    raised, ended = fault(1, code=None), fault(1, code=1)
    (whole,) = merged((raised, ended))
    assert [is_told(each, (whole,)) for each in (raised, ended)] == [True, True]
    assert [is_told(each, (raised,)) for each in (raised, ended)] == [True, False]
    assert not is_told(ended, (fault(2), evolve(whole, round=1)))
