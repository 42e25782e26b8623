"""What the command line says of the workers' program -> a `Program`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..adapters.launch_settings import Kind, Program
from ..adapters.workers.programs import check_program
from ..adapters.workers.worker_port import CannotStart
from .mistakes import Mistake


def script_program(given: Mapping[str, Any], environment: Mapping[str, str]) -> Program:
    """What every worker executes. Raises Mistake."""
    if given["use_env"] and given["no_use_env"]:
        raise Mistake("--use-env and --no-use-env: one is the other's opposite; leave one of them out")
    local_rank = ("--local-rank=${local_rank}",) if given["no_use_env"] else ()
    if not given["script"]:
        raise Mistake("SCRIPT is empty; write the name of a script, a module (--module) or a program (--no-python)")
    kind = _kind(given)
    if kind is Kind.MODULE and given["script"].endswith(".py"):
        raise Mistake(
            f"{given['script']}: a module's name has no .py; write {given['script'][:-3]}, or leave --module out"
        )
    return Program(kind, given["script"], (*local_rank, *given["arguments"]), _python(environment))


def _python(environment: Mapping[str, str]) -> str:
    """The interpreter that PYTHON_EXEC names, else this one. Raises Mistake."""
    named = environment.get("PYTHON_EXEC")
    if not named:
        return sys.executable
    try:
        check_program(named, environment.get("PATH"))
    except CannotStart as reason:
        raise Mistake(f"PYTHON_EXEC={reason}; name a Python, or unset it") from None
    return named


def _kind(given: Mapping[str, Any]) -> Kind:
    if given["run_path"]:
        return Kind.PATH
    if given["no_python"] and given["module"]:
        raise Mistake("--no-python and --module: a module needs Python; leave one of them out")
    return Kind.BINARY if given["no_python"] else Kind.MODULE if given["module"] else Kind.SCRIPT
