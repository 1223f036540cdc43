"""What URLs and `broker_use_ssl` mean to the client."""

from __future__ import annotations

import re
import ssl
from typing import Any

import pytest
from kombu import Connection, Queue

from disqued.kombu.urls import hide_password, place_of

assert Queue  # kombu knows the transport once it has its serializers


@pytest.mark.parametrize(
    ("url", "nodes", "user", "password"),
    [
        ("disque://", ("localhost",), None, None),
        ("disque://h", ("h",), None, None),
        ("disque://u:p%2F@[::1]:3,h1:7712,h2/", ("[::1]:3", "h1:7712", "h2"), "u", "p/"),
        ("disque://h1;disque://h2:5", ("h1", "h2:5"), None, None),
        ("disque://h1;disque://[::1]:3", ("h1", "[::1]:3"), None, None),
        (["disque://:p@h1", "disque://:p@h2"], ("h1", "h2"), None, "p"),
    ],
)
def test_url_names_the_nodes_and_the_login(url: Any, nodes: Any, user: str | None, password: str | None) -> None:
    place = place_of(Connection(url))
    assert (place.nodes, place.user, place.password, place.tls) == (nodes, user, password, False)


def test_nodes_can_be_given_without_a_url() -> None:
    place = place_of(Connection("h", userid="u", password="p", port=5, transport="disque"))
    assert (place.nodes, place.user, place.password) == (("h:5",), "u", "p")


@pytest.mark.parametrize(
    ("url", "use_ssl", "verifies", "name"),
    [
        ("disques://h", None, True, None),
        ("disques://h?insecure=yes&server_name=n", None, False, "n"),
        ("disque://h", {"ssl_cert_reqs": ssl.CERT_NONE}, False, None),
        ("disques://h", {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "n"}, True, "n"),
    ],
)
def test_tls_comes_from_the_url_or_from_broker_use_ssl(
    url: str, use_ssl: Any, verifies: bool, name: str | None
) -> None:
    place = place_of(Connection(url, ssl=use_ssl))
    assert isinstance(place.tls, ssl.SSLContext)
    assert (place.tls.verify_mode == ssl.CERT_REQUIRED) is verifies
    assert place.tls_server_name == name


@pytest.mark.parametrize(
    "url",
    [
        "disque://h1,h2/?retry=30&publish_timeout=2.5&discover=no&queue_order_strategy=sorted",
        ["disque://h1?retry=30&publish_timeout=2.5&discover=False&queue_order_strategy=sorted"] * 2,
        "disques://?retry=30&insecure=yes&discover=false&publish_timeout=2.5&queue_order_strategy=sorted",
    ],
)
def test_transport_options_in_the_url_count_before_others_and_stay_in_copies_of_the_connection(url: Any) -> None:
    connection = Connection(url, transport_options={"retry": 90, "ttl": 600})
    for one in (connection, connection.clone()):
        options = one.transport.options
        assert (options.retry, options.publish_timeout, options.discover) == (30, 2.5, False)
        assert (options.queue_order_strategy, options.ttl) == ("sorted", 600)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("retry=soon", "transport option 'retry' must be an integer from 1 to 86400, not 'soon'"),
        ("retry=0", "transport option 'retry' must be an integer from 1 to 86400, not 0"),
        ("socket_timeout=inf", "transport option 'socket_timeout' must be a number of seconds, 0 or more, not inf"),
        ("discover=1", "transport option 'discover' must be True or False, not 1"),
        ("retry=", "the option 'retry' in the URL must have one value"),
        ("retry=3&retry=4", "the option 'retry' in the URL must have one value"),
        ("socket_timeouts=3", "unknown option 'socket_timeouts' in the URL; did you mean 'socket_timeout'?"),
        ("visibility_timeout=3", "unknown option 'visibility_timeout' in the URL; use retry, ttl"),
        ("retry=3;disque://h2", "the URLs of the nodes must have the same transport options"),
        ("insecure=yes", "the options in the URL of a node are about TLS; use disques://"),
    ],
)
def test_wrong_options_in_the_url_are_refused_without_showing_the_password(query: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        Connection(f"disque://:secret@h?{query}").connect()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "use_ssl"),
    [
        ("disque://h/vhost", None),
        ("disque://:secret@h1;disque://h2", None),
        ("disque://h", {"ca": "x"}),
        ("disque://:secret@h:x", None),
    ],
)
def test_contradictions_and_mistakes_are_refused_without_showing_the_password(url: str, use_ssl: Any) -> None:
    with pytest.raises(ValueError, match=r"node|broker_use_ssl") as refused:
        Connection(url, ssl=use_ssl).connect()
    assert "secret" not in str(refused.value)


def test_what_a_connection_tells_about_itself_has_no_password_in_its_url() -> None:
    connection = Connection("disques://u:secret@h1;disques://u:secret@h2:5")
    assert connection.as_uri() == "disques://h1,h2:5"

    told = {**connection.info(), "password": "**"}
    assert "secret" not in str(told)
    assert connection.clone().info() == connection.info()
    assert hide_password("disque://u:secret@h1,h2:5", "**") == "disque://u:**@h1,h2:5"
