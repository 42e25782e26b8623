"""What the tab key completes, in the shells themselves, each on a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from launches import ELASTIC, TIMEOUT_S

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.connection import MemoryConnection
from elastic.adapters.store.relay.relay_server import OwnJob, Relay
from elastic.cli.completion import SHELLS
from elastic.cli.main import run

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOADS = {
    "bash": "source <(elastic completion bash)",
    "zsh": "bindkey -e; autoload -U compinit; compinit -u -D; source <(elastic completion zsh)",
    "fish": "elastic completion fish | source",
}


class Terminal:
    """A shell on a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = ""

    def types(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def shows(self, text: str) -> str:
        """Wait until the terminal has shown this since it was asked last; return what it showed."""
        ends_at = time.monotonic() + TIMEOUT_S
        while text not in self.shown:
            assert time.monotonic() < ends_at, f"{text!r} was not shown, but {self.shown!r}"
            if select.select([self._descriptor], [], [], 0.5)[0]:
                self.shown += os.read(self._descriptor, 65_536).decode(errors="replace")
        shown, self.shown = self.shown, ""
        return shown

    def completes(self, begun: str, whole: str) -> None:
        """Type a line and the tab key; then have the shell print the line."""
        self.types(f"{begun}\t\x01echo +\x05\n")
        self.shows(f"\n+{whole}")


@contextmanager
def terminal(shell: str, folder: Path) -> Iterator[Terminal]:
    child, descriptor = pty.fork()
    if not child:
        path = f"{Path(ELASTIC).parent}:{os.environ['PATH']}"
        os.chdir(folder)
        kept = {
            "HOME": str(folder),
            "PATH": path,
            "TERM": "dumb",
            "TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
            "PS1": "$ ",
        }
        os.execvpe(START[shell][0], START[shell], kept)
    try:
        made = Terminal(descriptor)
        made.types(f"{LOADS[shell]}; echo rea''dy\n")
        made.shows("ready")
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(descriptor)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tab_key_completes_commands_options_values_and_names_of_files(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    (tmp_path / "training.py").touch()
    (tmp_path / "folder").mkdir()
    with terminal(shell, tmp_path) as shown:
        shown.completes("elastic stac", "elastic stacks")
        shown.completes("elastic launch --max-rest", "elastic launch --max-restarts")
        shown.completes("elastic launch --status=pl", "elastic launch --status=plain")
        shown.completes("elastic launch --status pl", "elastic launch --status plain")
        shown.completes("elastic launch --standby trai", "elastic launch --standby training.py")
        shown.completes("elastic launch training.py --data fol", "elastic launch training.py --data folder")
        shown.completes("elastic launch --report=trai", "elastic launch --report=training.py")
        shown.completes("elastic launch --log-dir fol", "elastic launch --log-dir folder")


def offers(capfd: pytest.CaptureFixture[str], *words: str, shell: str = "zsh") -> list[tuple[str, str]]:
    assert run(["completion", shell, "--", *words]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return [(kind, value) for kind, value, _ in (line.split("\t") for line in out.splitlines())]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("la",), ["launch"]),
        (("launch", "--rdzv-c"), ["--rdzv-conf"]),
        (("launch", "--rdzv_c"), ["--rdzv_conf"]),
        (("launch", "--nproc-per-node="), ["auto", "cpu", "gpu", "xpu"]),
        (("launch", "--start-method", "fork"), ["fork", "forkserver"]),
        (("launch", "--standby=e"), ["each"]),
        (("launch", "--max-restarts="), []),
        (("nothing", "--x"), []),
        (("--nproc-per-node=2", "x"), []),
        (("launch", "--rdzv", "x"), []),
        (("completion", "f"), ["fish"]),
    ],
)
def test_words_are_offered(words: tuple[str, ...], offered: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert offers(capfd, *words) == [("plain", each) for each in offered]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("launch", ""), "file"),
        (("launch", "--standby", "x.py", "--rdzv-c"), "file"),
        (("launch", "--log-dir", "a"), "dir"),
        (("launch", "--log-dir=a"), "dir"),
        (("launch", "--trace="), "file"),
        (("replay", "--picture", "a"), "file"),
        (("replay", "a", "b"), "file"),
        (("goodput", "a", "b"), "file"),
        (("goodput", "--picture", "a"), "file"),
        (("what-if", "a"), "file"),
    ],
)
def test_names_of_files_are_left_to_the_shell(
    words: tuple[str, ...], kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ((found, _),) = offers(capfd, *words)
    assert found == kind


def test_bash_s_words_are_joined_as_they_were_typed(capfd: pytest.CaptureFixture[str]) -> None:
    assert offers(capfd, "launch", "--status", "=", "pl", shell="bash") == [("plain", "plain")]
    assert len(offers(capfd, "launch", "--status", "=", shell="bash")) == 4
    given = ("launch", "--rdzv-endpoint", "=", "gpu-01", ":", "29400", "--status", "=", "o")
    assert offers(capfd, *given, shell="bash") == [("plain", "off")]


def test_the_names_of_this_host_s_jobs_are_offered_and_printed_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = MemoryConnection(SystemClock())
    for run_id in ("train42", "tr\x1b[2J\n"):
        served = Relay(made.beside, own=OwnJob(run_id, made.place, made.for_others))
        try:
            for command in ("status", "stacks", "cancel"):
                assert offers(capfd, command, "--rdzv-id=tr") == [
                    ("plain", run_id.replace("\x1b", "\\x1b").replace("\n", "\\n"))
                ]
            assert offers(capfd, "launch", "--rdzv-id=tr") == []
        finally:
            served.close()


def test_the_script_is_printed_whole(capfd: pytest.CaptureFixture[str]) -> None:
    for shell, script in SHELLS.items():
        assert run(["completion", shell]) == 0
        assert capfd.readouterr().out == f"{script}\n"
    assert run(["completion", "csh"]) == 2
    assert "csh: write bash, zsh or fish" in capfd.readouterr().err
    assert subprocess.run(["bash", "-n", "-c", SHELLS["bash"]], check=False).returncode == 0
