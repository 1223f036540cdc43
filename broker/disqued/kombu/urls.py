"""Where a connection of kombu leads: the broker's URLs and `broker_use_ssl`, as arguments of the client.

The URL names all nodes, `disque://host1,host2`, or there are several URLs with `;` between them, as kombu has it. The
client uses all of them at once, so kombu must not switch from one to the next. TLS is set by `disques://` with the
options of the client, or by `broker_use_ssl` with the names that other transports have. Transport options can be in the
query of the URL too.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from disqued.client import tls_context
from disqued.client.urls import SCHEMES, parse_nodes, take_options
from disqued.kombu.options import OPTIONS, value_of_text

_TLS_NAMES: Final = ("ca_certs", "certfile", "keyfile", "cert_reqs", "check_hostname", "server_hostname")


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes, the login and TLS, as arguments of the client, and the transport options that the URL has."""

    nodes: tuple[str, ...]
    user: str | None
    password: str | None
    tls: ssl.SSLContext | bool
    tls_server_name: str | None
    options: Mapping[str, object]


def place_of(connection: Any) -> Place:
    """Return where a connection of kombu leads.

    Raises:
        ValueError: a URL is invalid, the URLs contradict each other, an option in them or a setting of
            `broker_use_ssl` is unknown.
        OSError: a file for TLS cannot be used.
    """
    texts = [text for text in (connection.alt or [connection.hostname]) if text] or ["localhost"]
    options: Mapping[str, object] = {}
    if "://" not in texts[0]:
        port = f":{connection.port}" if connection.port else ""
        found = parse_nodes([f"{texts[0]}{port}"])
    else:
        texts, options = _take_options(texts)
        found = parse_nodes([_with_host(text) for text in texts])
    user, password = found.user or connection.userid, found.password
    if password is None:
        password = connection.password
    use_ssl = connection.ssl
    if isinstance(use_ssl, Mapping):
        settings = _named(use_ssl)
        return Place(found.nodes, user, password, _context(settings), settings.get("server_hostname"), options)
    tls = found.tls_context() if found.tls else bool(use_ssl)
    return Place(found.nodes, user, password, tls, found.tls_options.server_name, options)


def settle(connection: Any, place: Place) -> None:
    """Have a connection of kombu know its place in the form that it may show to others.

    A URL may contain a password, and `celery inspect stats` returns the URL to whoever asks; the password has a field
    of its own there, which is left out. kombu must not switch between URLs either: the client knows all nodes.
    """
    text = connection.hostname or ""
    if "://" in text:
        scheme = text.partition("://")[0]
        query = text.partition("?")[1:]
        connection.hostname = f"{scheme}://{','.join(place.nodes)}{''.join(query)}"
        connection.userid, connection.password = place.user, place.password
    connection.alt = []
    connection.cycle = None


def _take_options(urls: Sequence[str]) -> tuple[list[str], Mapping[str, object]]:
    """Return the URLs without transport options, and the values of these options."""
    names = [option.name for option in OPTIONS]
    found = [take_options(url, names) for url in urls]
    first = found[0][1]
    if any(options != first for _, options in found):
        raise ValueError("the URLs of the nodes must have the same transport options")
    return [url for url, _ in found], {name: value_of_text(text) for name, text in first.items()}


def _with_host(url: str) -> str:
    """Return the URL, with this machine as the host if it names none."""
    scheme, _, rest = url.partition("://")
    place, mark, query = rest.partition("?")
    return f"{scheme}://localhost{mark}{query}" if scheme in SCHEMES and place in {"", "/"} else url


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for TLS; the Redis transport has a prefix before their names."""
    settings = {name.removeprefix("ssl_"): value for name, value in given.items()}
    for name in settings:
        if name not in _TLS_NAMES:
            raise ValueError(f"broker_use_ssl has no setting {name!r}; use {', '.join(_TLS_NAMES)}")
    return settings


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    cert_reqs = settings.get("cert_reqs")
    context = tls_context(
        cafile=settings.get("ca_certs"),
        certfile=settings.get("certfile"),
        keyfile=settings.get("keyfile"),
        insecure=cert_reqs == ssl.CERT_NONE or str(cert_reqs).lower() in {"none", "cert_none"},
    )
    if settings.get("check_hostname") is False:
        context.check_hostname = False
    return context


def hide_password(urls: str, mask: str) -> str:
    """Return the URLs with a mask in place of the password."""
    return ";".join(_hidden(url, mask) for url in urls.split(";"))


def _hidden(url: str, mask: str) -> str:
    scheme, slashes, rest = url.partition("://")
    login, at, hosts = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{slashes}{user}{colon}{mask if colon else ''}{at}{hosts}"
