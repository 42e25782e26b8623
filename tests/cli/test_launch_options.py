"""The options of `elastic launch`: spellings, variables, where the script's own arguments begin, settings, help."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commandlines import limits

from elastic.adapters.launch_settings import (
    HANDLED,
    Kind,
    LaunchSettings,
    Listening,
    NodeCheck,
    Program,
    StandbySettings,
    Std,
    Streams,
)
from elastic.cli import values
from elastic.cli.launch import launch
from elastic.cli.launch_options import SECTIONS
from elastic.cli.main import run
from elastic.cli.mistakes import Mistake
from elastic.cli.option import Option
from elastic.core.hangs import HangSettings
from elastic.core.rendezvous import Comparison, FailureLimit
from elastic.core.world import Endpoint

Parse = Callable[..., LaunchSettings]


def options() -> dict[str, Option]:
    named = {max(param.opts, key=len): param for param in launch.params if isinstance(param, Option)}
    return {name.removeprefix("--").replace("_", "-"): param for name, param in named.items()}


def test_every_option_has_two_spellings() -> None:
    """test_torchrun_options compares them with torchrun's."""
    for name, option in options().items():
        assert {f"--{name}", f"--{name.replace('-', '_')}"} <= set(option.opts)


def test_the_defaults(settings: Parse) -> None:
    made = settings("train.py")
    assert made.program == Program(Kind.SCRIPT, "train.py", (), sys.executable)
    assert (made.local_world_size, made.role, made.slot, made.address) == (1, "default", None, "localhost")
    assert made.rendezvous.limits == limits(1, 1, 0)
    assert made.store == "in memory"
    assert (made.rendezvous.last_call_timeout, made.rendezvous.ttl, made.group.fence) == (5.0, 5.0, None)
    assert (made.group.grace, made.group.shutdown_timeout) == (30.0, 30.0)
    assert made.signals == HANDLED
    assert (made.logs.directory, made.logs.shown, made.logs.prefix) == (None, None, None)
    assert made.logs.redirects == made.logs.tee == Streams()


def test_a_job_without_a_name_gets_a_random_one_and_a_name_that_was_given_is_kept(settings: Parse) -> None:
    assert settings("x").run_id != settings("x").run_id
    assert settings("--rdzv-id=job7", "x").run_id == "job7"


def test_underscores_do_as_well_as_dashes(settings: Parse) -> None:
    dashes = "--nproc-per-node=2 --max-restarts=3 --shutdown-timeout=4 --rdzv-id=a --local-ranks-filter=1 --no-python"
    script = ("x", "--a-b")
    assert settings(*dashes.split(), *script) == settings(
        *dashes.replace("-", "_").replace("__", "--").split(), *script
    )


@pytest.mark.parametrize("text", ["1", "true", "True", "yes", "YES"])
def test_a_flag_s_variable_may_say_yes(settings: Parse, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PET_MODULE", text)
    program = settings("x").program
    assert isinstance(program, Program) and program.kind is Kind.MODULE


@pytest.mark.parametrize("text", ["0", "false", "No", ""])
def test_a_flag_s_variable_may_say_no(settings: Parse, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PET_MODULE", text)
    program = settings("x").program
    assert isinstance(program, Program) and program.kind is Kind.SCRIPT


def test_the_command_line_beats_the_variable_and_the_variable_the_default(
    settings: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PET_MAX_RESTARTS", "5")
    assert settings("x").rendezvous.limits.max_restarts == 5
    assert settings("--max-restarts=1", "x").rendezvous.limits.max_restarts == 1


def test_every_argument_after_the_script_belongs_to_it(settings: Parse) -> None:
    arguments = ("--nnodes=9", "-h", "--no-such-option", "--", "--max-restarts", "1")
    made = settings("--max-restarts=2", "train.py", *arguments)
    assert isinstance(made.program, Program) and made.program.arguments == arguments
    assert made.rendezvous.limits == limits(1, 1, 2)


def test_the_script_is_not_taken_from_a_variable(settings: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_SCRIPT", "other.py")
    assert settings("train.py").program.name == "train.py"


def test_standbys_are_wanted_by_a_word_alone_or_with_a_number_and_none_without(settings: Parse) -> None:
    assert settings("train.py").standby is None
    assert settings("--standby", "train.py", "--standby=3").standby == StandbySettings(0)
    assert settings("--standb", "train.py").program.name == "train.py"
    assert settings("--standby=3", "--preload=a, b.c", "train.py").standby == StandbySettings(3, ("a", "b.c"))
    assert settings("--standby", "--preload=", "train.py").standby == StandbySettings(0, ())
    assert settings("--standby", "--no-python", "train").standby is None


def test_the_check_of_a_node_is_a_program_with_its_arguments(settings: Parse) -> None:
    made = settings("--node-check=sh -c 'exit 1'", "--node-check-timeout=5", "x")
    assert made.node_check == NodeCheck(("sh", "-c", "exit 1"), 5.0) and made.group.checks
    assert settings("x").node_check is None and settings("x").group.checks is None
    watches = settings("--watch-check=sh -c 'exit 1'", "--watch-check-every=7", "--node-check-timeout=5", "x")
    assert watches.drain.check == NodeCheck(("sh", "-c", "exit 1"), 5.0, 7.0) and watches.group.checks is None
    assert settings("x").drain.check is None
    for text, why in (("", "''"), ("/none/at all", "/none/at: no such file"), ("sh 'x", "No closing quotation")):
        with pytest.raises(ValueError, match=f"^{why}.*; write a program with its arguments"):
            values.command(text)


def test_a_hang_is_looked_for_when_a_span_is_given(settings: Parse) -> None:
    assert settings("x").hang is None and settings("--on-hang=restart", "x").hang is None
    assert settings("--hang-timeout=90", "x").hang == HangSettings(90.0)
    assert settings("--hang-timeout=90", "--on-hang=restart", "x").hang == HangSettings(90.0, restarts=True)


def test_the_limit_of_a_node_s_failures_is_a_number_and_a_span(settings: Parse) -> None:
    made = settings("--max-node-failures=3/600", "x").rendezvous
    assert made.max_node_failures == FailureLimit(3, 600.0)
    assert settings("x").rendezvous.max_node_failures is None
    assert settings("--leave-after=3/600", "x").rendezvous.max_node_failures == FailureLimit(3, 600.0, leaves=True)


@pytest.mark.parametrize(("given", "rounds", "counts"), [("3", 3, True), ("100", 100, True), ("0", 0, False)])
def test_a_job_gives_up_after_twenty_ends_in_a_row_or_as_is_said_and_then_failures_count_too(
    settings: Parse, given: str, rounds: int, counts: bool
) -> None:
    made = settings(f"--give-up-after={given}", "--progress-after=60", "x").rendezvous
    assert (made.limits.give_up_after, made.limits.counts_failures, made.progress_after) == (rounds, counts, 60.0)
    assert made.limits.agreed.endswith(f" --give-up-after={given} --progress-after=60")
    usual = settings("x").rendezvous
    assert (usual.limits.give_up_after, usual.limits.counts_failures, usual.progress_after) == (20, False, 300.0)
    for text in ("3", "0/9", "3/0", "3/", "/9", "3/9/9", "-1/9", "1001/9", "3/inf", "a/b"):
        with pytest.raises(ValueError, match=r"^write K/S, "):
            values.node_failures(text)


def test_the_labels_of_a_node_are_read_and_stand_in_its_profile(settings: Parse) -> None:
    made = settings("--labels= zone=b,rack=r7", "--node-rank=0", "x")
    assert made.labels == (("rack", "r7"), ("zone", "b"))
    assert made.profile(Endpoint("h", 1), "h").labels == (("node_rank", "0"), ("rack", "r7"), ("zone", "b"))
    assert settings("x").labels == settings("--labels=", "x").labels == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rack", "write NAME=VALUE"),
        ("rack=", "write NAME=VALUE"),
        ("a b=c", "write NAME=VALUE"),
        ("rack=r\x1b1", "write NAME=VALUE"),
        ("rack=1,rack=2", "write each name once"),
        ("node_rank=1", "write each name once, --node-rank for node_rank"),
        ("rank_policy=rack", "and --rank-policy for rank_policy"),
        (",".join(f"l{number}=x" for number in range(17)), "write 16 labels at most"),
    ],
)
def test_labels_that_no_policy_could_read_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        values.labels(text)


def test_a_rank_policy_is_read_and_stands_in_the_node_s_profile(settings: Parse) -> None:
    made = settings("--rank-policy= group_by( zone, rack )", "--labels=rack=r7", "--node-rank=0", "x")
    assert made.rank_keys == ("zone", "rack")
    told = made.profile(Endpoint("h", 1), "h")
    assert told.labels == (("node_rank", "0"), ("rack", "r7"), ("rank_policy", "zone,rack"))
    assert told.rank_keys == ("zone", "rack")
    assert settings("x").rank_keys == settings("--rank-policy=", "x").rank_keys == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rack", r"write group_by\(KEY\)"),
        ("group_by", r"write group_by\(KEY\)"),
        ("group_by()", r"write group_by\(KEY\)"),
        ("group_by(a b)", r"write group_by\(KEY\)"),
        ("group_by(rack,)", r"write group_by\(KEY\)"),
        ("at_most(4)", r"write group_by\(KEY\)"),
        ("group_by(rack,rack)", "write each key once"),
        ("group_by(a,b,c,d)", "write each key once, and 3 at most"),
    ],
)
def test_a_rank_policy_that_nobody_can_read_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        values.rank_policy(text)


@pytest.mark.parametrize(
    "text",
    [
        "'join_timeout=7, store=c10d'",
        '"join_timeout=7,store=c10d"',
        "join_timeout='7', store=\"c10d\"",
        "'join_timeout=7','store=c10d'",
    ],
)
def test_quotes_that_a_shell_has_left_around_the_configuration_are_no_part_of_it(text: str) -> None:
    assert values.configuration(text) == {"join_timeout": "7", "store": "c10d"}


def test_a_password_in_quotes_is_refused_too() -> None:
    with pytest.raises(ValueError, match="every user of this host can read it there"):
        values.configuration("join_timeout=7, 'password=geheim'")


def test_of_a_key_that_is_given_twice_the_last_value_counts_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert values.configuration("join_timeout=7,join_timeout=9") == {"join_timeout": "9"}
    assert capsys.readouterr().err == "elastic: --rdzv-conf: join_timeout is given twice; join_timeout=9 counts\n"


def test_the_options_of_output_are_read(settings: Parse) -> None:
    logs = settings("-r", "3", "-t", "0:1,12:2", "--local-ranks-filter=0, 12", "--log-dir=logs", "x").logs
    assert logs.redirects == Streams(Std.ALL)
    assert logs.tee == Streams(ranks={0: Std.OUT, 12: Std.ERR})
    assert (logs.shown, logs.directory) == (frozenset({0, 12}), "logs")


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", ()),
        ("apple,orange", ("apple", "orange")),
        ("a,,b", ("a,b",)),
        ("a,,,b", ("a,", "b")),
        (" a b ", (" a b ",)),
    ],
)
def test_filter_texts_are_split_at_commas_and_two_commas_are_one_in_a_text(
    settings: Parse, text: str, texts: tuple[str, ...]
) -> None:
    logs = settings(f"--duplicate-stdout-filters={text}", f"--duplicate-stderr-filters={text}", "x").logs
    assert (logs.stdout_filters, logs.stderr_filters) == (texts, texts)


def test_the_options_of_failures_and_ends_are_read(settings: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7")
    assert settings("x").group.shutdown_timeout == 7.0
    assert settings("x").group.alone is None
    alone = settings("--restart-scope=rank", "--max-restarts=3", "x").group.alone
    assert alone and (alone.restarts_max, alone.job_over, alone.heard) == (3, frozenset({71, 80}), frozenset({79}))
    assert {0, 71, 76, 79, 80} <= alone.final
    made = settings("--shutdown-timeout=0", "--grace=1.5", "--signals-to-handle=USR1, SIGTERM,SIGUSR1", "x")
    assert (made.group.grace, made.group.shutdown_timeout) == (1.5, 0.0)
    assert made.signals == (signal.SIGUSR1, signal.SIGTERM)


def test_the_exit_barrier_s_time_is_the_option_s_or_the_variable_s_or_the_rendezvous_(
    settings: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = "--rdzv-conf=barrier_timeout=300"
    assert settings("x").group.barrier_timeout == math.inf
    assert settings(conf, "x").group.barrier_timeout == 300.0
    monkeypatch.setenv("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT", "7")
    assert settings(conf, "x").group.barrier_timeout == 7.0
    assert settings(conf, "--exit-barrier-timeout=0.5", "x").group.barrier_timeout == 0.5
    assert settings(conf, "--exit_barrier_timeout=4", "x").group.barrier_timeout == 4.0


def test_on_store_loss_stop_sets_the_fence_to_a_fraction_of_the_ttl(settings: Parse) -> None:
    assert settings("--on-store-loss=continue", "x").group.fence is None
    assert settings("--on-store-loss=stop", "x").group.fence == pytest.approx(3.0)
    longer = "--rdzv-conf=keep_alive_interval=2,keep_alive_max_attempt=10"
    assert settings("--on-store-loss=stop", longer, "x").group.fence == pytest.approx(12.0)


def test_the_group_takes_its_spans_from_the_rendezvous(settings: Parse) -> None:
    conf = "--rdzv-conf=keep_alive_interval=2,keep_alive_max_attempt=10,leave_timeout=7"
    made = settings(conf, "--grace=8", "x")
    assert (made.group.ttl, made.group.keep_alive_interval, made.group.leave_timeout) == (20.0, 2.0, 7.0)
    assert made.rendezvous.overdue_timeout == 8 + 15
    assert settings(f"{conf},overdue_timeout=9", "--grace=8", "x").rendezvous.overdue_timeout == 9.0


def test_a_fenced_node_has_stopped_its_workers_before_the_others_go_on_without_it(settings: Parse) -> None:
    slow, stop = "--rdzv-conf=keep_alive_interval=10,keep_alive_max_attempt=5", "--on-store-loss=stop"
    assert settings(slow, "--grace=8", "x").rendezvous.overdue_timeout == 8 + 15
    assert settings(slow, stop, "--grace=8", "x").rendezvous.overdue_timeout == 8 + 0.6 * 50 + 2
    assert settings(f"{slow},overdue_timeout=41", stop, "--grace=8", "x").rendezvous.overdue_timeout == 41
    with pytest.raises(Mistake, match=r"overdue_timeout=39: .* may need 40 s .*; write overdue_timeout=40 or more"):
        settings(f"{slow},overdue_timeout=39", stop, "--grace=8", "x")


def test_last_call_overrides_torch_s_key(settings: Parse) -> None:
    conf = "--rdzv-conf=last_call_timeout=3"
    assert settings(conf, "x").rendezvous.last_call_timeout == 3.0
    assert settings("--last-call=0", "x").rendezvous.last_call_timeout == 0.0
    assert settings(conf, "--last-call=1.5", "x").rendezvous.last_call_timeout == 1.5


def test_a_node_listens_at_the_ports_that_are_named_but_for_the_store_s(settings: Parse) -> None:
    meets = ("--nnodes=2", "--rdzv-endpoint=localhost:29401")
    assert settings(*meets, "x").listening == Listening(links=True, ports=(0,))
    conf = "--rdzv-conf=peer_links=false,ports=29400-29403"
    assert settings(*meets, conf, "x").listening == Listening(links=False, ports=(29400, 29402, 29403))
    assert settings("--rdzv-conf=ports=7", "x").listening == Listening(links=False, ports=(7,))


def test_static_nodes_first_try_the_ports_after_the_master_s_from_the_last_one_down(settings: Parse) -> None:
    static = ("--nnodes=2", "--node-rank=0", "--master-addr=localhost")
    assert settings(*static, "x").listening.ports == (0,)
    assert settings(*static, "--master-port=29500", "x").listening.ports == (*range(29509, 29500, -1), 0)
    assert settings(*static, "--master-port=65534", "x").listening.ports == (65535, 0)
    assert settings(*static, "--master-port=7", "--rdzv-conf=ports=8-9", "x").listening.ports == (8, 9)
    assert settings("--master-port=29500", "x").listening.ports == (0,)


def test_the_spans_of_rdzv_conf_are_read(settings: Parse) -> None:
    made = settings("--rdzv-conf= join_timeout = 60 ,last_call_timeout=0,keep_alive_max_attempt=3", "x").rendezvous
    assert (made.join_timeout, made.last_call_timeout, made.keep_alive_max_attempt) == (60.0, 0.0, 3)


def test_each_key_of_torch_s_is_honoured_or_said_once_to_make_no_difference(
    settings: Parse, capfd: pytest.CaptureFixture[str]
) -> None:
    settings("--rdzv-conf=timeout=900,read_timeout=60,is_host=1,store_type=tcp,heartbeat_timeout=5", "x")
    lines = capfd.readouterr().err.splitlines()
    said = [line.removeprefix("elastic: --rdzv-conf: ").split(" makes no difference: ")[0] for line in lines]
    assert said == ["timeout", "read_timeout", "heartbeat_timeout"]


@pytest.mark.parametrize(
    "pair", ["heartbeat_timeout=zz", "read_timeout=-1", "timeout=abc", "ttl=no", "same_program=maybe"]
)
def test_the_value_of_each_key_is_checked_also_where_it_makes_no_difference(settings: Parse, pair: str) -> None:
    with pytest.raises(Mistake, match=f"--rdzv-conf: {pair}: write "):
        settings(f"--rdzv-conf={pair}", "x")


def test_the_ttl_is_set_by_its_parts(settings: Parse, capfd: pytest.CaptureFixture[str]) -> None:
    assert settings("--rdzv-conf=ttl=3", "x").rendezvous.ttl == 5.0
    assert "ttl makes no difference: it is keep_alive_interval × keep_alive_max_attempt" in capfd.readouterr().err


def test_a_job_may_allow_programs_of_several_names(settings: Parse) -> None:
    assert settings("x").rendezvous.same_program is Comparison.NAME
    assert settings("--rdzv-conf=same_program=false", "x").rendezvous.same_program is Comparison.NONE


def test_arguments_are_compared_where_nobody_has_named_the_job(settings: Parse) -> None:
    def compares(*options: str) -> Comparison:
        return settings("--nnodes=1:2", "--rdzv-endpoint=localhost:7", *options, "x").rendezvous.same_program

    assert compares() is Comparison.ARGUMENTS
    assert compares("--rdzv-conf=same_program=true") is Comparison.NAME
    assert compares("--rdzv-id=none") is Comparison.NAME
    assert compares("--rdzv-id=77") is Comparison.NAME


def test_an_unknown_key_is_named_with_the_nearest_one_and_the_job_goes_on(
    settings: Parse, capfd: pytest.CaptureFixture[str]
) -> None:
    settings("--rdzv-conf=give_up_after=3", "x")
    assert "'give_up_after' is not a key; did you mean --give-up-after? (known: " in capfd.readouterr().err
    settings("--rdzv-conf=last_call_time=3", "x")
    (line,) = capfd.readouterr().err.splitlines()
    begin = (
        "elastic: --rdzv-conf: 'last_call_time' is not a key; did you mean last_call_timeout? (known: join_timeout, "
    )
    assert line.startswith(begin)


def test_the_workers_inherit_the_environment(settings: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "x")
    assert settings("x").environment == dict(os.environ)


def test_the_help_has_its_sections_each_with_its_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "--help"]) == 0
    text = capfd.readouterr().out
    places = [text.index(f"\n{section.title}:\n") for section in SECTIONS] + [text.index("Everything after SCRIPT")]
    assert places == sorted(places)
    for name, option in options().items():
        section = [each.title for each in SECTIONS].index(option.section)
        assert places[section] < text.index(f"--{name}", places[section]) < places[section + 1]
    assert "--nproc_per_node" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_version_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    from elastic import __version__

    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"elastic {__version__}\n"


def test_a_report_that_cannot_be_written_leaves_the_exit_code_alone(
    nothing_left: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert run(["launch", f"--report={folder}/report.json", "--no-python", "rmdir", str(folder)]) == 0
    end, lost = capfd.readouterr().err.splitlines()[-2:]
    assert "elastic  1 worker succeeded · 0 restarts, " in end
    assert lost == f"the report could not be written: {folder}/report.json: no such file or directory"


def test_a_command_line_runs_a_job_in_this_process_and_leaves_no_signal_handler(
    nothing_left: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(signum) for signum in HANDLED]
    assert run(["launch", "--nproc-per-node=2", "--no-python", "echo", "${local_rank}"]) == 0
    assert sorted(capfd.readouterr().out.split()) == ["0", "1"]
    assert [signal.getsignal(signum) for signum in HANDLED] == before


def test_the_options_of_the_program_are_read(settings: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    by_path = settings("--run-path", "--no-python", "-m", "x").program
    assert isinstance(by_path, Program) and by_path.kind is Kind.PATH
    ranked = settings("--no-use-env", "train.py", "--lr=1").program
    assert isinstance(ranked, Program) and ranked.arguments == ("--local-rank=${local_rank}", "--lr=1")
    plain = settings("--use-env", "train.py").program
    assert isinstance(plain, Program) and plain.arguments == ()
    assert settings("x").virtual_local_rank is False
    monkeypatch.setenv("PET_VIRTUAL_LOCAL_RANK", "1")
    assert settings("x").virtual_local_rank is True
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert settings("--virtual-local-rank", "x").virtual_local_rank is True


def test_an_option_without_effect_is_accepted_and_one_line_says_so(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PET_START_METHOD", "fork")
    assert run(["launch", "--monitor-interval=1", "--on-hang=restart", "--status=off", "--no-python", "true"]) == 0
    unneeded = "every script is started as a program of its own; leave it out"
    assert capfd.readouterr().err.splitlines() == [
        f"elastic: PET_START_METHOD makes no difference: {unneeded}",
        "elastic: --on-hang makes no difference: nobody looks for hangs; write --hang-timeout=S too, or leave it out",
        "elastic: --monitor-interval makes no difference: nothing polls here, a death is seen at once; leave it out",
    ]


def test_a_master_makes_no_difference_without_a_static_rendezvous(capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--standalone", "--master-addr=a", "--status=off", "--no-python", "true")
    assert run(["launch", *options]) == 0
    assert capfd.readouterr().err == (
        "elastic: --master-addr makes no difference: only a static rendezvous has a master; leave it out\n"
    )


def test_a_master_makes_no_difference_for_one_node(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "--master-addr=a", "--status=off", "--no-python", "true"]) == 0
    assert capfd.readouterr().err == (
        "elastic: --master-addr makes no difference: one node needs no master; leave it out\n"
    )


def test_filters_make_no_difference_without_a_tee(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "--duplicate-stdout-filters=a", "--redirects=3", "--status=off", "--no-python", "true"]) == 0
    assert capfd.readouterr().err == (
        "elastic: --duplicate-stdout-filters makes no difference: only a tee'd stream is filtered; write --tee=3 too, or "
        "leave it out\n"
    )


def test_a_node_of_segments_has_their_label_or_says_that_it_is_a_spare(
    settings: Parse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--nnodes=2:4", "--rdzv-endpoint=localhost:7")
    made = settings(*place, "--segment=rack:2", "--labels=rack=r7", "x")
    assert (made.rendezvous.limits.option, made.labels) == ("--nnodes=2:4 --segment=rack:2", (("rack", "r7"),))
    assert settings(*place, "--segment=host:2", "x").labels == ()
    assert capsys.readouterr().err == ""
    settings(*place, "--segment=rack:2", "x")
    why = "this node has no label rack, so the node is a spare; write --labels=rack=VALUE"
    assert capsys.readouterr().err == f"elastic: --segment=rack:2: {why}\n"
    monkeypatch.setattr("elastic.cli.agent_settings.nvlink_domain", lambda: None)
    settings(*place, "--segment=nvlink:2", "x")
    assert "--segment=nvlink:2: NVML knows no NVLink domain of this host" in capsys.readouterr().err
    monkeypatch.setattr("elastic.cli.agent_settings.nvlink_domain", lambda: "u.1")
    assert settings(*place, "--segment=nvlink:2", "--labels=a=b", "x").labels == (("a", "b"), ("nvlink", "u.1"))
