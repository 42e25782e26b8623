"""Spans for OpenTelemetry: a real receiver decodes what the agents of a job send of its recoveries."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field
from jobs import STAY, Jobs, codes, end, kill, run
from launches import Launcher
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from ports import reserved
from processes import comes_true


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
def receiver(code: int = 200) -> Iterator[Receiver]:
    """Serve a receiver, which answers with a body that has no end."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.took(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(code)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"x" * 2**16)

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


def recoveries(heard: Receiver) -> list[Any]:
    return [span for _, span in heard.spans if span.name == "recovery"]


def has_sent(heard: Receiver, count: int) -> bool:
    return len(recoveries(heard)) == count


def test_each_node_sends_a_span_of_each_recovery_with_its_phases(tcpstore_job: Jobs) -> None:
    job = tcpstore_job("2", "--last-call=1000", "--max-restarts=2")
    with receiver() as heard:
        agents = job.nodes("ab", f"--otel-endpoint={heard.url}")
        told = run(agents)
        for round in (1, 2):
            kill(told[0].pid)
            told = run(agents)
            assert comes_true(partial(has_sent, heard, 2 * round))
        assert codes(end(agents)) == [0, 0]
    assert {service for service, _ in heard.spans} == {"elastic"}
    spans = [span for _, span in heard.spans]
    assert len({(span.trace_id, attributes(span)["elastic.round"]) for span in recoveries(heard)}) == 2
    assert Counter(attributes(span)["elastic.round"] for span in recoveries(heard)) == {1: 2, 2: 2}
    for each in recoveries(heard):
        told_of = attributes(each)
        assert (told_of["elastic.job"], told_of["elastic.cause"]) == (job.run_id, "failed")
        phases = sorted(
            (span for span in spans if span.parent_span_id == each.span_id), key=lambda span: span.start_time_unix_nano
        )
        assert {span.trace_id for span in phases} == {each.trace_id}
        assert [span.name for span in phases][-2:] == ["rejoin", "start"]
        bounds = [phases[0].start_time_unix_nano, *(span.end_time_unix_nano for span in phases)]
        assert bounds == sorted(bounds)
        assert [span.start_time_unix_nano for span in phases] == bounds[:-1]
        assert (each.start_time_unix_nano, each.end_time_unix_nano) == (bounds[0], bounds[-1])


def test_a_receiver_that_names_another_one_does_not_take_spans(launch: Launcher) -> None:
    with receiver(307) as heard:
        agent = launch("--standalone", "--max-restarts=1", f"--otel-endpoint={heard.url}", STAY)
        (one,) = agent.hears(1)
        kill(one.pid)
        agent.hears(1)
        agent.open_gate()
        ended = agent.ends()
    assert ended.code == 0 and f"warning: spans are lost: {heard.url} does not take them" in ended.err


def test_a_receiver_that_is_not_there_is_named_once_and_the_job_goes_on(launch: Launcher) -> None:
    with reserved() as port:
        url = f"--otel-endpoint=http://user:secret@127.0.0.1:{port}"
        agent = launch("--standalone", "--max-restarts=1", url, STAY)
        (one,) = agent.hears(1)
        kill(one.pid)
        agent.hears(1)
        agent.open_gate()
        ended = agent.ends()
    assert ended.code == 0
    assert ended.err.count(f"warning: spans are lost: http://***127.0.0.1:{port} does not take them") == 1


def test_an_address_that_is_none_is_refused(launch: Launcher) -> None:
    ended = launch("--standalone", "--otel-endpoint=collector:4318", STAY).ends()
    assert ended.code == 2 and "--otel-endpoint=collector:4318: write a URL like http://collector:4318" in ended.err


def test_a_variable_of_opentelemetry_that_cannot_work_is_refused_with_its_name(launch: Launcher) -> None:
    name = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
    ended = launch("--standalone", "--otel-endpoint=http://collector:4318", STAY, environment={name: "few"}).ends()
    assert ended.code == 2 and f"--otel-endpoint: {name} must be" in ended.err and "Traceback" not in ended.err
