"""What standbys import: read from files, and nothing of it is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from elastic.adapters.launch_settings import Function, Kind, Program
from elastic.adapters.workers.start.script_imports import Imports, imports_of, named


def of_script(folder: Path, text: str, **modules: str) -> Imports:
    (folder / "train.py").write_text(text)
    return of(folder, Program(Kind.SCRIPT, str(folder / "train.py")), **modules)


def of(folder: Path, program: Program | Function, path: Sequence[str] = (), **modules: str) -> Imports:
    """The imports of a program beside these modules; `alpha`, `beta` and `gamma` are installed."""
    for name, module in modules.items():
        file = folder / f"{name.replace('__', '/', 1)}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(module)
    return imports_of(program, [*path, *installed(folder)])


def installed(folder: Path) -> list[str]:
    """Where they are found."""
    packages = folder / "lib" / "site-packages"
    (packages / "beta" / "deep").mkdir(parents=True, exist_ok=True)
    for each in ("alpha.py", "gamma.py", "beta/__init__.py", "beta/deep/__init__.py"):
        (packages / each).write_text("raise AssertionError('nothing is run')")
    return [str(packages), *sys.path[1:]]


def early(found: Imports) -> list[str]:
    return [each.statement for each in found.early]


def late(found: Imports) -> dict[str, str]:
    return {each.module: each.why for each in found.late}


def test_installed_modules_are_imported_in_the_order_and_the_words_of_the_script(tmp_path: Path) -> None:
    text = '"""Trains."""\nfrom __future__ import annotations\nimport alpha, json\nfrom beta.deep import (\n    x, y as z)\n'
    found = of_script(tmp_path, text)
    assert early(found) == ["import alpha", "import json", "from beta.deep import x, y as z"]
    assert [(each.module, each.importer, each.line) for each in found.early] == [
        ("alpha", "__main__", 3),
        ("json", "__main__", 3),
        ("beta.deep", "__main__", 4),
    ]
    assert found.late == ()


def test_the_user_s_own_modules_are_read_in_their_place_and_left_to_the_workers(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        "import mine.inner\nfrom mine import other\nimport gamma\n",
        mine____init__="import json\n",
        mine__inner="from . import other\nimport alpha\nX = alpha.f()\nimport string\n",
        mine__other="import beta\n",
    )
    assert early(found) == ["import json", "import beta", "import alpha", "import gamma"]
    assert set(late(found)) == {"mine.inner", "mine", "string"}
    assert late(found)["mine"] == "your own: may read RANK"
    assert late(found)["string"].endswith("inner.py:3 runs first: X = alpha.f()")


def test_a_module_of_the_user_s_hides_an_installed_one(tmp_path: Path) -> None:
    found = of_script(tmp_path, "import alpha\nimport json\n", alpha="", json="")
    assert early(found) == [] and set(late(found)) == {"alpha", "json"}


def test_what_is_found_nowhere_is_left_to_the_workers(tmp_path: Path) -> None:
    assert late(of_script(tmp_path, "import nowhere.at_all\n")) == {"nowhere.at_all": "not found"}


@pytest.mark.parametrize(
    "block",
    [
        "try:\n    import beta\nexcept ImportError:\n    beta = None\n",
        "if TYPE_CHECKING:\n    import beta\n",
        "if X:\n    pass\nelse:\n    from beta import deep\n",
        "class A:\n    import beta\n",
    ],
)
def test_conditional_imports_are_left_out_and_reading_goes_on(tmp_path: Path, block: str) -> None:
    found = of_script(tmp_path, f"import alpha\n{block}import gamma\n")
    assert early(found) == ["import alpha", "import gamma"]
    assert late(found) == {"beta": "conditional"}


@pytest.mark.parametrize(
    "harmless",
    [
        "def f(x: int = 5) -> int:\n    import beta\n    return g(x)\n",
        "X: dict = {'a': [1, 2]}\n",
        "Y = os.environ['RANK'] + 'x'\n",
        "class A(alpha.Base):\n    x = 1\n    def f(self):\n        os.environ['A'] = f()\n",
        "__all__ = ['a']\n",
    ],
)
def test_a_statement_that_calls_nothing_stops_nothing(tmp_path: Path, harmless: str) -> None:
    assert early(of_script(tmp_path, f"import alpha\n{harmless}import gamma\n")) == ["import alpha", "import gamma"]


@pytest.mark.parametrize(
    "does",
    [
        "os.environ['A'] = 'b'\n",
        "alpha.use('x')\n",
        "with alpha.context:\n    pass\n",
        "@alpha.register\ndef f(): pass\n",
        "class A(alpha.Base):\n    x = alpha.field()\n",
        "alpha.x = 5\n",
        "if (x := 5):\n    pass\n",
        "X = [f() for f in y]\n",
        "del alpha\n",
    ],
)
def test_reading_ends_where_the_script_does_something(tmp_path: Path, does: str) -> None:
    found = of_script(tmp_path, f"import alpha\n{does}import gamma\nfrom mine import x\n", mine="import beta\n")
    assert early(found) == ["import alpha"]
    assert " runs first: " in late(found)["gamma"] and "mine" in late(found)


@pytest.mark.parametrize(
    "changes",
    [
        "os.environ['A'] = 'b'\n",
        "os.environ.setdefault('A', 'b')\n",
        "del environ['A']\n",
        "os.environ |= {}\n",
        "sys.path.insert(0, 'x')\n",
        "sys.path = []\n",
        "sys.modules['x'] = None\n",
        "warnings.simplefilter('ignore')\n",
        "if X:\n    os.putenv('A', 'b')\n",
        "class A:\n    os.environ.update(A='b')\n",
    ],
)
def test_reading_ends_for_all_where_a_module_changes_what_all_share(tmp_path: Path, changes: str) -> None:
    found = of_script(tmp_path, "import mine\nimport gamma\n", mine=f"import alpha\n{changes}import beta\n")
    assert early(found) == ["import alpha"]
    assert "mine.py:2 runs first: " in late(found)["gamma"]


def test_a_function_that_would_change_it_ends_nothing(tmp_path: Path) -> None:
    found = of_script(tmp_path, "import mine\nimport gamma\n", mine="def f(x=1):\n    os.environ['A'] = 'b'\n")
    assert early(found) == ["import gamma"]


def test_a_module_is_found_in_the_current_directory_and_its_packages_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Program(Kind.MODULE, "mine.train")
    found = of(tmp_path, program, mine____init__="import json\n", mine__train="import alpha\nfrom .x import y\n")
    assert early(found) == ["import json", "import alpha"]


def test_a_package_runs_its_main_and_an_installed_one_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = of(
        tmp_path, Program(Kind.MODULE, "mine"), mine____init__="", mine____main__="from . import x\nimport alpha\n"
    )
    assert early(found) == ["import alpha"]
    packages = tmp_path / "lib" / "site-packages"
    (packages / "beta" / "deep" / "__main__.py").write_text("import gamma\n")
    again = imports_of(Program(Kind.MODULE, "beta.deep"), [str(packages)])
    assert early(again) == ["import beta", "import beta.deep", "import gamma"]


def test_a_folder_runs_its_main(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    found = of(tmp_path, Program(Kind.SCRIPT, str(folder)), app____main__="import mine\n", app__mine="import alpha\n")
    assert early(found) == ["import alpha"]


def test_run_path_finds_modules_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import mine\n")
    assert early(of(tmp_path, Program(Kind.PATH, "train.py"), mine="import alpha\n")) == ["import alpha"]


def of_function(folder: Path, monkeypatch: pytest.MonkeyPatch, main: str, module: str, **modules: str) -> Imports:
    """The imports of a worker that calls a function of `module`, launched by this main module."""
    launches = ModuleType("__main__")
    launches.__file__ = str(folder / "launches.py")
    (folder / "launches.py").write_text(main)
    monkeypatch.setitem(sys.modules, "__main__", launches)
    return of(folder, Function("train", "/nowhere", sys.executable, module), path=(str(folder),), **modules)


def test_a_function_s_worker_imports_the_main_module_but_nothing_that_only_the_launcher_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = "import alpha\nif __name__ == '__main__':\n    import json\n    launch()\nimport gamma\n"
    found = of_function(tmp_path, monkeypatch, main, "__main__")
    assert [(each.statement, each.importer) for each in found.early] == [
        ("import alpha", "__mp_main__"),
        ("import gamma", "__mp_main__"),
    ]
    assert found.late == ()


def test_a_function_s_own_module_is_read_after_the_main_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_function(tmp_path, monkeypatch, "import mine\nimport json\n", "mine", mine="import alpha\n")
    assert early(found) == ["import alpha", "import json"]
    monkeypatch.delattr("__main__.__file__")
    again = imports_of(Function("train", "/nowhere", sys.executable, "mine"), [str(tmp_path), *sys.path[1:]])
    assert late(again) == {"mine": "your own: may read RANK", "alpha": "not found"}


def test_what_a_main_module_does_may_change_what_the_function_s_module_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = of_function(tmp_path, monkeypatch, "import json\nset_up()\n", "mine", mine="import alpha\n")
    assert early(found) == ["import json"]


def test_a_main_module_of_a_package_knows_its_neighbours_and_a_package_s_own_main_is_none_of_a_worker_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "model.py").write_text("import alpha\n")
    (tmp_path / "pack" / "__init__.py").touch()
    for name, statements in (("pack.launches", ["import alpha"]), ("pack.__main__", [])):
        launches = ModuleType("__main__")
        launches.__file__, launches.__spec__ = str(tmp_path / "pack" / "launches.py"), ModuleSpec(name, None)
        (tmp_path / "pack" / "launches.py").write_text("from .model import x\n")
        monkeypatch.setitem(sys.modules, "__main__", launches)
        found = imports_of(Function("f", "/nowhere", sys.executable), [str(tmp_path), *installed(tmp_path)])
        assert early(found) == statements


@pytest.mark.parametrize("text", ["import (", "\0", ""])
def test_a_script_that_cannot_be_read_has_no_imports(tmp_path: Path, text: str) -> None:
    assert of_script(tmp_path, text) == Imports()
    assert imports_of(Program(Kind.SCRIPT, str(tmp_path / "none.py")), []) == Imports()
    assert imports_of(Program(Kind.BINARY, "ls"), []) == Imports()


def test_modules_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    found = of_script(tmp_path, "import one\n", one="import two\nimport alpha\n", two="import one\nimport beta\n")
    assert early(found) == ["import beta", "import alpha"]


def test_modules_may_be_named_instead() -> None:
    assert early(named(("torch", "a.b"))) == ["import torch", "import a.b"]


def test_a_module_is_found_from_a_working_directory_that_was_removed(tmp_path: Path, gone: None) -> None:
    assert [each.module for each in of(tmp_path, Program(Kind.MODULE, "beta.deep")).early] == ["beta", "beta.deep"]


def test_a_script_that_can_be_read_once_is_left_to_the_worker(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"import alpha")
    os.close(writer)
    assert of(tmp_path, Program(Kind.SCRIPT, f"/proc/self/fd/{reader}")) == Imports()
    assert os.read(reader, 100) == b"import alpha"
    os.close(reader)
