"""`--event-log-handler` and `--metrics-handler`: names -> observers of the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..adapters.clock import Clock
from ..adapters.launch_settings import LaunchSettings
from . import etcd, nodes
from .mistakes import Mistake

if TYPE_CHECKING:
    from ..adapters.torch.telemetry import EventLog, MetricsLog

Handler = TypeVar("Handler")


def telemetry(given: Mapping[str, Any], settings: LaunchSettings, clock: Clock) -> list[EventLog | MetricsLog]:
    """Who is told of events and metrics, if anybody is. Raises Mistake."""
    events, metrics = given["event_log_handler"], given["metrics_handler"]
    if (events, metrics) == ("null", "null"):
        return []
    from ..adapters.torch.telemetry import (  # most jobs have neither
        EventLog,
        MetricsLog,
        event_handler,
        metrics_handler,
    )

    events_to = _found("--event-log-handler", event_handler, events)
    metrics_to = _found("--metrics-handler", metrics_handler, metrics)
    logs: list[EventLog | MetricsLog] = []
    if events_to:
        try:
            backend = "etcd" if etcd.is_meant(given) else "static" if nodes.is_static(given) else "c10d"
            logs.append(EventLog(events_to, events, settings, backend, clock))
        except ValueError as reason:
            raise Mistake(str(reason)) from None
    if metrics_to:
        logs.append(MetricsLog(metrics_to, settings, clock))
    return logs


def _found(option: str, look: Callable[[str], Handler], name: str) -> Handler:
    try:
        return look(name)
    except ValueError as reason:
        raise Mistake(f"{option}={name}: {reason}") from None
