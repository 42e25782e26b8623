"""Throws the ranks of lost nodes out of the workers' registers, in the name of this node's agent.

A register that workers here use has a thread for it from each loss on, until it shows none of these ranks and its first
round is complete. What is to be done there now, `core/node.py` decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ...core.backoff import pause_s
from ...core.node import eviction, is_forming
from ...core.rendezvous import FIRST_PAUSE_S, Violation, apply, verify, verify_step
from ...core.world import Node
from .. import threads
from ..store.port import COPY_PAUSE_S, LONGEST_PAUSE_S, Backend, StoreError

Parties: TypeAlias = Callable[[], Mapping[str, int]]
"""The parties of lost nodes now, each with the last round in which its node may have come. Any thread may ask."""
Awaited: TypeAlias = Callable[[], Mapping[str, int]]
"""How many ranks a first world waits for, of each party. Any thread may ask."""
Lost: TypeAlias = tuple[Parties, Node, Awaited]
_TRIES = 30
"""The most questions that the store may leave unanswered."""
_LOOK_S = 1.0
"""How soon the number of ranks that a first round waits for is asked for again."""
_JOIN_S = 5.0
"""How long the end of a thread is waited for, whose client is closed."""


class Evictions:
    """The evictions from all registers that workers here use. Any thread may call its methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registers: set[_Register] = set()
        self._lost: Lost | None = None
        """These are to be evicted from each register that is followed later, too."""

    def follow(self, backend: Backend) -> Callable[[], None]:
        """Evict from this register too, until what is returned is called. `backend` is only cloned."""
        register = _Register(backend)

        def end() -> None:
            with self._lock:
                self._registers.discard(register)
            register.close()

        with self._lock:
            self._registers.add(register)
            if self._lost:
                register.evict(self._lost)
        return end

    def evict(self, parties: Parties, me: Node, awaited: Awaited) -> None:
        """Have the ranks of `parties()` thrown out of the registers that workers here use now or later, in the name of
        `me`. A first round is complete once each party of `awaited()` has this many ranks in. Returns at once."""
        with self._lock:
            self._lost = parties, me, awaited
            for register in self._registers:
                register.evict(self._lost)


class _Register:
    """A register, and the threads that evict from it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._clients: dict[threading.Thread, Backend] = {}

    def evict(self, lost: Lost) -> None:
        """Begin to evict. If the host has no thread for it, the silence of the ranks' heartbeats does it."""
        client = self._backend.clone()
        thread = threading.Thread(target=self._run, args=(client, lost), name="elastic-evicts", daemon=True)
        with self._lock:
            self._clients[thread] = client
            try:
                threads.start(thread, patience_s=0.0)
            except threads.NoThread:
                self._clients.pop(thread).close()

    def _run(self, client: Backend, lost: Lost) -> None:
        tries = 0
        try:
            while tries < _TRIES and not self._closed.is_set():
                try:
                    if not self._has_step(client, lost):
                        return
                except StoreError:
                    tries += 1
                    self._closed.wait(pause_s(tries, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        except Violation:
            return  # a state that is none is nobody's to edit
        finally:
            client.close()
            with self._lock:
                self._clients.pop(threading.current_thread(), None)

    def _has_step(self, client: Backend, lost: Lost) -> bool:
        """Take one step. Return False if there is nothing to do any more. Raises StoreError and Violation."""
        parties, me, awaited = lost
        state = client.get().state
        if state and (edit := eviction(state, parties(), awaited())):
            after = apply(state, edit, me)
            verify(after)
            verify_step(state, after)
            client.set(after, state.token)
        elif is_forming(state):
            shown = client.wait_for_change(state.token if state else None, time.monotonic() + _LOOK_S)
            self._closed.wait(0.0 if shown.here else COPY_PAUSE_S)
        else:
            return False
        return True

    def close(self) -> None:
        """End the threads. Idempotent."""
        self._closed.set()
        with self._lock:
            clients = dict(self._clients)
        for client in clients.values():
            client.close()
        for thread in clients:
            thread.join(_JOIN_S)
