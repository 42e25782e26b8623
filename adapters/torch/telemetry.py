"""Handlers of events and metrics by name, behind a thread that keeps a slow one from holding up the agent.

An event handler is a `logging.Handler`, a metrics handler has `emit(metric)`: torch's own contracts. Built in are `null` and
`console` (stderr); others are entry points of installed packages, in the groups below, whose value returns a handler when
it is called. A program may also have put one into torch's table.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .. import threads
from ..clock import Clock
from ..launch_settings import LaunchSettings
from ..report.news import News
from ..terminal import printed
from .metrics import Metric, Metrics
from .rendezvous_events import Rendezvous
from .torch_events import Event, Events

if TYPE_CHECKING:
    import logging

_EVENT_HANDLERS = "torchrun.event_handlers"
_METRICS_HANDLERS = "torchrun.metrics_handlers"
NULL, CONSOLE = "null", "console"
RENDEZVOUS = "dynamic_rendezvous"
"""torch's name for the handler of its rendezvous' events, which keeps nothing until somebody puts one in its place."""
_TORCH_S_TABLE = "torch.distributed.elastic.events.handlers"
QUEUE_MAX = 10_000
"""Items that wait for a handler. More are dropped."""
END_TIMEOUT_S = 5.0
"""The end of the job waits this long for a handler."""

Item = TypeVar("Item")


class MetricsHandler(Protocol):
    """A handler of metrics, as torch defines it."""

    def emit(self, metric: Any, /) -> None:
        """Take one value."""


class _Outlet(Generic[Item]):
    """Hand on one item after the other, in its own thread. What a handler cannot take is lost."""

    def __init__(self, emit: Callable[[Item], object], kind: str, warn: Callable[[str], None]) -> None:
        """`kind` names the items, in the plural. `warn` is called once, by any thread."""
        self._emit, self._kind, self._warn = emit, kind, warn
        self._has_warned = False
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"elastic-{kind}", daemon=True)
        threads.start(self._thread)

    def put(self, items: Iterable[Item]) -> None:
        for item in items:
            if self._queue.qsize() < QUEUE_MAX:
                self._queue.put(item)
            else:
                self._lost(f"does not keep up, {QUEUE_MAX} wait")

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join(END_TIMEOUT_S)
        self._has_warned = True  # whoever was warned may be gone

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._emit(item)
            except Exception as error:  # noqa: BLE001  the handler's own; it may take the next one
                self._lost(f"raised {type(error).__name__}: {error}")

    def _lost(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"{self._kind} are lost: their handler {reason}")


class EventLog:
    """An observer of the agent that logs torch's events."""

    until = None

    def __init__(
        self,
        handler: logging.Handler,
        name: str,
        settings: LaunchSettings,
        backend: str,
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        self._events = Events(settings, backend, clock)
        self._logger = _logger(name, handler)
        self._handler = handler
        self._outlet = _Outlet[Event](lambda event: self._logger.info(event.serialize()), "events", warn)

    def saw(self, news: News) -> None:
        self._outlet.put(self._events.of(news))

    def passed(self, now: float) -> None:
        pass

    def close(self) -> None:
        """Send the last event, and end."""
        self._outlet.put(self._events.last())
        self._outlet.close()
        self._logger.removeHandler(self._handler)


class RendezvousLog:
    """An observer of the agent that logs the events of torch's rendezvous."""

    until = None

    def __init__(self, handler: logging.Handler, settings: LaunchSettings, warn: Callable[[str], None]) -> None:
        self._logger = _logger(RENDEZVOUS, handler)
        self._handler = handler
        self._settings = settings
        self._outlet = _Outlet[str](self._logger.info, "rendezvous events", warn)
        self._rendezvous = Rendezvous(settings.run_id, self._record)

    def saw(self, news: News) -> None:
        self._rendezvous.saw(news)

    def passed(self, now: float) -> None:
        pass

    def close(self) -> None:
        self._outlet.close()
        self._logger.removeHandler(self._handler)

    def _record(self, name: str, message: str, state: str, rank: int | None) -> None:
        event = {
            "name": f"{RENDEZVOUS}.py:{name}",
            "run_id": self._settings.run_id,
            "message": message,
            "hostname": self._settings.address,
            "pid": os.getpid(),
            "node_state": state,
            "master_endpoint": self._settings.store,
            "rank": rank,
            "local_id": 0,
            "error_trace": "",
        }
        self._outlet.put([json.dumps(event)])


class MetricsLog:
    """An observer of the agent that hands on torch's metrics."""

    until = None

    def __init__(
        self, handler: MetricsHandler, settings: LaunchSettings, clock: Clock, warn: Callable[[str], None]
    ) -> None:
        self._metrics = Metrics(settings, clock)
        self._outlet = _Outlet[Metric](handler.emit, "metrics", warn)

    def saw(self, news: News) -> None:
        self._outlet.put(self._metrics.of(news))

    def passed(self, now: float) -> None:
        pass

    def close(self) -> None:
        self._outlet.close()


class ConsoleMetrics:
    """torch's line, on stderr: stdout is the workers'."""

    def emit(self, metric: Metric) -> None:
        sys.stderr.write(printed(f"[{metric.timestamp}][{metric.group_name}]: {metric.name}={metric.value}"))


def _logger(name: str, handler: logging.Handler) -> logging.Logger:
    """Return torch's own logger, which a program may have set up. Raises ValueError for a bad LOGLEVEL."""
    import logging

    level = os.environ.get("LOGLEVEL", "INFO")
    if level not in (levels := logging.getLevelNamesMapping()):
        raise ValueError(f"LOGLEVEL={level}: write one of {', '.join(levels)}")
    logger = logging.getLogger(f"torchelastic-events-{name}")
    logger.setLevel(level)
    logger.propagate = False
    logger.addHandler(handler)
    return logger


# --- by name


def event_handler(name: str) -> logging.Handler | None:
    """Return the handler of events of this name; None for `null`. Raises ValueError if there is none, or it cannot load."""
    import logging

    if name == RENDEZVOUS:
        return rendezvous_handler(name)
    table = _torch_s_table()
    if name == NULL and isinstance(table.get(name), logging.NullHandler | None):
        return None
    if name == CONSOLE:
        return logging.StreamHandler()
    found = table.get(name) or _loaded(_EVENT_HANDLERS, name, sorted({NULL, CONSOLE, RENDEZVOUS, *table}))
    return _checked(found)


def rendezvous_handler(asked: str) -> logging.Handler | None:
    """Return the handler of the rendezvous' events: the one in torch's table, else that of an installed package, if
    --event-log-handler `asked` for it; None if there is none. Raises ValueError as `event_handler` does."""
    import logging

    found: Any = _torch_s_table().get(RENDEZVOUS)
    if isinstance(found, logging.NullHandler | None):
        found = _loaded(_EVENT_HANDLERS, RENDEZVOUS) if asked == RENDEZVOUS else None
    return None if found is None else _checked(found)


def _torch_s_table() -> dict[str, logging.Handler]:
    """Return torch's handlers by name; none if this program has not imported them."""
    return getattr(sys.modules.get(_TORCH_S_TABLE), "_log_handlers", {})


def _checked(found: Any) -> logging.Handler:
    import logging

    if not isinstance(found, logging.Handler):
        raise ValueError(f"its entry point gives a {type(found).__name__}; it must give a logging.Handler")
    return found


def metrics_handler(name: str) -> MetricsHandler | None:
    """Return the handler of metrics of this name; None for `null`. Raises ValueError as `event_handler` does."""
    if name in (NULL, CONSOLE):
        return ConsoleMetrics() if name == CONSOLE else None
    found = _loaded(_METRICS_HANDLERS, name, [NULL, CONSOLE])
    if not callable(getattr(found, "emit", None)):
        raise ValueError(f"its entry point gives a {type(found).__name__}; it must give something with emit(metric)")
    handler: MetricsHandler = found
    return handler


def _loaded(group: str, name: str, others: Sequence[str] = ()) -> Any:
    """Return what the entry point of an installed package gives. Without one: a refusal that names the `others`, or None if
    there are none."""
    from importlib.metadata import entry_points

    installed = entry_points(group=group)
    if name not in installed.names:
        if not others:
            return None
        known = ", ".join([*others, *sorted(installed.names)])
        raise ValueError(f"no handler of that name; write one of {known}, or install one (entry points of {group})")
    try:
        return installed[name].load()()
    except Exception as error:
        raise ValueError(f"it cannot be loaded: {type(error).__name__}: {error}") from error
