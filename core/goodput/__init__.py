"""Says where the time of the nodes went, and why: an `Account` follows each agent, a `Book` adds up what it enters.

    follower = follow(header)              # of a trace; or `opened`, `stepped`, `heard` beside an agent that runs
    for step in steps:
        follower, entries = take(follower, step)
    closed(follower.account)               # what is not entered yet

A `Ledger` is an account with its book, beside an agent that runs: it does not grow with the rounds. A `NodeRecord` is what
its node puts into the store: `job_time` adds up all nodes'.

docs/operate.md lists the buckets and the causes.
"""

from .account import Account, closed, cut, executed, heard, hung, opened, stepped, worked
from .book import NO_LOSS, Book, Cause, Loss, Share, added, booked, bucket, by_kind, cause, jobs, losses, of_job, share
from .entries import (
    BUCKETS,
    KINDS,
    TRAINING,
    Arrival,
    Culprit,
    Death,
    Entry,
    Kind,
    Meeting,
    Piece,
    Reason,
    RoundEnd,
    micros,
)
from .follower import Follower, follow, take, took
from .ledger import Ledger, kept, whole
from .record import JobTime, NodeRecord, Spent, job_time, spent

__all__ = [
    "BUCKETS",
    "KINDS",
    "NO_LOSS",
    "TRAINING",
    "Account",
    "Arrival",
    "Book",
    "Cause",
    "Culprit",
    "Death",
    "Entry",
    "Follower",
    "JobTime",
    "Kind",
    "Ledger",
    "Loss",
    "Meeting",
    "NodeRecord",
    "Piece",
    "Reason",
    "RoundEnd",
    "Share",
    "Spent",
    "added",
    "booked",
    "bucket",
    "by_kind",
    "cause",
    "closed",
    "cut",
    "executed",
    "follow",
    "heard",
    "hung",
    "job_time",
    "jobs",
    "kept",
    "losses",
    "micros",
    "of_job",
    "opened",
    "share",
    "spent",
    "stepped",
    "take",
    "took",
    "whole",
    "worked",
]
