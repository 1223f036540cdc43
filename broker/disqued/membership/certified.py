"""Certificates of nodes (`tls-cluster`): whether the names in one fit the node that shows it.

TLS has verified by then that an authority signed the certificate. Here its names are compared with the host name and
the addresses of the node. While the host name of a node is not known, the names of seeds that lead to its address
count as well, so that nodes whose certificates have no addresses can join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.membership.addresses import literal
from disqued.membership.kept import membership_of
from disqued.membership.refusing import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState


def names_in(certificate: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
    """The host names and addresses among the alternative names of a certificate, as the module `ssl` shows them."""
    found = []
    for kind, value in certificate:
        name = value.strip().lower().encode("utf-8", "replace")
        address = literal(name)
        if kind == "IP Address" and address:
            found.append(address)
        elif kind == "DNS" and not address:
            found.append(name)
    return tuple(found)


def covers(names: tuple[bytes, ...], wanted: bytes) -> bool:
    """Whether one of the names is a host name or address. `*.` stands for exactly one label (RFC 6125, 6.4.3)."""
    address = literal(wanted)
    if address:
        return address in names
    name = wanted.lower().rstrip(b".")
    _, dot, parent = name.partition(b".")
    return bool(name) and (name in names or (b"." in parent and b"*" + dot + parent in names))


def fits(state: NodeState, names: tuple[bytes, ...], host: bytes, *addresses: bytes) -> bool:
    """Whether a certificate with these names fits a node with this host name, empty if unknown, or address."""
    wanted = [host, *addresses]
    if not host:
        found = membership_of(state).seeds.addresses
        wanted += [name for name, ips in found.items() if any(address in ips for address in addresses if address)]
    return any(covers(names, one) for one in wanted)


def proves_its_name(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> bool:
    """Whether the certificate of the node at the other end fits what it announces; otherwise the link is closed."""
    names = link.names
    if names is None:
        return True
    host = sender.host if sender is not None else b""
    addresses = (literal(frame.announced_ip), literal(link.remote_ip))
    if fits(state, names, host, *addresses):
        link.names = None
        return True
    refuse(state, link, frame, why_refused(names, host, *addresses))
    return False


def why_refused(names: tuple[bytes, ...], host: bytes, *addresses: bytes) -> str:
    """The reason for the log why a certificate does not fit, and what to do."""
    shown = _list(names[:8]) or "no host name and no address"
    wanted = _list(tuple(dict.fromkeys(one for one in (host, *addresses) if one)))
    return f"its certificate is for {shown}, not for {wanted}: issue one with that as a subject alternative name"


def _list(names: tuple[bytes, ...]) -> str:
    return ", ".join(name.decode("ascii", "replace") for name in names)
