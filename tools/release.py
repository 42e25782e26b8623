"""Build the package as it is published, and prove it by jobs that have nothing but the wheel: `make release` -> build/dist.

    .venvs/release/bin/python tools/release.py TORCH_PYTHON TORCH

The sdist is built first, and the wheel from it. `twine check` judges both. Each Python of the classifiers that is here gets
a clean environment with the wheel in it, and runs there: a job of one node, a job of two nodes, and a job that fails, whose
report must say why. One Python (TORCH_PYTHON, that of .venv) gets torch as well; its nodes meet in a store that one of them
serves. The nodes of the others meet in an etcd, since a store needs torch. What is not here is named, and fails nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
TIMEOUT_S = 300.0

JOB = """\
import os
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if WITH_TORCH:
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    total = torch.tensor(rank + 1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    assert total == sum(range(1, size + 1))
print(f"rank {rank} of {size} is done", flush=True)
"""
FAILS = """\
import os
if os.environ["RANK"] == "1":
    raise ValueError("no such column: label")
import time
time.sleep(600)
"""


class Broken(Exception):
    """The package does not do what it must."""


def main(with_torch: str, torch: str) -> int:
    """Build and check, then try on each Python. Return the exit code: 1 if something does not work."""
    try:
        wheel = built()
        tried = [python for python in supported() if on(python, wheel, torch if python == with_torch else None)]
        if not tried:
            raise Broken("none of the supported Pythons is here, so nothing was tried")
    except Broken as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    print(f"elastic {VERSION} works on Python {', '.join(tried)}: {BUILT.relative_to(ROOT)}")
    for hindrance in unready():
        print(f"not to be published: {hindrance}")
    return 0


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of what git knows or would add, to build in: a build leaves files behind."""
    with tempfile.TemporaryDirectory(prefix="elastic-release-") as folder:
        copy = Path(folder)
        for name in run("git", "ls-files", "-co", "--exclude-standard", "--deduplicate").splitlines():
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        yield copy


def built() -> Path:
    """Build sdist and wheel from a copy of what git knows or would add, and have twine check them. Return the wheel."""
    shutil.rmtree(BUILT, ignore_errors=True)
    with copied() as copy:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", BUILT, copy)
    files = sorted(BUILT.iterdir())
    print(run(sys.executable, "-m", "twine", "check", "--strict", *files).strip())
    return next(file for file in files if file.suffix == ".whl")


def supported() -> list[str]:
    """The Pythons that the package's classifiers name."""
    of_python = "Programming Language :: Python :: "
    return [text.removeprefix(of_python) for text in PROJECT["project"]["classifiers"] if text.startswith(of_python)]


def found(version: str) -> Path | None:
    """Return a Python of this version: pyenv's, or the system's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    return next((path for path in (*reversed(kept), Path(f"/usr/bin/python{version}")) if path.exists()), None)


def unready() -> Iterator[str]:
    """Say what stands between this tree and an index."""
    if "example.invalid" in PROJECT["tool"]["elastic-launch"]["repository"]:
        yield "the repository's URL in pyproject.toml is a placeholder"
    if f"## {VERSION}\n" not in (ROOT / "CHANGELOG.md").read_text():
        yield f"CHANGELOG.md has no release {VERSION}"
    if run("git", "-C", ROOT, "status", "--porcelain"):
        yield "there are changes that are not committed"
    elif f"v{VERSION}" not in run("git", "-C", ROOT, "tag", "--points-at", "HEAD").split():
        yield f"the commit has no tag v{VERSION}, to which the links of its description lead"


def on(version: str, wheel: Path, torch: str | None) -> bool:
    """Try the wheel on a Python. Return False where there is none. Raises Broken."""
    python = found(version)
    if python is None:
        print(f"Python {version}: not here, passed over")
        return False
    print(f"Python {version}: {python}, {torch or 'without torch'}", flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elastic-release-")))
        run(python, "-m", "venv", folder / "venv")
        needs = [f"{wheel}[torch]", torch] if torch else [f"{wheel}[etcd]"]
        pip: list[str | Path] = [
            "install",
            "-qq",
            "--disable-pip-version-check",
            "--constraint",
            ROOT / "constraints.txt",
        ]
        run(folder / "venv/bin/pip", *pip, *needs)
        (folder / "job.py").write_text(JOB.replace("WITH_TORCH", str(bool(torch))))
        (folder / "fails.py").write_text(FAILS)
        one_node(folder)
        fails(folder)
        where = meeting(folder, stack) if torch is None else f"localhost:{free_port()}"
        if where is None:
            print("  two nodes: not tried, there is neither torch nor an etcd here")
        else:
            two_nodes(folder, where)
    return True


def one_node(folder: Path) -> None:
    """Run a job of one node, with a check that the package brings."""
    if (said := run(folder / "venv/bin/elastic", "--version", folder=folder)) != f"elastic {VERSION}\n":
        raise Broken(f"`elastic --version` says {said!r}")
    check = "python -m elastic.examples.node_check.host --max-load=1e9"
    job = launched(folder, "--nproc-per-node=2", f"--node-check={check}", "--tee=3", "--log-dir=logs", "job.py")
    ends([job], 0, "rank 1 of 2 is done")
    print("  one node: a job of two workers ended with 0")


def fails(folder: Path) -> None:
    """Run a job that fails. Its report must name the rank and its error."""
    job = launched(folder, "--nproc-per-node=2", "--tee=3", "--log-dir=logs", "fails.py")
    said = ends([job], 1, "ValueError: no such column: label")
    if not re.search(r"first cause .*\brank 1\b", said):
        raise Broken(f"the report does not name rank 1:\n{said}")
    print("  one node: a job that failed ended with 1, and its report said why")


def two_nodes(folder: Path, where: str) -> None:
    """Run a job of two nodes of one worker each."""
    line = ["--nnodes=2", f"--rdzv-endpoint={where}", "--rdzv-id=release", "--tee=3", "--log-dir=logs", "job.py"]
    ends([launched(folder, f"--node-id={node}", *line) for node in "ab"], 0, "rank 1 of 2 is done")
    print(f"  two nodes: a job that met at {where} ended with 0")


def meeting(folder: Path, stack: ExitStack) -> str | None:
    """Start an etcd. Return where it is; None if there is none here."""
    if shutil.which("etcd") is None:
        return None
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = [
        "etcd",
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
    ]
    peers = [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]
    stack.enter_context(running([*command, *peers, "--log-level=error"], folder))
    return client.replace("http://", "etcd://")


Job = subprocess.Popen[str]


def launched(folder: Path, *words: str) -> Job:
    """Start `elastic launch` with nothing of this environment but what an empty machine has."""
    return started([str(folder / "venv/bin/elastic"), "launch", *words], folder)


def started(command: Sequence[str], folder: Path) -> Job:
    clean = {"HOME": str(folder), "PATH": f"{folder}/venv/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(folder)}
    to = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=folder, env=clean, text=True, **to)  # type: ignore[call-overload,no-any-return]


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[None]:
    """Have a program run for as long as the context lasts."""
    process = started(command, folder)
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


def ends(jobs: Sequence[Job], code: int, says: str) -> str:
    """Wait for the launchers of a job. Return what they said. Raises Broken at another exit code or text."""
    try:
        said = [job.communicate(timeout=TIMEOUT_S)[0] for job in jobs]
    except subprocess.TimeoutExpired:
        raise Broken(f"a job did not end within {TIMEOUT_S:g} s") from None
    finally:
        for job in jobs:
            if job.poll() is None:
                job.terminate()
                job.communicate()
    if {job.returncode for job in jobs} != {code} or says not in "".join(said):
        raise Broken(
            f"expected the exit code {code} and {says!r}, got {[job.returncode for job in jobs]}:\n{''.join(said)}"
        )
    return "".join(said)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command. Return its output. Raises Broken with all that it said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
