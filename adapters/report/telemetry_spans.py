"""Spans for OpenTelemetry: one for each recovery of this node, with its phases as children, sent by OTLP over HTTP.

This module is imported only where spans were asked for, because the SDK costs memory and time. A thread sends them, so the
agent never waits for the receiver. The spans of all nodes that belong to one round have one trace id.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from queue import Full, Queue

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import set_span_in_context
from requests import Response, Session

from ...core.rendezvous import RendezvousState
from .. import threads
from ..clock import Clock
from .news import News, Seen, Started
from .recoveries import Passed, Recoveries

PATH = "/v1/traces"
QUEUE_MAX = 256
"""Spans that wait for the receiver. More are dropped."""
CLOSE_S = 2.0
"""The end waits this long for a receiver that does not answer."""
NS = 1_000_000_000
SERVICE = "elastic"


class AgentSpans:
    """An observer of the agent that sends its recoveries. Raises NoThread, or ValueError or RuntimeError for variables of
    OpenTelemetry that cannot work."""

    until = None

    def __init__(self, endpoint: str, run_id: str, node: str, clock: Clock, warn: Callable[[str], None]) -> None:
        """`endpoint` is the base URL of the receiver; `node` is this node's name for people."""
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False  # what went wrong is said once, below
        self._run_id, self._node = run_id, node
        self._clock = clock
        self._recoveries = Recoveries()
        self._state: RendezvousState | None = None
        shown = re.sub(r"//.*@", "//***", endpoint)
        lost = f"spans are lost: {shown} does not take them (--otel-endpoint)"
        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + PATH, session=_session())
        self._ids = _Ids()
        resource = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME") or SERVICE})
        provider = TracerProvider(id_generator=self._ids, resource=resource, shutdown_on_exit=False)
        self._sender = _Sender(exporter, partial(warn, lost))
        provider.add_span_processor(self._sender)
        self._tracer = provider.get_tracer("elastic")

    def saw(self, news: News) -> None:
        if isinstance(news, Seen):
            self._state = news.state
        self._recoveries.saw(news)
        if isinstance(news, Started) and self._recoveries.passed:
            self._told(self._recoveries.passed, news.world.round)
            self._recoveries.passed = ()

    def passed(self, now: float) -> None:
        pass

    def close(self) -> None:
        """Send what waits; give up after CLOSE_S."""
        self._sender.close()

    def _told(self, phases: tuple[Passed, ...], round: int) -> None:
        """Make the spans of one recovery that led to this round."""
        epoch = self._clock.wall() - self._clock.now()
        ended = self._state.ended if self._state else None
        attributes: dict[str, str | int] = {
            "elastic.job": self._run_id,
            "elastic.node": self._node,
            "elastic.round": round,
            **({"elastic.cause": ended.why.value} if ended else {}),
        }

        def at(moment: float) -> int:
            return int((epoch + moment) * NS)

        self._ids.trace_id = int.from_bytes(blake2b(f"{self._run_id}\n{round}".encode(), digest_size=16).digest())
        whole = self._tracer.start_span("recovery", Context(), start_time=at(phases[0].began_at), attributes=attributes)
        for each in phases:
            child = self._tracer.start_span(each.phase, set_span_in_context(whole), start_time=at(each.began_at))
            child.end(at(each.ended_at))
        whole.end(at(phases[-1].ended_at))


def _session() -> Session:
    """Return a session that reads no body of an answer, which may have no end, and that goes to no other receiver."""
    session = Session()
    session.stream = True
    session.hooks["response"].append(_refuse_redirect)
    return session


def _refuse_redirect(response: Response, **_: object) -> None:
    if response.is_redirect:
        raise OSError("the receiver names another one")  # the SDK would take that for success


class _Ids(RandomIdGenerator):
    """Ids of spans by chance, and one trace for each round of a job."""

    trace_id = 1

    def generate_trace_id(self) -> int:
        return self.trace_id


class _Sender(SpanProcessor):
    """It sends each span that has ended, one after the other, in its own thread. Raises NoThread."""

    def __init__(self, exporter: OTLPSpanExporter, complain: Callable[[], None]) -> None:
        self._exporter, self._complains = exporter, complain
        self._waiting: Queue[ReadableSpan | None] = Queue(QUEUE_MAX)
        self._has_complained = False
        self._thread = threading.Thread(target=self._send, name="spans", daemon=True)
        threads.start(self._thread)

    def on_end(self, span: ReadableSpan) -> None:
        self._put(span)

    def close(self) -> None:
        self._put(None)
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            self._complain()
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _put(self, span: ReadableSpan | None) -> None:
        try:
            self._waiting.put_nowait(span)
        except Full:
            self._complain()

    def _complain(self) -> None:
        """Say once that spans are lost."""
        if not self._has_complained:
            self._has_complained = True
            self._complains()

    def _send(self) -> None:
        while span := self._waiting.get():
            spans, is_last = [span], False
            while not self._waiting.empty():
                more = self._waiting.get()
                spans, is_last = ([*spans, more], is_last) if more else (spans, True)
            try:
                is_sent = self._exporter.export(spans) is SpanExportResult.SUCCESS
            except (OSError, RuntimeError, ValueError):  # a library's; the agent goes on
                is_sent = False
            if not is_sent:
                self._complain()
            if is_last:
                return
