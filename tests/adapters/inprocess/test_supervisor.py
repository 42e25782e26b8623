"""The process's end of its monitor: one call's, and the next one's."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from processes import comes_true
from worlds import node

from elastic.adapters.inprocess.shared_page import BYE, Bye, Page
from elastic.adapters.inprocess.supervisor import Charge, Supervisor
from elastic.core.inprocess.monitoring import Rules

TIMEOUT_S = 60.0

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_a_monitor_that_is_done_before_it_is_let_go_of_is_followed_by_none(caplog: pytest.LogCaptureFixture) -> None:
    """The call is over, and this process has other things to let go of first."""
    with closing(Page.new()) as page:
        supervisor = Supervisor(page, Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0))
        supervisor.start()
        try:
            page.words[BYE] = Bye.SETTLED
            page.ring()
            assert comes_true(lambda: not Path(f"/proc/{supervisor.pid}").exists())
        finally:
            supervisor.close(TIMEOUT_S)
        assert (supervisor.starts, caplog.messages) == (1, [])


def test_a_call_that_lets_go_leaves_the_next_one_s_pid_file_alone(tmp_path: Path) -> None:
    """Whoever called may call again at once, while the last call's monitor is still ending."""
    file, nowhere = tmp_path / "monitor.pid", {"relay": str(tmp_path / "none"), "space": "one"}
    charge = Charge(node("a"), nowhere, Rules(), 1.0)
    with ExitStack() as stack:
        pages = [stack.enter_context(closing(Page.new())) for _ in range(2)]
        last, following = (Supervisor(page, charge, pid_file=file) for page in pages)
        for each, page in zip((last, following), pages, strict=True):
            stack.callback(each.close, TIMEOUT_S)
            stack.callback(page.words.__setitem__, BYE, Bye.SETTLED)
            each.start()
        pages[0].words[BYE] = Bye.SETTLED
        last.close(TIMEOUT_S)
        assert file.read_text() == f"{following.pid}\n"
    assert not file.exists()
