"""A user's mistake: one line that names the option, the value and what to write. Nothing starts; the exit code is 2."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..adapters.terminal import printable

USAGE = 2
WORD_MAX = 256
"""The longest word in the line, in characters. More of a long value helps nobody."""


_ELSEWHERE = {
    "--nprocs": "--nproc-per-node",
    "--num-processes": "--nproc-per-node",
    "--gpus-per-node": "--nproc-per-node",
    "--num-machines": "--nnodes",
    "--num-nodes": "--nnodes",
    "--machine-rank": "--node-rank",
    "--main-process-ip": "--master-addr",
    "--main-process-port": "--master-port",
    "--hostname": "--local-addr",
}
"""The options of other launchers (accelerate, Slurm, Ray) -> ours."""


class Mistake(click.UsageError):
    """Something in the command line, or in a variable, that cannot be meant."""


def one_line(error: click.ClickException) -> str:
    """Return the line that the user sees."""
    text = " ".join(f"elastic: {_said(error)}".split())
    shortened = re.sub(rf"(\S{{{WORD_MAX}}})\S+", r"\1…", text)
    return printable(shortened)


def _said(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    match error:
        case click.NoSuchOption(option_name=name, possibilities=possibilities):
            meant = _ELSEWHERE.get(name.replace("_", "-"))
            if meant and ctx and any(meant in param.opts for param in ctx.command.params):
                possibilities = [meant]
            dashed = sorted({each.replace("_", "-") for each in possibilities or ()})
            near = f"; did you mean {' or '.join(dashed)}?" if dashed else ""
            return f"{name}: no such option{near} ({ctx.command_path if ctx else 'elastic launch'} --help lists them)"
        case click.BadOptionUsage(option_name=name) if ctx:
            return f"{name}: {_with_or_without_value(name, ctx)}"
        case click.MissingParameter(param=click.Argument() as argument) if ctx:
            return f"{argument.make_metavar(ctx)} is missing: write {_usage(ctx)}"
        case click.BadParameter(param=click.Option(is_flag=True) as flag) if ctx:  # only its variable has a value
            return f"{spelled(flag, ctx)}={flag.resolve_envvar_value(ctx)}: write 1 or 0, true or false, yes or no"
        case _:
            return _lower(error.format_message())


def _with_or_without_value(name: str, ctx: click.Context) -> str:
    option = next(param for param in ctx.command.get_params(ctx) if name in param.opts)
    longest = max(option.opts, key=len)
    if isinstance(option, click.Option) and option.is_flag:
        return f"takes no value; write {longest} alone, or leave it out"
    return f"needs a value, like {longest}={option.metavar}"


def _usage(ctx: click.Context) -> str:
    return " ".join((ctx.command_path, *ctx.command.collect_usage_pieces(ctx)))


def _lower(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic since click 8.2


class Value(ParamType):
    """A type of click's: a plain function that reads a text, or raises ValueError with the reason and the remedy."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as reason:
            raise Mistake(f"{spelled(param, ctx)}={_without_secrets(value)}: {_without_secrets(str(reason))}") from None


def _without_secrets(text: str) -> str:
    """Return the text with three stars in place of a password."""
    return re.sub(r"(password\s*=).*|(//).*@", r"\1\2***", text)


def spelled(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """Return how the user gave a parameter: the option, or the variable."""
    if param is None or ctx is None or not param.name:
        return "value"
    if ctx.get_parameter_source(param.name) is ParameterSource.ENVIRONMENT and isinstance(param.envvar, str):
        return param.envvar
    return max(param.opts, key=len)
