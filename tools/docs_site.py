"""The documentation site: the pages of docs/ and of the root, in the reader's order -> build/site.

    python tools/docs_site.py [--serve]

Pages link to each other, and to files of the repository, as on a code host. A site has no files of the repository, so such a
link becomes the file's name. Zensical builds the site strictly: a dead link, a page outside the order and a name that the
API reference does not find are errors (exit code 1).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
SOURCE = BUILD / "site-source"
CONFIGURATION = tomllib.loads((ROOT / "tools/docs_site.toml").read_text())
LINK = re.compile(r"(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s:]+)\)")
BESIDE = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "benchmarks/RESULTS.md",
)
"""The pages outside docs/ that are part of the site."""


def main(serves: bool) -> int:
    """Gather the pages and build the site, or serve it and follow nothing. Return the exit code."""
    pages = {page: page.relative_to(ROOT / "docs") for page in sorted((ROOT / "docs").rglob("*.md"))}
    pages |= {ROOT / name: Path(Path(name).name) for name in BESIDE}
    if lost := sorted(set(map(str, pages.values())) - set(_ordered(CONFIGURATION["project"]["nav"]))):
        print(f"tools/docs_site.toml: nav has no place for {', '.join(lost)}", file=sys.stderr)
        return 1
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE, ignore=shutil.ignore_patterns("*.md", "*.toml"))
    for page, name in pages.items():
        (SOURCE / name).parent.mkdir(exist_ok=True)
        (SOURCE / name).write_text(LINK.sub(lambda link, page=page: _leads(link, page, pages), page.read_text()))  # type: ignore[misc]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    package = next(BUILD.glob(f"__editable__*-{version}-*"))  # the package alone, as it is installed
    (BUILD / "site.toml").write_text((ROOT / "tools/docs_site.toml").read_text().replace("PACKAGE", package.name))
    command = ["serve"] if serves else ["build", "--clean", "--strict"]
    program = Path(sys.executable).with_name("zensical")
    return subprocess.run([program, *command, "--config-file", BUILD / "site.toml"], cwd=BUILD, check=False).returncode


def _ordered(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for where in entry.values():
            yield from [where] if isinstance(where, str) else _ordered(where)


def _leads(link: re.Match[str], page: Path, pages: dict[Path, Path]) -> str:
    """Return a link of the site, or the text alone where the site has nothing of that name."""
    picture, text, target = link.groups()
    name, _, heading = target.partition("#")
    if not name:
        return link[0]
    file = (page.parent / name).resolve()
    if file in pages:
        where = os.path.relpath(pages[file], pages[page].parent)
    elif file.is_relative_to(ROOT / "docs") and file.suffix not in (".md", ".toml"):
        where = os.path.relpath(file.relative_to(ROOT / "docs"), pages[page].parent)
    else:
        return text
    return f"{picture}[{text}]({where}{'#' + heading if heading else ''})"


if __name__ == "__main__":
    sys.exit(main("--serve" in sys.argv[1:]))
