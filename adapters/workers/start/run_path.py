"""A program of its own: a worker of --run-path. Runs a script by `runpy.run_path`, and tells of its exception.

    python -u run_path.py SCRIPT ARGUMENTS...

It does what torch's @record does around such a worker: an Exception goes into TORCHELASTIC_ERROR_FILE and on; exits and
interrupts are left alone. The script finds itself as `__main__` and in sys.argv, and the current directory in the module
path.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
import traceback


def record(error: Exception) -> None:
    """Write the error file in the form that torch's agents read."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    with open(path, "w") as file:
        json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}, file)


def main() -> None:
    sys.path[0] = ""
    sys.argv = sys.argv[1:]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception as error:
        record(error)
        raise


if __name__ == "__main__":
    main()
