"""Holds docs/protocol.md, the specification, to the code: numbers, names, tables and defaults, in both directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from attrs import NOTHING, fields
from law_tables import document, judged, judges, written
from specification import (
    cited,
    defaults,
    moves,
    named,
    names,
    properties,
    section,
    sometimes,
    spelled,
    table,
    texts,
)
from test_documents import anchor

from elastic.core import group, inprocess
from elastic.core.group import state as of_group
from elastic.core.inprocess import monitoring, words
from elastic.core.inprocess.settings import RELATIONS
from elastic.core.properties.law import Law
from elastic.core.rendezvous import Limits, RendezvousState, Settings, Status, actions, handlers
from elastic.core.rendezvous.context import Fact
from elastic.core.sim import recoveries, traffic
from elastic.core.sim import sometimes as of_nodes
from elastic.core.sim.calls import call_sometimes as of_calls
from elastic.core.sim.calls import over_nodes
from elastic.core.sim.calls.call_strength import LAWS as LAWS_OF_CALLS
from elastic.core.sim.calls.node_laws import LAWS as OVER_NODES
from elastic.core.sim.kinds import Kind
from elastic.core.sim.tally import LAWS
from elastic.core.world import Ending, Why

ROOT = Path(__file__).parents[1]
PROTOCOL = ROOT / "docs" / "protocol.md"
DOCUMENT = PROTOCOL.read_text()
FOLDERS = ("core", "adapters", "cli", "tests", "property_tests", "docs", "benchmarks", "examples", "tools")
KINDS = (".py", ".md", ".toml", ".story")
MACHINES = ("core/rendezvous", "core/group", "core/inprocess")


@cache
def everything() -> tuple[Path, ...]:
    """Return all files that may cite, except this test and its readers."""
    found = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*")) if file.suffix in KINDS]
    mine = {Path(__file__).name, "specification.py"}
    return (*(file for file in found if file.name not in mine), *sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("*.py")))


def sources(*folders: str) -> Mapping[str, str]:
    return {str(file): file.read_text() for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))}


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_every_number_that_is_cited_anywhere_is_defined() -> None:
    defined = properties(DOCUMENT)
    undefined = {str(file.relative_to(ROOT)): sorted(cited(texts(file)) - defined.keys()) for file in everything()}
    assert {file: numbers for file, numbers in undefined.items() if numbers} == {}


def test_the_tables_of_properties_are_made_of_the_laws() -> None:
    assert document() == DOCUMENT


def test_a_property_that_is_no_law_of_the_core_is_judged_by_another_or_by_a_test_that_names_it() -> None:
    defined = properties(DOCUMENT)
    others = {number: each.judged_in for number, each in defined.items() if any("/" in name for name in each.judged_in)}
    assert all(number in cited(texts(ROOT / name)) for number, those in others.items() for name in those)
    by_code = judges(sources("core"))
    same = {number for number, each in defined.items() if each.judged_in <= defined.keys()}
    assert by_code.keys() == defined.keys() - others.keys() - same


def test_every_property_is_one_sentence() -> None:
    sentences = {number: each.sentence for number, each in properties(DOCUMENT).items()}
    assert [number for number, text in sentences.items() if not re.fullmatch(r"[A-Z`][^.]*(\.\d[^.]*)*\.", text)] == []


def test_every_place_of_the_document_that_is_cited_is_there() -> None:
    anchors = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", DOCUMENT, re.MULTILINE)}
    cites = {str(file): re.findall(r"protocol\.md(#[\w-]+| §)", file.read_text()) for file in everything()}
    assert {file: found for file, found in cites.items() if not {each[1:] for each in found} <= anchors} == {}


def test_it_is_counted_how_often_each_law_that_the_simulator_judges_is_armed() -> None:
    by_itself = {number for number in properties(DOCUMENT) if number[0] in "SVBRLOGF"} - {"S13", "L1"}
    assert LAWS.keys() == by_itself
    of_calls = {number for number in properties(DOCUMENT) if number[0] in "IC"} - {"I11", "I12"}
    assert LAWS_OF_CALLS.keys() == of_calls
    assert {number for number in properties(DOCUMENT) if number[0] == "N"} == OVER_NODES.keys()


def test_the_bounds_are_those_that_the_simulator_judges_by() -> None:
    """The names of the parts, and which of them each fault needs."""
    assert sorted(named(DOCUMENT, "Bounds", "part")) == sorted(recoveries.PARTS)
    rows = {fault: names(row[1]) for row in table(DOCUMENT, "Bounds", "after") for fault in names(row[0])}
    assert {fault: sorted(parts) for fault, parts in rows.items()} == {
        kind.value: sorted(kind.row.recovery) for kind in Kind if kind is not Kind.PASS
    }


def test_the_traffic_of_a_round_is_that_by_which_the_simulator_judges() -> None:
    rows = {names(row[0])[0]: int(row[1].partition(",")[0]) for row in table(DOCUMENT, "Traffic", "question")}
    assert rows == {kind.__name__: many for kind, many in traffic.OWN.items()}
    assert f"at most {traffic.VERSIONS} versions of one round" in DOCUMENT


# --- names ------------------------------------------------------------------------------------------------------------


def test_every_sometimes_has_a_sentence() -> None:
    assert sorted(sometimes(DOCUMENT, "Sometimes in runs of nodes")) == sorted(of_nodes.SOMETIMES)
    assert sorted(sometimes(DOCUMENT, "Sometimes in runs of calls")) == sorted(of_calls.SOMETIMES)
    assert sorted(sometimes(DOCUMENT, "Sometimes in runs of calls over nodes")) == sorted(over_nodes.SOMETIMES)


def test_every_term_has_one_row() -> None:
    terms = [row[0] for row in table(DOCUMENT, "Glossary", "term")]
    assert sorted(set(terms)) == sorted(terms)


@pytest.mark.parametrize("word", ["wish", "bury", "meeting", "overseer", "oversight", "wakefulness", "standing store"])
def test_a_replaced_word_is_nowhere(word: str) -> None:
    assert re.findall(rf"\b{word}\w*", re.sub(r"`[^`\n]+`", "", DOCUMENT)) == []


def _members(enum: Any) -> list[str]:
    return [each.name for each in enum]


def _union(union: Any) -> list[str]:
    return [each.__name__ for each in get_args(union)]


NAMED = {
    ("The register", "field"): [field.name for field in fields(RendezvousState) if field.init],
    ("The register", "status"): _members(Status),
    ("The register", "verdict"): _members(Ending),
    ("The register", "reason"): _members(Why),
    ("Time and liveness", "fact"): _members(Fact),
    ("The worker group", "event"): _union(of_group.Event),
    ("The worker group", "command"): _union(of_group.Command),
    ("The call inside the process", "event"): _union(words.Event),
    ("The call inside the process", "command"): _union(words.Command),
    ("The call inside the process", "timer"): _members(words.Timer),
    ("The monitor process", "phase"): _members(monitoring.Phase),
}


@pytest.mark.parametrize(("heading", "head"), NAMED, ids=lambda text: text)
def test_a_table_has_a_row_for_each_name_of_the_code(heading: str, head: str) -> None:
    assert sorted(named(DOCUMENT, heading, head)) == sorted(NAMED[heading, head])


@pytest.mark.parametrize(
    ("heading", "machine"), [("The worker group", group), ("The call inside the process", inprocess)]
)
def test_every_phase_has_a_row_and_the_moves_are_those_of_the_table(heading: str, machine: ModuleType) -> None:
    text = section(DOCUMENT, heading)
    phases = next(rows for rows in re.findall(r"^\| phase \| meaning.*\n(?:\|.*\n)+", text, re.MULTILINE))
    assert [names(row)[0] for row in phases.splitlines()[2:]] == _members(machine.Phase)
    short = "worker group" if machine is group else "call"
    table = {(phase.name, event.__name__): after for (phase, event), after in machine.MOVES.items()}
    assert moves(DOCUMENT, f"Moves of the {short}") == {
        move: tuple(each.name for each in after) for move, after in table.items()
    }


# --- edits and handlers -----------------------------------------------------------------------------------------------


@cache
def asked_for() -> Mapping[str, frozenset[str]]:
    """Return for each handler the edits that it makes, itself or through the functions that it calls."""
    tree = ast.parse(Path(handlers.__file__).read_text())
    calls = {node.name: _called(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    edits = {*_union(actions.Edit)}

    def made(function: str) -> frozenset[str]:
        inner = [made(each) for each in calls[function] & calls.keys()]
        return frozenset(calls[function] & edits).union(*inner)

    return {name: made(name) for name in calls if not name.startswith("_")}


def _called(function: ast.FunctionDef) -> set[str]:
    found = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {each.id for each in found if isinstance(each, ast.Name)}


def test_every_edit_has_a_row_with_the_handlers_that_ask_for_it() -> None:
    rows = {names(row[0])[0]: set(names(row[3])) for row in table(DOCUMENT, "Edits", "edit")}
    by_code = {edit: {name for name, edits in asked_for().items() if edit in edits} for edit in _union(actions.Edit)}
    assert rows == {**by_code, "Restore": set()}


def test_every_handler_has_its_questions() -> None:
    told = re.findall(r"^\*\*(\w+)\*\* — ", section(DOCUMENT, "Handlers"), re.MULTILINE)
    assert told == list(asked_for())


# --- spans ------------------------------------------------------------------------------------------------------------

SETTINGS = {
    "Limits of the job": Limits,
    "Spans of the rendezvous": Settings,
    "Spans of the call": inprocess.Settings,
    "Rules of the monitor": monitoring.Rules,
}


def given(settings: Any) -> Mapping[str, str]:
    """Return each field that has a default, with it."""
    made, those = settings(), [field for field in fields(settings) if field.init and field.default is not NOTHING]
    return {field.name: spelled(getattr(made, field.name)) for field in those if not isinstance(field.default, Limits)}


@pytest.mark.parametrize("heading", SETTINGS)
def test_every_setting_has_the_default_that_the_code_has(heading: str) -> None:
    assert defaults(DOCUMENT, heading) == given(SETTINGS[heading])


def test_every_setting_of_the_worker_group_has_the_default_that_the_code_has() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| ", section(DOCUMENT, "Spans of the worker group"), re.MULTILINE)
    assert dict(rows) == {**given(group.Settings), **given(group.Alone)}


def test_the_relations_of_spans_are_those_that_are_refused() -> None:
    rows = table(DOCUMENT, "Spans of the call", "less")
    assert [(*names(less), *names(more)) for less, more in rows] == list(RELATIONS)


def constants(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield every constant of these folders whose value is a number."""
    for source in sources(*folders).values():
        for node in ast.parse(source).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if (
                isinstance(target, ast.Name)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, int | float)
            ):
                yield target.id, spelled(value.value)


def test_every_fixed_span_has_its_value() -> None:
    rows = {(names(row[0])[0], row[1]) for row in table(DOCUMENT, "Fixed spans", "name")}
    assert sorted(rows - set(constants("core", "adapters", "cli"))) == []
    assert sorted({each for each in constants(*MACHINES) if each[0].endswith("_S")} - rows) == []


# --- the reading itself -----------------------------------------------------------------------------------------------

SMALL = """\
## Properties

### S

| number | property | judged in |
| --- | --- | --- |
| S1 | All is well. | `verify` |
| S2 | All stays well. | S1 |
| S3 | All was well. | `tests/models/specification.py` |

## Spans

| name | default |
| --- | --- |
| `patience` | 0.6 |
| `fence` | none |
"""


def test_a_citation_stands_by_itself() -> None:
    assert cited("S1, (S14b) and S9 strong: I1 to I3.") == {"S1", "S14b", "S9 strong", "I1", "I2", "I3"}
    assert cited("M0,-5 L5,0 L5,-4 L05 s3://S3x a.S1 path/S1 #S1 S1-2 T20 S123 X1") == set()


def test_the_modules_that_report_a_law_as_broken_are_found() -> None:
    assert judges({"core/verify.py": 'yield "S1", "x"', "core/judge.py": 'raise Violation("S4", f"x")'}) == {
        "S1": ["verify"],
        "S4": ["judge"],
    }
    assert judged('@law("a start", Started)\ndef S9_strong(judge, it): ...') == {"S9 strong"}
    assert judged('SENTENCES = {"S1": "x"}; f(1, "S2"); Law("S3", "x", "y")') == set()


def test_a_row_is_made_of_its_law_and_a_new_law_gets_one_at_the_end_of_its_series() -> None:
    laws = {number: Law(number, sentence, "") for number, sentence in (("S1", "All is better."), ("S7", "All is new."))}
    assert written(SMALL, laws, {"S1": ["verify", "judge"], "S7": ["judge"]}) == SMALL.replace(
        "All is well. | `verify` |", "All is better. | `verify`, `judge` |"
    ).replace(
        "`tests/models/specification.py` |\n", "`tests/models/specification.py` |\n| S7 | All is new. | `judge` |\n"
    )


def test_a_number_that_is_defined_twice_or_is_none_is_refused() -> None:
    for row in ("| S1 | Again. | `verify` |", "| T1 | Another letter. | `verify` |"):
        with pytest.raises(LookupError, match="defined twice"):
            properties(
                SMALL.replace("\n## Spans", f"{row}\n\n## Spans")
                .replace("\n\n| S", "\n| S")
                .replace("\n\n| T", "\n| T")
            )


def test_what_a_table_says_is_read_and_one_that_is_missing_is_missed() -> None:
    assert defaults(SMALL, "Spans") == {"patience": "0.6", "fence": "none"}
    assert defaults(SMALL.replace("0.6", "0.7"), "Spans") != {"patience": "0.6", "fence": "none"}
    for heading, head in (("Spans", "phase"), ("Moves", "name")):
        with pytest.raises(LookupError):
            table(SMALL, heading, head)
    assert list(map(spelled, (600.0, float("inf"), None, False, frozenset(), 0.02))) == [
        *("600", "inf", "none", "no", "empty", "0.02")
    ]
