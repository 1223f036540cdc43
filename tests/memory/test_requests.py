"""How a node that is short of memory treats requests that need more, and clients that use much."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.core.memory.accounting import FULL, Memory
from disqued.core.runtime.counters import CLOSED_FOR_MEMORY, COPIES_REFUSED, JOBS_EVICTED, REQUESTS_REFUSED_UNREAD
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, encode

MB = 1 << 20
OOM = "OOM command not allowed when used memory > 'maxmemory'."


def limited(maxmemory: str) -> LocalNode:
    """A node with this `maxmemory`."""
    config = Config()
    config.set(b"maxmemory", maxmemory.encode())
    return LocalNode(config)


def memory_of(local: LocalNode) -> Memory:
    return local.node.state.lifecycle.memory


def begin_adding(client: LocalClient, size: int) -> None:
    """Send the start of an ADDJOB with a body of this size."""
    client.send_bytes(b"*4\r\n$6\r\nADDJOB\r\n$4\r\nmail\r\n$%d\r\n" % size)


def send_body(client: LocalClient, size: int) -> None:
    """Send this much of a body."""
    for start in range(0, size, 200_000):
        client.send_bytes(b"x" * min(200_000, size - start))


END = b"\r\n$1\r\n0\r\n"


# --- big jobs ---------------------------------------------------------------------------------------------------------


def test_a_body_that_does_not_fit_is_refused_before_it_is_stored() -> None:
    local = limited("20mb")
    client = local.client()
    begin_adding(client, 100 * MB)
    for _ in range(100):
        send_body(client, MB)
        assert memory_of(local).counted_bytes < 2 * MB
    client.send_bytes(END + encode("PING"))
    refused, pong = client.replies()
    assert str(refused).startswith(OOM + " The job is too big for what is left")
    assert pong == b"PONG", "the connection stays usable"
    assert client.call("QLEN", "mail") == 0
    assert local.node.state.counters.value(REQUESTS_REFUSED_UNREAD) == 1


@pytest.mark.parametrize("size", [1, 100_000, 3 * MB])
def test_a_body_that_fits_is_stored(size: int) -> None:
    local = limited("20mb")
    client = local.client()
    begin_adding(client, size)
    send_body(client, size)
    client.send_bytes(END)
    assert client.call("QLEN", "mail") == 1 if isinstance(client.next_reply(), bytes) else False
    assert client.call("QPEEK", "mail", 1)[0][2] == b"x" * size  # type: ignore[index]


def test_concurrent_bodies_are_stored_while_there_is_room() -> None:
    local = limited("40mb")
    clients = [local.client() for _ in range(20)]
    most_bytes = 0
    for client in clients:
        begin_adding(client, 25 * (MB // 5))
    for _ in range(25):
        for client in clients:
            send_body(client, MB // 5)
        most_bytes = max(most_bytes, int(memory_of(local).counted_bytes))
    for client in clients:
        client.send_bytes(END)
    replies = [client.next_reply() for client in clients]
    added = [reply for reply in replies if isinstance(reply, bytes)]
    refused = [str(reply) for reply in replies if not isinstance(reply, bytes)]
    assert added
    assert refused
    assert all(text.startswith("OOM") for text in refused)
    assert most_bytes <= 40 * MB
    assert local.client().call("QLEN", "mail") == len(added)


def test_acknowledged_jobs_make_room_for_a_large_job() -> None:
    local = limited("20mb")
    client = local.client()
    client.add("mail", b"x" * (3 * MB))
    refused = client.call("ADDJOB", "mail", b"x" * (6 * MB), 0)
    assert str(refused).startswith("OOM")
    assert client.call("ACKJOB", *client.take("mail")) == 1
    client.add("mail", b"x" * (6 * MB))


def test_evictable_jobs_are_evicted_for_a_large_job() -> None:
    local = limited("20mb")
    client = local.client()
    first = client.add("mail", b"x" * (2 * MB), "RETRY", 0)
    second = client.add("mail", b"x" * (2 * MB), "RETRY", 0)
    assert client.take("mail", count=2) == [first, second]
    client.add("mail", b"y" * (5 * MB))
    assert not client.show(first)
    assert client.show(second), "no more than needed"


def test_refused_body_is_not_answered_after_client_reply_off() -> None:
    local = limited("20mb")
    client = local.client()
    client.send_bytes(encode("CLIENT", "REPLY", "SKIP"))
    begin_adding(client, 50 * MB)
    send_body(client, 50 * MB)
    client.send_bytes(END)
    assert client.silent
    assert client.call("PING") == b"PONG"


def test_a_copy_that_does_not_fit_is_refused() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    assert second.admin.call("CONFIG", "SET", "maxmemory", "20mb") == b"OK"
    first.admin.send("ADDJOB", "mail", b"x" * (10 * MB), 500, "REPLICATE", 2)
    cluster.run(seconds=2)
    assert str(first.admin.next_reply()).startswith("NOREPL")
    assert second.node.state.lifecycle.table.count == 0
    assert second.node.state.counters.value(COPIES_REFUSED) > 0
    first.admin.send("ADDJOB", "mail", b"x" * (2 * MB), 500, "REPLICATE", 2)
    cluster.run(seconds=2)
    assert isinstance(first.admin.next_reply(), bytes)
    assert second.node.state.lifecycle.table.count == 1


# --- maxmemory --------------------------------------------------------------------------------------------------------


def test_percentage_applies_to_the_current_memory_limit() -> None:
    local = limited("50%")
    client = local.client()
    assert memory_of(local).maximum_bytes == local.host.limit.size_bytes // 2
    local.host.limit = type(local.host.limit)(600 * MB, "cgroup")
    assert client.call("CONFIG", "SET", "maxmemory", "60%") == b"OK"
    assert memory_of(local).maximum_bytes == 360 * MB
    assert client.call("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"60%"]
    info = client.call("INFO", "memory")
    assert isinstance(info, bytes)
    for line in (b"maxmemory:%d" % (360 * MB), b"maxmemory_human:360.00M", b"memory_limit_source:cgroup"):
        assert line in info.split(b"\r\n")


def test_maxmemory_below_used_memory_refuses_jobs_until_memory_is_freed() -> None:
    local = limited("100mb")
    client = local.client()
    for _ in range(3000):
        client.add("once", b"x" * 1000, "RETRY", 0)
    again = [client.add("again", b"x" * 1000) for _ in range(3000)]
    assert len(client.take("once", count=3000)) == 3000
    assert client.call("CONFIG", "SET", "maxmemory", "4mb") == b"OK"
    table = local.node.state.lifecycle.table
    assert 3000 < table.count < 6000, "some, not all at once"
    local.run(seconds=1)
    assert local.node.state.counters.value(JOBS_EVICTED) == 3000
    assert client.call("QLEN", "again") == 3000, "what was not delivered stays"
    refused = client.call("ADDJOB", "again", "body", 0)
    assert str(refused).startswith(("OOM", "NOREPL")), refused
    assert client.take("again", count=2000) == again[:2000]
    assert client.call("ACKJOB", *again[:2000]) == 2000
    local.run(milliseconds=200)
    client.add("again", "there is room again")
    lines = [text for _, text in local.host.log_lines if text.startswith("Memory")]
    assert lines[0].startswith("Memory is used up")
    assert lines[-1].startswith("Memory is no longer short")


def test_process_beyond_its_margin_refuses_jobs_and_releases_memory() -> None:
    local = limited("100mb")
    client = local.client()
    client.add("mail")
    local.host.resident += 200 * MB
    local.run(milliseconds=200)
    assert memory_of(local).level() == FULL
    assert str(client.call("ADDJOB", "mail", "body", 0)).startswith(("OOM", "NOREPL"))
    assert local.host.released > 0
    assert len(client.take("mail")) == 1
    local.host.resident -= 200 * MB
    local.run(milliseconds=200)
    client.add("mail")


# --- clients that hold much -------------------------------------------------------------------------------------------


def test_blocked_client_that_keeps_sending_is_disconnected_when_out_of_memory() -> None:
    local = limited("20mb")
    client, other = local.client(), local.client()
    client.send_bytes(encode("GETJOB", "FROM", "mail"))
    for _ in range(30):
        client.send_bytes(encode("PING", b"x" * MB))
        if client.closed:
            break
    assert client.closed
    local.run(milliseconds=200)
    assert memory_of(local).level() == 0
    assert other.call("PING") == b"PONG"
    assert local.node.state.counters.value(CLOSED_FOR_MEMORY) == 1


@pytest.fixture
def used_up() -> LocalNode:
    local = limited("100mb")
    local.host.resident += 200 * MB
    local.run(milliseconds=200)
    assert memory_of(local).level() == FULL
    return local


def in_pieces(client: LocalClient, data: bytes) -> None:
    for start in range(0, len(data), 200_000):
        client.send_bytes(data[start : start + 200_000])


LONG_ACKJOB = encode("ACKJOB", *[b"D-0badcafe-%024d-05a1" % number for number in range(30_000)])


def test_long_request_runs_when_out_of_memory(used_up: LocalNode) -> None:
    client = used_up.client()
    assert len(LONG_ACKJOB) > MB
    in_pieces(client, LONG_ACKJOB)
    assert client.replies() == [0]


def test_long_request_runs_after_the_client_has_read_its_replies(used_up: LocalNode) -> None:
    client = used_up.client()
    used_up.host.resident -= 200 * MB
    used_up.run(milliseconds=200)
    for _ in range(200):
        client.add("mail", b"x" * 20_000)
    used_up.host.resident += 200 * MB
    used_up.run(milliseconds=200)
    peeked = client.call("QPEEK", "mail", 200)
    assert isinstance(peeked, list)
    assert len(peeked) == 200
    in_pieces(client, LONG_ACKJOB)
    assert client.replies() == [0]


def test_concurrent_long_requests_are_bounded_when_out_of_memory(used_up: LocalNode) -> None:
    clients = [used_up.client() for _ in range(30)]
    for client in clients:
        in_pieces(client, LONG_ACKJOB[:-20])
        assert memory_of(used_up).input_bytes < 12 * MB
    assert 0 < sum(client.closed for client in clients) < len(clients)


def test_slow_reader_is_served_and_stalled_reader_is_disconnected_when_out_of_memory() -> None:
    local = limited("100mb")
    reading, resting = local.client(), local.client()
    for _ in range(12):
        reading.add("mail", b"x" * MB)
    local.host.resident += 200 * MB
    for client in (reading, resting):
        client.window = 0
        client.send("QPEEK", "mail", 12)
    for _ in range(12):
        local.run(milliseconds=100)
        reading.read(MB)
    assert resting.closed
    assert local.node.state.counters.value(CLOSED_FOR_MEMORY) == 1
    reading.read(MB)
    jobs = reading.next_reply()
    assert isinstance(jobs, list)
    assert len(jobs) == 12


@pytest.mark.parametrize(("maxmemory", "waits"), [("1gb", 64 * MB), ("16mb", MB)], ids=["room", "short"])
def test_requests_wait_while_their_client_has_unread_replies(maxmemory: str, waits: int) -> None:
    local = limited(maxmemory)
    client = local.client()
    while local.node.state.lifecycle.table.count < 250:
        if not isinstance(client.call("ADDJOB", "mail", b"x" * 60_000, 0), bytes):
            break
    client.window = 0
    client.send_bytes(encode("QPEEK", "mail", 10) * 200 + encode("PING"))
    for _ in range(150):
        unread = client.session.output_bytes()
        if unread == 0:
            break
        assert unread < waits + 2 * MB
        client.read(unread)
        local.run(milliseconds=100)
    *peeked, pong = client.replies()
    assert [len(reply) for reply in peeked if isinstance(reply, list)] == [10] * 200
    assert pong == b"PONG"


def test_acknowledgements_of_unknown_jobs_are_bounded_by_memory() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    second.crash()  # nobody answers what the acknowledgements ask
    assert first.admin.call("CONFIG", "SET", "maxmemory", "2mb") == b"OK"
    ids = [b"D-0badcafe-%024d-05a1" % number for number in range(6000)]
    for start in range(0, len(ids), 500):
        first.admin.call("ACKJOB", *ids[start : start + 500])
    memory = first.node.state.lifecycle.memory
    assert memory.counted_bytes < 2 * MB
    assert first.node.state.counters.value(JOBS_EVICTED) > 0


def test_input_is_counted_until_it_runs_or_its_client_disconnects() -> None:
    local = limited("100mb")
    client, other = local.client(), local.client()
    empty_bytes = memory_of(local).counted_bytes
    begin_adding(client, 2 * MB)
    send_body(client, MB)
    begin_adding(other, MB)
    send_body(other, MB // 2)
    assert MB * 3 // 2 <= memory_of(local).counted_bytes - empty_bytes <= 2 * MB
    other.disconnect()
    send_body(client, MB)
    client.send_bytes(END)
    assert memory_of(local).input_bytes == 0
