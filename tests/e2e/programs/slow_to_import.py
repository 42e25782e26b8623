"""A module that a restart finds half-way."""

import time

import stage

SENT_MANY_TIMES_S = 0.3

stage.tell("importing")
stage.wait_for_gate(1)
time.sleep(SENT_MANY_TIMES_S)
WHOLE = True
