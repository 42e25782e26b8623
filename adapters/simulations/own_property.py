"""A user's own property from a Python file: read once in each process, and checked.

A mistake in the file is a ValueError when it is read. A mistake of the function shows in a run: PropertyFailed says where,
so its author reads one line and not the simulator's traceback.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ...core.violation import Finding
from ..terminal import why

_USE = "it is called with {}, and yields pairs of text: a name and a sentence"
_SEEN = {2: "the judge and a fact", 3: "a world, a move, and the world after it"}
"""The arguments of a property of nodes, and of one of calls, by their number."""


class PropertyFailed(Exception):
    """A property raised, or yielded something other than a finding. The text begins with FILE.py:FUNCTION."""


Findings = Callable[..., Iterator[Finding]]
"""A property of nodes, or of calls."""
_loaded: dict[tuple[str, str], Findings] = {}


def loaded(path: str, name: str) -> Findings:
    """Return the property `name` of the file `path`. Raises ValueError."""
    if (path, name) not in _loaded:
        try:
            file = os.path.abspath(path)
        except FileNotFoundError:  # this working directory was removed
            file = path
        _loaded[path, name] = _held_to(f"{path}:{name}", file, _function(path, name, file))
    return _loaded[path, name]


def _held_to(given: str, file: str, function: Any) -> Findings:
    def findings(*seen: object) -> Iterator[Finding]:
        try:
            yield from map(_pair, function(*seen))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's function raises
            raise PropertyFailed(f"{given}: {_said(error, file)}; {_USE.format(_SEEN[len(seen)])}") from None

    return findings


def _pair(given: Any) -> Finding:
    match given:
        case ("", _):
            raise TypeError("a finding has no name")
        case (str(name), str(sentence)):
            return name, sentence
        case other:
            raise TypeError(f"{other!r} is no pair of text")


def _function(path: str, name: str, file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"properties of {path}", path)
    if spec is None or spec.loader is None:
        raise ValueError("is no Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    if (folder := os.path.dirname(file)) not in sys.path:
        sys.path.append(folder)  # for the modules beside it; last, so that none hides Python's own
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        its_own = error.filename == file
        raise ValueError(why(error) if its_own else _said(error, file)) from None
    except SyntaxError as error:
        raise ValueError(f"is no Python file: {error.msg} (line {error.lineno})") from None
    except SystemExit:
        raise ValueError("ends the program when it is imported; put that under if __name__ == '__main__':") from None
    except Exception as error:  # noqa: BLE001 - whatever a user's module raises
        raise ValueError(_said(error, file)) from None
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"has no function {name!r}")
    return found


def _said(error: BaseException, file: str) -> str:
    """Return the error as text, with the last line of the file in its traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
