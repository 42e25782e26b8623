"""Tell where worker rank 0 is to be met, and stay until the gate is opened."""

from __future__ import annotations

import os

import stage

stage.tell(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
stage.wait_for_gate()
