"""What can be executed, and how it is said of what cannot."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elastic.adapters.workers.start import programs
from elastic.adapters.workers.start.programs import (
    check_descriptors,
    check_module,
    check_program,
    check_script,
    find_setpriv,
    ignoring,
)
from elastic.adapters.workers.worker_port import CannotStart


def put(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def refusal(name: str, path: str | None = None, binfmt: Path = Path("/nowhere")) -> str:
    with pytest.raises(CannotStart) as caught:
        check_program(name, path, binfmt)
    return str(caught.value)


def test_binaries_and_scripts_can_be_executed(tmp_path: Path) -> None:
    for name in (
        "/bin/sh",
        "sh",
        put(tmp_path / "a", b"#!/bin/sh\n"),
        put(tmp_path / "b", b"#! \t/usr/bin/env python3\n"),
    ):
        check_program(name, os.environ["PATH"])


def test_without_a_path_in_the_environment_the_systems_own_is_searched() -> None:
    check_program("sh", None)


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    assert refusal("/no/such") == "/no/such: no such file"
    assert refusal("./no-such") == f"./no-such: no such file in {os.getcwd()}"
    assert refusal("no-such", str(tmp_path)) == "no-such: not found in PATH"
    assert refusal("") == "'': a program's name is empty"


def test_what_does_not_exist_in_a_working_directory_that_was_removed_is_named(gone: None) -> None:
    assert refusal("./no-such") == "./no-such: no such file: this working directory was removed"


def test_a_link_to_nothing_is_told_from_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    assert refusal(f"{tmp_path}/link") == f"{tmp_path}/link: no such file or directory"


def test_a_file_of_the_working_directory_is_not_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "train.sh", b"#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    assert refusal("train.sh", "/bin") == "train.sh: not found in PATH; it is in this directory: write ./train.sh"
    check_program("./train.sh", "/bin")
    check_program("train.sh", "/bin:")  # an empty entry is the working directory


def test_what_is_not_executable_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = put(tmp_path / "train.sh", b"#!/bin/sh\n", 0o644)
    assert refusal(path) == f"{path}: not executable: chmod +x {path}"
    assert refusal("train.sh", str(tmp_path)) == f"train.sh: not executable: chmod +x {path}"


def test_the_search_goes_on_behind_a_file_that_is_not_executable(tmp_path: Path) -> None:
    put(tmp_path / "sh", b"", 0o644)
    check_program("sh", f"{tmp_path}:/bin")


def test_neither_a_directory_nor_a_device_is_a_program(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)) == f"{tmp_path}: a directory, not a program"
    assert refusal("/dev/null") == "/dev/null: not a regular file"


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "a", b"#!/opt/no/python -u\n")
    assert refusal(path) == f"{path}: its interpreter /opt/no/python (first line) does not exist"
    path = put(tmp_path / "b", b"#!\n")
    assert refusal(path) == f"{path}: its first line '#!' names no interpreter"
    path = put(tmp_path / "c", b"#!/bin/sh\r\n")
    assert refusal(path) == f"{path}: its first line ends as on Windows (\\r\\n): dos2unix {path}"
    interpreter = put(tmp_path / "interpreter", b"", 0o644)
    path = put(tmp_path / "d", b"#!" + interpreter.encode())
    assert refusal(path) == f"{path}: its interpreter {interpreter} (first line) is not executable"


def test_a_format_that_nobody_knows_is_refused_unless_the_kernel_has_handlers(tmp_path: Path) -> None:
    text = put(tmp_path / "train.py", b"import torch\n")
    reason = "neither a binary nor a script: its first line must name the interpreter, like #!/bin/sh"
    assert refusal(text) == f"{text}: {reason}"
    empty = put(tmp_path / "empty", b"")
    assert refusal(empty) == f"{empty}: an empty file"
    (binfmt := tmp_path / "binfmt").mkdir()
    for name in ("register", "status"):
        (binfmt / name).touch()
    assert refusal(text, binfmt=binfmt) == f"{text}: {reason}"
    (binfmt / "wine").touch()
    check_program(text, binfmt=binfmt)


def test_a_program_that_may_be_executed_but_not_read_is_left_to_the_kernel() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o711)
        path = put(Path(place) / "a", b"", 0o711)
        child = os.fork()
        if child == 0:  # pragma: no cover (root may read everything, so the question is another user's)
            if os.getuid() == 0:
                os.setuid(65534)
            else:
                os.chmod(path, 0o111)
            try:
                check_program(path)
            finally:
                os._exit(1 if sys.exception() else 0)
        assert os.waitpid(child, 0)[1] == 0


def test_a_script_for_python_must_exist_and_no_more(tmp_path: Path) -> None:
    check_script(str(tmp_path))
    check_script(put(tmp_path / "a.py", b"", 0o600))
    with pytest.raises(CannotStart, match=r"no\.py: no such file in /"):
        check_script("no.py")
    with pytest.raises(CannotStart, match=r"^/no\.py: no such file$"):
        check_script("/no.py")


def lacks(name: str, folder: Path) -> str:
    """Return why `python -m name` cannot run, with this folder in PYTHONPATH; empty if it may."""
    try:
        check_module(name, {**os.environ, "PYTHONPATH": str(folder)})
    except CannotStart as reason:
        return str(reason).replace(os.getcwd(), "HERE")
    return ""


@pytest.mark.parametrize(
    "name",
    [
        "json.tool",
        "this",
        "zipfile",
        "mine",
        "mine.deep",
        "mine.deep.est",
        "spread.one",
        "spread.deep.one",
        "odd.where",
    ],
)
def test_a_module_that_python_would_run_is_not_held_up(name: str, tmp_path: Path) -> None:
    for folder in ("mine", "mine/deep", "spread", "spread/deep", "odd", "elsewhere"):
        (tmp_path / folder).mkdir()
    for file in (
        "mine/__init__",
        "mine/__main__",
        "mine/deep/__init__",
        "mine/deep/__main__",
        "mine/deep/est",
        "spread/one",
        "spread/deep/one",
    ):
        (tmp_path / f"{file}.py").touch()
    (tmp_path / "elsewhere" / "where.py").touch()
    (tmp_path / "odd" / "__init__.py").write_text(f"__path__.append({str(tmp_path / 'elsewhere')!r})")
    assert lacks(name, tmp_path) == ""


def test_a_module_that_is_not_there_is_named_before_any_worker_runs(tmp_path: Path) -> None:
    (tmp_path / "spread" / "deep").mkdir(parents=True)
    for name in ("no", "no.such.module", "spread.nothing", "spread.deep.nothing.at.all"):
        assert lacks(name, tmp_path) == f"{name}: no such module in HERE, and none is installed"
    no_main = "a package without a __main__ module, so it cannot be executed"
    assert lacks("spread", tmp_path) == f"spread: {no_main}"
    assert lacks("spread.deep", tmp_path) == f"spread.deep: {no_main}"


@pytest.mark.parametrize("name", ["", ".", "..train", "spread..one", "__main__.one"])
def test_a_name_that_no_module_can_have_is_left_to_the_worker_and_ends_no_agent(name: str, tmp_path: Path) -> None:
    (tmp_path / "spread").mkdir()
    assert lacks(name, tmp_path) in ("", f"{name}: no such module in HERE, and none is installed")


@pytest.mark.parametrize(
    "name", ["package", "package.nothing", "package.nothing.at.all", "single.nothing", "json.nothing"]
)
def test_what_only_an_import_of_a_package_can_tell_is_left_to_the_worker(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for path in (tmp_path / "package" / "__init__.py", tmp_path / "single.py"):
        path.write_text("import pathlib; pathlib.Path(__file__ + '.imported').touch()")
    assert lacks(name, tmp_path) == ""
    assert not list(tmp_path.rglob("*.imported"))


FINDER = """
import sys
from importlib.util import spec_from_file_location
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, {file!r}) if name == "editable" else None
sys.meta_path.append(Finder)
"""


@pytest.mark.parametrize("is_the_agent_s", [True, False])
def test_a_package_that_a_finder_of_its_own_finds_is_not_imported_before_the_worker_does(
    is_the_agent_s: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package := tmp_path / "elsewhere" / "source").mkdir(parents=True)
    (package / "__init__.py").write_text("import pathlib; pathlib.Path(__file__ + '.imported').touch()")
    (package / "train.py").touch()
    finder = FINDER.format(file=str(package / "__init__.py"))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    if is_the_agent_s:
        exec(finder, {})
        monkeypatch.setattr(programs, "_MISSING", "raise SystemExit(3)")  # so nobody else is asked
    else:
        (tmp_path / "sitecustomize.py").write_text(finder)
    assert lacks("editable.train", tmp_path) == ""
    assert not list(tmp_path.rglob("*.imported"))


def test_a_python_that_takes_long_to_start_holds_up_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(programs, "_ASKED_S", 0.5)
    assert lacks("no", tmp_path) == ""


def test_a_missing_setpriv_is_said_with_the_package_it_is_part_of(tmp_path: Path) -> None:
    assert os.access(find_setpriv(), os.X_OK)
    with pytest.raises(CannotStart, match="util-linux"):
        find_setpriv(str(tmp_path))


def test_a_program_ignores_a_signal_that_is_for_the_agent_until_it_handles_it() -> None:
    said = "import signal; print(signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGUSR2))"
    told = subprocess.run(
        ignoring(signal.SIGUSR1, (sys.executable, "-c", said)), capture_output=True, text=True, check=True
    ).stdout
    assert told == f"{signal.Handlers.SIG_IGN} {signal.Handlers.SIG_DFL}\n"
    for signum, command in ((None, ("a", "b")), (signal.SIGUSR1, ("/x=y/python",))):
        assert ignoring(signum, command) == command  # the second would be a variable to env


def test_where_env_is_too_old_a_program_is_executed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "env", b"#!/bin/sh\nexit 125\n")
    for number, path in (
        (signal.SIGRTMIN, tmp_path),
        (signal.SIGRTMAX, tmp_path / "none"),
    ):  # asked once for each signal
        monkeypatch.setenv("PATH", str(path))
        assert ignoring(number, ("a",)) == ("a",)


def test_a_shortage_of_the_whole_host_is_nothing_that_the_program_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(number: int) -> Callable[[int], int]:
        def eventfd(value: int) -> int:
            raise OSError(number, os.strerror(number))

        return eventfd

    monkeypatch.setattr(os, "eventfd", refuses(errno.ENFILE))
    check_descriptors(3)
    monkeypatch.setattr(os, "eventfd", refuses(errno.EMFILE))
    with pytest.raises(CannotStart, match="the workers take 3 more, 0 are left"):
        check_descriptors(3)
