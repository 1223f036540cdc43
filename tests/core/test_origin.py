"""The origin of a client: what clients that share an address have in common."""

from __future__ import annotations

import pytest

from disqued.core.clients.origin import is_local, origin_of


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("10.1.2.3:4000", "10.1.2.3"),
        ("[::ffff:10.1.2.3]:4000", "10.1.2.3"),
        ("[2001:db8:0:1:a:b:c:d]:4000", "2001:db8:0:1::/64"),
        ("[2001:0DB8::1]:4000", "2001:db8:0:0::/64"),
        ("[2001:db8::1:0:0:5]:4000", "2001:db8:0:0::/64"),
        ("[fe80::1%eth0]:4000", "fe80:0:0:0::/64"),
        ("[::1]:4000", "::1"),
        ("127.0.0.1:4000", "127.0.0.1"),
        ("/run/disque.sock:0", "/run/disque.sock"),
    ],
)
def test_origin_is_an_ipv4_address_or_the_network_of_an_ipv6_address(address: str, origin: str) -> None:
    assert origin_of(address) == origin


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("/run/disque.sock:0", True),
        ("10.0.0.1:1", False),
        ("[fe80::1]:1", False),
    ],
)
def test_clients_of_this_machine_are_local(address: str, local: bool) -> None:
    assert is_local(origin_of(address)) == local
