"""Who may speak to an etcd, and what is said to whom it will not have: each against a real server."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from certificates import EXPIRED_DAYS, Authority, Certificate
from conformance import born, fault, grown
from etcd_clients import PATIENT_S, PLAIN, access, addresses, clients, made
from etcds import Cluster, single
from worlds import node

from elastic.adapters.store.etcd.access import Access, Unusable, diagnosed
from elastic.adapters.store.notes import FAULTS
from elastic.adapters.store.port import Denied, OutOfReach
from elastic.adapters.store.tcpstore.wire import Address

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("another"))


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Cluster]:
    """TLS, and clients must have a certificate."""
    with single(tmp_path_factory.mktemp("safe"), authority) as etcd:
        yield etcd


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with single(tmp_path_factory.mktemp("plain")) as etcd:
        yield etcd


def denied(those: list[Address], access: Access) -> str:
    """Why it will not have us."""
    client = made(those, "run", access, PATIENT_S)
    try:
        with pytest.raises(Denied) as refusal:
            client.probe()
        with pytest.raises(OutOfReach):
            client.get()
        return str(refusal.value)
    finally:
        client.close()


def test_with_a_certificate_that_is_trusted_all_is_done_over_tls(safe: Cluster, authority: Authority) -> None:
    with clients(safe, access=access(authority, authority.client)) as client:
        one = client()
        one.probe()
        one.set(born(), None)
        assert one.set(grown(born(), "b"), born().token).state == client().get().state
        one.heartbeat(node("a"), 1)
        one.notes.add(FAULTS, fault("a"))
        assert client().heartbeats([node("a")]).counters == {node("a"): 1}


def test_the_files_are_read_once_so_they_may_go_while_the_job_runs(
    safe: Cluster, authority: Authority, tmp_path: Path
) -> None:
    pem = shutil.copytree(authority.folder, tmp_path / "pem")
    own = Certificate(pem / "client.crt", pem / "client.key")
    with clients(safe, access=access(authority, own, pem / "ca.crt")) as client:
        one = client()
        shutil.rmtree(pem)
        assert one.set(born(), None).state == born()
        with closing(one.clone()) as another:
            assert another.get().state == born()
        with pytest.raises(Unusable, match=r"^.*/ca\.crt: no such file or directory$"):
            client()


def test_a_server_of_another_authority_is_not_trusted(safe: Cluster, authority: Authority, another: Authority) -> None:
    said = denied(addresses(safe), access(authority, authority.client, ca=another.ca))
    assert re.fullmatch(
        rf"etcd at {safe.endpoints}: its certificate is not to be trusted \(unable to get local issuer certificate\); "
        r"cacert= must be the authority that signed it, and the clocks of both hosts right",
        said,
    )


def test_a_server_whose_certificate_has_expired_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    client = authority.client
    authority.server = authority.signed("old", "server", EXPIRED_DAYS)
    with single(tmp_path / "etcd", authority) as etcd:
        said = denied(addresses(etcd), access(authority, client))
    assert "its certificate is not to be trusted (certificate has expired)" in said
    assert "the clocks of both hosts right" in said


def test_a_server_of_another_name_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority", hosts=("elsewhere.example",))
    with single(tmp_path / "etcd", authority) as etcd:
        said = denied(addresses(etcd), access(authority, authority.client))
    assert "its certificate is not to be trusted (IP address mismatch" in said


def test_who_has_no_certificate_is_asked_for_one(safe: Cluster, authority: Authority) -> None:
    said = denied(addresses(safe), access(authority))
    assert said.startswith(f"etcd at {safe.endpoints}: it asks for a client's certificate (")
    assert said.endswith("; write cert=FILE,key=FILE")


@pytest.mark.parametrize("which", ["expired", "another's"])
def test_a_certificate_that_is_not_good_is_refused(
    safe: Cluster, authority: Authority, another: Authority, which: str
) -> None:
    own = authority.expired if which == "expired" else another.client
    said = denied(addresses(safe), access(authority, own))
    assert said.startswith(f"etcd at {safe.endpoints}: it refuses our certificate (")
    assert said.endswith(
        "; cert= must be signed by the authority that it trusts, be good for clients, and not be expired"
    )


def test_who_speaks_without_tls_to_a_server_with_it_is_told(safe: Cluster) -> None:
    said = denied(addresses(safe), PLAIN)
    assert said == f"etcd at {safe.endpoints}: it speaks TLS; write https://HOST:PORT, and cacert=FILE"


def test_who_speaks_tls_to_a_server_without_it_is_told(plain: Cluster, authority: Authority) -> None:
    said = denied(addresses(plain), access(authority, authority.client))
    assert said == (
        f"etcd at {plain.endpoints}: it does not speak TLS; write http:// or leave cacert, cert and key out"
    )


@contextmanager
def resetting_server(answer: bytes = b"", later: ssl.SSLContext | None = None) -> Iterator[Address]:
    """Resets who greets it in TLS, only the first if `later` shakes hands; a plain question has its answer, or is reset."""

    def serve() -> None:
        greetings = 0
        while True:
            connection, _ = server.accept()
            with connection:
                first = connection.recv(1, socket.MSG_PEEK)
                if not first:
                    return
                greetings += first == HANDSHAKE
                if first == HANDSHAKE and later and greetings > 1:
                    later.wrap_socket(connection, server_side=True).close()
                elif first == HANDSHAKE or not answer:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    for line in connection.makefile("rb"):
                        if line == b"\r\n":
                            break
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Address("127.0.0.1", server.getsockname()[1])
        finally:
            socket.create_connection(server.getsockname()).close()
            thread.join()


HANDSHAKE = b"\x16"
"""What a TLS record begins with that greets."""


def test_who_speaks_tls_to_a_server_without_it_that_resets_him_is_told(authority: Authority) -> None:
    with resetting_server(b'HTTP/1.1 200 OK\r\n\r\n{"etcdserver": "3.4.23"}') as address:
        said = diagnosed(address, access(authority, authority.client), timeout_s=PATIENT_S)
    assert said == "it does not speak TLS; write http:// or leave cacert, cert and key out"


def test_who_was_reset_once_by_a_server_with_tls_is_not_told_to_do_without(authority: Authority) -> None:
    """Which may answer a plain question too, by a refusal."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server.certificate, authority.server.key)
    with resetting_server(b"HTTP/1.0 400 Bad Request\r\n\r\n", later=tls) as address:
        assert diagnosed(address, access(authority, authority.client), timeout_s=PATIENT_S) is None


def test_of_a_server_that_resets_everybody_nothing_is_said(authority: Authority) -> None:
    with resetting_server() as address:
        assert diagnosed(address, access(authority, authority.client), timeout_s=PATIENT_S) is None
        assert diagnosed(address, PLAIN, timeout_s=PATIENT_S) is None


def test_files_that_are_no_certificates_are_named_before_anything_is_asked(
    authority: Authority, another: Authority, tmp_path: Path
) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_text("garbage")
    own = authority.client
    for wrong, text in (
        (Access(True, str(garbage)), f"cacert={garbage}: no certificate in PEM form"),
        (Access(True, str(tmp_path / "nowhere")), "nowhere: no such file or directory"),
        (Access(True, None, str(garbage), str(own.key)), f"cert={garbage},key={own.key}: "),
        (Access(True, None, str(own.certificate), str(another.client.key)), "key values mismatch"),
    ):
        with pytest.raises(Unusable, match=re.escape(text)):
            wrong.context()


# --- users


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Asks for a user: ann may use elastic/, bob nothing."""
    with single(tmp_path_factory.mktemp("guarded")) as etcd:
        for words in (
            ("role", "add", "elastic"),
            ("role", "grant-permission", "elastic", "readwrite", "elastic/", "--prefix=true"),
            ("user", "add", f"ann:{PASSWORD}"),
            ("user", "grant-role", "ann", "elastic"),
            ("user", "add", f"bob:{PASSWORD}"),
            ("user", "add", "root:root"),
            ("user", "grant-role", "root", "root"),
            ("auth", "enable"),
        ):
            etcd.etcdctl(*words)
        etcd.user = "root:root"
        yield etcd


def test_who_does_not_say_who_he_is_is_asked(guarded: Cluster) -> None:
    assert denied(addresses(guarded), PLAIN) == (
        f"etcd at {guarded.endpoints}: it asks for a user; write --rdzv-conf=user=NAME,password_file=FILE"
    )


@pytest.mark.parametrize("user", ["ann", "nobody"])
def test_a_wrong_password_is_named_without_being_said(guarded: Cluster, user: str) -> None:
    said = denied(addresses(guarded), Access(user=user, password="wrong-secret"))
    assert said == (
        f"etcd at {guarded.endpoints}: it refuses user {user} with this password; see password_file=, or "
        "ELASTIC_ETCD_PASSWORD"
    )
    assert "wrong-secret" not in said


def test_a_role_without_permission_is_named_with_the_command_that_gives_it(guarded: Cluster) -> None:
    said = denied(addresses(guarded), Access(user="bob", password=PASSWORD))
    assert said == (
        f"etcd at {guarded.endpoints}: user bob may not read and write elastic/run/; write: etcdctl role grant-permission "
        "ROLE readwrite elastic/ --prefix=true"
    )


def test_who_names_a_user_where_none_is_asked_for_is_let_in(plain: Cluster) -> None:
    with clients(plain, access=Access(user="ann", password=PASSWORD)) as client:
        client().set(born(), None)
        assert client().get().state == born()


# --- what is no etcd


@contextmanager
def web_server(version: dict[str, str] | None) -> Iterator[Address]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if version is None:
                self.send_error(404)
                return
            body = json.dumps(version).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Address("127.0.0.1", server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_web_server_is_no_etcd() -> None:
    with web_server(None) as address:
        assert denied([address], PLAIN) == (
            f"etcd at {address}: what listens there is no etcd; name the port of etcd's clients, 2379 if it was not moved"
        )


def test_an_etcd_of_the_days_before_v3_is_named_with_its_version() -> None:
    """As etcd 2.3.8 answers; its kind is no longer to be had."""
    with web_server({"etcdserver": "2.3.8", "etcdcluster": "2.3.0"}) as address:
        assert denied([address], PLAIN) == (
            f"etcd at {address}: it is etcd 2.3.8, which serves the v2 API only; elastic needs etcd 3.4 or later"
        )


def test_who_listens_and_says_nothing_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = made([Address("127.0.0.1", server.getsockname()[1])], "run", PLAIN)
        try:
            with pytest.raises(OutOfReach, match=r"timed out|silent for"):
                client.probe()
        finally:
            client.close()


def test_of_several_members_one_that_is_right_is_enough(plain: Cluster) -> None:
    with web_server(None) as wrong, clients([wrong, *addresses(plain)]) as client:
        one = client()
        one.probe()
        one.set(born(), None)
        assert one.get().state == born()
