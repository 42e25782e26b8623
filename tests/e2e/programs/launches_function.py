"""launches_function.py SETTINGS PROGRAM ARGUMENT...: call `main` of a program beside this one under `elastic.launch`.

SETTINGS are those of the launch, as JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

import elastic


def run(program: str, *arguments: str) -> None:
    sys.argv[1:] = arguments
    import_module(program).main()


if __name__ == "__main__":
    settings, *called = sys.argv[1:]
    elastic.launch(elastic.LaunchSettings(**json.loads(settings)))(run, *called)
