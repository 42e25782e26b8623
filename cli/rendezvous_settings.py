"""What the options say of rounds and their spans -> the rendezvous' settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from attrs import Attribute, fields

from ..core import rendezvous
from . import values
from .launch_options import LaunchOptions
from .mistakes import Mistake

AFTER_THE_GRACE_S = 15.0
"""How much longer than its workers' grace a node may take to come back."""
WITHOUT_EFFECT: Mapping[str, str] = {
    "timeout": "a store that does not answer is asked again until join_timeout has passed",
    "read_timeout": "a store that does not answer is asked again until join_timeout has passed",
    "heartbeat_timeout": "a node is lost after keep_alive_interval × keep_alive_max_attempt",
    "ttl": "it is keep_alive_interval × keep_alive_max_attempt; set these",
}
"""Spans that c10d's --rdzv-conf or a reader of docs/protocol.md may know -> why they change nothing here."""
THEIRS = ("is_host", "store_type")
"""Other keys of c10d's --rdzv-conf."""
OURS = ("token_file",)
"""Keys that torch does not know, and that are no spans."""
NO_KEYS = ("limits", "leased", "first_call_timeout")
"""Fields of the rendezvous' settings that are not for --rdzv-conf: an option or the store says them, or no launcher does."""


def rendezvous_settings(options: LaunchOptions) -> rendezvous.Settings:
    """Return the limits and spans. A key without effect and an unknown key are named on stderr.

    Raises Mistake.
    """
    if options.rdzv_conf.get("store_type", "").lower() == "file":
        raise Mistake("--rdzv-conf: store_type=file: a file cannot be a job's store; leave it out")
    spans = {"overdue_timeout": options.grace + AFTER_THE_GRACE_S, "leased": options.uses_etcd, **_spans(options)}
    if options.last_call is not None:
        spans["last_call_timeout"] = options.last_call
    try:
        return rendezvous.Settings(rendezvous.Limits(*_sizes(options), options.max_restarts), **spans)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {reason}") from None


def _sizes(options: LaunchOptions) -> tuple[int, int]:
    """Return the fewest and the most nodes of a round. A static job has its full size from the start."""
    low, high = options.nnodes
    return (high, high) if options.is_static else (low, high)


def _spans(options: LaunchOptions) -> dict[str, Any]:
    """Return the keys of --rdzv-conf that are fields of the settings, read."""
    ours = {each.name: each for each in fields(rendezvous.Settings) if each.init and each.name not in NO_KEYS}
    known = (*ours, *OURS, *THEIRS, *(_keys_of_an_etcd() if options.uses_etcd else ()))
    for key, text in options.rdzv_conf.items():
        if key in WITHOUT_EFFECT:
            _read(key, text, values.some_seconds)
            print(f"elastic: --rdzv-conf: {key} makes no difference: {WITHOUT_EFFECT[key]}", file=sys.stderr)
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
    return values.seconds if isinstance(setting.default, float) else values.whole


def _read(key: str, text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {key}={text}: {reason}") from None


def _warn_unknown(key: str, known: tuple[str, ...]) -> None:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1, 0.5)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    print(f"elastic: --rdzv-conf: '{key}' is not a key{suggestion} (known: {', '.join(known)})", file=sys.stderr)
