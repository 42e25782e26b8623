"""A process that runs SPANS spans of user code, while another sends it the signal as fast as it can. Writes what came of it.

    python injected.py SPANS SEED

Every span is wanted, at some time soon after it began; and signals come after its end too. Ends by an exception if one lands
where none may.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from queue import SimpleQueue

from elastic.adapters.inprocess.gate.gate import Gate
from elastic.adapters.inprocess.gate.signal_handlers import installed
from elastic.adapters.inprocess.shared_page import ARMED, DEPTH, WANT_MONITOR, Page
from elastic.adapters.inprocess.thread_events import FromGate, Injected, Order, SpanEnd
from elastic.adapters.inprocess.wrapper.sections import Atomic
from elastic.core.inprocess.words import How, Span

SENDER = f"""
import mmap, os, random, signal, sys, time
descriptor, pid, seed = map(int, sys.argv[1:])
words = memoryview(mmap.mmap(descriptor, 256)).cast("Q")
chance, target = random.Random(seed), os.pidfd_open(pid)
send = lambda: signal.pidfd_send_signal(target, signal.SIGURG)
last = 0
while True:
    try:
        armed = words[{ARMED}]
        if armed == last or not armed:
            if chance.random() < 0.01:
                send()
            continue
        end = time.perf_counter() + chance.random() * 0.0004
        while time.perf_counter() < end:
            pass
        words[{WANT_MONITOR}] = last = armed
        send()
        while words[{ARMED}] == armed:
            time.sleep(0.0003)
            send()
    except ProcessLookupError:
        break
"""


class User:
    """The user's code: kinds of spans. `steps` counts the two halves of atomic sections."""

    def __init__(self, gate: Gate, chance: random.Random) -> None:
        self._gate = gate
        self._chance = chance
        self.steps = [0, 0]
        self.kinds: tuple[Callable[[], object], ...] = (
            self.sleeps,
            self.computes,
            self.locks,
            self.swallows,
            self.returns,
            self.fails,
            self.saves,
            self.saves_and_returns,
            self.pings,
        )

    def sleeps(self) -> None:
        time.sleep(3600)

    def computes(self) -> None:
        while True:
            pass

    def locks(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    def swallows(self) -> None:
        for _ in range(3):
            try:
                self.computes()
            except Injected:
                pass
        self.sleeps()

    def returns(self) -> None:
        sum(range(self._chance.randrange(20_000)))

    def fails(self) -> None:
        self.returns()
        raise ValueError("the user's own")

    def save(self) -> None:
        with Atomic(self._gate):
            self.steps[0] += 1
            sum(range(self._chance.randrange(500)))
            with Atomic(self._gate):
                self.steps[1] += 1

    def saves(self) -> None:
        while True:
            self.save()

    def saves_and_returns(self) -> None:
        for _ in range(self._chance.randrange(20)):
            self.save()

    def pings(self) -> None:
        while True:
            self._gate.ping()


def main(spans: int, seed: int) -> None:
    chance = random.Random(seed)
    page = Page.new()
    events: SimpleQueue[FromGate] = SimpleQueue()
    gate = Gate(page, events.put)
    user = User(gate, chance)
    came_of: Counter[str] = Counter()
    command = [sys.executable, "-I", "-S", "-c", SENDER, str(page.descriptor), str(os.getpid()), str(seed)]
    with installed(gate, page), subprocess.Popen(command, pass_fds=[page.descriptor]) as sender:
        try:
            for token in range(1, spans + 1):
                kind = user.kinds[chance.randrange(len(user.kinds))]
                gate.run(Order(token, 0, Span.FUNCTION, kind))
                ended = events.get_nowait()
                assert isinstance(ended, SpanEnd) and ended.token == token and events.empty(), ended
                assert ended.how is not How.FAILED or isinstance(ended.error, ValueError), ended
                assert page.words[ARMED] == page.words[DEPTH] == 0
                assert user.steps[0] == user.steps[1], f"half a section in {kind.__name__}"
                came_of[ended.how.value] += 1
        finally:
            sender.kill()
    print(json.dumps(came_of))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
