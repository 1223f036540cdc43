"""Who may ask: those who know the password, if there is one, and no pages of others that the same browser shows.

A browser sends what any page wants it to send, to any address that it reaches. So a request is refused when the browser
says that another page made it. As long as no password is asked for, it also has to be made for an address, not a name:
a name can be made to lead here by whoever owns it, and then the browser takes their page for one of this node. Actions
need a header that pages of others can not send.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

OWN_HEADER: Final = "x-disque-console"
"""Any value will do."""

_OWN_SITES: Final = ("same-origin", "none")
_OTHER_PAGE: Final = "Only the page of this node may ask for that"

_NAMED: Final = (
    "Without a password (requirepass), the console is only shown at the address of the node, or at localhost, "
    "not at a name: open it there, or set a password"
)

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""What the page may do in a browser: nothing but load its own files and ask this node; and nobody may frame it."""
ASK_FOR_PASSWORD: Final = (("WWW-Authenticate", 'Bearer realm="disque"'),)
"""Not Basic, which is taken as well: browsers would ask by themselves, and tell every page."""


def why_foreign(headers: Mapping[str, str], *, password: bool) -> str:
    """Why a request is not taken for one of the page; empty when it is, or when no browser sent it."""
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    if origin is not None and (not host or origin.lower().partition("://")[2] != host):
        return _OTHER_PAGE
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return _OTHER_PAGE
    return "" if password or _is_address(host) else _NAMED


def why_no_action(headers: Mapping[str, str], *, enabled: bool) -> str:
    """Why nothing is done; empty when it may be, unless the request is foreign."""
    if not enabled:
        return "Actions are off on this node (http-actions)"
    return "" if OWN_HEADER in headers else f"Actions need the header {OWN_HEADER}"


def _is_address(host: str) -> bool:
    """Whether a header Host says an address, or this machine."""
    try:
        name = urlsplit(f"//{host}").hostname
        return name == "localhost" or ip_address(name or "") is not None
    except ValueError:
        return False


def credentials(headers: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    """Password and user that a header Authorization gives; an empty user for none; None without such a header."""
    scheme, _, given = headers.get("authorization", "").strip().partition(" ")
    token = given.strip().encode("latin-1")
    if scheme.lower() == "bearer":
        return token, b""
    if scheme.lower() != "basic":
        return None
    try:
        user, _, password = b64decode(token, validate=True).partition(b":")
    except Base64Error:
        return None
    return password, user
