"""Which server to talk to: from options, from the environment, from a URL.

Flags win over the environment (`DISQUE_HOST`, `DISQUE_PORT`, `DISQUE_PASSWORD`), the environment over the default. A
password is better kept in the environment: arguments are visible to every user of the machine. Or in a file that
`DISQUE_PASSWORD_FILE` names, as containers get their secrets: it is read each time, so it may change.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7711
MAX_PORT = 65535


@dataclass(frozen=True)
class Endpoint:
    """An address and the password for it. A Unix socket's `path` wins over host and port."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    path: str | None = None
    password: str | None = None

    def __str__(self) -> str:
        """The address as prompts and messages show it: `host:port`, `[ip6]:port` or the path."""
        if self.path is not None:
            return self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def endpoint_options() -> argparse.ArgumentParser:
    """The options that name a server, to be a parent of every parser that needs one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    group = parser.add_argument_group("connection")
    add = group.add_argument
    # An option not given leaves no trace, so that those before and after a subcommand's name add up.
    add("-h", dest="host", default=argparse.SUPPRESS, help=f"server host (default {DEFAULT_HOST}, or DISQUE_HOST)")
    add("-p", dest="port", default=argparse.SUPPRESS, type=port, help=f"port (default {DEFAULT_PORT}, or DISQUE_PORT)")
    add("-s", dest="path", default=argparse.SUPPRESS, metavar="SOCKET", help="Unix socket, instead of host and port")
    add("-a", dest="password", default=argparse.SUPPRESS, help="password (or DISQUE_PASSWORD, which others can't see)")
    add(
        "-u",
        dest="url",
        default=argparse.SUPPRESS,
        type=parse_url,
        metavar="URL",
        help="disque://[:PASSWORD@]HOST[:PORT], unix:///PATH or a path; instead of the options above",
    )
    return parser


def port(text: str) -> int:
    """A TCP port, 0 to 65535."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port (0 to {MAX_PORT})")
    return number


def parse_url(text: str) -> Endpoint:
    """An endpoint from a URL or from a path that begins with `/` or `.`."""
    if text.startswith(("/", ".")):
        return Endpoint(path=text)
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  costs more to import than all of this package

    try:
        parts = urlsplit(text)
        number = parts.port
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a URL: {error}") from error
    password = None if parts.password is None else unquote(parts.password)
    if parts.scheme == "unix" and parts.path:
        return Endpoint(path=unquote(parts.path), password=password)
    if parts.scheme != "disque" or parts.path not in {"", "/"}:
        raise argparse.ArgumentTypeError(f"'{text}' is not like disque://[:password@]host:port or unix:///path")
    return Endpoint(parts.hostname or DEFAULT_HOST, DEFAULT_PORT if number is None else number, password=password)


def read_password(path: str) -> str:
    """What stands in a file, without the end of its last line. Raises ValueError."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib costs more to import than all of this package
            return os.fsdecode(file.read()).removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ValueError(f"DISQUE_PASSWORD_FILE: can't read '{path}': {error.strerror}") from error


def choose_endpoint(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Endpoint:
    """What the options say, filled up from the environment. Raises ValueError when that makes no sense."""
    password = getattr(options, "password", environment.get("DISQUE_PASSWORD"))
    if password is None and "DISQUE_PASSWORD_FILE" in environment:
        password = read_password(environment["DISQUE_PASSWORD_FILE"])
    url: Endpoint | None = getattr(options, "url", None)
    if url is not None:
        return Endpoint(url.host, url.port, url.path, url.password or password)
    try:
        default_port = port(environment.get("DISQUE_PORT", str(DEFAULT_PORT)))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"DISQUE_PORT: {error}") from error
    return Endpoint(
        host=getattr(options, "host", environment.get("DISQUE_HOST", DEFAULT_HOST)),
        port=getattr(options, "port", default_port),
        path=getattr(options, "path", None),
        password=password,
    )
