"""The agent in this process: its workers are real, its register is memory, and several agents may share one."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from attrs import evolve
from processes import comes_true, unloadable

from elastic.adapters.agent import worker_group
from elastic.adapters.agent.agent import Agent
from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import (
    HANDLED,
    DrainSettings,
    Kind,
    LaunchSettings,
    Logs,
    Program,
    WatchdogSettings,
)
from elastic.adapters.report.launch_report import Report, Result, as_json
from elastic.adapters.report.news import News, Recorded, Seen, Started, Step, SuspectedHang
from elastic.adapters.report.worker_ends import How
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import FAULTS, REPLIES, EarlyEnds
from elastic.adapters.store.port import Found, Log, OutOfReach, Place, Shown, spelled
from elastic.adapters.store.queries import Query, Reply
from elastic.adapters.workers.child_processes import SubprocessWorkers
from elastic.adapters.workers.devices import gpu_memory
from elastic.adapters.workers.output.logs import CannotLog
from elastic.core import group, hangs, rendezvous
from elastic.core.agent import Hung
from elastic.core.group import Phase, Stopped
from elastic.core.group.state import Record, Refused
from elastic.core.rendezvous import RendezvousState, Status, Token
from elastic.core.world import Ending, Fault, Life, Node, Verdict, Why

TIMEOUT_S = 60.0
CLOCK = SystemClock()


class Notes:
    """An observer that writes everything down, and calls back on a start."""

    def __init__(self, started: Callable[[], object] = lambda: None) -> None:
        self.news: list[News] = []
        self._started = started

    @property
    def until(self) -> float | None:
        return None

    def passed(self, now: float) -> None:
        pass

    def saw(self, news: News) -> None:
        self.news.append(news)
        if isinstance(news, Started):
            self._started()

    @property
    def phases(self) -> list[Phase]:
        """The phases gone through, each once in a row."""
        found = [step.after.phase for step in self.news if isinstance(step, Step)]
        return [phase for index, phase in enumerate(found) if index == 0 or found[index - 1] is not phase]

    @property
    def rounds(self) -> list[int]:
        return [news.world.round for news in self.news if isinstance(news, Started)]


def settings(script: str, nodes: str = "1:1", restarts: int = 0, **others: Any) -> LaunchSettings:
    least, most = map(int, nodes.split(":"))
    meeting = rendezvous.Settings(rendezvous.Limits(least, most, restarts), last_call_timeout=0.2, upscale_after=0.0)
    program = Program(Kind.BINARY, "sh", ("-c", script.replace("$", "$$")))
    return LaunchSettings(program, **{"rendezvous": meeting, "logs": Logs("/dev/null"), **others})


def alone(made: LaunchSettings, notes: Notes, store: MemoryStore | None = None) -> Result:
    return Agent(made, MemoryBackend(store or MemoryStore(), CLOCK), CLOCK, notes).run()


def ended(result: Result) -> tuple[Ending, Why]:
    assert isinstance(result.outcome, Verdict)
    return result.outcome.ending, result.outcome.why


def reported(result: Result, restarts: int = 0) -> Report:
    """What can be told of the result alone."""
    return Report(settings("true", restarts=restarts), result, 0, 0.0)


@pytest.fixture
def environment(nothing_left: str) -> dict[str, str]:
    """For workers, so that none outlives its agent unseen."""
    return dict(os.environ)


def test_a_job_that_succeeds_goes_through_its_phases_once(environment: dict[str, str]) -> None:
    notes = Notes()
    result = alone(settings("true", local_world_size=2, environment=environment), notes)
    assert ended(result) == (Ending.SUCCEEDED, Why.DONE)
    report = reported(result)
    assert (report.result.faults, report.world_size, report.restarts, report.others) == ((), 2, 0, 0)
    assert notes.phases == [Phase.JOINING, Phase.HELD, Phase.RUNNING, Phase.BARRIER, Phase.ENDED]


class Rounds:
    """Serves no store, and knows at which ports it was asked to."""

    def __init__(self, has_given_up: bool = False, refuses: int = 0) -> None:
        """The first `refuses` times it lacks something."""
        self.has_given_up = has_given_up
        self._refuses = refuses
        self.ports: list[int] = []

    def serve_round(self, listening: socket.socket) -> None:
        with listening:
            self.ports.append(listening.getsockname()[1])
            assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if len(self.ports) <= self._refuses:
            raise OSError("too many open files")


def rounds_of(rounds: Rounds, environment: dict[str, str], **others: Any) -> list[tuple[int, bool | None]]:
    """Run a job of two rounds; return the port of each, and what its node says of the store."""
    notes = Notes()
    made = settings("exit $((1 - ELASTIC_ROUND))", restarts=1, environment=environment, **others)
    agent = Agent(made, MemoryBackend(MemoryStore(), CLOCK), CLOCK, notes, rounds=rounds)
    assert ended(agent.run()) == (Ending.SUCCEEDED, Why.DONE)
    profiles = [news.world.profiles[0] for news in notes.news if isinstance(news, Started)]
    return [(each.endpoint.port, each.serves_store) for each in profiles]


def test_an_agent_that_can_serve_the_rounds_stores_does_so_from_its_joins_on(environment: dict[str, str]) -> None:
    rounds = Rounds()
    assert rounds_of(rounds, environment) == [(port, True) for port in rounds.ports]
    assert len(set(rounds.ports)) == 2


def test_a_store_that_cannot_be_served_at_the_join_is_served_when_the_workers_start(
    environment: dict[str, str],
) -> None:
    rounds = Rounds(refuses=1)
    first, second = rounds_of(rounds, environment)
    assert [(port, True) for port in rounds.ports] == [first, first, second]


def test_one_that_serves_no_store_any_more_says_so_when_it_joins(environment: dict[str, str]) -> None:
    rounds = Rounds(has_given_up=True)
    assert [serves for _, serves in rounds_of(rounds, environment)] == [None, None]
    assert rounds.ports == []


def test_where_workers_start_again_alone_the_agent_serves_the_job_s_store_only(environment: dict[str, str]) -> None:
    rounds = Rounds()
    alone = group.Settings(alone=group.Alone(0))
    assert [serves for _, serves in rounds_of(rounds, environment, group=alone)] == [True, True]
    assert rounds.ports == []


def test_a_failure_is_recorded_before_anything_else_is_done_about_it(environment: dict[str, str]) -> None:
    notes = Notes()
    script = "test $LOCAL_RANK = 0 && sleep 1000; exit 3"
    result = alone(settings(script, local_world_size=2, environment=environment), notes)
    assert ended(result) == (Ending.FAILED, Why.FAILED)
    assert [(fault.rank, fault.exit_code) for fault in result.faults] == [(1, 3)]
    assert reported(result).others == 1
    (first, *_) = [
        step.commands for step in notes.news if isinstance(step, Step) and step.after.phase is Phase.STOPPING
    ]
    assert isinstance(first[0], Record)
    assert [news.fault for news in notes.news if isinstance(news, Recorded)] == list(result.faults)


def test_restarts_are_spent_one_by_one_and_each_round_is_a_new_one(environment: dict[str, str]) -> None:
    notes = Notes()
    result = alone(settings("exit $((3 - ELASTIC_ROUND))", restarts=3, environment=environment), notes)
    assert ended(result) == (Ending.SUCCEEDED, Why.DONE)
    assert notes.rounds == [0, 1, 2, 3]
    assert (
        len({news.world.members[0].profile.endpoint for news in notes.news if isinstance(news, Started)}) == 4
    )  # a port of its own
    assert reported(result).restarts == 3
    assert [(fault.round, fault.exit_code) for fault in result.faults] == [(0, 3), (1, 2), (2, 1)]


LOADED_WHILE_WORKERS_RUN = ("elastic.core.work", "elastic.adapters.workers.watch.stacks")


def test_who_ended_early_in_the_last_round_has_not_ended_in_this_one(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Worker 0 ends first in round 0, worker 1 in round 1. The other one waits until that is told."""
    script = (
        f"[ $ELASTIC_ROUND = $LOCAL_RANK ] && exit 0; cd {tmp_path}; "
        "while [ ! -e $ELASTIC_ROUND ]; do sleep 0.01; done; exit $LOCAL_RANK"
    )
    made = settings(script, restarts=1, environment=environment, local_world_size=2)
    agent, told = Agent(made, MemoryBackend(MemoryStore(), CLOCK), CLOCK, Notes()), list[EarlyEnds]()

    def tell(early: EarlyEnds) -> None:
        told.append(early)
        (tmp_path / str(early.round)).touch()

    agent._effects.workers._tell_early_ends = tell
    assert ended(agent.run()) == (Ending.SUCCEEDED, Why.DONE)
    first = {early.round: [rank for rank, _ in early.ends] for early in reversed(told)}
    assert first == {0: [0], 1: [1]}


def test_what_cannot_be_loaded_while_workers_run_costs_no_round(environment: dict[str, str]) -> None:
    notes = Notes()
    made = settings("exit $((1 - ELASTIC_ROUND))", restarts=1, environment=environment)
    with unloadable(*LOADED_WHILE_WORKERS_RUN):
        result = alone(made, notes)
    assert ended(result) == (Ending.SUCCEEDED, Why.DONE)
    assert notes.rounds == [0, 1]
    assert [fault.exit_code for fault in result.faults] == [1]


def test_what_a_worker_that_was_started_again_alone_came_to_is_its_last_end(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = f"mkdir {tmp_path}/once 2>/dev/null && exit 3; exit 0"
    made = settings(script, environment=environment, group=group.Settings(alone=group.Alone(1)))
    result = alone(made, Notes())
    assert ended(result) == (Ending.SUCCEEDED, Why.DONE)
    assert [fault.exit_code for fault in result.faults] == [3]
    assert [(end.exit_code, end.how) for end in result.ends] == [(0, How.SUCCEEDED)]


def test_the_memory_of_gpus_is_waited_for_also_where_a_worker_starts_again_alone(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited: list[set[int]] = []
    monkeypatch.setattr(worker_group, "DRIVER", Path(os.devnull))
    monkeypatch.setattr(gpu_memory, "wait_until_given_back", lambda dead, visible, interrupted: awaited.append(dead))
    made = settings("exit 7", environment=environment, group=group.Settings(alone=group.Alone(2)))
    result = alone(made, Notes())
    assert awaited == [{fault.pid} for fault in result.faults[:2]]


def test_the_failure_of_a_worker_that_cannot_be_started_again_says_why(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "program"
    file.write_text("#!/bin/sh\nrm $0\nexit 3\n")
    file.chmod(0o755)
    made = settings("", environment=environment, group=group.Settings(alone=group.Alone(1)), logs=Logs(f"{tmp_path}"))
    result = alone(evolve(made, program=Program(Kind.BINARY, str(file))), Notes())
    assert [fault.exit_code for fault in result.faults] == [3, 127]
    assert result.faults[1].message == f"{file}: no such file"


def test_a_program_that_cannot_be_started_ends_the_job_and_starts_nothing() -> None:
    notes = Notes()
    made = settings("", restarts=3)
    result = alone(LaunchSettings(Program(Kind.BINARY, "./nowhere"), rendezvous=made.rendezvous, logs=made.logs), notes)
    assert ended(result) == (Ending.FAILED, Why.CANNOT_START)
    assert notes.rounds == []
    assert [fault.message.partition(" in /")[0] for fault in result.faults] == ["./nowhere: no such file"]


def test_a_signal_stops_it_and_afterwards_means_what_it_meant_before(environment: dict[str, str]) -> None:
    before = [signal.getsignal(signum) for signum in HANDLED]
    notes = Notes(started=lambda: signal.raise_signal(signal.SIGTERM))
    result = alone(settings("exec sleep 1000", environment=environment), notes)
    assert result.outcome == Stopped(signal.SIGTERM)
    assert [signal.getsignal(signum) for signum in HANDLED] == before


def test_a_handler_is_put_back_also_if_it_was_the_user_s_own() -> None:
    def own(signum: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGQUIT, own)
    try:
        alone(settings("true"), Notes())
        assert signal.getsignal(signal.SIGQUIT) is own
    finally:
        signal.signal(signal.SIGQUIT, before)


def test_a_signal_after_a_success_that_was_reached_does_not_undo_it(environment: dict[str, str]) -> None:
    class Late(Notes):
        def saw(self, news: News) -> None:
            super().saw(news)
            if isinstance(news, Step) and news.after.phase is Phase.ENDED:
                signal.raise_signal(signal.SIGTERM)

    assert ended(alone(settings("true", environment=environment), Late())) == (Ending.SUCCEEDED, Why.DONE)


class LateSignal(MemoryBackend):
    """A store during whose closing a signal comes."""

    def clone(self) -> LateSignal:
        return LateSignal(self._store, self._clock)

    def close(self) -> None:
        super().close()
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_while_it_tidies_up_does_not_undo_it_either(environment: dict[str, str]) -> None:
    made = settings("true", environment=environment)
    result = Agent(made, LateSignal(MemoryStore(), CLOCK), CLOCK, Notes()).run()
    assert ended(result) == (Ending.SUCCEEDED, Why.DONE)


def test_a_log_directory_that_cannot_be_made_is_refused_before_anything_starts() -> None:
    with pytest.raises(
        CannotLog, match=r"^/proc/logs: no such file or directory; name a directory that can be written to"
    ):
        Agent(settings("true", logs=Logs("/proc/logs")), MemoryBackend(MemoryStore(), CLOCK), CLOCK, Notes())


def test_the_result_holds_the_register_as_it_was_seen_last(environment: dict[str, str]) -> None:
    notes = Notes()
    result = alone(settings("true", environment=environment), notes)
    seen = [news.state for news in notes.news if isinstance(news, Seen)]
    assert result.state == seen[-1]
    assert seen[-1].closed == result.outcome
    assert [state.census[Status.IN] for state in seen[:1]] == [1]


class Forgetful(MemoryBackend):
    """A store that takes failures and tells them to nobody."""

    def clone(self) -> Forgetful:
        return Forgetful(self._store, self._clock)

    def faults(self) -> tuple[Fault, ...]:
        raise OutOfReach("away")


def test_when_the_store_does_not_tell_the_failures_the_node_knows_its_own(environment: dict[str, str]) -> None:
    made = settings("exit $((5 - ELASTIC_ROUND))", restarts=1, environment=environment)
    result = Agent(made, Forgetful(MemoryStore(), CLOCK), CLOCK, Notes()).run()
    assert ended(result) == (Ending.FAILED, Why.FAILED)
    assert [(fault.round, fault.exit_code) for fault in result.faults] == [(0, 5), (1, 4)]


class Slipping(MemoryBackend):
    """A store whose author made a slip: once workers run, this call raises what is no StoreError."""

    def __init__(self, store: MemoryStore, call: str, begun: threading.Event) -> None:
        super().__init__(store, CLOCK)
        self._call, self._begun = call, begun

    def clone(self) -> Slipping:
        return Slipping(self._store, self._call, self._begun)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        self._slip("heartbeat")
        return super().heartbeat(node, counter)

    def put(self, place: Place, data: object) -> None:
        if place.folder is FAULTS:
            self._slip("put")
        super().put(place, data)

    def _slip(self, call: str) -> None:
        if call == self._call and self._begun.is_set():
            raise ZeroDivisionError("a slip")


@pytest.mark.parametrize(("call", "thread"), [("put", "elastic-rendezvous"), ("heartbeat", "elastic-heart")])
def test_an_error_that_nobody_foresaw_in_a_thread_ends_the_agent_and_its_workers(
    environment: dict[str, str], call: str, thread: str
) -> None:
    begun = threading.Event()
    script = "test $LOCAL_RANK = 0 && exec sleep 1000; exit 3" if call == "put" else "exec sleep 1000"
    made = settings(script, local_world_size=2, environment=environment)
    quick = evolve(made, rendezvous=evolve(made.rendezvous, keep_alive_interval=0.05, keep_alive_max_attempt=1_000))
    agent = Agent(quick, Slipping(MemoryStore(), call, begun), CLOCK, Notes(begun.set))
    with pytest.raises(RuntimeError, match=f"without its thread {thread}: ZeroDivisionError") as raised:
        agent.run()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert agent.failures == []


@pytest.mark.parametrize("thread", ["elastic-watcher", "elastic-log-pump"])
def test_an_error_in_a_thread_beside_the_workers_ends_the_agent_too(
    environment: dict[str, str], thread: str, tmp_path: Path
) -> None:
    def break_thread() -> None:
        read, write = os.pipe()
        if thread == "elastic-watcher":
            agent._effects._shared.watcher.watch(read, lambda at: os.close(-1))
        else:
            workers = agent._effects.workers._workers
            assert isinstance(workers, SubprocessWorkers)
            workers._pump.follow(read, tmp_path / "out", console=-1, prefix="")
        os.write(write, b"a line\n")
        os.close(write)

    agent = Agent(
        settings("exec sleep 1000", environment=environment),
        MemoryBackend(MemoryStore(), CLOCK),
        CLOCK,
        Notes(break_thread),
    )
    with pytest.raises(RuntimeError, match=f"without its thread {thread}: OSError"):
        agent.run()


@pytest.mark.parametrize("thread", ["elastic-drain-file", "elastic-hangs", "elastic-stuck", "elastic-timers"])
def test_an_error_in_a_watchdog_that_was_asked_for_ends_the_agent_too(
    environment: dict[str, str], thread: str, tmp_path: Path
) -> None:
    """Nobody would see any more what it was asked to see."""
    timer_file = tmp_path / "timers"

    def break_thread() -> None:
        nonsense: Any = 7
        parts, watchdogs = agent._effects, agent._effects.watchdogs
        assert parts.drain_file and parts.hangs and watchdogs._stuck and watchdogs._timers
        match thread:
            case "elastic-drain-file":
                parts.drain_file._path = nonsense
            case "elastic-hangs":
                parts.hangs._followers = nonsense
            case "elastic-stuck":
                watchdogs._stuck._ranks = nonsense
            case _:
                watchdogs._timers._timers = nonsense
                watchdogs._timers.follow({})

    made = settings(
        "exec sleep 1000",
        environment=environment,
        watchdogs=WatchdogSettings(timer_file=str(timer_file), stuck_after=0.1),
        hang=hangs.HangSettings(0.1),
        drain=DrainSettings(file=str(tmp_path / "never")),
    )
    agent = Agent(made, MemoryBackend(MemoryStore(), CLOCK), CLOCK, Notes(break_thread))
    with pytest.raises(RuntimeError, match=f"without its thread {thread}: (Type|Attribute)Error"):
        agent.run()
    assert not timer_file.exists()


def test_a_late_word_of_the_hang_watch_is_about_workers_that_run_no_longer(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """It was said in the watch's thread, and waits in the inbox behind what has happened since."""
    told = [SuspectedHang(round, 9.0, (), None, (), {}) for round in (7, 0)]

    def begin() -> None:
        for each in told:
            agent._inbox.post(Hung(each.round, each))
        (tmp_path / "gate").touch()

    notes, waits = Notes(begin), f"while [ ! -e {tmp_path}/gate ]; do sleep 0.01; done"
    agent = Agent(settings(waits, environment=environment), MemoryBackend(MemoryStore(), CLOCK), CLOCK, notes)
    agent.run()
    assert [each for each in notes.news if isinstance(each, SuspectedHang)] == told[1:]


AWAY_TRIES = 3


class LosingTheVerdict(MemoryBackend):
    """A store that forgets the first verdict as soon as it has acknowledged it, and is then out of reach for some tries."""

    def clone(self) -> LosingTheVerdict:
        return LosingTheVerdict(self._store, self._clock)

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        tries = vars(self._store).get("tries", 0)
        self._store.tries = tries + bool(state.closed)  # type: ignore[attr-defined]
        if state.closed and 0 < tries <= AWAY_TRIES:
            raise OutOfReach("busy")
        before = self._store.state
        shown = super().set(state, token)
        if state.closed and not tries:
            self._store.state = before
        return shown


def test_an_agent_stays_until_the_store_is_seen_to_know_the_verdict(environment: dict[str, str]) -> None:
    store = MemoryStore()
    result = Agent(settings("true", environment=environment), LosingTheVerdict(store, CLOCK), CLOCK, Notes()).run()
    assert vars(store)["tries"] > AWAY_TRIES
    assert store.state and store.state.closed == result.outcome


class OfAnotherLife(MemoryBackend):
    """A store that holds another register at first: three heartbeats are acknowledged in its name."""

    def __init__(self, store: MemoryStore, lives: list[Life | None]) -> None:
        super().__init__(store, CLOCK)
        self._lives = lives

    def clone(self) -> OfAnotherLife:
        return OfAnotherLife(self._store, self._lives)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        own = super().heartbeat(node, counter)
        self._lives.append(own if len(self._lives) >= 3 else Life("another"))
        return self._lives[-1]


def test_no_worker_starts_on_the_acknowledgement_of_another_register(environment: dict[str, str]) -> None:
    lives: list[Life | None] = []
    seen: list[int] = []
    made = settings("true", environment=environment)
    quick = evolve(made, rendezvous=evolve(made.rendezvous, keep_alive_interval=0.05, keep_alive_max_attempt=1_000))
    notes = Notes(lambda: seen.append(len(lives)))
    assert ended(Agent(quick, OfAnotherLife(MemoryStore(), lives), CLOCK, notes).run()) == (Ending.SUCCEEDED, Why.DONE)
    assert [Life("another")] * 3 == lives[:3]
    assert len(seen) == 1 and seen[0] > 3


def test_an_agent_answers_a_query_of_its_round_once_and_none_of_another(environment: dict[str, str]) -> None:
    store, replied, unasked = MemoryStore(), list[Reply](), list[Reply]()
    asker, pids = MemoryBackend(store, CLOCK), list[int]()

    def replies() -> Mapping[Node, Reply]:
        return asker.notes.replies([agent.node]).replies

    def beats_on() -> bool:
        first = store.beats.get(agent.node, (0, 0.0))[0]
        return comes_true(lambda: store.beats.get(agent.node, (0, 0.0))[0] > first + 2)

    def ask() -> None:
        for number, round in enumerate((7, 0, 0)):
            asker.notes.put_query(Query(str(number) * 16, round))
            if round == 0 and comes_true(lambda: bool(replies())):
                replied.append(replies()[agent.node])
                asker.drop([Place(REPLIES, spelled(agent.node))])
            if beats_on():
                unasked.extend(replies().values())
        os.kill(pids[0], signal.SIGTERM)

    def begin() -> None:
        pids.extend(next(news.pids for news in notes.news if isinstance(news, Started)))
        asking.start()

    asking, notes = threading.Thread(target=ask), Notes(begin)
    made = settings("trap 'exit 0' TERM; while :; do sleep 0.1; done", environment=environment)
    quick = evolve(made, rendezvous=evolve(made.rendezvous, keep_alive_interval=0.05, keep_alive_max_attempt=1_000))
    agent = Agent(quick, MemoryBackend(store, CLOCK), CLOCK, notes)
    assert ended(agent.run()) == (Ending.SUCCEEDED, Why.DONE)
    asking.join()
    assert [(reply.id[0], [rank for rank, _ in reply.stacks.places]) for reply in replied] == [("1", [0]), ("2", [0])]
    assert unasked == []


@pytest.mark.parametrize("nowhere", [None, "/dev/null"])
def test_there_is_a_place_for_the_report_only_where_logs_are_kept(
    nowhere: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def place(directory: str | None) -> str | None:
        made = settings("true", logs=Logs(directory), environment=dict(os.environ))
        agent = Agent(made, MemoryBackend(MemoryStore(), CLOCK), CLOCK, Notes())
        agent.run()
        return agent.report_path

    assert place(nowhere) is None
    assert Path(place(str(tmp_path / "logs")) or "").parent.parent == tmp_path / "logs"


# --- several agents on one register, each in a thread


class Cluster:
    """Agents that share a register; their signals are not handled, since they are not on the main thread."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.results: SimpleQueue[Result] = SimpleQueue()
        self.threads: list[threading.Thread] = []

    def start(self, made: LaunchSettings, notes: Notes, backend: MemoryBackend | None = None) -> None:
        def run() -> None:
            self.results.put(Agent(made, backend or MemoryBackend(self.store, CLOCK), CLOCK, notes).run())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.threads.append(thread)

    def ends(self) -> list[Result]:
        results = [self.results.get(timeout=TIMEOUT_S) for _ in self.threads]
        for thread in self.threads:
            thread.join(TIMEOUT_S)
        return sorted(results, key=lambda result: result.node.slot)


def test_two_nodes_form_one_world_and_succeed_together(environment: dict[str, str], tmp_path: Path) -> None:
    cluster = Cluster()
    script = f"echo $RANK $GROUP_RANK $WORLD_SIZE $MASTER_PORT > {tmp_path}/$RANK"
    for slot in "ab":
        made = settings(script, "2:2", local_world_size=2, slot=slot, environment=environment)
        cluster.start(made, Notes())
    results = cluster.ends()
    assert [ended(result) for result in results] == [(Ending.SUCCEEDED, Why.DONE)] * 2
    assert results[0].outcome == results[1].outcome
    lines = [(tmp_path / str(rank)).read_text().split() for rank in range(4)]
    assert [line[:3] for line in lines] == [["0", "0", "4"], ["1", "0", "4"], ["2", "1", "4"], ["3", "1", "4"]]
    assert len({line[3] for line in lines}) == 1


class Looked(MemoryBackend):
    """Notes of each look at the stacks on record which nodes it showed."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, CLOCK)
        self.shown: list[str] = []

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        found = super().read(places, log)
        if log is None:
            self.shown.append("".join(each.node.slot for each in found[0].values()))
        return found


def test_the_end_of_a_failed_job_waits_for_no_stacks_of_a_node_whose_workers_had_succeeded(
    environment: dict[str, str], tmp_path: Path
) -> None:
    cluster, gate = Cluster(), tmp_path / "gate"
    looked = Looked(cluster.store)
    script = (
        f"test $ELASTIC_NODE_ID = b && exit 0; test $LOCAL_RANK = 1 && exec sleep 1000; "
        f"while ! test -e {gate}; do sleep 0.05; done; exit 3"
    )
    for slot, backend in (("a", looked), ("b", None)):
        made = settings(script, "2:2", local_world_size=2, slot=slot, environment=environment)
        cluster.start(made, Notes(), backend)
    assert comes_true(lambda: bool(cluster.store.state and cluster.store.state.those(Status.DONE)))
    gate.touch()
    here, _ = cluster.ends()
    assert ended(here) == (Ending.FAILED, Why.FAILED)
    assert [stacks.node.slot for stacks in here.stacks] == ["a"]
    assert looked.shown[-2:] == ["a", "a"] and set(looked.shown[:-2]) <= {
        ""
    }  # the last look of the wait, and the report's


def test_a_failure_on_one_node_restarts_both_and_the_budget_is_the_job_s(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The worker of b fails when that of a runs: else a would not start what is over already."""
    cluster, notes = Cluster(), {slot: Notes() for slot in "ab"}
    for round in range(3):
        os.mkfifo(tmp_path / str(round))
    pipe = f"{tmp_path}/$ELASTIC_ROUND"
    script = f"if test $ELASTIC_NODE_ID = b; then read word <{pipe}; exit 5; fi; echo runs >{pipe}; exec sleep 1000"
    for slot in "ab":
        made = settings(script, "2:2", restarts=2, slot=slot, environment=environment)
        cluster.start(made, notes[slot])
    here, there = cluster.ends()
    assert ended(here) == ended(there) == (Ending.FAILED, Why.FAILED)
    assert here.outcome == there.outcome and here.faults == there.faults
    assert [(fault.node.slot, fault.round, fault.exit_code) for fault in here.faults] == [
        ("b", 0, 5),
        ("b", 1, 5),
        ("b", 2, 5),
    ]
    assert notes["a"].rounds == notes["b"].rounds == [0, 1, 2]
    for each in (here, there):
        assert each.state and each.state.over_budget and each.state.failures == 3
    assert [reported(each, restarts=2).restarts for each in (here, there)] == [2, 2]
    assert [reported(each).others for each in (here, there)] == [1, 1]
    assert [{**as_json(reported(each)), "here": None} for each in (here, there)] == [
        {**as_json(reported(here)), "here": None}
    ] * 2


def test_a_node_that_comes_later_is_taken_in_and_costs_no_restart(environment: dict[str, str]) -> None:
    cluster, first = Cluster(), SimpleQueue[None]()
    script = "test $GROUP_WORLD_SIZE = 2 || exec sleep 1000"
    notes = Notes(started=lambda: first.put(None))
    cluster.start(settings(script, "1:2", slot="a", environment=environment), notes)
    first.get(timeout=TIMEOUT_S)
    cluster.start(settings(script, "1:2", slot="b", environment=environment), Notes())
    results = cluster.ends()
    assert [ended(result) for result in results] == [(Ending.SUCCEEDED, Why.DONE)] * 2
    assert notes.rounds == [0, 1]
    assert [reported(result).restarts for result in results] == [0, 0]
    assert [reported(result).world_size for result in results] == [2, 2]


def test_an_agent_whose_limits_are_not_the_job_s_is_refused(environment: dict[str, str]) -> None:
    cluster, started = Cluster(), SimpleQueue[None]()
    notes = Notes(started=lambda: started.put(None))
    cluster.start(settings("exec sleep 1000", "1:2", slot="a", environment=environment), notes)
    started.get(timeout=TIMEOUT_S)
    other = alone(settings("true", "1:3", slot="b", environment=environment), Notes(), cluster.store)
    assert isinstance(other.outcome, Refused)
    assert other.outcome.why is Why.LIMITS
    cluster.start(settings("exit 1", "1:2", slot="c", environment=environment), Notes())
    assert {ended(result) for result in cluster.ends()} == {(Ending.FAILED, Why.FAILED)}
