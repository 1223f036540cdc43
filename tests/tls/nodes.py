"""A broker node that serves TLS, and connections to it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

from disqued.testing.certificates import Authority
from disqued.testing.processes import ServerProcess

PASSWORD = "pass of the key"
"""The password of encrypted keys."""


def trusting(authority: Authority, name: str = "") -> ssl.SSLContext:
    """What a client uses that trusts an authority; `name` is the certificate that it has."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if name:
        context.load_cert_chain(authority.directory / f"{name}.crt", authority.directory / f"{name}.key")
    return context


class TlsNode(ServerProcess):
    """A node whose files are `node.crt`, `node.key` and `ca.crt` in its directory."""

    def __init__(
        self,
        directory: Path,
        authority: Authority,
        tls_port: int,
        *arguments: str,
        clients: str = "no",
        launcher: Sequence[str] = (),
    ) -> None:
        self.tls_port = tls_port
        self.authority = authority
        super().__init__(
            directory,
            *("--tls-port", str(tls_port), "--tls-cert-file", "node.crt", "--tls-key-file", "node.key"),
            *("--tls-ca-cert-file", "ca.crt", "--tls-auth-clients", clients, *arguments),
            port=tls_port if "--port" in arguments else None,
            launcher=launcher,
        )

    def dial(self, context: ssl.SSLContext | None = None, port: int | None = None) -> ssl.SSLSocket:
        """A connection with TLS."""
        raw = socket.create_connection(("127.0.0.1", port or self.tls_port), timeout=10)
        try:
            return (context or trusting(self.authority)).wrap_socket(raw, server_hostname="localhost")
        except BaseException:
            raw.close()
            raise

    def serial(self) -> str:
        """The serial number of the certificate that new connections get."""
        with self.dial() as connection:
            certificate = connection.getpeercert()
            assert certificate is not None
            return str(certificate["serialNumber"])

    def replace(self, name: str, *, key: Path | None = None) -> None:
        """Replace the node's certificate and key by those of another name, or by an encrypted copy of its key."""
        for suffix in ("crt", "key"):
            new = self.directory / f"new.{suffix}"
            source = key if key is not None and suffix == "key" else self.authority.directory / f"{name}.{suffix}"
            new.write_bytes(source.read_bytes())
            new.replace(self.directory / f"node.{suffix}")


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send an inline command; returns what arrives first."""
    connection.sendall(request + b"\r\n")
    return connection.recv(1 << 16)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the end of the stream."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def refuses(node: TlsNode, context: ssl.SSLContext | None = None) -> bool:
    """Whether the node refuses a connection with these settings, in the handshake or right after it."""
    try:
        with node.dial(context) as connection:
            return ask(connection, b"PING") == b""
    except (ssl.SSLError, ConnectionError):
        return True
