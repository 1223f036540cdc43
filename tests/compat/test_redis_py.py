"""The Redis library of Python works against the node as it is: sync and asyncio, RESP2 and RESP3."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError
from redis.retry import Retry
from redis.utils import str_if_bytes

from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

ID_LENGTH = 40


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    """The version of the protocol the client asks for."""
    version: int = request.param
    return version


def connect(server: ServerProcess, protocol: int, **options: str | None) -> Any:
    """A blocking client that tries once; commands the library does not know have no types."""
    return redis.Redis(port=server.port, protocol=protocol, retry=Retry(NoBackoff(), 0), **options)  # type: ignore[arg-type]


@pytest.fixture
def client(server: ServerProcess, protocol: int) -> Iterator[Any]:
    """A blocking client of the node."""
    with connect(server, protocol) as connected:
        yield connected


def name_of(client: Any) -> str:
    """The connection's name; the library hands it over as bytes or text, depending on the protocol."""
    return str(str_if_bytes(client.client_getname()))


def asynchronous(
    server: ServerProcess, protocol: int, story: Callable[[Any], Awaitable[None]], **options: str | None
) -> None:
    """Run `story` with an asyncio client of the node."""

    async def main() -> None:
        async with redis.asyncio.Redis(port=server.port, protocol=protocol, **options) as connected:  # type: ignore[arg-type]
            await story(connected)

    asyncio.run(main())


def test_ping(client: Any) -> None:
    assert client.ping() is True
    assert client.ping() is True


def test_a_job_is_added_taken_and_acknowledged(client: Any) -> None:
    job_id = client.execute_command("ADDJOB", "mail", b"\x00hello\r\n", 0)
    assert len(job_id) == ID_LENGTH

    assert client.execute_command("GETJOB", "FROM", "mail") == [[b"mail", job_id, b"\x00hello\r\n"]]
    assert client.execute_command("ACKJOB", job_id) == 1
    assert client.execute_command("SHOW", job_id) is None


def test_empty_queue_returns_none(client: Any) -> None:
    assert client.execute_command("GETJOB", "NOHANG", "FROM", "mail") is None


def test_a_pipeline_gets_its_replies_in_order_and_its_errors_apart(client: Any) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for number in range(100):
            pipeline.execute_command("ADDJOB", "mail", b"%d" % number, 0)
        pipeline.execute_command("ADDJOB", "mail", b"x", "soon")
        pipeline.execute_command("QLEN", "mail")
        *ids, refused, length = pipeline.execute(raise_on_error=False)

    assert len(set(ids)) == 100
    assert isinstance(refused, ResponseError)
    assert str(refused) == "timeout is not an integer or out of range"
    assert length == 100


def test_error_reply_raises_and_the_connection_stays_usable(client: Any) -> None:
    with pytest.raises(ResponseError, match=r"^BADID Invalid Job ID format\.$"):
        client.execute_command("SHOW", "nonsense")
    assert client.ping()


def test_info_is_understood(client: Any) -> None:
    client.execute_command("ADDJOB", "mail", "hello", 0)

    facts = client.info()
    assert facts["registered_jobs"] == 1
    assert facts["connected_clients"] == 1
    assert client.info("queues") == {"registered_queues": 1}


def test_a_connection_may_have_a_name(server: ServerProcess, client: Any, protocol: int) -> None:
    assert client.client_setname("worker-1") is True
    assert name_of(client) == "worker-1"

    with connect(server, protocol, client_name="worker-2") as other:
        assert name_of(other) == "worker-2"
        assert {entry["name"] for entry in client.client_list()} == {"worker-1", "worker-2"}


def test_settings_are_read_and_changed(client: Any) -> None:
    assert client.config_set("maxclients", 100) is True
    assert client.config_get("maxclients") == {"maxclients": "100"}
    assert client.config_get("nosuch") == {}


def test_the_command_table_is_understood(client: Any) -> None:
    table = client.command()
    assert table["addjob"]["arity"] == -4
    assert "denyoom" in {str(flag) for flag in table["addjob"]["flags"]}
    assert client.command_count() == len(table)


def test_the_slow_log_and_the_time_are_understood(client: Any) -> None:
    client.config_set("slowlog-log-slower-than", 0)
    client.ping()
    assert b"PING" in {entry["command"] for entry in client.slowlog_get()}

    seconds, microseconds = client.time()
    assert seconds > 1_600_000_000
    assert 0 <= microseconds < 1_000_000


def test_a_blocked_client_is_served_when_a_job_arrives(client: Any) -> None:
    served: list[object] = []
    waiter = threading.Thread(
        target=lambda: served.extend(client.execute_command("GETJOB", "TIMEOUT", 10_000, "FROM", "mail"))
    )
    waiter.start()
    while client.info("clients")["blocked_clients"] == 0:
        pass
    job_id = client.execute_command("ADDJOB", "mail", "hello", 0)
    waiter.join()

    assert served == [[b"mail", job_id, b"hello"]]


def test_asyncio_adds_takes_and_acknowledges(server: ServerProcess, protocol: int) -> None:
    async def story(client: Any) -> None:
        assert await client.ping()
        ids = await asyncio.gather(*(client.execute_command("ADDJOB", "mail", b"%d" % n, 0) for n in range(20)))
        jobs = await client.execute_command("GETJOB", "COUNT", 20, "FROM", "mail")
        assert {job_id for _, job_id, _ in jobs} == set(ids)
        assert await client.execute_command("ACKJOB", *ids) == 20
        assert (await client.info("jobs"))["registered_jobs"] == 0
        assert await client.config_get("port") == {"port": str(server.port)}

    asynchronous(server, protocol, story)


def test_asyncio_waits_for_a_job_while_others_work(server: ServerProcess, protocol: int) -> None:
    async def story(client: Any) -> None:
        waiting = asyncio.create_task(client.execute_command("GETJOB", "FROM", "mail", "urgent"))
        while (await client.info("clients"))["blocked_clients"] == 0:
            pass
        async with client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command("ADDJOB", "urgent", "hello", 0)
            pipeline.execute_command("QLEN", "urgent")
            (job_id, _) = await pipeline.execute()
        assert await waiting == [[b"urgent", job_id, b"hello"]]

    asynchronous(server, protocol, story)


def test_cancelled_blocking_call_takes_no_job(server: ServerProcess, protocol: int) -> None:
    async def story(client: Any) -> None:
        waiting = asyncio.create_task(client.execute_command("GETJOB", "FROM", "mail"))
        while (await client.info("clients"))["blocked_clients"] == 0:
            pass
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while (await client.info("clients"))["blocked_clients"]:
            pass
        await client.execute_command("ADDJOB", "mail", "hello", 0)
        assert await client.execute_command("QLEN", "mail") == 1

    asynchronous(server, protocol, story)


@pytest.mark.parametrize("username", [None, "default"])
def test_password_is_required_and_accepted(tmp_path: Path, protocol: int, username: str | None) -> None:
    with ServerProcess(tmp_path, "--requirepass", "s3cret") as server:
        with (
            connect(server, protocol) as unknown,
            pytest.raises(AuthenticationError, match="Authentication required"),
        ):
            unknown.ping()
        with (
            connect(server, protocol, username=username, password="wrong") as guesser,
            pytest.raises(AuthenticationError),
        ):
            guesser.ping()
        with connect(server, protocol, username=username, password="s3cret") as known:
            assert known.ping()
            assert len(known.execute_command("ADDJOB", "mail", "hello", 0)) == ID_LENGTH

        async def story(client: Any) -> None:
            assert await client.execute_command("QLEN", "mail") == 1

        asynchronous(server, protocol, story, username=username, password="s3cret")


def test_the_handshake_tells_about_the_node(server: ServerProcess) -> None:
    with connect(server, 3) as client:
        map_reply = client.execute_command("HELLO", 3, "SETNAME", "worker")
        assert map_reply[b"proto"] == 3
        assert map_reply[b"server"]
        assert map_reply[b"version"]
        assert isinstance(map_reply[b"id"], int)
        assert name_of(client) == "worker"

        version, node_id, (_, _, port, priority) = client.execute_command("HELLO")
        assert (version, len(node_id), int(port), int(priority)) == (1, ID_LENGTH, server.port, 1)


def test_an_unknown_protocol_version_is_refused(server: ServerProcess) -> None:
    with connect(server, 2) as client:
        with pytest.raises(ResponseError, match=r"^NOPROTO"):
            client.execute_command("HELLO", 4)
        assert client.ping()
