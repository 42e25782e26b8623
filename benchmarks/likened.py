"""What two launchers leave behind, made comparable: by aspect, without what differs from run to run (ports, random ids)."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

RANDOM = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-f])([0-9a-f]{16}|[0-9a-f]{32})(?![0-9a-f])|(?<=/)[0-9a-f]{8}$"
)
WORKERS = re.compile(r"err of \d|words without")
"""Lines of stderr that a worker has written."""
KINDS = (
    ("report", r"Root Cause \(first observed failure\)|first cause"),
    ("usage", r"^usage: "),
    ("traceback", r"^Traceback"),
    ("one line", r"\Aelastic: [^\n]*\Z"),
    ("status", r"^(\S+ )?elastic  "),
    ("warning", r"\*\*\*\*|WARNING|W\d{4} "),
    ("other words", r"\S"),
)

Seen = Mapping[str, str]
"""What is seen, by aspect: `exit`, `stdout`, `env RANK`, `file …`."""
Alike = Callable[[str], str]


@frozen
class End:
    """How one agent ended, and what it and its workers wrote."""

    code: str
    out: str
    err: str


def seen(ends: Sequence[End], folder: Path, env: Mapping[str, str], port: str) -> Seen:
    """`folder` has what the workers told, the logs and TMPDIR; `env` is what the launcher was given."""

    def alike(text: str) -> str:
        return _alike(text, folder, port)

    errors = [line for end in ends for line in end.err.splitlines() if WORKERS.search(line)]
    return {
        "exit": " ".join(sorted(end.code for end in ends)),
        "stdout": alike("\n".join(sorted(line for end in ends for line in end.out.splitlines()))),
        "workers' stderr": alike("\n".join(sorted(errors))),
        "launcher's words": " + ".join(sorted({_kind(end.err) for end in ends})),
        "events": alike("\n".join(sorted({each for end in ends for each in _events(end.err)}))),
        "in TMPDIR": alike(" ".join(sorted(each.name for each in (folder / "tmp").glob("torchelastic_*")))),
        **_files(folder / "logs", alike),
        **dict(_workers(folder, env, alike)),
    }


def _events(err: str) -> Iterator[str]:
    """The name of each event that was written as JSON, whose it is, and its fields."""
    for line in err.splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            yield f"{event['source']} {event['name']} {' '.join(sorted({**event, **event['metadata']}))}"


def told(folder: Path) -> list[Path]:
    """What each worker told, by rank and start."""
    return sorted((folder / "told").glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])


def _kind(err: str) -> str:
    """What sort of text the launcher itself has written."""
    own = "\n".join(line for line in err.splitlines() if not WORKERS.search(line))
    return next((kind for kind, pattern in KINDS if re.search(pattern, own, re.MULTILINE)), "nothing")


def _files(logs: Path, alike: Alike) -> Mapping[str, str]:
    """Of the log directory; of those that several agents call alike, all."""
    found: dict[str, list[str]] = {}
    for path in sorted(logs.rglob("*")):
        name = f"file {alike(str(path.relative_to(logs)))}{'/' if path.is_dir() else ''}"
        found.setdefault(name, []).append("" if path.is_dir() else _content(path, alike))
    return {name: "\n".join(sorted(contents)) for name, contents in found.items()}


def _content(path: Path, alike: Alike) -> str:
    """Of a JSON file the keys, of others the lines in order."""
    text = path.read_text(errors="replace")
    return " ".join(sorted(json.loads(text))) if path.suffix == ".json" else alike("\n".join(sorted(text.splitlines())))


def _workers(folder: Path, env: Mapping[str, str], alike: Alike) -> Iterator[tuple[str, str]]:
    """Arguments, and what the launcher has set or changed in the environment."""
    all_told = {path.stem: json.loads(path.read_text()) for path in told(folder)}
    environments = {stem: each["environment"] for stem, each in all_told.items()}
    yield "workers", " ".join(all_told)
    yield "arguments", _one([alike(" ".join(each["arguments"])) for each in all_told.values()])
    yield "ports", _ports({stem: each.get("MASTER_PORT", "") for stem, each in environments.items()})
    changed = {name for each in environments.values() for name, text in each.items() if env.get(name) != text}
    for name in sorted(changed - {"MASTER_PORT"}):
        yield f"env {name}", _one([alike(each.get(name, "(unset)")) for each in environments.values()])


def _ports(of: Mapping[str, str]) -> str:
    """Whether the workers of one start agree, and those of the next have another."""
    starts = sorted({stem.partition(".")[2] for stem in of})
    by_start = [{port for stem, port in of.items() if stem.partition(".")[2] == start} for start in starts]
    agreed = "one per start" if all(len(ports) == 1 for ports in by_start) else "several per start"
    fresh = len(set[str]().union(*by_start)) == sum(map(len, by_start))
    return f"{agreed}, {'new in each' if fresh else 'used again'}"


def _one(texts: Sequence[str]) -> str:
    """All of them, or the one that they all are."""
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def _alike(text: str, folder: Path, port: str) -> str:
    text = text.replace(str(folder), "FOLDER")
    for name, instead in {socket.getfqdn(): "HOST", socket.gethostname(): "HOST", port: "PORT"}.items():
        text = text if name == "localhost" else re.sub(rf"\b{re.escape(name)}\b", instead, text)
    text = re.sub(r"torchelastic_[a-z0-9_]{8}", "torchelastic_RANDOM", text)
    text = RANDOM.sub("RANDOM", text)
    return re.sub(r"((?:^|/)[^/\s]+)_[a-z0-9_]{8}(?=/|$|\s)", r"\1_RANDOM", text, flags=re.MULTILINE)
