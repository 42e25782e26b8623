"""How a client and an etcd identify each other: certificates, user and password.

No text here contains a secret. `diagnosed` finds the cause of a failed connection by hand, because gRPC says "failed to
connect" to a wrong authority, a missing certificate and a web server alike.
"""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

from attrs import field

from ....core.values import frozen
from ...terminal import why
from ..port import Denied
from ..tcpstore.wire import Address

_VERSION_MAX = 4_096
_NO_TLS = "it does not speak TLS; write http:// or leave cacert, cert and key out"


class Unusable(Denied):
    """A file of the credentials cannot be used. The text says which, and why."""


@frozen
class Access:
    """The credentials: paths of PEM files, user and password. None is not used."""

    tls: bool = False
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of these files. Raises Unusable for a file that is not what it should be."""
        made = self._trusting()
        made.set_alpn_protocols(["http/1.1"])
        if self.cert and self.key:
            try:
                made.load_cert_chain(self.cert, self.key, password="")
            except ssl.SSLError as error:
                raise Unusable(f"cert={self.cert},key={self.key}: {_reason(error)}") from None
            except OSError as error:
                raise Unusable(f"cert={self.cert},key={self.key}: {why(error)}") from None
        return made

    def _trusting(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.cacert)
        except ssl.SSLError as error:
            raise Unusable(f"cacert={self.cacert}: no certificate in PEM form ({_reason(error)})") from None
        except OSError as error:
            raise Unusable(f"cacert={self.cacert}: {why(error)}") from None

    def read(self) -> tuple[bytes | None, ...]:
        """Return the certificates that we trust (those given, or this host's), our private key and our certificate chain.
        Raises Unusable."""
        trusted = self.cacert or ssl.get_default_verify_paths().cafile
        own = (self.key, self.cert) if self.cert and self.key else (None, None)
        try:
            return tuple(Path(path).read_bytes() if path else None for path in (trusted, *own))
        except OSError as error:
            raise Unusable(f"{error.filename}: {why(error)}") from None


def diagnosed(address: Address, access: Access, timeout_s: float) -> str | None:
    """Return why a connection to this address fails, with the remedy; None if nothing listens, or no cause is found."""
    try:
        with socket.create_connection((address.host, address.port), timeout_s) as raw:
            if not access.tls:
                return _asked_plainly(raw, address, timeout_s)
            try:
                made = access.context().wrap_socket(raw, server_hostname=address.host)
            except ConnectionError:
                return _reset(address, timeout_s)
            with made:
                return _asked_for_its_version(made)
    except ssl.SSLCertVerificationError as error:
        return (
            f"its certificate is not to be trusted ({error.verify_message}); cacert= must be the authority that signed "
            "it, and the clocks of both hosts right"
        )
    except ssl.SSLError as error:
        return _unsafe(error, access)
    except OSError:
        return None


def _unsafe(error: ssl.SSLError, access: Access) -> str:
    reason = _reason(error)
    if "WRONG_VERSION_NUMBER" in str(error) or "UNEXPECTED_EOF" in str(error) or "http request" in reason:
        return _NO_TLS
    if access.cert:
        return (
            f"it refuses our certificate ({reason}); cert= must be signed by the authority that it trusts, be good for "
            "clients, and not be expired"
        )
    return f"it asks for a client's certificate ({reason}); write cert=FILE,key=FILE"


def _reset(address: Address, timeout_s: float) -> str | None:
    """Diagnose a server that ended the connection after a greeting in TLS."""
    with socket.create_connection((address.host, address.port), timeout_s) as plain:
        return _NO_TLS if _answer(plain) and not _speaks_tls(address, timeout_s) else None


def _asked_plainly(connection: socket.socket, address: Address, timeout_s: float) -> str | None:
    answer = _answer(connection)
    if not answer and _speaks_tls(address, timeout_s):
        return "it speaks TLS; write https://HOST:PORT, and cacert=FILE"
    return _judged(answer) if answer else None


def _speaks_tls(address: Address, timeout_s: float) -> bool:
    """Return True if the server speaks TLS. It is sent no secret, so its certificate is not checked."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((address.host, address.port), timeout_s) as raw, anybody.wrap_socket(raw):
            return True
    except ssl.SSLError as error:
        return "alert" in _reason(error)
    except OSError:
        return False


def _asked_for_its_version(connection: ssl.SSLSocket) -> str | None:
    return _judged(_answer(connection))


def _answer(connection: socket.socket) -> bytes:
    """Ask for the version, which each etcd tells on its port for clients. Returns the answer."""
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")
    answer = b""
    while len(answer) < _VERSION_MAX and (piece := connection.recv(_VERSION_MAX)):
        answer += piece
    return answer


def _judged(answer: bytes) -> str | None:
    body = answer.partition(b"\r\n\r\n")[2]
    try:
        version = json.loads(body)["etcdserver"]
    except (ValueError, KeyError, TypeError):
        return "what listens there is no etcd; name the port of etcd's clients, 2379 if it was not moved"
    if str(version).startswith(("0.", "2.")):
        return f"it is etcd {version}, which serves the v2 API only; elastic needs etcd 3.4 or later"
    return None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
