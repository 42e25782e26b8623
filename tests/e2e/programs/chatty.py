"""Write a line with round and rank to stdout and to stderr; rank 1 fails in round 0."""

from __future__ import annotations

import os
import sys

rank, round = os.environ["RANK"], os.environ["ELASTIC_ROUND"]
print(f"out of {rank} in round {round}")
print(f"err of {rank} in round {round}", file=sys.stderr)
if (rank, round) == ("1", "0"):
    sys.exit(5)
