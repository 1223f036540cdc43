"""TLS of the clients: the settings for connections, and what the URLs of nodes say."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

SCHEMES: Final = {"disque": False, "disques": True}
"""The schemes of URLs, and whether they mean TLS."""


def tls_context(
    *,
    cafile: str | None = None,
    certfile: str | None = None,
    keyfile: str | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """Return settings for TLS that verify the node and its name.

    Args:
        cafile: PEM file of the authorities to trust; None for those of the system.
        certfile: PEM file with the certificate of this client, for nodes that require one.
        keyfile: PEM file with its key, which is not encrypted; None if `certfile` contains it.
        insecure: Accept any certificate. A program that intercepts the connection can then read and change it.

    Raises:
        OSError: a file cannot be read, or contains no certificate or key that fits (`ssl.SSLError`).
    """
    context = ssl.create_default_context(cafile=cafile)
    if certfile is not None:
        key = keyfile or certfile

        def refuse() -> str:
            raise ssl.SSLError(f"the key in {key} is encrypted: only keys without a password can be used")

        context.load_cert_chain(certfile, keyfile, password=refuse)  # by default OpenSSL asks on the terminal
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True, slots=True)
class Target:
    """What the addresses of a client say: the nodes, whether to use TLS, and the user with its password."""

    nodes: tuple[str, ...]
    tls: bool = False
    user: str | None = None
    password: str | None = None


def parse_nodes(nodes: Sequence[str]) -> Target:
    """Separate URLs of nodes from what they say about all connections.

    Raises:
        ValueError: a URL is invalid, or the URLs contradict each other.
    """
    found = [_parse_url(text) if _is_url(text) else Target((text,)) for text in nodes]
    said = {(one.tls, one.user, one.password) for one in found}
    if len(said) > 1:
        raise ValueError("the addresses of the nodes must agree about TLS, user and password")
    return Target(tuple(node for one in found for node in one.nodes), *(said.pop() if said else ()))


_INVALID: Final = (
    "invalid URL of a node; use disque://[user:password@]host[:port], or disques:// for TLS, with %2F for / in the "
    "password"
)


def _is_url(text: str) -> bool:
    """Whether a text is a URL and not an address, of which errors show all. With a login it is one without a scheme."""
    return "://" in text or ("@" in text and not text.startswith("/"))


def _parse_url(text: str) -> Target:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(_INVALID) from None  # the error may quote a part of the password, as the URL does
    if parts.scheme not in SCHEMES or not parts.hostname or parts.path not in {"", "/"}:
        raise ValueError(_INVALID)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user = unquote(parts.username) if parts.username else None
    password = None if parts.password is None else unquote(parts.password)
    return Target((host if port is None else f"{host}:{port}",), SCHEMES[parts.scheme], user, password)
