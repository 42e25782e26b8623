"""Tell whether the store at MASTER_ADDR:MASTER_PORT is one in which no earlier worker of this rank has written."""

from __future__ import annotations

import os

import stage

from elastic.adapters.store.tcpstore.wire import Address, WireClient

where = Address(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
with WireClient(where, 60.0, 1_000) as store:
    store.greet()
    others = "nothing" if store.add(f"workers of rank {stage.rank}", 1) == 1 else "something"
    stage.tell("found", others, "of others at", where, os.environ["TORCHELASTIC_USE_AGENT_STORE"])
stage.wait_for_gate()
