"""The web page of a job, served until a signal ends it: the store is read in this thread, and the web server has its own."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing

from ..adapters.terminal import why
from ..adapters.web_server import Content, WebServer
from ..core.world import name_of
from .looking import Looking, until_signalled
from .mistakes import Mistake
from .render.page import EVENTS, PICTURE, page, shown, timeline
from .render.text import say
from .rendezvous_settings import alone


def serve_page(looking: Looking, host: str, port: int) -> None:
    """Show the job on a page until SIGINT or SIGTERM. Raises Mistake."""
    job = looking.job
    text = page(job.run_id)
    contents = {
        "/": lambda: Content("text/html", text.text.encode(), text.policy),
        PICTURE: lambda: Content("image/svg+xml", timeline(looking.history, looking.at()).encode()),
        "/metrics": lambda: _metrics(looking),
    }
    try:
        server = WebServer(host, port, contents, EVENTS)
    except OSError as error:
        raise Mistake(f"--http={_address(host, port)}: {why(error)}; name a port that is free on this host") from None
    with closing(server), until_signalled():
        say(f"elastic status: job {job.run_id} is shown at http://{_address(host, port)}/ (Ctrl-C ends this)")
        _tell(looking, server)
        while True:
            _follow(looking, server)


def _follow(looking: Looking, server: WebServer) -> None:
    """Look once, and tell the page."""
    read_at = looking.read_at
    if looking.next():
        _tell(looking, server)
    elif looking.read_at > read_at:
        server.publish("tick", lambda: _tick(looking))


def _metrics(looking: Looking) -> Content:
    """Return the metrics for Prometheus. Raises ImportError without prometheus-client; the text says what to install."""
    try:
        from ..adapters.report.metrics import Known, exposition
    except ImportError:
        raise ImportError(
            "needs the package prometheus-client; install elastic-launch as before, with [metrics] behind it"
        ) from None
    history, job = looking.history, looking.job
    seats = job.state.seats.items() if job.state else ()
    labels = {node: name_of(node, seat.profile.host) for node, seat in seats}
    failures, standbys = Counter(dict.fromkeys(labels.values(), 0)), Counter[str]()
    failures.update(name_of(fault.node, fault.host) for fault in job.faults)
    for node, note in job.standbys.items():
        if node in labels:
            standbys[labels[node]] += note.ready
    times = dict[str, Counter[tuple[str, str]]]()
    for node, shares in looking.times.items():
        if node in labels:
            times.setdefault(labels[node], Counter()).update(shares)
    by_age = sorted(looking.ages_s().items(), key=lambda item: item[1])  # of one label the oldest counts
    return exposition(
        Known(
            job.state,
            history.silent is None,
            history.ends,
            failures,
            {labels[node]: age for node, age in by_age if node in labels},
            standbys,
            times=times,
        )
    )


def _tell(looking: Looking, server: WebServer) -> None:
    state = looking.job.state
    told = shown(looking.history, time.time() - looking.at(), alone(state.limits) if state else None)
    server.publish("state", lambda: told)
    server.publish("tick", lambda: _tick(looking))


def _tick(looking: Looking) -> str:
    """Return the time on this command's clock. A page takes it from there: one that is opened later is told a later time."""
    return f'{{"at":{looking.at():.3f},"took":{looking.took_s * 1_000:.1f}}}'


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
