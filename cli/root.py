"""`elastic`: the group of commands."""

from __future__ import annotations

from importlib import import_module

import click

from .launch import launch
from .mistakes import USAGE


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from .. import __version__

        click.echo(f"elastic {__version__}")
        ctx.exit()


LATER = ("replay", "simulate", "store")
"""Commands whose module, of the same name, is imported only when it is wanted: launch starts without it."""


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *LATER))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATER:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(f".{cmd_name}", __package__), cmd_name)
        return command


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show it.")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Launch distributed PyTorch jobs that keep training through failures."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


root.add_command(launch)
