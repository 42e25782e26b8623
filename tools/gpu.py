"""Run tests/gpu on a machine with one NVIDIA GPU that has torch and pytest, and no network: `make gpu`.

    make gpu-wheels                  here: our wheel, what it needs and nvidia-ml-py -> build/gpu-wheels (GPU_PYTHON=3.12)
    python3 tools/gpu.py             there, in a copy of the tree with that folder: all of it takes 8 minutes at most

The tests run in an environment under build/gpu that has these wheels. torch, pytest and what they need stay where they are:
the environment's path ends with their folders. Without a GPU, torch, pytest, ensurepip or the wheels, a line says so, and
the exit code is 0: nothing was tried, and nothing has failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WHEELS, PLACE = ROOT / "build" / "gpu-wheels", ROOT / "build" / "gpu"
DRIVER = Path("/dev/nvidiactl")
LIMIT_S, END_S = 430.0, 20.0
"""How long the tests may take, and their clean-up after that."""
THEIRS = ("torch", "pytest", "ensurepip")
"""What this Python must have. Without the last it makes no environments: Debian has it in python3-venv."""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
CONFIGURATION = f"""[pytest]
addopts = --import-mode=importlib -ra --durations=0 --durations-min=1 --confcutdir={ROOT}/tests/gpu -p no:cacheprovider
"""


def collect(version: str) -> None:
    """Put the wheels for this Python into WHEELS."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    from release import copied, run  # it is beside this file

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    with copied() as copy:
        run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS, copy)
    (ours,) = WHEELS.glob("elastic_launch-*.whl")
    for_it = ["--only-binary=:all:", f"--python-version={version}", *(f"--platform={each}" for each in PLATFORMS)]
    run(*pip, "download", *for_it, "--dest", WHEELS, f"{ours}[gpu]")
    files = sorted(WHEELS.iterdir())
    size = sum(file.stat().st_size for file in files)
    print(f"{WHEELS.relative_to(ROOT)}: {len(files)} wheels for Python {version}, {size / 1e6:.1f} MB")


def lacking(anyway: bool) -> str | None:
    """Return why nothing can be tried here; None if it can."""
    if not DRIVER.exists() and not anyway:
        return f"no NVIDIA GPU here ({DRIVER} is missing)"
    if missing := [name for name in THEIRS if find_spec(name) is None]:
        return f"{sys.executable} has no {' and no '.join(missing)}; with make write GPU_BY=... for one that has"
    if not any(WHEELS.glob("elastic_launch-*.whl")):
        return f"no wheels in {WHEELS}; collect them with a network: make gpu-wheels"
    return None


def prepared() -> Path:
    """Make the environment. Return its Python."""
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    python = PLACE / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, f"--find-links={WHEELS}", "elastic-launch[gpu]"], check=True)
    (own,) = (PLACE / "lib").glob("python*/site-packages")
    folders = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    (own / "theirs.pth").write_text("".join(f"{folder}\n" for folder in folders))
    (PLACE / "pytest.ini").write_text(CONFIGURATION)
    return python


def tried(python: Path) -> int:
    """Run the tests. Return pytest's exit code."""
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT / "tests")}
    fixture = ("-p", "leftover_processes")  # the tests' own conftest needs more packages
    command: list[str | Path] = [python, "-m", "pytest", "-c", PLACE / "pytest.ini", *fixture, ROOT / "tests" / "gpu"]
    with session(command, env=environment, cwd=ROOT) as process:
        try:
            return process.wait(LIMIT_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            print("interrupted" if isinstance(error, KeyboardInterrupt) else f"stopped after {LIMIT_S:g} s", flush=True)
        process.send_signal(signal.SIGINT)  # the tests end what they have started
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        return 1


@contextmanager
def session(command: Sequence[str | Path], **given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a session of its own. What is left of its process group is killed at the end."""
    with subprocess.Popen(command, start_new_session=True, **given) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    """Collect wheels, or run the tests."""
    parser = argparse.ArgumentParser(description="Run tests/gpu beside a torch that is there.")
    parser.add_argument("--collect", metavar="VERSION", help="collect the wheels for this Python instead")
    parser.add_argument(
        "--anyway", action="store_true", help="also without a GPU, where each test says that it is skipped"
    )
    given = parser.parse_args()
    if given.collect:
        collect(given.collect)
        return 0
    if why := lacking(given.anyway):
        print(f"nothing was tried: {why}")
        return 0
    return tried(prepared())


if __name__ == "__main__":
    sys.exit(main())
