"""The pictures of README: made by tools/pictures.py, readable by any browser, without a request to any host."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pictures
import pytest

ROOT = Path(__file__).parent.parent
SHOWN = re.findall(r"!\[[^\]]*\]\((\S+\.svg)\)", (ROOT / "README.md").read_text())
SVG = "{http://www.w3.org/2000/svg}"


def test_readme_shows_each_picture_that_the_tool_makes() -> None:
    assert [str((pictures.PICTURES / f"{name}.svg").relative_to(ROOT)) for name in ("demo", "recovery")] == SHOWN


@pytest.mark.parametrize("shown", SHOWN)
def test_a_picture_is_an_svg_that_asks_no_host_for_anything(shown: str) -> None:
    text = (ROOT / shown).read_text()
    assert ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert re.sub(r'xmlns="[^"]*"', "", text).count("://") == 0


def test_of_lines_that_differ_in_their_numbers_two_are_shown() -> None:
    lines = [
        "\x1b[36mnode-a |\x1b[0m rank 0 of 4, pid 11, restart 0",
        "\x1b[35mnode-b |\x1b[0m rank 3 of 4, pid 12, restart 0",
        "node-a | rank 1 of 4, pid 13, restart 0",
        "node-b | rank 2 of 4, pid 14, restart 0",
        "node-b | epoch 1/14  loss 1.0659",
        "node-b | epoch 2/14  loss 0.2178",
        "node-b | epoch 3/14  loss 0.1562",
        "  a worker killed: rank 2      0.1 s           1",
        "  a node killed: node-b        5.1 s           0",
    ]
    assert list(pictures.shortened(lines)) == [*lines[:2], "       | ⋮ 2 more", *lines[4:]]


def test_the_table_of_the_demo_is_shown_whole() -> None:
    lines = [f"  {what:<20}0.1 s" for what in ("a worker killed", "a node killed", "a node started", "all")]
    assert list(pictures.shortened(lines)) == lines
