"""Text for a terminal: whatever a worker, another node or a file says in it, the terminal shows it and obeys nothing.

`printed` is the edge. Every line that this program writes for people goes through it, whoever wrote the words in the line.
The output of the workers themselves is passed on as it is.
"""

from __future__ import annotations


def why(error: OSError) -> str:
    """Return the system's reason, as it stands in the middle of a line."""
    return (error.strerror or str(error)).lower()


def no_text(error: UnicodeDecodeError) -> str:
    """Return what is wrong with a file that was read as text."""
    return f"is no text: its byte {error.start + 1:,} (0x{error.object[error.start]:02x}) is not UTF-8"


def printable(line: str) -> str:
    """Return the line with its control characters, line breaks and changes of the direction of writing spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def printed(*lines: str) -> str:
    """Return the text of these lines. Each stays one line."""
    return "".join(f"{printable(line)}\n" for line in lines)
