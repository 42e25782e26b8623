"""Make the pictures of README.md from real runs of the program: `make pictures`.

    python tools/pictures.py [demo] [recovery]

`demo` runs the demo (examples/digits/demo.py) on a terminal of its own, and draws what stood on it. `recovery` runs a job of
three nodes with `--trace`, kills a worker and then a node, brings the node back, and has `elastic replay` draw the traces.
Nothing is edited afterwards, but for two rules of the demo's screen: of lines that differ in their numbers alone the first
two are shown, and a line that is wider than the terminal is cut.
"""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
ELASTIC = (sys.executable, "-m", "elastic")
LIMIT_S = 60.0
"""A step of the recovery that takes longer than this hangs."""


# --- the demo's screen

COLUMNS = 124
SHOWN = 2
"""Of lines in a row that differ in their numbers alone."""
MARGIN = re.compile(r"^[\w-]+ +\| ")
ESCAPE = re.compile(r"\x1b\[[\d;]*m")
SCREEN = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px
}}
.{unique_id}-title {{ font-family: "DejaVu Sans", Helvetica, Arial, sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""As rich has it, with fonts that need no network."""


def demo(picture: Path) -> None:
    """Run the demo and draw its terminal."""
    recorded = on_a_terminal([sys.executable, "examples/digits/demo.py"])
    lines = recorded.replace("\r", "").strip("\n").split("\n")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    text = Text.from_ansi("\n".join(shortened(lines)))
    console.print(text, no_wrap=True, overflow="ellipsis")
    svg = console.export_svg(title="make demo", theme=SVG_EXPORT_THEME, code_format=SCREEN, unique_id="demo")
    picture.write_text(svg.rstrip() + "\n")


def on_a_terminal(command: list[str]) -> str:
    """Run the command on a pseudo-terminal, pass on what it prints, and return all of it. Exit if it fails."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave) as process:
        os.close(slave)
        recorded = b"".join(read(master))
    os.close(master)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return recorded.decode()


def read(master: int) -> Iterator[bytes]:
    """Yield what comes over the terminal until its last writer has closed it, which Linux says by EIO."""
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError as error:
            if error.errno == errno.EIO:
                return
            raise
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        yield chunk


def shortened(lines: list[str]) -> Iterator[str]:
    """Yield the lines, and one line in place of those behind the second that differ in their numbers alone."""
    for _, alike in groupby(lines, key=shape):
        found = list(alike)
        left_out = len(found) - SHOWN
        yield from found if left_out < 2 else found[:SHOWN]
        if left_out >= 2:
            yield f"       | ⋮ {left_out} more"


def shape(line: str) -> str:
    """Return the line without colours and margin, with 0 for each number."""
    return re.sub(r"[\d.]+", "0", MARGIN.sub("", ESCAPE.sub("", line)))


# --- one recovery

NODES = ("gpu-01", "gpu-02", "gpu-03")
HOST, HIT, LOST = NODES
"""HOST serves the store; a worker of HIT is killed, then LOST as a whole."""
WORKER = 'echo $$ >"$PIDS/$ELASTIC_NODE_ID.$LOCAL_RANK.$ELASTIC_ROUND"; until [ -e "$PIDS/over" ]; do sleep 0.02; done'
SOME_TIME_S = 1.5
"""How long each world runs before the next thing happens, so that it can be seen in the picture."""


def recovery(picture: Path) -> None:
    """Run the job, and have its traces drawn."""
    with tempfile.TemporaryDirectory(prefix="elastic_pictures_") as directory, socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("localhost", 0))  # keeps the port from others until the store is served there
        job = Job(Path(directory), holder.getsockname()[1])
        try:
            job.play()
        finally:
            job.stop()
        traces = sorted(job.traces.glob("*.ndjson"))
        subprocess.run([*ELASTIC, "replay", *map(str, traces), f"--picture={picture}"], cwd=ROOT, check=True)


class Job:
    """Three agents on this machine, and the files in which their workers say that they run."""

    def __init__(self, directory: Path, port: int) -> None:
        self.pids, self.traces = directory / "pids", directory / "traces"
        self.pids.mkdir()
        self.port = port
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def play(self) -> None:
        for node in NODES:
            self.start(node)
            self.is_traced(node)  # one after the other, since lanes have this order
        self.runs(0, NODES)
        os.kill(self.pid(HIT, 0), signal.SIGKILL)
        self.runs(1, NODES)
        self.agents[LOST].kill()
        self.agents[LOST].wait()
        self.runs(2, NODES[:2])
        self.start(LOST)
        self.runs(3, NODES)
        (self.pids / "over").touch()
        codes = [agent.wait(LIMIT_S) for agent in self.agents.values()]
        if any(codes):
            sys.exit(f"the agents ended with {codes}")

    def start(self, node: str) -> None:
        command = [*ELASTIC, "launch", "--nnodes=2:3", "--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=job7"]
        command += [f"--rdzv-endpoint=localhost:{self.port}", f"--rdzv-conf=is_host={str(node == HOST).lower()}"]
        command += [f"--node-id={node}", f"--trace={self.traces}/", "--no-python", "sh", "-c"]
        command += [WORKER.replace("$", "$$")]  # the launcher reads $$ as a dollar
        self.agents[node] = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PIDS": str(self.pids)})

    def is_traced(self, node: str) -> None:
        wait_until(f"{node} writes its trace", lambda: any(self.traces.glob(f"{node}_*")))

    def runs(self, round: int, nodes: tuple[str, ...]) -> None:
        """Wait until all workers of these nodes run in this round, and for some time more."""
        files = [self.pids / f"{node}.{local_rank}.{round}" for node in nodes for local_rank in (0, 1)]
        wait_until(f"round {round} runs", lambda: all(file.exists() and file.read_text() for file in files))
        time.sleep(SOME_TIME_S)

    def pid(self, node: str, round: int) -> int:
        return int((self.pids / f"{node}.0.{round}").read_text())

    def stop(self) -> None:
        """End the agents that still run; their workers end with them."""
        for agent in self.agents.values():
            if agent.poll() is None:
                agent.kill()
            agent.wait()


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"not within {LIMIT_S:.0f} s: {what}")
        time.sleep(0.01)


def main(names: list[str]) -> None:
    makers = {"demo": demo, "recovery": recovery}
    if unknown := [name for name in names if name not in makers]:
        sys.exit(f"no such picture: {', '.join(unknown)}; there are {', '.join(makers)}")
    PICTURES.mkdir(exist_ok=True)
    for name in names or makers:
        picture = PICTURES / f"{name}.svg"
        makers[name](picture)
        print(f"\n{picture.relative_to(ROOT)} made", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
