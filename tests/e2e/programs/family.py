"""family.py END: start a child, and a child with a session of its own, that both live on; tell all three; then END.

END is `succeed`, `fail` (both when the gate opens), or `wait`. Without END: such a child, which tells itself and stays,
whatever it is sent.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import stage


def child() -> None:
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    stage.tell("child")
    stage.wait_for_signal()


def main(end: str) -> None:
    for own in (False, True):
        subprocess.Popen([sys.executable, __file__], start_new_session=own)
    stage.tell("parent")
    if end == "wait":
        stage.wait_for_signal()
    stage.wait_for_gate()
    sys.exit(end == "fail")


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else child()
