"""The protocol, pure: what the author of a simulator or of a model-based test imports.

`rendezvous` decides who is in the next round, `ranks` and `policies` turn a world into ranks, `group` says what a node's
workers do, `inprocess` what a rank's function call does that is restarted inside its process; `world` holds what they share.
`goodput` says where the time of the nodes went.
Values in, values out: nothing here reads a clock, a store, a process or chance.

`goodput`, `inprocess` and `policies` are imported when they are used: most agents need none, and start a tenth sooner.
"""

from . import group, ranks, rendezvous, world

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` takes time

if TYPE_CHECKING:
    from . import goodput, inprocess, policies

__all__ = ["goodput", "group", "inprocess", "policies", "ranks", "rendezvous", "world"]

if not TYPE_CHECKING:  # pragma: no branch  (with it, a type checker would accept every name)

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f".{name}", __name__)
