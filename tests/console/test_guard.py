"""Who may look and act: no pages of others, no guesses, no names that anybody could point here."""

from __future__ import annotations

from base64 import b64encode

import pytest

from disqued.console.guard import credentials, why_foreign, why_no_action

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
def test_pages_of_others_are_told_apart(headers: dict[str, str], foreign: bool) -> None:
    assert bool(why_foreign(headers, password=True)) is foreign
    at_address = {name: value.lower().replace("node", "[::1]") for name, value in headers.items()}
    assert bool(why_foreign({"host": "localhost", **at_address}, password=False)) is foreign


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
def test_without_a_password_an_address_is_needed(host: str, possible: bool) -> None:
    assert bool(why_foreign({"host": host}, password=False)) is not possible
    assert bool(why_foreign({"host": host, "origin": f"http://{host}"}, password=False)) is not possible
    assert why_foreign({"host": host}, password=True) == ""


def test_who_uses_a_name_is_told_what_to_do() -> None:
    why = why_foreign({"host": "disque.example:9711"}, password=False)
    assert "requirepass" in why
    assert "localhost" in why
    assert why_foreign({}, password=False) == why


def test_actions_have_to_be_enabled_and_meant() -> None:
    assert "http-actions" in why_no_action(OWN, enabled=False)
    assert "x-disque-console" in why_no_action({}, enabled=True)
    assert why_no_action(OWN, enabled=True) == ""


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
def test_a_password_comes_in_one_of_two_ways(given: str, found: tuple[bytes, bytes] | None) -> None:
    assert credentials({"authorization": given}) == found
    assert credentials({}) is None
