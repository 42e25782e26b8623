"""`elastic`: the group of commands."""

from __future__ import annotations

import click

from .launch import launch
from .mistakes import USAGE


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from .. import __version__

        click.echo(f"elastic {__version__}")
        ctx.exit()


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show it.")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Launch distributed PyTorch jobs that keep training through failures."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


root.add_command(launch)
