"""sleeper.py PIPE: sleep uninterruptibly (state D), in vfork, until somebody opens the pipe for writing: nobody does."""

from __future__ import annotations

import os
import sys

if not os.path.exists(sys.argv[1]):
    os.mkfifo(sys.argv[1])
open_pipe = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)
os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[open_pipe])
