"""Certificates for tests, by the openssl command line: an authority, and what it signs for servers and clients."""

from __future__ import annotations

import subprocess
from pathlib import Path

from attrs import define, field, frozen

LOOPBACK = ("127.0.0.1", "localhost")
EXPIRED_DAYS = -1
"""A certificate of so many days ended yesterday."""


@frozen
class Certificate:
    """PEM files: a certificate and its key."""

    certificate: Path
    key: Path


@define
class Authority:
    """A CA of its own in this folder. `hosts` are the names and addresses that the servers' certificate is good for."""

    folder: Path
    hosts: tuple[str, ...] = LOOPBACK
    ca: Path = field(init=False)
    server: Certificate = field(init=False)
    client: Certificate = field(init=False)
    expired: Certificate = field(init=False)
    """A client's, as good as `client` was until yesterday."""

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        own = self._request("ca", "authority")
        self.ca = own.certificate
        _openssl("req", "-x509", "-days", "2", *_names("authority"), "-key", own.key, "-out", own.certificate)
        self.server = self.signed("server", "server", 2)
        self.client = self.signed("client", "client", 2)
        self.expired = self.signed("expired", "client", EXPIRED_DAYS)

    def signed(self, file: str, common_name: str, days: int = 2) -> Certificate:
        """A certificate of this authority, for a server at `hosts` as well as for a client of this name."""
        made, request = self._request(file, common_name), self.folder / f"{file}.csr"
        extensions = self.folder / f"{file}.ext"
        kinds = ",".join(f"{'IP' if host.replace('.', '').isdigit() else 'DNS'}:{host}" for host in self.hosts)
        extensions.write_text(f"subjectAltName={kinds}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl(
            *("x509", "-req", "-days", str(days), "-in", request, "-CA", self.ca, "-CAkey", self.folder / "ca.key"),
            *("-CAcreateserial", "-extfile", extensions, "-out", made.certificate),
        )
        return made

    def _request(self, file: str, common_name: str) -> Certificate:
        key = self.folder / f"{file}.key"
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        _openssl("req", "-new", *_names(common_name), "-key", key, "-out", self.folder / f"{file}.csr")
        return Certificate(self.folder / f"{file}.crt", key)


def _names(common_name: str) -> tuple[str, ...]:
    return "-subj", f"/CN={common_name}"


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {arguments}: {done.stderr}"
