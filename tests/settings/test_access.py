"""Which names of settings a user may show and change."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.testing.local import LocalNode
from support.asking import ask


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("mail:eu", "SET", "ttl", "1"), True),
        (("mail:*", "SET", "ttl", "1"), True),
        (("mail:eu*", "SET", "ttl", "1"), True),
        (("mail:?", "UNSET", "ttl"), True),
        (("mail:eu", "GET"), True),
        (("mail:*", "SHOW"), True),
        (("log", "SET", "ttl", "1"), True),
        (("logs", "SET", "ttl", "1"), False),
        (("l[ao]g", "SET", "ttl", "1"), True),
        (("lo*", "SET", "ttl", "1"), False),
        (("m*", "SET", "ttl", "1"), False),
        (("*", "SET", "ttl", "1"), False),
        (("mail?*", "SET", "ttl", "1"), False),
        (("*", "SHOW"), False),
        (("jobs", "GET"), False),
        (("mail:eu", "SET", "dead", "mail:dead"), True),
        (("mail:eu", "SET", "dead", "drop"), True),
        (("mail:eu", "SET", "dead", "jobs"), False),
        (("mail:eu", "SET", "copy-to", "mail:a jobs"), False),
        (("mail:eu", "SET", "copy-to", "none"), True),
        (("mail:eu", "SET", "ttl", "1", "Dead", "jobs"), False),
    ],
)
def test_restricted_user_sets_only_what_holds_for_its_queues(words: tuple[str, ...], allowed: bool) -> None:
    local = LocalNode()
    admin = local.client()
    rules = ("on", "nopass", "~mail:*", "~l[ao]g", "~mail?", "~[x]*", "+@queueadmin")
    assert ask(admin, "ACL", "SETUSER", "ann", *rules) == b"OK"
    client = local.client()
    ask(client, "AUTH", "ann", "any")
    reply = client.call("QCONF", *words)
    refused = isinstance(reply, ResponseError) and reply.prefix == "NOPERM"
    assert refused != allowed, reply


def test_user_without_queue_administration_may_not_use_it() -> None:
    local = LocalNode()
    ask(local.client(), "ACL", "SETUSER", "ann", "on", "nopass", "~*", "+@inspect", "+@producer")
    client = local.client()
    ask(client, "AUTH", "ann", "any")
    reply = client.call("QCONF", "mail", "GET")
    assert isinstance(reply, ResponseError)
    assert reply.prefix == "NOPERM"
