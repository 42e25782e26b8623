"""The long description and the URLs of the package, as an index shows them. All else is in pyproject.toml.

An index has no files of the repository, so a link of README.md to one becomes a link to the repository, whose URL stands in
pyproject.toml alone. While that is a placeholder, such a link becomes its text, a picture goes, and there is no URL.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent
LINK = re.compile(r"(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s:]+)\)")


def published(text: str, repository: str, tag: str) -> str:
    """Return a page without links that only the repository's own files can follow."""

    def leads(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if repository.startswith("https://example.invalid/"):
            return "" if picture else words
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return LINK.sub(leads, text)


def urls(repository: str, tag: str) -> dict[str, str]:
    """Return the project's URLs; none while there is a placeholder."""
    if repository.startswith("https://example.invalid/"):
        return {}
    changes = f"{repository}/blob/{tag}/CHANGELOG.md"
    return {"Repository": repository, "Issues": f"{repository}/issues", "Changelog": changes}


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
