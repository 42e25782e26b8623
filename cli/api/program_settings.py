"""The settings of a launch as a program writes them: the command's options as fields, by the same names.

The defaults and the checks are those of the options. A field's type is what a program may write, where the option's is what
was read. PET_ variables belong to command lines, so no field reads one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import click
from attrs import field

from ...adapters.workers.worker_port import LogsSpecs
from .. import option, values
from ..agent_settings import PREFIX_TEMPLATE
from ..launch import launch as command
from ..launch_options import LaunchOptions
from ..mistakes import Mistake, one_line, spelled

_SAID_BY_LOGS_SPECS = ("log_dir", "redirects", "tee", "local_ranks_filter")
"""An object of LogsSpecs has its own."""
COMMAND_ALONE = ("use_env", "no_use_env", "show_preload")
"""Options for command lines that were written for torch.distributed.launch, or that only show something."""
PROGRAM_ALONE = ("log_line_prefix_template",)
"""A command line has a variable for it."""
DEFAULT: Any = object()
"""The option's default."""


def _with_defaults(cls: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    defaults = option.defaults(LaunchOptions)
    return [each.evolve(default=defaults[each.name]) if each.default is DEFAULT else each for each in fields]


@attrs.frozen(kw_only=True, field_transformer=_with_defaults)  # noqa: TID251  a struct takes no defaults from elsewhere
class LaunchSettings:
    """One launch. `elastic launch --help` and docs/launch.md explain each field; None is the option left out.

    Raises ValueError with the field, the value and what to write instead.
    """

    nproc_per_node: int | Literal["gpu", "cpu", "auto"] | str = DEFAULT
    nnodes: int | str = DEFAULT
    node_unit: int | None = DEFAULT
    segment: str | None = DEFAULT
    standby: values.Standbys | None = DEFAULT
    """How many standbys this node keeps; "each" for one for each worker."""
    preload: str | None = DEFAULT
    start_method: values.StartMethod = DEFAULT
    """How workers that call a function are made: as a new interpreter, a copy of this process, or a copy of a new one."""
    module: bool = DEFAULT
    no_python: bool = DEFAULT
    run_path: bool = DEFAULT
    virtual_local_rank: bool = DEFAULT
    numa_binding: values.NumaBinding | None = DEFAULT
    role: str = DEFAULT
    standalone: bool = DEFAULT
    rdzv_backend: str | None = DEFAULT
    rdzv_endpoint: str | None = DEFAULT
    rdzv_id: str | None = DEFAULT
    rdzv_conf: Mapping[str, str | float] = field(factory=dict)
    last_call: float | None = DEFAULT
    local_addr: str | None = DEFAULT
    node_id: str | None = DEFAULT
    labels: str = DEFAULT
    rank_policy: str = DEFAULT
    node_rank: int | None = DEFAULT
    master_addr: str | None = DEFAULT
    master_port: int | None = DEFAULT
    max_restarts: int = DEFAULT
    max_node_failures: str | None = DEFAULT
    leave_after: str | None = DEFAULT
    give_up_after: int | None = DEFAULT
    progress_after: float = DEFAULT
    grace: float = DEFAULT
    drain_signal: str | None = DEFAULT
    drain_file: str | None = DEFAULT
    drain_deadline: float = DEFAULT
    restart_scope: values.RestartScope = DEFAULT
    shutdown_timeout: float | None = DEFAULT
    exit_barrier_timeout: float | None = DEFAULT
    linger: float = DEFAULT
    on_store_loss: values.OnStoreLoss = DEFAULT
    node_check: str | None = DEFAULT
    node_check_timeout: float = DEFAULT
    watch_check: str | None = DEFAULT
    watch_check_every: float = DEFAULT
    hang_timeout: float | None = DEFAULT
    on_hang: values.OnHang = DEFAULT
    signals_to_handle: str = DEFAULT
    monitor_interval: float = DEFAULT
    log_dir: str | os.PathLike[str] | None = DEFAULT
    redirects: int | str = DEFAULT
    tee: int | str = DEFAULT
    local_ranks_filter: str = DEFAULT
    duplicate_stdout_filters: str = DEFAULT
    duplicate_stderr_filters: str = DEFAULT
    logs_specs: str | LogsSpecs | None = DEFAULT
    """A plug-in's name, or an object of torch's kind, which says itself where logs go."""
    log_line_prefix_template: str | None = None
    """The prefix of a tee'd line, as of the variable TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE; None: what that says."""
    status: values.Status = DEFAULT
    report: str | os.PathLike[str] | None = DEFAULT
    trace: str | os.PathLike[str] | None = DEFAULT
    event_log_handler: str = DEFAULT
    metrics_handler: str = DEFAULT
    metrics: int | str | None = DEFAULT
    otel_endpoint: str | None = DEFAULT

    def __attrs_post_init__(self) -> None:
        options_of(self)
        if self.start_method is None:
            raise ValueError("start_method=None: write spawn, fork or forkserver")
        if self.log_line_prefix_template is not None and not isinstance(self.log_line_prefix_template, str):
            raise ValueError(f"log_line_prefix_template={self.log_line_prefix_template!r}: write text")
        _check_logs_specs(self)


def variables_of(settings: LaunchSettings) -> dict[str, str]:
    """Return the variables by which the launch hears of settings that are no options."""
    template = settings.log_line_prefix_template
    return {} if template is None else {PREFIX_TEMPLATE: template}


def _check_logs_specs(settings: LaunchSettings) -> None:
    specs = settings.logs_specs
    if specs is None or isinstance(specs, str):
        return
    if isinstance(specs, type) or not callable(getattr(specs, "reify", None)):
        raise ValueError(f"logs_specs={specs!r}: write an object like torch's DefaultLogsSpecs(log_dir='logs')")
    for name in _SAID_BY_LOGS_SPECS:
        if getattr(settings, name) != getattr(attrs.fields(LaunchSettings), name).default:
            raise ValueError(f"{name}: the object of logs_specs says this; give it to that object")


def options_of(settings: LaunchSettings) -> LaunchOptions:
    """Return the options that say what the settings say. Raises ValueError."""
    context = click.Context(command)
    given = attrs.asdict(settings, recurse=False)
    declared = [param for param in command.params if isinstance(param, option.Option)]
    try:
        return LaunchOptions(
            **{name: _read(param, given.get(name), context) for param in declared if (name := param.name)}
        )
    except click.ClickException as mistake:
        raise ValueError(without_dashes(mistake)) from None


def without_dashes(mistake: click.ClickException) -> str:
    """Return the mistake's line in the words of a program: fields instead of options."""
    line = one_line(mistake).removeprefix("elastic: ")
    return re.sub(r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), line)


def _read(param: click.Option, given: object, context: click.Context) -> Any:
    match given:
        case None:
            return _left_out(param, context)
        case bool() if param.is_flag:
            return given
        case _ if param.name == "logs_specs" and not isinstance(given, str):
            return given
        case Mapping() if param.name == "rdzv_conf":
            return {_word(param, key): _word(param, value) for key, value in given.items()}
        case _ if param.is_flag:
            raise Mistake(f"{spelled(param, context)}={given!r}: write True or False")
        case _:
            return param.type_cast_value(context, _word(param, given))


def _left_out(param: click.Option, context: click.Context) -> Any:
    default = param.get_default(context)
    return default if default is None or param.is_flag else param.type_cast_value(context, default)


def _word(param: click.Option, given: object) -> str:
    """Return a value as it would stand on a command line. Raises Mistake for what is neither text nor a number."""
    match given:
        case str():
            return given
        case os.PathLike():
            return os.fsdecode(given)
        case int() | float() if not isinstance(given, bool):
            return str(given)
        case _:
            raise Mistake(f"--{param.name}={given!r}: write text or a number")
