"""GETJOB FROMPATTERN: a client gets jobs of all queues that match, also of those that are made while it waits."""

from __future__ import annotations

import pytest

from disqued.core.queues.patterns import KEPT_MS
from disqued.testing.local import LocalClient, LocalNode, Reply


def take(client: LocalClient, *patterns: str, count: int = 1) -> list[tuple[bytes, bytes]]:
    """The queues and bodies of up to `count` jobs, without waiting."""
    return rows(client.call("GETJOB", "NOHANG", "COUNT", count, "FROMPATTERN", *patterns))


def rows(reply: Reply) -> list[tuple[bytes, bytes]]:
    assert reply is None or isinstance(reply, list), reply
    return [(job[0], job[2]) for job in reply or []]  # type: ignore[index, misc]


def waiting(node: LocalNode, *patterns: str, timeout_ms: int = 0) -> LocalClient:
    client = node.client()
    client.send("GETJOB", "TIMEOUT", timeout_ms, "FROMPATTERN", *patterns)
    assert client.silent
    return client


@pytest.fixture
def node() -> LocalNode:
    return LocalNode()


@pytest.fixture
def client(node: LocalNode) -> LocalClient:
    return node.client()


def test_jobs_of_all_matching_queues_are_taken_in_turn(client: LocalClient) -> None:
    for name in ("mail:a", "mail:b", "print"):
        for number in range(3):
            client.add(name, f"{number}")
    assert take(client, "mail:*", count=4) == [
        (b"mail:a", b"0"),
        (b"mail:b", b"0"),
        (b"mail:a", b"1"),
        (b"mail:b", b"1"),
    ]
    assert take(client, "mail:*", count=9) == [(b"mail:a", b"2"), (b"mail:b", b"2")]
    assert take(client, "mail:*") == []
    assert take(client, "[pq]*") == [(b"print", b"0")]


def test_several_patterns_are_visited_in_turn(client: LocalClient) -> None:
    for name in ("a1", "a2", "b1"):
        for _ in range(2):
            client.add(name)
    taken = [queue for queue, _ in take(client, "a*", "b*", count=4)]
    assert taken == [b"a1", b"b1", b"a2", b"b1"]


def test_a_queue_that_matches_two_patterns_yields_each_job_once(client: LocalClient) -> None:
    client.add("mail")
    client.add("mail")
    assert len(take(client, "m*", "*l", "m*", count=9)) == 2


def test_a_waiting_client_gets_a_job_of_a_queue_that_exists(node: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    client.take("mail")
    waiter = waiting(node, "m*")
    client.add("mail", "second")
    assert rows(waiter.next_reply()) == [(b"mail", b"second")]


def test_a_waiting_client_gets_a_job_of_a_queue_that_is_made_later(node: LocalNode, client: LocalClient) -> None:
    waiter = waiting(node, "x*", "m*")
    client.add("print")
    assert waiter.silent
    client.add("mail", "new")
    assert rows(waiter.next_reply()) == [(b"mail", b"new")]


def test_waiting_clients_are_served_in_the_order_in_which_they_came(node: LocalNode, client: LocalClient) -> None:
    waiters = [waiting(node, "m*") for _ in range(3)]
    for number in range(3):
        client.add("mail", f"{number}")
    assert [rows(waiter.next_reply())[0][1] for waiter in waiters] == [b"0", b"1", b"2"]


def test_clients_that_wait_for_the_queue_by_name_are_served_first(node: LocalNode, client: LocalClient) -> None:
    by_pattern = waiting(node, "m*")
    by_name = node.client()
    by_name.send("GETJOB", "FROM", "mail")
    client.add("mail")
    assert not by_name.silent
    assert by_pattern.silent
    client.add("mail")
    assert not by_pattern.silent


def test_a_client_that_times_out_waits_no_longer(node: LocalNode, client: LocalClient) -> None:
    waiter = waiting(node, "m*", timeout_ms=500)
    node.run(seconds=0.6)
    assert waiter.next_reply() is None
    client.add("mail")
    assert client.call("QLEN", "mail") == 1
    assert waiter.silent


def test_a_client_that_disconnects_waits_no_longer(node: LocalNode, client: LocalClient) -> None:
    waiting(node, "m*").disconnect()
    client.add("mail")
    assert client.call("QLEN", "mail") == 1


def test_a_requeued_job_is_delivered_to_a_pattern(node: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail")
    client.take("mail")
    waiter = waiting(node, "m*")
    client.call("NACK", job_id)
    assert rows(waiter.next_reply()) == [(b"mail", b"body")]


def test_a_paused_queue_yields_its_jobs_when_the_pause_ends(node: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    client.call("PAUSE", "mail", "out")
    assert take(client, "m*") == []
    client.add("mail")
    waiter = waiting(node, "m*")
    client.call("PAUSE", "mail", "none")
    assert len(rows(waiter.next_reply())) == 1
    assert len(take(client, "m*")) == 1


def test_a_queue_that_was_removed_and_made_again_matches(client: LocalClient) -> None:
    client.add("mail")
    assert len(take(client, "m*")) == 1
    assert client.call("DEBUG", "FLUSHALL") == b"OK"
    client.add("mail", "again")
    assert take(client, "m*") == [(b"mail", b"again")]


def test_waits_end_when_everything_is_dropped(node: LocalNode, client: LocalClient) -> None:
    waiter = waiting(node, "m*")
    used = node.node.state.lifecycle.memory.used_bytes
    client.call("DEBUG", "FLUSHALL")
    assert waiter.next_reply() is None
    assert node.node.state.lifecycle.memory.used_bytes < used


def test_the_options_of_getjob_apply(client: LocalClient) -> None:
    client.add("mail", "body", "RETRY", 0)
    reply = client.call("GETJOB", "WITHCOUNTERS", "WITHREQUEUE", "FROMPATTERN", "m*")
    assert reply == [
        [b"mail", reply[0][1], b"body", b"nacks", 0, b"additional-deliveries", 0, b"requeue-in-ms", -1]  # type: ignore[index]
    ]


def test_more_than_512_jobs_are_not_taken_at_once(client: LocalClient) -> None:
    for _ in range(600):
        client.add("mail")
    assert len(take(client, "m*", count=1000)) == 512
    assert len(take(client, "m*", count=1000)) == 88


def test_many_queues_are_matched_in_parts(node: LocalNode, client: LocalClient) -> None:
    for number in range(5000):
        client.add(f"mail:{number}")
    assert len(take(client, "mail:*", count=512)) == 512
    node.run(seconds=0.2)
    names: set[bytes] = set()
    while found := take(client, "mail:*", count=512):
        names.update(name for name, _ in found)
    assert len(names) == 5000 - 512


def test_a_client_that_waits_meanwhile_gets_a_job_that_is_found_later(node: LocalNode, client: LocalClient) -> None:
    for number in range(3000):
        client.call("PAUSE", f"q:{number}", "in")
    client.add("mail")
    waiter = waiting(node, "m*")
    node.run(seconds=0.2)
    assert rows(waiter.next_reply()) == [(b"mail", b"body")]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("FROMPATTERN",), "ERR syntax error"),
        (
            ("FROMPATTERN", *[f"{number}" for number in range(17)]),
            "ERR GETJOB takes at most 16 patterns, 17 were given",
        ),
        (("FROMPATTERN", "x" * 257), "ERR a pattern of GETJOB has at most 256 bytes, not 257"),
    ],
)
def test_wrong_requests_are_refused(client: LocalClient, words: tuple[str, ...], error: str) -> None:
    assert str(client.call("GETJOB", "NOHANG", *words)) == error


def test_clients_of_a_node_wait_for_64_patterns_at_most(node: LocalNode, client: LocalClient) -> None:
    waiters = [waiting(node, *[f"{first}-{number}" for number in range(16)]) for first in range(4)]
    error = "ERR clients of this node wait for 64 patterns already"
    assert str(client.call("GETJOB", "FROMPATTERN", "other")) == error
    waiting(node, "0-0")
    waiters[0].disconnect()
    waiting(node, "other")


def test_patterns_are_forgotten_a_minute_after_their_last_use(node: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    assert len(take(client, "m*")) == 1
    patterns = node.node.state.lifecycle.patterns
    assert len(patterns.live) == 1
    node.run(seconds=KEPT_MS / 1000 + 1)
    assert patterns.live == []
    queue = node.node.state.lifecycle.queues.get(b"mail")
    client.add("mail")
    assert queue is None or queue.patterns is None
    assert len(take(client, "m*")) == 1


def login(node: LocalNode, *rules: str) -> LocalClient:
    admin = node.client()
    assert admin.call("ACL", "SETUSER", "worker", "on", ">p", "resetkeys", "+@all", *rules) == b"OK"
    client = node.client()
    assert client.call("AUTH", "worker", "p") == b"OK"
    return client


def test_a_user_gets_only_jobs_of_its_queues(node: LocalNode, client: LocalClient) -> None:
    worker = login(node, "~mail:*")
    client.add("print")
    client.add("mail:a")
    assert take(worker, "*", count=9) == [(b"mail:a", b"body")]
    assert take(client, "*", count=9) == [(b"print", b"body")]


def test_a_waiting_user_gets_only_jobs_of_its_queues(node: LocalNode, client: LocalClient) -> None:
    worker = login(node, "~mail:*")
    worker.send("GETJOB", "FROMPATTERN", "*")
    client.add("print")
    assert worker.silent
    client.add("mail:a")
    assert rows(worker.next_reply()) == [(b"mail:a", b"body")]


def test_rules_that_change_hold_for_clients_that_wait(node: LocalNode, client: LocalClient) -> None:
    worker = login(node, "~mail:*", "~print")
    worker.send("GETJOB", "FROMPATTERN", "*")
    login(node, "~print")
    client.add("mail:a")
    assert worker.silent
    client.add("print")
    assert rows(worker.next_reply()) == [(b"print", b"body")]
    assert take(worker, "*") == []
