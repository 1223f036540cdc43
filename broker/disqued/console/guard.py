"""Access control: the password of the node, and protection against requests of other sites in the same browser.

A browser sends requests of any page to any address that it can reach. So a request is refused if the browser says that
another site made it. Without a password, the request must also use an address or localhost, not a name: an attacker can
point a name at this node (DNS rebinding), and the browser then takes the attacker's page for one of this node. Actions
need a header that other sites cannot send.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

CONSOLE_HEADER: Final = "x-disque-console"
"""Header of actions, with any value."""

_OWN_SITES: Final = ("same-origin", "none")
_OTHER_PAGE: Final = "cross-origin request refused; use the console of this node"

_NAMED: Final = (
    "without a password (requirepass), the console works only at an IP address or localhost, not at a host name; "
    "use an address, or set a password"
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
"""Restrictions in the browser: the page can only load its own files and access this node, and cannot be framed."""
ASK_FOR_PASSWORD: Final = (("WWW-Authenticate", 'Bearer realm="disque"'),)
"""Not Basic, although it is accepted, too: browsers would prompt for it, and send it with requests of any page."""


def cross_origin_error(headers: Mapping[str, str], *, password: bool) -> str:
    """Return why a request is refused as cross-origin; empty if the page or a program other than a browser sent it."""
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    if origin is not None and (not host or origin.lower().partition("://")[2] != host):
        return _OTHER_PAGE
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return _OTHER_PAGE
    return "" if password or _is_address(host) else _NAMED


def action_error(headers: Mapping[str, str], *, enabled: bool) -> str:
    """Return why an action is refused; empty if it is allowed."""
    if not enabled:
        return "actions are disabled on this node (http-actions)"
    return "" if CONSOLE_HEADER in headers else f"missing header {CONSOLE_HEADER}"


def _is_address(host: str) -> bool:
    """Whether a Host header has an IP address or localhost."""
    try:
        name = urlsplit(f"//{host}").hostname
        return name == "localhost" or ip_address(name or "") is not None
    except ValueError:
        return False


def credentials(headers: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    """Return password and user (or an empty user) from the Authorization header; None without the header."""
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
