"""The help of every command fits a terminal of any width; only command lines, and words that are longer, stand over."""

from __future__ import annotations

import pytest

from elastic.cli.main import run
from elastic.cli.root import LATER

COMMANDS = ("launch", *LATER)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_help_fits_the_width(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run([command, "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    examples = [line for line in lines if line.startswith("    ") and "elastic " in line]
    wide = [line for line in lines if len(line) > width and line not in examples and len(line.split()) > 1]
    assert wide == []
    assert examples, "command lines are not wrapped"
    assert "\b" not in "".join(lines)
    broken = [line for line in lines if line.endswith("-") and not line.endswith(" -")]
    assert broken == [], "a name in two parts"


@pytest.mark.parametrize("command", [each for each in LATER if each != "completion"])
def test_the_exit_codes_of_the_other_commands_are_one_sentence(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run([command, "--help"]) == 0
    _, *codes = " ".join(capfd.readouterr().out.partition("Exit codes: ")[2].split()).split("·")
    told = [code.split()[0] for code in codes]
    assert told == sorted(set(told), key=lambda code: int(code.removesuffix("+n")))


def test_each_exit_code_begins_a_line_however_the_others_are_wrapped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    run(["launch", "--help"])
    told = capfd.readouterr().out.partition("Exit codes")[2].splitlines()[1:]
    indent = len(told[0]) - len(told[0].lstrip())
    assert [line.split()[0] for line in told if line[indent] != " "] == ["0", "1", "2", "3", "4", "5", "6", "128+n"]
