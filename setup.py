"""The long description and the URLs of the package, as an index shows them. All else is in pyproject.toml.

An index has no files of the repository, so a link of README.md to one becomes a link to the repository, whose URL stands in
pyproject.toml alone. While that is a placeholder, such a link becomes its text, a section goes that shows pictures or says
where to read on, and there is no URL.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent
CLONE = "pip install '.[torch]'   # in a clone of this repository."
READING = "Where to read on"
LINK = re.compile(r"(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s:]+)\)")


def published(text: str, repository: str, tag: str) -> str:
    """Return README.md without what only a reader in the repository can follow."""
    if not _is_there(repository):
        wheel = f"pip install './elastic_launch-{tag.removeprefix('v')}-py3-none-any.whl[torch]'   # this wheel."
        sections = re.split(r"^(?=## )", text.replace(CLONE, wheel), flags=re.MULTILINE)
        kept = (each for each in sections if "![" not in each and not each.startswith(f"## {READING}\n"))
        return LINK.sub(r"\2", "".join(kept))

    def leads(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        file = f"README.md{target}" if target.startswith("#") else target
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{file})"

    return LINK.sub(leads, text.replace(CLONE, f"pip install 'elastic-launch[torch] @ git+{repository}@{tag}'   #"))


def urls(repository: str, tag: str) -> dict[str, str]:
    """Return the project's URLs; none while there is a placeholder."""
    if not _is_there(repository):
        return {}
    changes = f"{repository}/blob/{tag}/CHANGELOG.md"
    return {"Repository": repository, "Issues": f"{repository}/issues", "Changelog": changes}


def _is_there(repository: str) -> bool:
    return not repository.startswith("https://example.invalid/")


if __name__ == "__main__":
    from setuptools import setup

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    where, tag = settings["tool"]["elastic-launch"]["repository"], f"v{settings['project']['version']}"
    setup(
        script_name="setup.py",  # so this file is no module of the package, whose folder is the root
        long_description=published((ROOT / "README.md").read_text(), where, tag),
        long_description_content_type="text/markdown",
        project_urls=urls(where, tag),
    )
