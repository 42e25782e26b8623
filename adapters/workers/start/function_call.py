"""A call that every worker of a job makes: its way there, and the values that come back."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from types import FunctionType
from typing import Any, Literal

from ....core.ranks import Ranks
from ....core.values import frozen
from ...launch_settings import Function
from .forks import fork_server, forking
from .function import CALL, Call, value_file
from .spawner import Spawner

StartMethod = Literal["spawn", "fork", "forkserver"]


@frozen
class Calling:
    """A function as the workers' program."""

    program: Function
    spawner: Spawner | None
    """This forks the workers. It is None if the agent executes them."""

    def values(self, round: int, ranks: Ranks) -> tuple[dict[int, Any], dict[int, str]]:
        """Return the values of this node's workers in a round that succeeded, by rank, and why others are lost."""
        values, lost = dict[int, Any](), dict[int, str]()
        for worker in ranks.workers:
            file = value_file(self.program.folder, round, worker.rank)
            if not file.exists():
                lost[worker.rank] = "it left none: it ended its process by os._exit, or executed another program"
                continue
            try:
                values[worker.rank] = pickle.loads(file.read_bytes())
            except Exception as error:  # noqa: BLE001 - whatever a user's class raises
                lost[worker.rank] = f"it cannot be read here: {type(error).__name__}: {error}"
        return values, lost


def calling(
    start_method: StartMethod, function: Callable[..., Any], /, *arguments: Any, **named: Any
) -> Callable[[], AbstractContextManager[Calling]]:
    """Return what makes a call ready for workers, until the end of its block: to be entered by the thread to which the
    workers' lives are tied. Raises ValueError if the call cannot be given to a process started anew."""
    call = Call(function, arguments, named)
    return partial(_calling, start_method, call, b"" if start_method == "fork" else _pickled(call))


@contextmanager
def _calling(start_method: StartMethod, call: Call, pickled: bytes) -> Iterator[Calling]:
    function, spawner = call.function, None
    folder = mkdtemp(prefix="elastic_")  # a TemporaryDirectory would go when the program ends, before its job
    try:
        if pickled:
            Path(folder, CALL).write_bytes(pickled)
        spawner = _spawner(start_method, call, folder)
        module = getattr(function, "__module__", None) or "__main__"
        yield Calling(Function(name_of(function), folder, sys.executable, module), spawner)
    finally:
        if spawner:
            spawner.close()
        shutil.rmtree(folder, ignore_errors=True)


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _spawner(start_method: StartMethod, call: Call, folder: str) -> Spawner | None:
    """Return what forks the workers; None if the agent executes them."""
    match start_method:
        case "spawn":
            return None
        case "fork":
            return forking(call, folder)
        case "forkserver":
            return fork_server(folder)


class _Pickler(pickle.Pickler):
    """Notes the functions and classes of the main module that workers must find by their names."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.of_main: list[str] = []

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            self.of_main.append(value.__qualname__)
        return NotImplemented


def _pickled(call: Call) -> bytes:
    from multiprocessing import spawn

    from .main_module import why_not

    pickled = BytesIO()
    pickler = _Pickler(pickled)
    try:
        pickler.dump(tuple(call))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{name_of(call.function)}: a process that is started anew cannot be given it: {error}; define it at the top of "
            "a module, give it plain values, or write start_method='fork'"
        ) from error
    preparation = spawn.get_preparation_data("elastic worker")
    if not os.path.exists(preparation.get("init_main_from_path", os.devnull)):  # "<stdin>", or it has gone
        del preparation["init_main_from_path"]
    if why := why_not(pickler.of_main, preparation):
        raise ValueError(why)
    preparation["authkey"] = bytes(preparation["authkey"])
    return pickle.dumps((preparation, pickled.getvalue()), pickle.HIGHEST_PROTOCOL)
