"""unmarked.py: start a child with a session of its own and no environment, make it an orphan, tell it, wait for the gate."""

from __future__ import annotations

import subprocess

import stage

if __name__ == "__main__":
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"
    born = subprocess.run(["/bin/sh", "-c", script], env={}, stdout=subprocess.PIPE, start_new_session=True, check=True)
    stage.tell(born.stdout.decode().strip())
    stage.wait_for_gate()
