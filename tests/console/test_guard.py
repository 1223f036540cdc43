"""Access control: other sites, wrong passwords and foreign host names are refused."""

from __future__ import annotations

from base64 import b64encode

import pytest

from disqued.console.guard import action_error, credentials, cross_origin_error

OWN = {"x-disque-console": "1"}


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ({}, False),
        ({"host": "node:9711"}, False),
        ({"host": "node:9711", "origin": "http://node:9711"}, False),
        ({"host": "Node:9711", "origin": "https://node:9711", "sec-fetch-site": "same-origin"}, False),
        ({"host": "node:9711", "sec-fetch-site": "none"}, False),
        ({"host": "node:9711", "origin": "http://node"}, True),
        ({"host": "node:9711", "origin": "http://evil.example"}, True),
        ({"host": "node:9711", "origin": "null"}, True),
        ({"host": "node:9711", "origin": ""}, True),
        ({"host": "node:9711", "origin": "http://[::1"}, True),
        ({"origin": "null"}, True),
        ({"host": "", "origin": "null"}, True),
        ({"host": "node:9711", "sec-fetch-site": "cross-site"}, True),
        ({"host": "node:9711", "sec-fetch-site": "same-site"}, True),
    ],
)
def test_cross_origin_requests_are_detected(headers: dict[str, str], foreign: bool) -> None:
    assert bool(cross_origin_error(headers, password=True)) is foreign
    at_address = {name: value.lower().replace("node", "[::1]") for name, value in headers.items()}
    assert bool(cross_origin_error({"host": "localhost", **at_address}, password=False)) is foreign


@pytest.mark.parametrize(
    ("host", "possible"),
    [
        ("127.0.0.1:9711", True),
        ("10.1.2.3", True),
        ("[::1]:9711", True),
        ("localhost:9711", True),
        ("LOCALHOST", True),
        ("disque.example:9711", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_host_must_be_an_address_without_a_password(host: str, possible: bool) -> None:
    assert bool(cross_origin_error({"host": host}, password=False)) is not possible
    assert bool(cross_origin_error({"host": host, "origin": f"http://{host}"}, password=False)) is not possible
    assert cross_origin_error({"host": host}, password=True) == ""


def test_refusal_of_host_names_says_what_to_do() -> None:
    why = cross_origin_error({"host": "disque.example:9711"}, password=False)
    assert "requirepass" in why
    assert "localhost" in why
    assert cross_origin_error({}, password=False) == why


def test_actions_must_be_enabled_and_have_the_header() -> None:
    assert "http-actions" in action_error(OWN, enabled=False)
    assert "x-disque-console" in action_error({}, enabled=True)
    assert action_error(OWN, enabled=True) == ""


def basic(text: bytes) -> str:
    return "Basic " + b64encode(text).decode()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("Bearer secret", (b"secret", b"")),
        ("bearer  secret ", (b"secret", b"")),
        ("Bearer p\xe4ss", (b"p\xe4ss", b"")),
        (basic(b"default:sec:ret"), (b"sec:ret", b"default")),
        (basic(b":secret"), (b"secret", b"")),
        (basic("default:pä€".encode()), ("pä€".encode(), b"default")),
        ("Basic !!!", None),
        ("Digest x", None),
        ("", None),
    ],
)
def test_password_is_read_from_bearer_or_basic(given: str, found: tuple[bytes, bytes] | None) -> None:
    assert credentials({"authorization": given}) == found
    assert credentials({}) is None
