"""How long a store is away whose helper dies: from the signal to the next answer, beside a bare `import torch`.

    python benchmarks/store_back.py [--runs N] [--beside N]

The helper of a watched store is killed with SIGKILL while a client asks it all the time, as an agent does. `--beside`: so
many processes use all CPU time that they get meanwhile. The bar holds on a quiet machine: 2 s.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import StoreError
from elastic.adapters.store.tcpstore.helper_watch import HelperWatch, Watching, serve_watched
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address

BAR_S = 2.0
PAUSE_S = 0.01


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Beside so many processes that only count."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def import_s() -> float:
    """Return how long a new process takes that imports torch."""
    began_at = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.monotonic() - began_at


def answers_at(backend: TCPStoreBackend) -> float:
    """Return when the store answers."""
    while True:
        try:
            backend.get()
        except StoreError:
            time.sleep(PAUSE_S)
        else:
            return time.monotonic()


def away_s(watch: HelperWatch, backend: TCPStoreBackend) -> float:
    """Kill the helper that serves; return how long nobody answers."""
    answers_at(backend)
    with watch.children() as (pid,):
        killed_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
    return answers_at(backend) - killed_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beside", type=int, default=0)
    options = parser.parse_args()
    told: list[str] = []
    clock = SystemClock()
    with busy(options.beside):
        imports = [import_s() for _ in range(options.runs)]
        watching = Watching(clock, 60.0, told.append, str)
        aways = []
        for _ in range(options.runs):  # a helper that dies again soon has a pause, which is another figure
            watch, address = serve_watched(Address("localhost", 0), True, watching)
            assert watch
            backend = TCPStoreBackend(address, "job", clock, timeout_s=60.0)
            try:
                aways.append(away_s(watch, backend))
            finally:
                backend.close()
                watch.close()
    load = os.getloadavg()[0]
    print(f"{options.runs} runs beside {options.beside} busy processes, load {load:.1f}")
    print(f"import torch: median {median(imports):.2f} s, {min(imports):.2f} to {max(imports):.2f}")
    print(f"store away:   median {median(aways):.2f} s, {min(aways):.2f} to {max(aways):.2f} (bar: {BAR_S:g} s, quiet)")


if __name__ == "__main__":
    main()
