"""The URLs of a cluster: nodes, user, password and TLS in one text, for clients and for adapters of frameworks."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Final
from urllib.parse import parse_qsl, unquote

from disqued.client.nodes import parse_address
from disqued.client.tls import tls_context

SCHEMES: Final = {"disque": False, "disques": True}
"""The schemes of URLs, and whether they mean TLS."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The part behind the `?` of a `disques://` URL: the arguments of `tls_context`, and `tls_server_name`."""

    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    insecure: bool = False
    server_name: str | None = None


_TLS_NAMES: Final = [field.name for field in fields(TlsOptions)]
_SIMILAR: Final = 0.75
"""How similar a mistyped option is."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the addresses of a client say: the nodes, whether and how to use TLS, the user and its password."""

    nodes: tuple[str, ...]
    tls: bool = False
    user: str | None = None
    password: str | None = None
    tls_options: TlsOptions = TlsOptions()

    def tls_context(self) -> ssl.SSLContext:
        """Return the settings for TLS. Raises OSError if a file cannot be used."""
        said = self.tls_options
        return tls_context(cafile=said.cafile, certfile=said.certfile, keyfile=said.keyfile, insecure=said.insecure)


def parse_nodes(nodes: Sequence[str]) -> Target:
    """Separate URLs of nodes from what they say about all connections; addresses that are no URL stay as they are.

    Raises:
        ValueError: a URL is invalid, or the URLs contradict each other. The text shows no password.
    """
    found = [parse_url(text) if _is_url(text) else Target((text,)) for text in nodes]
    said = {(one.tls, one.user, one.password, one.tls_options) for one in found}
    if len(said) > 1:
        raise ValueError("the addresses of the nodes must agree about TLS, user and password")
    return Target(tuple(node for one in found for node in one.nodes), *(said.pop() if said else ()))


_INVALID: Final = (
    "invalid URL of a node; use disque://[user:password@]host[:port][,host[:port]...], or disques:// for TLS, with %2F "
    "for / in the password"
)


def _is_url(text: str) -> bool:
    """Whether a text is a URL and not an address, of which errors show all. With a login it is one without a scheme."""
    return "://" in text or ("@" in text and not text.startswith("/"))


def parse_url(text: str) -> Target:
    """Parse `disque://[user:password@]host[:port][,host[:port]...]`, or `disques://` with `?option=value&...`.

    The options are the fields of `TlsOptions`; `insecure` is `yes` or `no`.

    Raises:
        ValueError: the URL is invalid. The text does not show it, because it may contain a password.
    """
    scheme, slashes, rest = text.partition("://")
    place, _, query = rest.partition("?")
    login, at, hosts = place.removesuffix("/").rpartition("@")
    if scheme not in SCHEMES or not slashes or "/" in place.removesuffix("/"):
        raise ValueError(_INVALID)
    nodes = tuple(hosts.split(","))
    try:
        for node in nodes:
            parse_address(node)
    except ValueError:
        raise ValueError(_INVALID) from None  # the error may quote a part of the password, as the URL does
    user, colon, password = login.partition(":")
    options = _parse_options(query)
    if options != TlsOptions() and not SCHEMES[scheme]:
        raise ValueError("the options in the URL of a node are about TLS; use disques://")
    return Target(nodes, SCHEMES[scheme], unquote(user) or None, unquote(password) if at and colon else None, options)


def take_options(url: str, own: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Separate the options of an adapter from the options for TLS in a URL.

    Returns:
        The URL without the options that are named in `own`, and the texts of those options.

    Raises:
        ValueError: an option is unknown, has no value, or is given twice. The text shows no password.
    """
    address, _, query = url.partition("?")
    adapter_names = list(own)
    known = [*adapter_names, *_TLS_NAMES]
    found: dict[str, str] = {}
    others = []
    for part in filter(None, query.split("&")):
        name, value = parse_qsl(part, keep_blank_values=True)[0]
        if name not in known:
            similar = get_close_matches(name, known, 1, _SIMILAR)
            advice = f"did you mean {similar[0]!r}?" if similar else f"use {', '.join(known)}"
            raise ValueError(f"unknown option {name!r} in the URL; {advice}")
        if name not in adapter_names:
            others.append(part)
        elif not value or name in found:
            raise ValueError(f"the option {name!r} in the URL must have one value")
        else:
            found[name] = value
    return f"{address}?{'&'.join(others)}" if others else address, found


def _parse_options(query: str) -> TlsOptions:
    values: dict[str, str | bool] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _TLS_NAMES or not value:
            raise ValueError(f"invalid option {name!r} in the URL of a node; use {', '.join(_TLS_NAMES)} with a value")
        if name == "insecure":
            if value not in {"yes", "no"}:
                raise ValueError(f"the option insecure in the URL of a node must be yes or no, not {value!r}")
            values[name] = value == "yes"
        else:
            values[name] = value
    return TlsOptions(**values)  # type: ignore[arg-type]
