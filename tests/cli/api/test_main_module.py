"""A launch of what workers cannot find in the program's main module: one sentence before anything starts, or it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

HEAD = """
import os, elastic
from contextlib import nullcontext
method, trace = os.environ["METHOD"], os.environ["TRACE"]
settings = elastic.LaunchSettings(nproc_per_node=1, status="off", start_method=method, trace=trace)
"""
RANK = "def rank(*given):\n    return int(os.environ['RANK'])\n"
GUARD = "if __name__ == '__main__':\n"
LAUNCH = "print(elastic.launch(settings)(rank))\n"
INNER = "".join(f"    {line}\n" for line in (RANK + LAUNCH).splitlines())
IN_THREAD = f"""
    thread = threading.Thread(target=lambda: {LAUNCH.strip()})
    thread.start()
    thread.join()
"""
MAIN = f"def main():\n    {LAUNCH}"
INNER_RANK = "".join(f"    {line}\n" for line in RANK.splitlines())
PROFILED = """
    profile = cProfile.Profile()
    profile.run("main()")
"""
AUTOMAIN = """
def automain(function):
    if function.__module__ == "__main__":
        function()
    return function
"""
EXPECTED = "try:\n    main()\nexcept (AssertionError, KeyError):\n    pass\n"
OUTER = "try:\n    begin()\nexcept KeyError:\n    pass\n"
CHANGED = """
def change():
    with open(__file__) as file:
        text = file.read()
    with open(__file__, "w") as file:
        file.write("str()\\n" * 99 + text)
    os.utime(__file__, (2**31, 2**31))
"""
CANNOT = "workers cannot import the program's main module"


def python(
    folder: Path, *words: str | Path, given: str | None = None, method: str = "spawn"
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "METHOD": method, "TRACE": str(folder / "trace"), "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *words], input=given, capture_output=True, text=True, check=False, env=environment, timeout=180
    )


def script(folder: Path, *parts: str) -> Path:
    path = folder / "program.py"
    path.write_text("".join((HEAD, *parts)))
    return path


def is_refused(folder: Path, done: subprocess.CompletedProcess[str], said: str) -> None:
    assert done.returncode == 1 and not done.stdout
    *_, last = done.stderr.splitlines()
    assert last.startswith("ValueError: ") and said in last, done.stderr
    assert done.stderr.count("\nValueError: ") == 1
    assert not (folder / "trace").exists(), "nothing was started"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_a_console_or_a_notebook_defines_is_refused_with_the_remedy(method: str, tmp_path: Path) -> None:
    text = HEAD + RANK + LAUNCH
    for words, given in ((("-c", text), None), (("-",), text)):
        is_refused(tmp_path, python(tmp_path, *words, given=given, method=method), f"rank: {CANNOT}")
    arguments = dedent("""
        import math
        class Odd:
            pass
        elastic.launch(settings)(math.copysign, Odd(), 1)
    """)
    is_refused(tmp_path, python(tmp_path, "-c", HEAD + arguments, method=method), f"Odd: {CANNOT}")


def test_a_console_can_launch_by_fork_and_what_is_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\n" + RANK)
    assert python(tmp_path, "-c", HEAD + RANK + LAUNCH, method="fork").stdout == "{0: 0}\n"
    done = python(tmp_path, "-", given=f"{HEAD}from mine import rank\n{LAUNCH}")
    assert done.stdout == "{0: 0}\n", done.stderr


def test_what_a_package_s_main_module_defines_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__main__.py").write_text(HEAD + RANK + GUARD + f"    {LAUNCH}")
    is_refused(tmp_path, python(tmp_path, "-m", "package"), f"rank: {CANNOT}")
    (package / "module.py").write_text(HEAD + RANK + GUARD + f"    {LAUNCH}")
    done = python(tmp_path, "-m", "package.module")
    assert done.stdout == "{0: 0}\n", done.stderr


@pytest.mark.parametrize(
    "parts",
    [
        (GUARD, INNER),
        ("if '__main__' == __name__:\n", INNER),
        (RANK, GUARD, "    class Odd: pass\n    elastic.launch(settings)(rank, Odd())\n"),
        (RANK, GUARD, "    with nullcontext():\n        class Odd: pass\n    elastic.launch(settings)(rank, Odd())\n"),
    ],
)
def test_what_is_defined_under_the_main_guard_is_refused(parts: tuple[str, ...], tmp_path: Path) -> None:
    is_refused(
        tmp_path, python(tmp_path, script(tmp_path, *parts)), "is defined under if __name__ == '__main__', which"
    )


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((RANK, LAUNCH), 8),
        ((RANK, LAUNCH.replace("launch", "start")), 8),
        ((RANK, "def main():\n    ", LAUNCH, "main()\n"), 10),
        ((RANK, "with nullcontext():\n    try:\n        ", LAUNCH, "    finally:\n        pass\n"), 10),
        ((RANK, f"def main():\n    return {LAUNCH}", "main()\n"), 10),
        ((RANK, MAIN, "exec('main()')\n"), 10),
        ((RANK, f"def main():\n    def other():\n        return\n    {LAUNCH}    return\n", "main()\n"), 13),
        ((RANK, f"def main():\n    {LAUNCH}", EXPECTED), 11),
        ((RANK, "if not os.environ:\n    raise SystemExit\n", LAUNCH), 10),
        ((RANK, "job = elastic.start(\n    settings\n)(rank)\n"), 8),
        ((RANK, "with elastic.start(settings)(rank) as job:\n    job and job.wait()\n"), 8),
        (("import math\nelastic.launch(settings)(math.copysign, 1, 2)\n",), 7),
    ],
)
def test_a_launch_without_a_main_guard_is_refused(parts: tuple[str, ...], line: int, tmp_path: Path) -> None:
    done = python(tmp_path, script(tmp_path, *parts))
    is_refused(tmp_path, done, f"program.py, line {line}: workers import this program, and would launch again there")


@pytest.mark.parametrize(
    "parts",
    [
        (RANK, GUARD, f"    {LAUNCH}"),
        (RANK, "def main():\n    ", LAUNCH, GUARD, "    main()\n"),
        (RANK, "if 'RANK' not in os.environ:\n    ", LAUNCH),
        (RANK, "match os.environ.get('RANK'):\n    case None:\n        ", LAUNCH),
        (RANK, "import threading\n", GUARD, IN_THREAD),
        (RANK, MAIN, "import cProfile\n", GUARD, PROFILED),
        (RANK, MAIN, "__name__ == '__main__' and main()\n"),
        (RANK, MAIN, "main() if __name__ == '__main__' else None\n"),
        (RANK, MAIN, "print(end=''); __name__ == '__main__' and main()\n"),
        (RANK, MAIN, "[main() for _ in '1' if 'RANK' not in os.environ]\n"),
        (RANK, MAIN, "while 'RANK' not in os.environ:\n    main()\n    break\n"),
        (RANK, MAIN, "for _ in range(int('RANK' not in os.environ)):\n    main()\n"),
        (RANK, MAIN, "try:\n    os.environ['RANK']\nexcept KeyError:\n    main()\n"),
        (RANK, MAIN, "try:\n    {None: 0}[os.environ.get('RANK')]\n    main()\nexcept KeyError:\n    pass\n"),
        (
            RANK,
            MAIN,
            "try:\n    assert 'RANK' not in os.environ\nexcept AssertionError:\n    pass\nelse:\n    main()\n",
        ),
        (RANK, MAIN, "(lambda name: main() if name == '__main__' else None)(__name__)\n"),
        (RANK, f"def main():\n    if 'RANK' not in os.environ:\n        {LAUNCH}", "main()\n"),
        (RANK, f"def main():\n    if __name__ != '__main__':\n        return\n    {LAUNCH}", "main()\n"),
        (RANK, f"def main():\n    if 'RANK' in os.environ:\n        return\n    {LAUNCH}", "main()\n"),
        (
            RANK,
            "def main():\n    with nullcontext():\n        while 'RANK' in os.environ:\n            return\n    ",
            LAUNCH,
            "main()\n",
        ),
        (RANK, f"def main():\n    assert 'RANK' not in os.environ\n    {LAUNCH}", EXPECTED),
        (RANK, f"def main():\n    if 'RANK' in os.environ:\n        raise KeyError\n    {LAUNCH}", EXPECTED),
        (RANK, MAIN, "def begin():\n    os.environ.get('RANK') and {}['worker']\n    main()\n", OUTER),
        (RANK, MAIN, "exec(\"__name__ == '__main__' and main()\")\n"),
        (RANK, AUTOMAIN, "@automain\ndef main():\n    ", LAUNCH),
        (RANK, CHANGED, GUARD, "    change()\n", f"    {LAUNCH}"),
        (GUARD, INNER_RANK, "else:\n", INNER_RANK, GUARD, f"    {LAUNCH}"),
        ("from mine import *\n", GUARD, INNER),
        ("if True:\n    def rank():\n        return int(os.environ['RANK'])\n", GUARD, INNER),
        ("try:\n    from nothing import rank\nexcept ImportError as rank:\n    pass\n", RANK, GUARD, f"    {LAUNCH}"),
    ],
)
def test_a_program_that_workers_can_import_runs(parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\n" + RANK)
    done = python(tmp_path, script(tmp_path, *parts))
    assert (done.returncode, done.stdout) == (0, "{0: 0}\n"), done.stderr


def test_by_fork_a_program_needs_no_main_guard(tmp_path: Path) -> None:
    assert python(tmp_path, script(tmp_path, RANK, LAUNCH), method="fork").stdout == "{0: 0}\n"


def test_a_program_that_has_gone_since_its_start_is_refused(tmp_path: Path) -> None:
    path = script(tmp_path, RANK, "os.unlink(__file__)\n", GUARD, f"    {LAUNCH}")
    is_refused(tmp_path, python(tmp_path, path), f"rank: {CANNOT}")
