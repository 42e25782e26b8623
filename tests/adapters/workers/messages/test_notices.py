"""What a drained node tells its workers, and what they tell it."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path

import pytest

import elastic
from elastic.adapters.workers.messages.notices import VARIABLE, Notice, NoticeBoard, notice, notice_path, ready_to_leave

TOLD = Notice(1_000.0, 900.0, "an operator (ann@login-1)")


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NoticeBoard:
    path = notice_path(str(tmp_path / "socket"))
    monkeypatch.setenv(VARIABLE, path)
    monkeypatch.setenv("RANK", "7")
    return NoticeBoard(path)


def test_a_worker_reads_its_notice_and_says_that_it_is_ready(board: NoticeBoard) -> None:
    ready_to_leave()
    assert (notice(), board.pipe, board.ready()) == (None, None, ())
    board.tell(TOLD)
    assert elastic.notice() == TOLD
    elastic.ready_to_leave()
    assert board.pipe is not None and select.select([board.pipe], [], [], 60.0)[0]
    assert (board.ready(), board.ready()) == ((7,), ())
    board.tell(TOLD._replace(deadline=500.0))
    assert notice() == TOLD._replace(deadline=500.0)
    board.close()
    board.close()
    assert notice() is None
    ready_to_leave()


def test_what_comes_in_parts_or_is_no_rank_is_no_harm(board: NoticeBoard) -> None:
    board.tell(TOLD)
    assert board.pipe is not None
    os.write(board.pipe, b"1\n\xffx\n-3\n99999999999\n2\n2\n1")
    assert board.ready() == (1, 2)
    os.write(board.pipe, b"2\n")
    assert board.ready() == (12,)
    board.close()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"deadline": "x", "stops_at": 1, "source": "y"}', "\xff"])
def test_a_file_that_is_no_notice_is_none(board: NoticeBoard, text: str) -> None:
    Path(os.environ[VARIABLE]).write_text(text)
    assert notice() is None


def test_without_our_launcher_there_is_no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    ready_to_leave()
    assert notice() is None


def test_the_file_is_for_programs_of_any_language(board: NoticeBoard) -> None:
    board.tell(TOLD)
    assert json.loads(Path(os.environ[VARIABLE]).read_text()) == TOLD._asdict()
    board.close()
