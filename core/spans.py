"""Validators of settings that are spans in seconds: each refuses a value that cannot work, with its name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import Attribute


def span(instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{attribute.name}: a span above 0 seconds, not {value}")


def span_or_zero(instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{attribute.name}: a span of 0 or more seconds, not {value}")


def span_or_never(instance: object, attribute: Attribute[float], value: float) -> None:
    if not value > 0:
        raise ValueError(f"{attribute.name}: a span above 0 seconds, or inf, not {value}")
