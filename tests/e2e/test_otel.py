"""Spans for OpenTelemetry: a real receiver decodes what the agents of a job send of its recoveries."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field
from jobs import STAY, Jobs, codes, end, kill, run
from launches import Launcher
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from ports import reserved


@define
class Receiver:
    """It keeps the spans that come, each with the name of its service."""

    url: str = ""
    spans: list[tuple[str, Any]] = field(factory=list)

    def took(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            (service,) = (a.value.string_value for a in each.resource.attributes if a.key == "service.name")
            self.spans += [(service, span) for scope in each.scope_spans for span in scope.spans]


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.took(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def attributes(span: Any) -> dict[str, object]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_each_node_sends_a_span_of_its_recovery_with_its_phases(tcpstore_job: Jobs) -> None:
    job = tcpstore_job("2", "--last-call=1000", "--max-restarts=1")
    with receiver() as heard:
        agents = job.nodes("ab", f"--otel-endpoint={heard.url}")
        first = run(agents)
        kill(first[0].pid)
        run(agents)
        assert codes(end(agents)) == [0, 0]
    assert {service for service, _ in heard.spans} == {"elastic"}
    spans = [span for _, span in heard.spans]
    recoveries = [span for span in spans if span.name == "recovery"]
    assert len(recoveries) == 2 and len({span.trace_id for span in spans}) == 1
    for each in recoveries:
        told = attributes(each)
        assert (told["elastic.job"], told["elastic.round"], told["elastic.cause"]) == (job.run_id, 1, "failed")
        phases = sorted(
            (span for span in spans if span.parent_span_id == each.span_id), key=lambda span: span.start_time_unix_nano
        )
        assert [span.name for span in phases][-2:] == ["rejoin", "start"]
        bounds = [phases[0].start_time_unix_nano, *(span.end_time_unix_nano for span in phases)]
        assert bounds == sorted(bounds)
        assert [span.start_time_unix_nano for span in phases] == bounds[:-1]
        assert (each.start_time_unix_nano, each.end_time_unix_nano) == (bounds[0], bounds[-1])


def test_a_receiver_that_is_not_there_is_named_once_and_the_job_goes_on(launch: Launcher) -> None:
    with reserved() as port:
        agent = launch("--standalone", "--max-restarts=1", f"--otel-endpoint=http://127.0.0.1:{port}", STAY)
        (one,) = agent.hears(1)
        kill(one.pid)
        agent.hears(1)
        agent.open_gate()
        ended = agent.ends()
    assert ended.code == 0
    assert ended.err.count(f"warning: spans are lost: http://127.0.0.1:{port} does not take them") == 1


def test_an_address_that_is_none_is_refused(launch: Launcher) -> None:
    ended = launch("--standalone", "--otel-endpoint=collector:4318", STAY).ends()
    assert ended.code == 2 and "--otel-endpoint=collector:4318: write a URL like http://collector:4318" in ended.err
