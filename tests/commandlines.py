"""Command lines of `elastic launch`, read in this process; nothing starts."""

from __future__ import annotations

from collections.abc import MutableMapping

from elastic.adapters.launch_settings import LaunchSettings
from elastic.cli import places, tokens
from elastic.cli.agent_settings import launch_settings, script_program
from elastic.cli.launch import launch
from elastic.cli.launch_options import LaunchOptions
from elastic.core.rendezvous import Limits

AGREED = "--restart-scope=group --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=5"
"""What all agents of a job are given alike where nobody says anything."""


def limits(least: int, most: int, restarts: int) -> Limits:
    """Return the limits of a job of which nobody says anything else."""
    return Limits(least, most, restarts, AGREED, give_up_after=20)


def options(*arguments: str) -> LaunchOptions:
    """Return the options of a command line; `arguments` end where SCRIPT begins."""
    params = launch.make_context("launch", [*arguments, "x"]).params
    return LaunchOptions(**{name: value for name, value in params.items() if name not in ("script", "arguments")})


def settings(environment: MutableMapping[str, str], *arguments: str) -> LaunchSettings:
    """Return the settings that a command line makes, with its SCRIPT and what follows."""
    params = dict(launch.make_context("launch", list(arguments)).params)
    script, of_the_script = params.pop("script"), params.pop("arguments")
    made = LaunchOptions(**params)
    program = script_program(made, script, of_the_script, environment)
    where = places.place(made, environment, tokens.store_token(made.rdzv_conf, environment))
    return launch_settings(made, program, where, environment)
