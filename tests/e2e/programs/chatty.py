"""Write a line with round and rank to stdout and to stderr, each in one write, which others cannot come between (an
unbuffered print makes two); rank 1 fails in round 0."""

from __future__ import annotations

import os
import sys

rank, round = os.environ["RANK"], os.environ["ELASTIC_ROUND"]
sys.stdout.write(f"out of {rank} in round {round}\n")
sys.stderr.write(f"err of {rank} in round {round}\n")
if (rank, round) == ("1", "0"):
    sys.exit(5)
