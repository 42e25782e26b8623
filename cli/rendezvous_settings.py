"""What the options say of rounds and their spans -> the rendezvous' settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..adapters.addresses import ANY
from ..adapters.launch_settings import Listening
from ..core import group, rendezvous
from ..core.values import evolve, fields
from ..core.world import PORT_MAX
from . import values
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .option import defaults
from .render.text import say

if TYPE_CHECKING:
    from attrs import Attribute

AFTER_THE_GRACE_S = 15.0
"""How much longer than its workers' grace a node may take to come back."""
ASKED_AGAIN = "a store that does not answer is asked again until join_timeout has passed"
FENCE = 0.6
"""A fraction of the TTL: the age of the last acknowledged heartbeat at which --on-store-loss=stop kills the workers."""
AFTER_THE_FENCE_S = 2.0
"""How much later than the end of a fenced node's workers nobody expects that node back."""
WITHOUT_EFFECT: Mapping[str, str] = {
    "timeout": ASKED_AGAIN,
    "read_timeout": ASKED_AGAIN,
    "heartbeat_timeout": "a node is lost after keep_alive_interval × keep_alive_max_attempt",
    "ttl": "it is keep_alive_interval × keep_alive_max_attempt; set these",
}
"""Spans that c10d's --rdzv-conf or a reader of docs/protocol.md may know -> why they change nothing here."""
THEIRS = ("is_host", "store_type")
"""Other keys of c10d's --rdzv-conf."""
OURS = ("token_file", "peer_links", "ports", "finished")
"""Keys that torch does not know, and that are no spans."""
_BESIDE_THE_MASTER = 9
"""Behind a firewall that is open from --master-port on, a node takes the next ports, where it can have them. It takes the
last of them first: another job of this host may have the next one as its --master-port."""
PEER_LINKS = "true"
"""Jobs of several nodes keep links unless somebody says otherwise."""
_SCOPE = "--restart-scope="
GIVE_UP_AFTER = 20
"""After this many ends of rounds in a row a job ends if nobody says another number. The loss of a node and its return are
two."""
NO_KEYS = ("limits", "leased", "first_call_timeout", "max_node_failures", "progress_after")
"""Fields of the rendezvous' settings that are not for --rdzv-conf: an option or the store says them, or no launcher does."""


def rendezvous_settings(options: LaunchOptions) -> rendezvous.Settings:
    """Return the limits and spans. A key without effect and an unknown key are named on stderr.

    Raises Mistake.
    """
    if options.rdzv_conf.get("store_type", "").lower() == "file":
        raise Mistake("--rdzv-conf: store_type=file: a file cannot be a job's store; leave it out")
    spans = {"overdue_timeout": options.grace + AFTER_THE_GRACE_S, "leased": options.uses_etcd, **_spans(options)}
    if options.max_node_failures and options.leave_after:
        raise Mistake("--leave-after and --max-node-failures: a node leaves or is set aside; leave one of them out")
    if limit := options.leave_after or options.max_node_failures:
        spans["max_node_failures"] = evolve(limit, leaves=True if options.leave_after else None)
    if options.last_call is not None:
        spans["last_call_timeout"] = options.last_call
    asked, progress_after = options.give_up_after, options.progress_after
    rounds = GIVE_UP_AFTER if asked is None else asked
    try:
        limits = evolve(
            in_units(options), max_restarts=options.max_restarts, give_up_after=rounds, counts_failures=bool(asked)
        )
        made = rendezvous.Settings(limits, progress_after=progress_after, **spans)
        made = evolve(made, limits=evolve(made.limits, agreed=_agreed(options, made)))
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {reason}") from None
    return _behind_the_fence(options, made) if options.on_store_loss == "stop" else made


def in_units(options: LaunchOptions) -> rendezvous.Limits:
    """Return the limits of nodes, with the unit of the options, and its label. Raises Mistake."""
    limits, (label, size) = options.nnodes, options.segment or ("", None)
    asked = size or options.node_unit or limits.node_unit
    option = f"--segment={label}:{size}" if label else f"--node-unit={asked}"
    others = {limits.option: limits.node_unit, f"--node-unit={options.node_unit}": options.node_unit or 1}
    for other, unit in others.items():
        if unit not in (1, asked):
            raise Mistake(f"{option}: {other} says {unit}; write one of the two")
    if options.standalone and asked > limits.max_nodes:
        raise Mistake(f"--standalone: that is one node, not the {asked} of {option}; leave one of the two out")
    try:
        return evolve(values.in_units(limits.min_nodes, limits.max_nodes, asked), segment=label)
    except ValueError as reason:
        raise Mistake(f"{option}: {reason}") from None


def _agreed(options: LaunchOptions, made: rendezvous.Settings) -> str:
    """Return the options that all agents must be given alike. With other spans they would declare each other dead, and with
    other scopes their ranks would never meet."""
    beats = f"keep_alive_interval={made.keep_alive_interval:g},keep_alive_max_attempt={made.keep_alive_max_attempt}"
    gives_up = "" if options.give_up_after is None else f" --give-up-after={options.give_up_after}"
    ages = made.progress_after != defaults(LaunchOptions)["progress_after"]
    old = f" --progress-after={made.progress_after:g}" if ages else ""
    return f"{_SCOPE}{options.restart_scope} --rdzv-conf={beats}{gives_up}{old}"


def alone(limits: rendezvous.Limits) -> group.Alone | None:
    """Return how workers restart alone in the job of these limits; None if they do not. Its register has the limits too."""
    if not limits.agreed.startswith(f"{_SCOPE}rank "):
        return None
    from ..core.inprocess.exits import CANCELLED, FINAL, HEARD, JOB_OVER  # no other job needs them

    return group.Alone(limits.max_restarts, FINAL, JOB_OVER, HEARD, CANCELLED)


def listening(options: LaunchOptions, store_port: int) -> Listening:
    """Return where this node listens for others. The store's port is left to whoever serves the store, now or later. Raises
    Mistake."""
    wanted = _read("peer_links", options.rdzv_conf.get("peer_links", PEER_LINKS), values.yes_or_no)
    return Listening(bool(wanted) and options.nnodes.max_nodes > 1, ports(options, store_port))


def ports(options: LaunchOptions, store_port: int) -> tuple[int, ...]:
    """Return the ports at which this node listens for others. Raises Mistake."""
    text = options.rdzv_conf.get("ports")
    if text is None:
        after = range(min(store_port + _BESIDE_THE_MASTER, PORT_MAX), store_port, -1)
        return (*after, *ANY) if options.is_static and options.master_port and options.nnodes.max_nodes > 1 else ANY
    named = tuple(each for each in _read("ports", text, values.ports) if each != store_port)
    if not named:
        raise Mistake(
            f"--rdzv-conf: ports={text}: that is the store's port; write more of them, like ports=29400-29420"
        )
    return named


def _behind_the_fence(options: LaunchOptions, made: rendezvous.Settings) -> rendezvous.Settings:
    """Return the settings with time enough: a node that is cut off has stopped its workers before the others go on without
    it. Raises Mistake if the user has said less."""
    least = options.grace + FENCE * made.ttl + AFTER_THE_FENCE_S
    if made.overdue_timeout >= least:
        return made
    if "overdue_timeout" in options.rdzv_conf:
        raise Mistake(
            f"--rdzv-conf: overdue_timeout={made.overdue_timeout:g}: with --on-store-loss=stop a node that is cut off may "
            f"need {least:g} s to stop its workers (0.6 TTL and --grace); write overdue_timeout={least:g} or more"
        )
    return evolve(made, overdue_timeout=least)


def _spans(options: LaunchOptions) -> dict[str, Any]:
    """Return the keys of --rdzv-conf that are fields of the settings, read."""
    ours = {each.name: each for each in fields(rendezvous.Settings) if each.init and each.name not in NO_KEYS}
    known = (*ours, *OURS, *THEIRS, *(_keys_of_an_etcd() if options.uses_etcd else ()))
    for key, text in options.rdzv_conf.items():
        if key in WITHOUT_EFFECT:
            _read(key, text, values.some_seconds)
            say(f"elastic: --rdzv-conf: {key} makes no difference: {WITHOUT_EFFECT[key]}", err=True)
        elif key not in known:
            _warn_unknown(key, known)
    return {key: _read(key, text, _reader(ours[key])) for key, text in options.rdzv_conf.items() if key in ours}


def _keys_of_an_etcd() -> tuple[str, ...]:
    from .etcd_place import KEYS  # few jobs have an etcd

    return KEYS


def _reader(setting: Attribute[Any]) -> Callable[[str], Any]:
    """Return the function that reads this setting; its default tells the type."""
    if isinstance(setting.default, bool):
        return values.yes_or_no
    if isinstance(setting.default, rendezvous.Comparison):
        return _comparison
    if setting.default == math.inf:
        return values.exit_barrier
    return values.seconds if isinstance(setting.default, float) else values.whole


def _comparison(text: str) -> rendezvous.Comparison:
    return rendezvous.Comparison.NAME if values.yes_or_no(text) else rendezvous.Comparison.NONE


def _read(key: str, text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {key}={text}: {reason}") from None


def _warn_unknown(key: str, known: tuple[str, ...]) -> None:
    from difflib import get_close_matches

    is_option = key in defaults(LaunchOptions)
    near = [f"--{key.replace('_', '-')}"] if is_option else get_close_matches(key, known, 1, 0.5)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    say(f"elastic: --rdzv-conf: '{key}' is not a key{suggestion} (known: {', '.join(known)})", err=True)
