"""The command that shows a job that runs, for the first line of its agents."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..adapters.store.connection import IN_MEMORY
from ..adapters.store.relay.relay_server import PLAIN
from .launch_options import LaunchOptions

FOR_READERS = ("token_file", "cacert", "cert", "key", "user", "password_file")
"""Keys of --rdzv-conf that a command needs which asks about the job."""


def how_to_ask(options: LaunchOptions, run_id: str, store: str, socket: str) -> str:
    """Return the command that shows the job; nothing if no command can. Any POSIX shell of this user takes it that finds
    `elastic`: one on this host, if the job is in memory. By `socket`, the agent's, commands on this host reach it; empty if
    it has none. In /tmp they look in any case."""
    if store == IN_MEMORY and not socket:
        return ""
    folder = Path(socket).parent.parent
    there = f"TMPDIR={shlex.quote(str(folder))} " if store == IN_MEMORY and folder != PLAIN else ""
    endpoint = [] if store == IN_MEMORY else _endpoint(options, store)
    conf = ",".join(f"{key}={text}" for key, text in options.rdzv_conf.items() if key in FOR_READERS)
    of_store = [f"--rdzv-conf={conf}"] if conf and endpoint else []
    return there + shlex.join(["elastic", "status", *endpoint, f"--rdzv-id={run_id}", *of_store])


def _endpoint(options: LaunchOptions, store: str) -> list[str]:
    if not options.uses_etcd:
        return [f"--rdzv-endpoint={store}"]
    scheme = options.rdzv_endpoint.scheme if options.rdzv_endpoint else None
    members = ",".join(f"{scheme}://{each}" if scheme else each for each in store.split(","))
    return [*([] if scheme == "etcd" else ["--rdzv-backend=etcd"]), f"--rdzv-endpoint={members}"]
