"""Every method of pydisque, the Disque client people have in their programs, against the node as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydisque.client import Client
from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from disqued.testing.processes import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Any:
    """A connected pydisque client; the library has no types."""
    connected = Client([f"127.0.0.1:{server.port}"])
    connected.connect()
    yield connected
    connected.get_connection().close()


def test_hello_describes_the_node(client: Any, server: ServerProcess) -> None:
    version, node_id, (same_id, _, port, priority) = client.hello()

    assert version == 1
    assert same_id == node_id == client.connected_node.node_id
    assert (int(port), priority) == (server.port, b"1")
    assert client.info()["registered_jobs"] == 0


def test_job_is_added_fetched_and_acknowledged(client: Any) -> None:
    job_id = client.add_job("mail", "hello", timeout=100, replicate=1, retry=30, ttl=600, maxlen=10, asynchronous=True)

    assert client.qlen("mail") == 1
    assert client.qpeek("mail", 1) == [[b"mail", job_id, b"hello"]]
    assert client.get_job(["mail"], timeout=100, count=5) == [(b"mail", job_id, b"hello")]
    assert client.working(job_id) == 30
    client.nack_job(job_id)
    assert client.get_job(["mail"], withcounters=True) == [(b"mail", job_id, b"hello", 1, 0)]
    client.ack_job(job_id)
    assert client.show(job_id) is None


def test_empty_queue_returns_an_empty_list(client: Any) -> None:
    assert client.get_job(["mail"], nohang=True) == []
    assert client.get_job(["mail"], timeout=1) == []


def test_a_job_is_put_in_and_out_of_its_queue(client: Any) -> None:
    job_id = client.add_job("mail", "hello")

    assert client.dequeue(job_id) == 1
    assert client.qlen("mail") == 0
    assert client.enqueue(job_id) == 1
    assert client.qlen("mail") == 1


def test_jobs_are_deleted(client: Any) -> None:
    first, second = client.add_job("mail", "1"), client.add_job("mail", "2", delay=30)

    assert client.del_job(first) == 1
    client.fast_ack(second)
    assert client.show(first) is client.show(second) is None


def test_jobs_and_queues_are_described(client: Any) -> None:
    job_id = client.add_job("mail", "hello", retry=0)

    shown = client.show(job_id, return_dict=True)
    assert (shown[b"state"], shown[b"retry"], shown[b"body"]) == (b"queued", 0, b"hello")
    assert client.show(job_id)[:2] == [b"id", job_id]
    stat = client.qstat("mail", return_dict=True)
    assert (stat[b"len"], stat[b"jobs-in"], stat[b"pause"]) == (1, 1, b"none")
    assert client.qstat("mail")[:2] == [b"name", b"mail"]


def test_jobs_and_queues_are_listed(client: Any) -> None:
    job_id = client.add_job("mail", "hello")
    client.add_job("sms", "hi")

    cursor, queues = client.qscan(busyloop=True)
    assert (cursor, sorted(queues)) == (b"0", [b"mail", b"sms"])
    assert client.qscan(count=100, minlen=1, maxlen=9, importrate=1) == [b"0", []]
    assert client.jscan(busyloop=True, queue="mail", state=["queued", "active"]) == [b"0", [job_id]]
    ((described,),) = [client.jscan(count=100, queue="mail", reply="all")[1]]
    assert described[:2] == [b"id", job_id]


def test_queues_are_paused(client: Any) -> None:
    assert client.pause("mail", kw_in=True) == b"in"
    with pytest.raises(ResponseError, match=r"^PAUSED"):
        client.add_job("mail", "hello")
    assert client.pause("mail", kw_out=True, kw_bcast=True) == b"out"
    assert client.pause("mail", kw_all=True) == b"all"
    assert client.pause("mail", kw_state=True) == b"all"
    assert client.pause("mail", kw_none=True) == b"none"
