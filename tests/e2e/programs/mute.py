"""Close stdout and stderr, as a daemon does, and go on for as long as the test wants."""

from __future__ import annotations

import os

import stage

os.close(1)
os.close(2)
stage.tell("mute")
stage.wait_for_gate()
