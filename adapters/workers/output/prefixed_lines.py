"""A worker's output as lines of a console: each behind the worker's prefix, none longer than LINE_MAX."""

from __future__ import annotations

LINE_MAX = 65_536
"""Longest piece of a line on the console, in bytes."""


def cut(data: bytes, prefix: bytes) -> tuple[bytes, bytes]:
    """Return the whole lines of `data`, each behind the prefix, and the rest, shorter than LINE_MAX.

    A carriage return at the very end is left in the rest: a newline may follow that belongs to it. Without any, and
    without a line that is too long, replacing the newlines is ten times as fast as going through the lines.
    """
    end = data.rfind(b"\n")
    if end != -1 and b"\r" not in data and data.index(b"\n") <= LINE_MAX and len(data) - end <= LINE_MAX:
        return prefix + data[:end].replace(b"\n", b"\n" + prefix) + b"\n", data[end + 1 :]
    lines = data.splitlines(keepends=True)
    rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
    text = b"".join(_line(line, prefix) for line in lines)
    whole = len(rest) - len(rest) % LINE_MAX
    return text + _pieces(rest[:whole], prefix), rest[whole:]


def showable(rest: bytes) -> bytes:
    """Return what of an unfinished line may be shown: neither a carriage return at its end nor half a character of UTF-8."""
    text = rest.rstrip(b"\r")
    for back in range(1, min(len(text), 3) + 1):
        byte = text[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character, or the only one
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return text[:-back] if length > back else text
    return text


def last(rest: bytes, prefix: bytes) -> bytes:
    """The rest at the end of a stream, as a line."""
    return _line(rest, prefix) if rest else b""


def _line(line: bytes, prefix: bytes) -> bytes:
    text = line.rstrip(b"\r\n")
    if line == b"\r":
        return b""  # the start of a progress bar, not an empty line
    return _pieces(text, prefix) if text else prefix + b"\n"


def _pieces(text: bytes, prefix: bytes) -> bytes:
    starts = range(0, len(text), LINE_MAX)
    return b"".join(b"%b%b\n" % (prefix, text[start : start + LINE_MAX]) for start in starts)


def matching(data: bytes, needles: tuple[bytes, ...], prefix: bytes) -> bytes:
    """The lines that contain one of the needles, each behind the prefix."""
    if not any(needle in data for needle in needles):
        return b""
    found = (line for line in data.splitlines(keepends=True) if any(needle in line for needle in needles))
    return b"".join(_line(line, prefix) for line in found)
