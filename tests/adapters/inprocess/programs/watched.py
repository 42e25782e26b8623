"""A wrapped process without a driver: it has user code, a page, and a monitor beside it. Says on stdout what comes of it.

    python watched.py KIND < given

`given` is a line of JSON: the place of the register, the node, the limits in seconds, the monitor's rules and log. It says
that the user code runs, and the limits hold, when that is where it is to be. Once it has ended, the call goes on until the
end of stdin.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from elastic.adapters.inprocess.beside.supervisor import Charge, Supervisor
from elastic.adapters.inprocess.gate.alarm import Alarm
from elastic.adapters.inprocess.gate.gate import Gate
from elastic.adapters.inprocess.gate.signal_handlers import installed
from elastic.adapters.inprocess.shared_page import BYE, LEAVING, Page
from elastic.adapters.inprocess.thread_events import FromGate, Injected, Order, SpanEnd
from elastic.core.inprocess.monitoring import Bye, Rules
from elastic.core.inprocess.words import Span
from elastic.core.world import Node

NS = 1_000_000_000
FOR_EVER_US = 3600_000_000


def say(text: str) -> None:
    print(text, flush=True)


def main(kind: str) -> None:
    given = json.loads(sys.stdin.readline())
    page = Page.new()
    events: SimpleQueue[FromGate] = SimpleQueue()
    alarm = Alarm(given["slack_s"])
    gate = Gate(page, events.put, alarm)
    rules = Rules(**given["rules"])
    charge = Charge(Node(*given["node"]), given["place"], rules, given["heartbeat_s"], Path(given["log"]))
    supervisor = Supervisor(page, charge, alarm)

    soft, hard = (0 if math.isinf(limit) else int(limit * NS) for limit in (given["soft_s"], given["hard_s"]))

    def begins() -> None:
        gate.limit(soft, hard)
        say(f"runs {supervisor.pid}")

    def trains() -> None:
        begins()
        while True:
            gate.ping()
            time.sleep(0.01)

    def keeps_the_gil() -> None:
        begins()
        ctypes.PyDLL(None).usleep(FOR_EVER_US)

    def keeps_the_gil_without_a_monitor() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
        assert supervisor.pid
        os.kill(supervisor.pid, signal.SIGSTOP)
        keeps_the_gil()

    def is_deaf() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
        begins()
        time.sleep(3600)

    def ignores_everything() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        is_deaf()

    def leaves() -> None:
        page.words[LEAVING] = 1
        page.ring()
        trains()

    kinds: dict[str, Callable[[], None]] = {
        function.__name__: function
        for function in (
            trains,
            keeps_the_gil,
            keeps_the_gil_without_a_monitor,
            is_deaf,
            ignores_everything,
            leaves,
        )
    }
    kinds |= {"returns": begins, "returns_unknown": begins}
    supervisor.start()
    with installed(gate, page):
        gate.run(Order(1, 0, Span.FUNCTION, kinds[kind]))
        while not isinstance(ended := events.get(), SpanEnd):
            pass
        say(f"ended {ended.how.value}")
        sys.stdin.read()
    page.words[BYE] = Bye.UNSETTLED if kind == "returns_unknown" else Bye.SETTLED
    supervisor.close(30.0)
    say(f"monitors {supervisor.starts}")
    if ended.error is not None and not isinstance(ended.error, Injected):
        raise ended.error


if __name__ == "__main__":
    main(sys.argv[1])
