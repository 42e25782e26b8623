"""What the documents name is there: pages and headings that are linked, files, options of every command, make's targets."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import click
import pytest
from commandlines import settings

from elastic.cli.root import root

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "examples", "benchmarks", "tests", "tools")
PAGES = [
    *sorted(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),
    *sorted(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")),
]
PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
OURS = re.compile(r"(?:core|adapters|cli|tests|property_tests|benchmarks|docs|examples|tools)/[\w./-]+")
COMMAND = re.compile(r"\belastic (goodput|launch|replay|simulate|status|store|what-if)\b([^\n`|]*)")

ENDS = ("-m", "...", "#")
"""What ends the options of a command, beside a script."""
VARIABLE = re.compile(r"\bELASTIC_[A-Z_]+[A-Z]\b")


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead(page: Path, link: str) -> bool:
    target, _, heading = link.partition("#")
    file = (page.parent / target) if target else page
    if not file.exists():
        return True
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE) if heading else ()
    return bool(heading) and heading not in map(anchor, headings)


@PAGE
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if dead(page, link)] == []


def is_there(name: str) -> bool:
    """A file or a folder, a module, or a pattern that something matches."""
    path = name.rstrip("./")
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists() or any(ROOT.glob(path))


@PAGE
def test_every_file_of_ours_that_is_named_exists(page: Path) -> None:
    named = {name for code in CODE.findall(page.read_text()) for name in OURS.findall(code)}
    assert sorted(name for name in named if not is_there(name)) == []


def options(command: str) -> set[str]:
    found = root.get_command(click.Context(root), command)
    assert found is not None
    names = {name for param in found.params for name in param.opts if isinstance(param, click.Option)}
    return {*names, "--help"}


def shown(text: str, command: str) -> set[str]:
    """The options that stand between a command and its script, or to the end of the line."""
    lines = [rest for name, rest in COMMAND.findall(text.replace("\\\n", " ")) if name == command]
    words = [takewhile(lambda word: not word.endswith(".py") and word not in ENDS, line.split()) for line in lines]
    return {name for line in words for word in line for name in re.findall(r"^--[a-z][a-z-]*", word)}


@PAGE
@pytest.mark.parametrize(
    "command", ["cancel", "drain", "goodput", "launch", "replay", "simulate", "stacks", "status", "store", "what-if"]
)
def test_no_page_shows_a_command_with_an_option_that_it_does_not_have(page: Path, command: str) -> None:
    assert shown(page.read_text(), command) <= options(command)


@PAGE
def test_every_target_of_make_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    named = {*re.findall(r"`make ([a-z-]+)", text), *re.findall(r"^    make ([a-z-]+)", text, re.MULTILINE)}
    assert named <= targets


@PAGE
def test_every_name_of_ours_that_a_page_imports_exists(page: Path) -> None:
    found = re.findall(r"^\s*from (elastic[\w.]*) import (.+)$", page.read_text(), re.MULTILINE)
    asked = [(module, name.strip()) for module, names in found for name in names.split(",")]
    assert [each for each in asked if not hasattr(import_module(each[0]), each[1])] == []


SOURCES = [
    file for folder in ("adapters", "cli", "core", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")
]


@pytest.fixture(scope="module")
def variables() -> set[str]:
    texts = [(ROOT / "Makefile").read_text(), *(file.read_text() for file in SOURCES)]
    return {name for text in texts for name in VARIABLE.findall(text)}


@PAGE
def test_every_variable_of_ours_that_is_named_is_read_somewhere(page: Path, variables: set[str]) -> None:
    assert set(VARIABLE.findall(page.read_text())) <= variables


def test_the_programs_of_the_simulator_s_manual_run(capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "simulate.md").read_text(), re.DOTALL)
    assert len(programs) == 5
    names: dict[str, object] = {}
    for program in programs:
        exec(program, names)
    assert capsys.readouterr().err == ""


SRUN = """\
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for node in 0 1; do SLURM_NODEID=$node "$@"; done
"""
ELASTIC = """\
#!/bin/bash
echo "$SLURM_NODEID $@" >> said
"""


@pytest.mark.parametrize("page", ["launch.md", "migrate.md", "operate.md"])
def test_each_job_of_slurm_gives_its_nodes_one_meeting_place_and_an_order(page: str, tmp_path: Path) -> None:
    """The scripts run as they stand, with an srun that starts the command for two nodes in turn."""
    blocks = re.findall(r"(?:^    .*\n)+", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    jobs = [dedent(block) for block in blocks if "srun" in block]
    assert jobs
    for name, text in (("srun", SRUN), ("elastic", ELASTIC)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    told = {"SLURM_JOB_ID": "77", "SLURM_NNODES": "2", "SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "gpu-[01-02]"}
    for job in jobs:
        (tmp_path / "said").unlink(missing_ok=True)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_NODEID": "0", **told}
        subprocess.run(["bash", "-c", job], env=environment, cwd=tmp_path, capture_output=True, check=False)
        said = [line.split() for line in (tmp_path / "said").read_text().splitlines() if " launch " in line]
        words = [[each.replace("=gpu", "=1") for each in words if each != "launch"] for _, *words in said]
        made = [settings({**told, "SLURM_NODEID": node}, *each) for (node, *_), each in zip(said, words, strict=True)]
        assert [each.place for each in made] == [(0, 0), (1, 0)]
        assert {each.run_id for each in made} == {"77.0"}
        assert len({each.store for each in made}) == 1 and made[0].store != "in memory"


def test_what_is_not_there_is_found() -> None:
    page = ROOT / "README.md"
    assert not dead(page, "docs/launch.md#several-nodes")
    assert all(dead(page, link) for link in ("docs/lunch.md", "docs/launch.md#no-such-heading", "#no-such-heading"))
    assert is_there("core/rendezvous/") and is_there("core/sim/calls/laws.py")
    assert not is_there("core/rendezvous/nothing.py")
    text = (
        "    elastic launch --nodes=2 --tee=3 \\\n      --rdzv=x train.py --epochs=3\n    elastic store --endpoint=a\n"
    )
    assert shown(text, "launch") - options("launch") == {"--nodes", "--rdzv"}
    assert shown(text, "store") == {"--endpoint"}
