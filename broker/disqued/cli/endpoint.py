"""The server to connect to: from options, from a URL, from the environment.

Options take precedence over the environment (`DISQUE_HOST`, `DISQUE_PORT`, `DISQUE_USER`, `DISQUE_PASSWORD`,
`DISQUE_TLS`, `DISQUE_CACERT`, `DISQUE_CERT`, `DISQUE_KEY`, `DISQUE_SNI`), which takes precedence over the defaults.
Pass a password in the environment, because all users of the machine can see arguments, or in a file that
`DISQUE_PASSWORD_FILE` names, such as a mounted secret. The file is read at each start, so it can change.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7711
MAX_PORT = 65535


@dataclass(frozen=True)
class Tls:
    """How to use TLS: files in PEM format. Without `cacert` the authorities of the system are trusted."""

    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    """Accept any certificate."""
    server_name: str | None = None
    """The name that the certificate must be valid for; None for the host."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a server and its password. The `path` of a Unix socket takes precedence over host and port."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    path: str | None = None
    password: str | None = None
    user: str | None = None
    tls: Tls | None = None
    """None for a connection without TLS."""

    def at(self, host: str, port: int) -> Endpoint:
        """Another node, which is reached in the same way, but has a name of its own."""
        tls = None if self.tls is None else replace(self.tls, server_name=None)
        return replace(self, host=host or self.host, port=port, path=None, tls=tls)

    def __str__(self) -> str:
        """The address as prompts and messages show it: `host:port`, `[ip6]:port` or the path."""
        if self.path is not None:
            return self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def endpoint_options() -> argparse.ArgumentParser:
    """Return the options that select a server, as a parent of other parsers."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    group = parser.add_argument_group("connection")
    add = group.add_argument
    # Options without a value set nothing, so options before and after the name of a subcommand are merged.
    add("-h", dest="host", default=argparse.SUPPRESS, help=f"server host (default: DISQUE_HOST, or {DEFAULT_HOST})")
    add(
        "-p",
        dest="port",
        default=argparse.SUPPRESS,
        type=port,
        help=f"server port (default: DISQUE_PORT, or {DEFAULT_PORT})",
    )
    add("-s", dest="path", default=argparse.SUPPRESS, metavar="SOCKET", help="Unix socket (overrides host and port)")
    add(
        "-a",
        dest="password",
        default=argparse.SUPPRESS,
        help="password (use DISQUE_PASSWORD to hide it from other users)",
    )
    add(
        "-u",
        dest="url",
        default=argparse.SUPPRESS,
        type=parse_url,
        metavar="URL",
        help="server URL: disque://[[USER]:PASSWORD@]HOST[:PORT], disques:// for TLS, unix:///PATH or a path",
    )
    add_login_options(parser)
    add(
        "--sni",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="name in the certificate (default: DISQUE_SNI, or host)",
    )
    return parser


def add_login_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say as whom and how to connect to any server."""
    login = parser.add_argument_group("login").add_argument
    login("--user", default=argparse.SUPPRESS, help="user name (default: DISQUE_USER, or the default user)")
    tls = parser.add_argument_group("TLS").add_argument
    tls("--tls", action="store_true", default=argparse.SUPPRESS, help="use TLS (default: if DISQUE_TLS is yes)")
    for name, what in (
        ("cacert", "PEM file of the authorities to trust (default: DISQUE_CACERT, or those of the system)"),
        ("cert", "PEM file with the certificate of the client (default: DISQUE_CERT)"),
        ("key", "PEM file with its key (default: DISQUE_KEY, or the file of --cert)"),
    ):
        tls(f"--{name}", dest=name, default=argparse.SUPPRESS, metavar="FILE", help=what)
    tls(
        "--insecure",
        action="store_true",
        default=argparse.SUPPRESS,
        help="accept any certificate: whoever intercepts the connection can read and change it",
    )


def port(text: str) -> int:
    """A TCP port, 0 to 65535."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port number (0 to {MAX_PORT})")
    return number


def parse_url(text: str) -> Endpoint:
    """Parse a URL, or a path that begins with `/` or `.`."""
    if text.startswith(("/", ".")):
        return Endpoint(path=text)
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  slower to import than this whole package

    try:
        parts = urlsplit(text)
        number = parts.port
    except ValueError:
        raise _invalid(text) from None  # the error may quote a part of the password
    password = None if parts.password is None else unquote(parts.password)
    if parts.scheme == "unix" and parts.path:
        return Endpoint(path=unquote(parts.path), password=password)
    if parts.scheme not in {"disque", "disques"} or parts.path not in {"", "/"}:
        raise _invalid(text)
    host, at = parts.hostname or DEFAULT_HOST, DEFAULT_PORT if number is None else number
    user = unquote(parts.username) if parts.username else None
    return Endpoint(host, at, None, password, user, Tls() if parts.scheme == "disques" else None)


def _invalid(url: str) -> argparse.ArgumentTypeError:
    """Return the error for a URL, without its password."""
    login, at, host = url.rpartition("@")
    scheme, slashes, _ = login.partition("://")
    shown = f"{scheme + slashes if slashes else ''}(redacted)@{host}" if at else url
    return argparse.ArgumentTypeError(
        f"'{shown}' is not a valid URL; use disque://[[user]:password@]host[:port], disques:// for TLS, or "
        "unix:///path, with %2F for / in a password"
    )


def read_password(path: str) -> str:
    """Return the content of a file without its final line end. Raises ValueError."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib slower to import than this whole package
            return os.fsdecode(file.read()).removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ValueError(f"DISQUE_PASSWORD_FILE: cannot read '{path}': {error.strerror}") from error


def choose_endpoint(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the endpoint from the options, completed from the environment. Raises ValueError if a value is invalid."""
    password = getattr(options, "password", environment.get("DISQUE_PASSWORD"))
    if password is None and "DISQUE_PASSWORD_FILE" in environment:
        password = read_password(environment["DISQUE_PASSWORD_FILE"])
    user = getattr(options, "user", environment.get("DISQUE_USER"))
    url: Endpoint | None = getattr(options, "url", None)
    if url is not None:
        tls = choose_tls(options, environment, on=url.tls is not None)
        return Endpoint(url.host, url.port, url.path, url.password or password, url.user or user, tls)
    try:
        default_port = port(environment.get("DISQUE_PORT", str(DEFAULT_PORT)))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"DISQUE_PORT: {error}") from error
    return Endpoint(
        host=getattr(options, "host", environment.get("DISQUE_HOST", DEFAULT_HOST)),
        port=getattr(options, "port", default_port),
        path=getattr(options, "path", None),
        password=password,
        user=user,
        tls=choose_tls(options, environment),
    )


def choose_tls(
    options: argparse.Namespace, environment: Mapping[str, str] = os.environ, *, on: bool = False
) -> Tls | None:
    """How to use TLS; None without it. `on`: the URL says so."""
    if not (on or getattr(options, "tls", environment.get("DISQUE_TLS") in {"yes", "1"})):
        for name in ("cacert", "cert", "key", "insecure", "sni"):
            if getattr(options, name, None):
                raise ValueError(f"--{name} requires --tls or a disques:// URL; without it nothing is encrypted")
        return None
    cacert, cert, key, sni = (
        getattr(options, name, environment.get(f"DISQUE_{name.upper()}")) for name in ("cacert", "cert", "key", "sni")
    )
    return Tls(cacert, cert, key, getattr(options, "insecure", False), sni)
