"""Tell where the ranks are to meet, and whether an agent serves there; stay until the gate is opened."""

from __future__ import annotations

import os

import stage

stage.tell(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], os.environ["TORCHELASTIC_USE_AGENT_STORE"])
stage.wait_for_gate()
