"""URLs of nodes: what they say, and what is refused."""

from __future__ import annotations

import pytest

from disqued.client.urls import Target, TlsOptions, parse_nodes, parse_url


def test_urls_say_how_to_connect() -> None:
    assert parse_nodes(["a:1", "b"]) == Target(("a:1", "b"))
    assert parse_nodes(["disques://u:p@a:1", "disques://u:p@[::1]:2"]) == Target(("a:1", "[::1]:2"), True, "u", "p")
    assert parse_nodes(["disque://a"]) == Target(("a",))
    assert parse_nodes(["/run/a@b"]) == Target(("/run/a@b",))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("disque://a", Target(("a",))),
        ("disque://a:1,[::1]:2,c/", Target(("a:1", "[::1]:2", "c"))),
        ("disque://:p%2F%40s@a,b", Target(("a", "b"), password="p/@s")),
        ("disque://u@a", Target(("a",), user="u")),
        ("disque://u:@a", Target(("a",), user="u", password="")),
        ("disques://u:p@a,b:2", Target(("a", "b:2"), True, "u", "p")),
        (
            "disques://a/?cafile=/etc/ca.pem&certfile=c%26d&keyfile=k&insecure=no&server_name=disque",
            Target(("a",), True, tls_options=TlsOptions("/etc/ca.pem", "c&d", "k", False, "disque")),
        ),
        ("disques://a?insecure=yes", Target(("a",), True, tls_options=TlsOptions(insecure=True))),
    ],
)
def test_one_url_names_all_nodes(url: str, target: Target) -> None:
    assert parse_url(url) == target
    assert parse_nodes([url]) == target


@pytest.mark.parametrize(
    "nodes",
    [
        ["http://a"],
        ["disque://:secret@a:x"],
        ["disque://:secret/x@a"],
        ["u:secret@a"],
        ["disque:u:secret@a:1"],
        ["disque://a/b"],
        ["disque://a,,b"],
        ["disque://a,"],
        ["disques://a", "b"],
        ["disques://a?cafile=x", "disques://b?cafile=y"],
        ["disque://a?cafile=x"],
        ["disques://a?cafile="],
        ["disques://a?capath=x"],
        ["disques://a?insecure=1"],
        ["disque://"],
    ],
)
def test_bad_urls_are_refused_without_showing_the_password(nodes: list[str]) -> None:
    with pytest.raises(ValueError, match="node") as refused:
        parse_nodes(nodes)
    assert "secret" not in str(refused.value)
