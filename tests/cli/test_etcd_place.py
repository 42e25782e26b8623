"""The options of an etcd: its members, what the agent signs in with, and that no secret is repeated."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commandlines
import pytest
from certificates import Authority

from elastic.adapters.launch_settings import LaunchSettings
from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.tcpstore.wire import Address
from elastic.cli import places, tokens, values
from elastic.cli.etcd_place import EtcdPlace
from elastic.cli.main import run

SECRET = "s3cr3t,w0rd"
ID = "--rdzv-id=job7"
ETCD = ("--rdzv-backend=etcd", ID)


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        pass


def place(*arguments: str, **environment: str) -> EtcdPlace:
    made = places.place(commandlines.options(*arguments), environment)
    assert isinstance(made, EtcdPlace)
    return made


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


THREE = (Address("h1", 2_379), Address("h2", 2_380), Address("::1", 2_379))


@pytest.mark.parametrize(
    ("arguments", "tls"),
    [
        (("--rdzv-backend=etcd", "--rdzv-endpoint=h1,h2:2380,[::1]"), False),
        (("--rdzv-endpoint=etcd://h1,h2:2380,[::1]:2379/",), False),
        (("--rdzv-endpoint=etcd://h1, etcd://h2:2380 ,etcd://[::1]",), False),
        (("--rdzv-backend=etcd", "--rdzv-endpoint=http://h1:2379,http://h2:2380,http://[::1]"), False),
        (("--rdzv-backend=etcd", "--rdzv-endpoint=https://h1:2379/,https://h2:2380,https://[::1]"), True),
    ],
)
def test_members_of_an_etcd_are_given_bare_or_as_urls(arguments: tuple[str, ...], tls: bool) -> None:
    made = place(*arguments, ID)
    assert made.addresses == THREE
    assert made.access == Access(tls)
    assert made.name == "h1:2379,h2:2380,[::1]:2379"


def test_an_etcd_tells_silence_by_leases(settings: Callable[..., LaunchSettings]) -> None:
    made = settings(*ETCD, "--rdzv-endpoint=localhost", "--nnodes=2", "x")
    assert made.rendezvous.leased
    assert (made.run_id, made.store, made.address) == ("job7", "localhost:2379", "localhost")
    assert not settings("--rdzv-endpoint=localhost", "--nnodes=2", "x").rendezvous.leased


def test_certificates_mean_tls(authority: Authority) -> None:
    ca, made = authority.ca, authority.client
    conf = f"--rdzv-conf=cacert={ca},cert={made.certificate},key={made.key}"
    access = place(*ETCD, "--rdzv-endpoint=h1", conf).access
    assert access == Access(True, str(ca), str(made.certificate), str(made.key))


def test_a_password_comes_from_a_file_or_the_environment(password_file: Path) -> None:
    user = "--rdzv-conf=user=ann"
    from_file = place(*ETCD, "--rdzv-endpoint=h1", f"{user},password_file={password_file}", ELASTIC_ETCD_PASSWORD="z")
    from_environment = place(*ETCD, "--rdzv-endpoint=h1", user, ELASTIC_ETCD_PASSWORD=SECRET)
    assert from_file.access == from_environment.access == Access(user="ann", password=SECRET)
    assert SECRET not in repr(from_file) and SECRET not in str(from_file)


def test_a_password_without_a_user_is_ignored() -> None:
    assert place(*ETCD, "--rdzv-endpoint=h1", ELASTIC_ETCD_PASSWORD=SECRET).access == Access()


MISTAKES = [
    (
        "--rdzv-backend=etcd --rdzv-id=a",
        "--rdzv-backend=etcd: name its members; write --rdzv-endpoint=HOST:2379,HOST:2379",
    ),
    (
        "--rdzv-backend=etcd --rdzv-endpoint=h1",
        (
            "--rdzv-id: it tells the jobs in an etcd apart; write --rdzv-id=NAME, the same on all nodes and another for "
            "each job"
        ),
    ),
    (
        "--rdzv-endpoint=h1,h2 --nnodes=2",
        (
            "--rdzv-endpoint: a TCPStore is served at one HOST:PORT; several, or a URL, are an etcd's: write "
            "--rdzv-backend=etcd"
        ),
    ),
    (
        "--rdzv-endpoint=https://h1 --nnodes=2",
        (
            "--rdzv-endpoint: a TCPStore is served at one HOST:PORT; several, or a URL, are an etcd's: write "
            "--rdzv-backend=etcd"
        ),
    ),
    (
        "--rdzv-backend=c10d --rdzv-endpoint=etcd://h1 --rdzv-id=a",
        (
            "--rdzv-backend=c10d: --rdzv-endpoint is an etcd's (etcd://); write --rdzv-backend=etcd, or an endpoint without "
            "etcd://"
        ),
    ),
    (
        "--rdzv-endpoint=http://h1,https://h2",
        "--rdzv-endpoint=http://h1,https://h2: http and https are mixed; write one of them everywhere",
    ),
    (
        "--rdzv-endpoint=h1,,h2",
        "--rdzv-endpoint=h1,,h2: an address is missing; write HOST:PORT,HOST:PORT",
    ),
    (
        "--rdzv-endpoint=http://h1 --rdzv-backend=etcd --rdzv-id=a --rdzv-conf=cacert=/ca",
        "--rdzv-endpoint: http:// has no certificates; write https://, or leave them out",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=cert=/c",
        "--rdzv-conf: a certificate and its key belong together; write cert=FILE,key=FILE",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=user=ann",
        "--rdzv-conf: user=ann: its password is missing; write password_file=FILE, or set ELASTIC_ETCD_PASSWORD",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=password_file=/dev/null",
        "--rdzv-conf: password_file: whose password? write user=NAME,password_file=FILE",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=user=ann,password_file=/dev/null",
        "--rdzv-conf: password_file=/dev/null: is empty; name a file that holds the password",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=user=ann,password_file=/nowhere",
        "--rdzv-conf: password_file=/nowhere: no such file or directory; name a file that holds the password",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=cacert=/nowhere",
        "--rdzv-conf: cacert=/nowhere: no such file or directory; name files in PEM form, without a password",
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=cacert=/dev/null",
        (
            "--rdzv-conf: cacert=/dev/null: no certificate in PEM form (no certificate or crl found); name files in PEM "
            "form, without a password"
        ),
    ),
    (
        "--rdzv-endpoint=etcd://h1 --rdzv-id=a --rdzv-conf=cert=/nowhere,key=/nowhere",
        "--rdzv-conf: cert=/nowhere,key=/nowhere: no such file or directory; name files in PEM form, without a password",
    ),
]


@pytest.mark.parametrize(("words", "answer"), MISTAKES, ids=[words for words, _ in MISTAKES])
def test_a_mistake_about_an_etcd_is_answered_with_the_remedy(
    words: str, answer: str, mistake: Callable[..., str]
) -> None:
    assert mistake(*words.split(), "x") == answer


def test_a_key_of_another_certificate_is_a_mistake(authority: Authority, mistake: Callable[..., str]) -> None:
    cert, key = authority.client.certificate, authority.server.key
    answer = mistake(*ETCD, "--rdzv-endpoint=h1", f"--rdzv-conf=cert={cert},key={key}", "x")
    assert (
        answer == f"--rdzv-conf: cert={cert},key={key}: key values mismatch; name files in PEM form, without a password"
    )


SPOKEN = [
    (f"--rdzv-conf=user=ann,password={SECRET}", "--rdzv-conf=user=ann,password=***: every user of this host can read"),
    (f"--rdzv-conf=password = {SECRET}", "--rdzv-conf=password =***: every user of this host can read it there; write"),
    (f"--rdzv-endpoint=https://ann:{SECRET}@h1:2379", "--rdzv-endpoint=https://***h1:2379: write HOST or HOST:PORT"),
]


@pytest.mark.parametrize(("word", "answer"), SPOKEN)
@pytest.mark.parametrize("backend", ["etcd", "c10d"])
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    word: str, answer: str, backend: str, mistake: Callable[..., str]
) -> None:
    said = mistake(f"--rdzv-backend={backend}", ID, word, "x")
    assert said.startswith(answer)
    assert not any(part in said for part in SECRET.split(","))


def test_keys_for_an_etcd_are_unknown_for_other_backends(
    capfd: pytest.CaptureFixture[str], settings: Callable[..., LaunchSettings]
) -> None:
    settings(*ETCD, "--rdzv-endpoint=localhost", "--rdzv-conf=user=ann,password_file=/etc/hostname", "x")
    assert capfd.readouterr().err == ""
    settings("--rdzv-endpoint=localhost", "--rdzv-conf=user=ann", "x")
    assert "--rdzv-conf: 'user' is not a key" in capfd.readouterr().err


def test_a_token_for_an_etcd_makes_no_difference_and_a_line_says_so(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 2)
    token.chmod(0o600)
    options = commandlines.options(*ETCD, "--rdzv-endpoint=h1", f"--rdzv-conf=token_file={token}")
    places.place(options, {}, tokens.store_token(options.rdzv_conf, {}))
    assert capfd.readouterr().err == (
        "elastic: the store's token makes no difference: an etcd's users and certificates decide who may write to it; "
        "write user=NAME,password_file=FILE or cacert=FILE,cert=FILE,key=FILE into --rdzv-conf\n"
    )


def test_an_etcd_that_refuses_the_agent_is_a_mistake_before_anything_starts(capfd: pytest.CaptureFixture[str]) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        code: Any = run(["launch", *ETCD, f"--rdzv-endpoint=127.0.0.1:{server.server_port}", "x"])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert err == (
        f"elastic: --rdzv-endpoint: etcd at 127.0.0.1:{server.server_port}: what listens there is no etcd; name the port of "
        "etcd's clients, 2379 if it was not moved\n"
    )


def test_several_endpoints_are_read_like_one() -> None:
    assert values.endpoints(" ") is None
    assert values.endpoints("a:1") == values.Endpoints(None, (("a", 1),))
