"""`python -m elastic`: the `elastic` command. It imports nothing from the folder in which it is run, as that does not."""

import os.path
import sys

folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != os.path.realpath(folder):
    del sys.path[0]  # the folder: a queue.py there would be taken for the standard library's

from .cli.main import main  # noqa: E402

main()
