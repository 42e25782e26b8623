"""What a program may ask of a launch: the command's options as fields, by the same names, with the same defaults and checks.

PET_ variables are the command line's; a program says what it means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal

import click
from attrs import field, frozen

from ...adapters.workers.function_call import StartMethod
from ..launch import launch as command
from ..mistakes import Mistake, one_line, spelled


@frozen(kw_only=True)
class LaunchSettings:
    """One launch. `elastic launch --help` and docs/launch.md say what each field means; None is the option left out.

    Raises ValueError with the field, the value and what to write instead.
    """

    nproc_per_node: int | Literal["gpu", "cpu", "auto"] | str = 1
    nnodes: int | str = 1
    start_method: StartMethod = "spawn"
    """How workers that call a function come to be: a new interpreter, a copy of this process, or a copy of a new one."""
    module: bool = False
    no_python: bool = False
    run_path: bool = False
    virtual_local_rank: bool = False
    numa_binding: Literal["node", "socket", "exclusive", "core-complex"] | None = None
    role: str = "default"
    standalone: bool = False
    rdzv_backend: str | None = None
    rdzv_endpoint: str | None = None
    rdzv_id: str | None = None
    rdzv_conf: Mapping[str, str | float] = field(factory=dict)
    last_call: float | None = None
    local_addr: str | None = None
    node_id: str | None = None
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None
    max_restarts: int = 0
    grace: float = 30
    restart_scope: Literal["group", "rank"] = "group"
    shutdown_timeout: float | None = None
    on_store_loss: Literal["continue", "stop"] = "continue"
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    monitor_interval: float = 0.1
    log_dir: str | os.PathLike[str] | None = None
    redirects: int | str = 0
    tee: int | str = 0
    local_ranks_filter: str = ""
    duplicate_stdout_filters: str = ""
    duplicate_stderr_filters: str = ""
    logs_specs: str | None = None
    status: Literal["auto", "live", "plain", "off"] = "auto"
    report: str | os.PathLike[str] | None = None
    trace: str | os.PathLike[str] | None = None
    event_log_handler: str = "null"
    metrics_handler: str = "null"

    def __attrs_post_init__(self) -> None:
        options(self)
        if self.start_method is None:
            raise ValueError("start_method=None: write spawn, fork or forkserver")


def options(settings: LaunchSettings) -> dict[str, Any]:
    """The settings as the command has them once it has read its options. Raises ValueError."""
    context = click.Context(command)
    try:
        return {param.name or "": _read(param, settings, context) for param in options_of(command)}
    except click.ClickException as mistake:
        raise ValueError(without_dashes(mistake)) from None


def without_dashes(mistake: click.ClickException) -> str:
    """A mistake in the words of a program: fields instead of options."""
    line = one_line(mistake).removeprefix("elastic: ")
    return re.sub(r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), line)


def options_of(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _read(param: click.Option, settings: LaunchSettings, context: click.Context) -> Any:
    given = getattr(settings, param.name or "", None)  # or it is for the command line alone
    match given:
        case None:
            return _left_out(param, context)
        case bool() if param.is_flag:
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
    """As it stands on a command line. Raises Mistake."""
    match given:
        case str():
            return given
        case os.PathLike():
            return os.fsdecode(given)
        case int() | float() if not isinstance(given, bool):
            return str(given)
        case _:
            raise Mistake(f"--{param.name}={given!r}: write text or a number")
