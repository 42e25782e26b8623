"""loud.py LINES [END]: print so many numbered lines of 100 bytes, tell, and end; END `stay`: wait for the gate first."""

from __future__ import annotations

import sys

import stage

if sys.argv[2:] == ["stay"]:
    stage.tell("begins")
for number in range(int(sys.argv[1])):
    sys.stdout.write(f"{number:099d}\n")
sys.stdout.flush()
stage.tell("printed")
if sys.argv[2:] == ["stay"]:
    stage.wait_for_gate()
