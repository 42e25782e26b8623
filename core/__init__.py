"""The protocol, pure: what the author of a simulator or of a model-based test imports.

`rendezvous` decides who is in the next round, `ranks` and `policies` turn a world into ranks, `group` says what a node's
workers do, `inprocess` what a rank's function call does that is restarted inside its process; `world` holds what they share.
Values in, values out: nothing here reads a clock, a store, a process or chance.
"""

from . import group, inprocess, policies, ranks, rendezvous, world

__all__ = ["group", "inprocess", "policies", "ranks", "rendezvous", "world"]
