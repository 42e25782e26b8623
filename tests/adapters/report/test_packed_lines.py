"""Packed lines: nothing is lost, what repeats is short, and no line that fits none before it is taken."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traced import finished

from elastic.adapters.report.packed_lines import KEPT_MAX, REACH, packed, unpacked
from elastic.adapters.report.trace_file import lines as lines_of
from elastic.core.trace.forms import Form, Repeated, Shape
from elastic.core.trace.lines import CUT, Corrupt, traces

BEAT = b'{"is":"beaten","node":"b#1","sent_at":%.9f,"at":%.9f,"n":%d,"by":"\\"7,"}\n'


def written(lines: Iterable[bytes]) -> list[bytes]:
    recent: tuple[Shape, ...] = ()
    made = []
    for line in lines:
        short, recent = packed(line, recent)
        made.append(short)
    return made


def read(lines: Iterable[bytes]) -> list[bytes]:
    recent: tuple[Form, ...] = ()
    made = []
    for line in lines:
        told, recent = unpacked(line, recent)
        made.append(told.whole if isinstance(told, Repeated) else told)
    return made


def test_a_line_that_repeats_another_but_for_its_numbers_is_these_numbers() -> None:
    first, second, other = BEAT % (1.0, 1.5, 10), BEAT % (2.0, 2.5, 11), b'{"is":"passed","now":3e-07}\n'
    made = written([first, other, second, second])
    assert made == [first, other, b"[2,2.000000000,2.500000000,11]\n", b"[1,2.000000000,2.500000000,11]\n"]
    assert read(made) == [first, other, second, second]


def test_a_line_without_numbers_and_one_that_is_too_long_or_too_far_back_stand_as_they_are() -> None:
    plain, long = b'{"is":"woke"}\n', b'{"is":"%b","now":1}\n' % (b"x" * KEPT_MAX)
    assert written([plain, plain, long, long]) == [plain, plain, long, long]
    others = [b'{"%c":1}\n' % (65 + number) for number in range(REACH)]
    assert written([b'{"it":1}\n', *others, b'{"it":2}\n'])[-1] == b'{"it":2}\n'
    assert written([b'{"it":1}\n', *others[1:], b'{"it":2}\n'])[-1] == b"[%d,2]\n" % REACH


@given(
    st.lists(st.sampled_from([b'{"a":%d,"b":"1"}\n', b"%d\n", b'"%d"\n', b"{}\n", b"[%d]\n"]), max_size=50), st.data()
)
def test_every_line_comes_back_as_it_was(shapes: list[bytes], data: st.DataObject) -> None:
    number = st.integers(-(2**53), 2**53)
    lines = [shape % data.draw(number) if b"%" in shape else shape for shape in shapes if shape != b"[%d]\n"]
    assert read(written(lines)) == lines


@pytest.mark.parametrize(
    "line",
    [
        b"[1,2]\n",
        b"[0,1,2,3]\n",
        b"[2,1,2,3]\n",
        b"[1,1,2,3,4]\n",
        b"[1,1,2]\n",
        b"[1,1,2,x]\n",
        b'[1,1,2,"3"]\n',
        b"[1,1,2,true]\n",
        b"[1,1,2,[3]]\n",
        b"[1.0,1,2,3]\n",
        b"[1,1,2,3]",
        b"[-1,1,2,3]\n",
        b"[]\n",
    ],
)
def test_numbers_that_fit_no_line_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="numbers that fit no line before it"):
        read([BEAT % (1.0, 1.5, 10), line])


def test_a_packed_trace_is_the_trace(tmp_path: Path) -> None:
    agent, file = finished().a, tmp_path / "trace"
    header, *steps = agent.lines
    file.write_bytes(b"".join([header, *written(steps), *agent.lines[:2], b"[1,2" + CUT, header, *written(steps)]))
    assert file.stat().st_size < 2 * sum(map(len, agent.lines))
    first, second, third = traces(lines_of(str(file)))
    assert first == agent.trace
    assert (second.cut, third.steps) == (True, agent.trace.steps)


def test_numbers_that_fit_no_line_are_named_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(finished().a.lines[0] + b"[7,1]\n")
    with pytest.raises(Corrupt, match="line 2: numbers that fit no line before it"):
        list(traces(lines_of(str(tmp_path / "trace"))))
