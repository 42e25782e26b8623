"""`elastic store`: an endpoint -> a TCPStore, served until a signal comes -> an exit code."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import assert_never

import click

from ..adapters import kernel
from ..adapters.launch_settings import HANDLED
from ..adapters.secret_variables import STORE_TOKEN
from ..adapters.store.tcpstore.serving import CannotServe, address_towards
from ..adapters.store.tcpstore.store_server import GivenUp, Signalled, serve_until_signalled
from ..adapters.store.tcpstore.wire import Address
from ..adapters.terminal import why
from ..adapters.workers.messages.error_files import signal_name
from ..adapters.workers.watch.death_causes import process_deaths
from . import values
from .exit_codes import RENDEZVOUS, SIGNALLED
from .mistakes import Mistake, Value
from .option import Command
from .places import PORT
from .render.text import say

EPILOG = """\b
  elastic store --endpoint=gpu-01                                  (on gpu-01, first)
  elastic launch --nnodes=2 --rdzv-endpoint=gpu-01 ... train.py    (on each node)
\b
Several jobs may share the store, each with an --rdzv-id of its own that is used once. The store needs torch. It
writes nothing to disk, and it never holds a job's token: only the agents have that.
\b
Exit codes:  2 a mistake in the command line, or the store cannot be served there · 3 its process cannot start
· 128+n stopped by signal n
"""

_ANY = ("0.0.0.0", "::")
"""The addresses that mean all of a host's own, so they lead each host to itself."""


@click.command(
    cls=Command, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option(
    "--endpoint",
    metavar="HOST[:PORT]",
    type=Value("HOST[:PORT]", values.endpoint),
    help=f"Where to serve: a name or address of this host. Port 0 takes any free port. [default port: {PORT}]",
)
def store(endpoint: tuple[str, int | None] | None) -> int:
    """Serve the store in which the nodes of jobs meet, apart from any agent.

    A store that an agent serves ends with that agent. This one serves until SIGINT or SIGTERM, whichever node dies.
    If its own process dies, the next one serves at once, and the jobs give back what they remember.
    When it is ready, it prints one line with its endpoint.
    """
    if endpoint is None:
        raise Mistake(f"--endpoint is missing: write elastic store --endpoint=HOST:{PORT}")
    if refused := kernel.missing():
        raise Mistake(refused)
    host, port = endpoint
    os.environ.pop(STORE_TOKEN, None)
    try:
        where = Address(host, PORT if port is None else port)
        end = serve_until_signalled(where, HANDLED, _ready, _warn, process_deaths())
    except CannotServe as reason:
        raise Mistake(f"--endpoint={reason}") from None
    except OSError as error:
        raise Mistake(f"no store can run on this host: {why(error)}") from None
    match end:
        case Signalled(signum):
            _say(f"store stopped by {signal_name(signum)}", err=True)
            return SIGNALLED + signum
        case GivenUp():
            _say("store gone, its process cannot be started; start it again, or no job can re-form", err=True)
            return RENDEZVOUS
        case other:
            assert_never(other)


def _ready(address: Address) -> None:
    meeting = Address(address_towards(address), address.port) if address.host in _ANY else address
    _say(f"store {address} serves · nodes meet there with --rdzv-endpoint={meeting}")


def _warn(text: str) -> None:
    _say(text, err=True)


def _say(text: str, err: bool = False) -> None:
    with suppress(OSError):  # the reader is gone
        say(f"elastic  {text}", err=err)
