"""`python -m elastic`: the `elastic` command. It imports nothing from the folder in which it is run, as that does not."""

import os
import sys

try:
    here = os.getcwd()
except OSError:  # it was removed: Python has put nothing in front then
    here = ""
folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if not sys.flags.safe_path and sys.path[:1] == [here] and os.path.realpath(here) != os.path.realpath(folder):
    del sys.path[0]  # a queue.py there would be taken for the standard library's

from .cli.main import main  # noqa: E402

main()
