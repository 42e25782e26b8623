"""What is in the tree is what gets installed, and importing `elastic` costs nothing.

The package is the repository root, so setuptools is told each folder by name; a folder that is forgotten there works in
no installation. The editable install is a tree of links, which knows a new file only once it is made again.
"""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml
from click import Context

import elastic
from elastic.cli.root import root

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = ("core", "adapters", "api", "cli", "inprocess")


def package_files(root: Path) -> list[Path]:
    """The package's Python files, relative to the root."""
    files = [*root.glob("__*.py"), *(file for room in ROOMS for file in (root / room).rglob("*.py"))]
    return sorted(file.relative_to(root) for file in files)


def folders(files: Iterable[Path]) -> list[str]:
    """The packages that hold the files, named as Python imports them."""
    return sorted({".".join(("elastic", *file.parent.parts)) for file in files})


def test_every_folder_with_python_files_is_named_in_pyproject_and_no_other() -> None:
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == folders(package_files(ROOT))


def test_a_new_folder_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "core" / "new" / "deep").mkdir(parents=True)
    (tmp_path / "core" / "new" / "deep" / "__init__.py").touch()
    assert folders(package_files(tmp_path)) == ["elastic.core.new.deep"]


def test_every_package_folder_has_an_init() -> None:
    missing = {str(file.parent) for file in package_files(ROOT) if not (ROOT / file.parent / "__init__.py").exists()}
    assert missing == set()


def test_the_root_holds_only_the_package_s_own_files() -> None:
    assert {file.name for file in ROOT.glob("*.py")} <= {"__init__.py", "__main__.py", "setup.py"}
    assert not (Path(elastic.__file__).parent / "setup.py").exists()


def test_the_installed_package_has_every_file_of_the_tree() -> None:
    installed = package_files(Path(elastic.__file__).parent)
    assert installed == package_files(ROOT), "files came or went since the install: run `make setup`"


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["elastic"]


def test_every_example_is_in_the_package_where_its_command_says() -> None:
    said = subprocess.run([sys.executable, "-m", "elastic.examples"], capture_output=True, text=True, check=True).stdout
    shipped = {str(file.relative_to(said.strip())) for file in Path(said.strip()).rglob("*.*") if file.suffix != ".pyc"}
    files = {str(file.relative_to(ROOT / "examples")) for file in (ROOT / "examples").rglob("*.*")}
    assert shipped == {file for file in files if not file.endswith(".pyc")}
    assert {"alerts.yml", "node_check/host.py", "kubernetes/job.yaml", "kubernetes/README.md"} <= shipped


PLACEHOLDER = "https://example.invalid/elastic-launch"
"""The project's URL in pyproject.toml, until its owner writes the real one there. Nothing is published with this one."""
SETUP = runpy.run_path(str(ROOT / "setup.py"))
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


def test_the_long_description_has_absolute_links_to_files_that_exist_and_no_others() -> None:
    page = (ROOT / "README.md").read_text()
    links = LINK.findall(SETUP["published"](page, "https://host/us/it", "v1"))
    assert len(links) == len(LINK.findall(page)) > 10
    folders = {"": "https://host/us/it/blob/v1/", "!": "https://host/us/it/raw/v1/"}
    ours = [(folders[picture], link) for picture, link in links if link.startswith("https://host")]
    assert [link for folder, link in ours if not link.startswith(folder)] == []
    files = [link.removeprefix(folder).partition("#")[0] for folder, link in ours]
    assert [file for file in files if not file or not (ROOT / file).exists()] == []
    heading = SETUP["published"]("[below](#status)", "https://host/us/it", "v1")
    assert heading == "[below](https://host/us/it/blob/v1/README.md#status)"
    assert all(link.startswith("https://") for _, link in links)


def test_while_the_project_s_url_is_a_placeholder_the_package_has_no_url_and_no_link_to_a_file() -> None:
    page = SETUP["published"](
        "# A\n\n[`x`](docs/x.md#y), [torch](https://pytorch.org)\n\n## B\n\nThis is it.\n\n![B](docs/a.svg)\n\n## C\n",
        PLACEHOLDER,
        "v1",
    )
    assert page == "# A\n\n`x`, [torch](https://pytorch.org)\n\n## C\n"
    told = metadata("elastic-launch")
    there = PROJECT["tool"]["elastic-launch"]["repository"]
    assert told.get_all("Project-URL", []) == [
        f"{name}, {url}" for name, url in SETUP["urls"](there, f"v{told['Version']}").items()
    ]
    assert there == PLACEHOLDER or there.startswith("https://")
    assert all(link.startswith("https://") for _, link in LINK.findall(told["Description"]))


def test_the_long_description_says_how_to_install_what_its_reader_has_and_sends_nobody_to_files_of_a_clone() -> None:
    page, clone = (ROOT / "README.md").read_text(), SETUP["CLONE"]
    assert clone in page and f"\n## {SETUP['READING']}\n" in page
    wheel, index = (SETUP["published"](page, where, "v1.2") for where in (PLACEHOLDER, "https://host/us/it"))
    assert "pip install './elastic_launch-1.2-py3-none-any.whl[torch]'" in wheel
    assert "pip install 'elastic-launch[torch] @ git+https://host/us/it@v1.2'" in index
    assert clone not in wheel + index
    assert SETUP["READING"] not in wheel and "demo's screen" not in wheel


def texts(root: Path) -> Iterable[str]:
    """The texts in the code of the package and the examples, docstrings too."""
    for file in (*(root / path for path in package_files(root)), *(root / "examples").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_no_message_tells_to_install_a_name_of_an_index_only_extras_that_exist() -> None:
    """Whoever owns a name on an index decides what is installed by it: this project promises its own extras alone."""
    said = list(texts(ROOT))
    assert [text for text in said if re.search(r"\b(pip|conda|uv) (install|add)\b", text)] == []
    remedies = [text for text in said if re.search(r"\binstall elastic(?! in a directory)", text)]
    name = re.escape(PROJECT["project"]["name"])
    found = [re.search(rf"install {name} as before, with \[(\w+)\] behind it", text) for text in remedies]
    assert None not in found, "elastic is not the package's name on an index"
    extras = Counter(remedy[1] for remedy in found if remedy)
    assert extras == {"etcd": 1, "gpu": 3, "metrics": 2, "otel": 1, "torch": 1}
    assert extras.keys() <= PROJECT["project"]["optional-dependencies"].keys()


PAGE = re.compile(r"\bdocs/|\w\.md\b|\b(?:README|CHANGELOG|ARCHITECTURE)\b")
"""A page of the repository, which a wheel does not have."""


def test_no_message_names_a_page_that_is_not_in_the_wheel() -> None:
    named = []
    for path in package_files(ROOT):
        tree = ast.parse((ROOT / path).read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        said = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
        named += [(path, text.value) for text in said if isinstance(text.value, str) and PAGE.search(text.value)]
    assert named == []


@pytest.mark.parametrize("command", ["", *root.list_commands(Context(root))])
def test_no_help_names_a_page_that_is_not_in_the_wheel(command: str) -> None:
    shown = root.get_command(Context(root), command) if command else root
    assert shown and PAGE.findall(shown.get_help(Context(shown))) == []


def test_the_license_and_the_citation_are_those_of_the_package() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = PROJECT["project"]
    assert cited["license"] == project["license"]
    assert "BSD 3-Clause" in (ROOT / project["license-files"][0]).read_text()


def test_importing_elastic_loads_nothing_but_its_own_root() -> None:
    program = (
        "import __future__, sys; before = set(sys.modules); import elastic; print(sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "['elastic']\n"


def test_the_command_loads_nothing_for_a_store_before_it_has_one() -> None:
    """Each takes some 20 ms, which a launch on one node would pay for nothing."""
    dear = {"torch", "grpc", "rich", "prometheus_client", "opentelemetry", "multiprocessing"}
    program = f"import sys, elastic.cli.root; print(sorted({dear} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("command", ["status", "stacks", "drain", "cancel"])
def test_a_command_that_asks_a_job_loads_no_attrs(command: str) -> None:
    """It takes a tenth of what `elastic status` takes."""
    program = (
        f"import sys, elastic.cli.main, elastic.cli.{command}; print('attr' in sys.modules, 'attrs' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False False\n"


def test_an_agent_loads_no_machine_of_the_core_that_it_may_not_need() -> None:
    program = (
        "import sys, elastic.cli.launch, elastic.adapters.agent.agent; from elastic import core; "
        "print([name for name in ('inprocess', 'policies') if f'elastic.core.{name}' in sys.modules]); "
        "print(core.inprocess.__name__, core.policies.__name__, hasattr(core, 'sim'))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["[]", "elastic.core.inprocess elastic.core.policies False"]


def pins(file: str = "constraints.txt") -> dict[str, str]:
    lines = (ROOT / file).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_torch_is_pinned_alike_for_pip_and_for_the_resolver_while_the_package_leaves_it_open() -> None:
    assert f"TORCH := torch=={pins()['torch']}\n" in (ROOT / "Makefile").read_text()
    assert not any("==" in need for need in PROJECT["project"]["optional-dependencies"]["torch"])


EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]


@pytest.mark.parametrize("needs", [PROJECT["project"]["dependencies"], *EXTRAS.values(), *GROUPS.values()])
def test_everything_the_package_needs_is_pinned(needs: list[str]) -> None:
    names = {need.split(">=")[0].split("[")[0] for need in needs}
    assert names - pins().keys() == set()


def test_what_only_tests_need_is_in_no_extra_and_pip_is_new_enough_for_groups() -> None:
    assert GROUPS.keys() == {"dev", "frameworks"} and not GROUPS.keys() & EXTRAS.keys()
    assert tuple(map(int, pins()["pip"].split("."))) >= (25, 1)


def would_make(target: str, pinned: str) -> set[str]:
    """The stamps of environments that make would look for, with packages of this hash."""
    said = subprocess.run(
        ["make", "--dry-run", target, f"PINNED={pinned}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return set(re.findall(r"\.venvs/\S+/made-\w+", said))


@pytest.mark.parametrize("target", ["pythons", "frameworks"])
def test_an_environment_with_the_package_in_it_is_made_anew_with_another_version_or_pin(target: str) -> None:
    assert len(would_make(target, "one")) == len(would_make(target, "two")) == 1
    assert would_make(target, "one") != would_make(target, "two")


def test_all_that_make_installs_for_the_integrations_is_pinned() -> None:
    given = re.search(r"^INTEGRATIONS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert given and set(given[1].split()) <= {name.replace("_", "-") for name in pins("tools/integrations.txt")}
    tools = ROOT / ".venvs/integrations"
    if not any(tools.glob("made-*")):
        pytest.skip("no TorchX: write make integration-tools")
    freeze = [sys.executable, "-m", "pip", "--python", str(tools / "bin/python"), "freeze"]
    there = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    assert dict(line.split("==") for line in there.splitlines()) == pins("tools/integrations.txt")
