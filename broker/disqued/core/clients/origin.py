"""Where clients come from: the part of an address that one client cannot change at will."""

from __future__ import annotations

from typing import Final

_NETWORK_GROUPS: Final = 4
"""The groups of an IPv6 address that name a network (/64): a host chooses the other four freely."""
_GROUPS: Final = 8
_MAPPED: Final = "::ffff:"


def is_local(origin: str) -> bool:
    """Whether clients of an origin are on this machine. Those of a proxy beside the node share such an origin."""
    return origin.startswith(("127.", "/")) or origin in {"", "?", "::1"}


def origin_of(address: str) -> str:
    """The origin of a client with the address `ip:port` or `[ip]:port`.

    It is the IPv4 address, the /64 of an IPv6 address, or the path of a Unix socket.
    """
    host = address.rpartition(":")[0]
    if host.startswith("/"):
        return host
    return origin_of_ip(host.removeprefix("[").removesuffix("]"))


def origin_of_ip(ip: str) -> str:
    """The origin of a client with an IP address: the IPv4 address, or the /64 of an IPv6 address."""
    host = ip.partition("%")[0]
    if host.lower().startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    if ":" not in host or host == "::1":
        return host
    left, _, right = host.partition("::")
    groups = left.split(":") if left else []
    following = right.split(":") if right else []
    groups += ["0"] * (_GROUPS - len(groups) - len(following)) + following
    return ":".join(group.lstrip("0").lower() or "0" for group in groups[:_NETWORK_GROUPS]) + "::/64"
