"""talks.py LINES: print so many numbered lines of 100 bytes, each by a write of its own, as fast as it can."""

import os
import sys

rank = os.environ["LOCAL_RANK"]
filler = "." * (100 - len(f" {rank} 00000000\n"))
for number in range(int(sys.argv[1])):
    os.write(1, f"{filler} {rank} {number:08d}\n".encode())
