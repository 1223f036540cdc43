"""Both clients with a real node: every method, and the errors of real connections."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from disqued.client import (
    AsyncClient,
    AsyncConsumer,
    AuthenticationRequired,
    Backoff,
    BadJobId,
    Client,
    ClientClosed,
    ConnectionFailed,
    ConnectionLost,
    Consumer,
    JobEnd,
    JobExists,
    JobFate,
    JobId,
    NewJob,
    NodeLeaving,
    NoSuchJob,
    NotReplicated,
    Purged,
    QueueCount,
    QueueFull,
    QueuePaused,
    QueueSetting,
    ResponseError,
    TooLate,
)
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from support.cluster import RealCluster

UNKNOWN = "D-01234567-abcdefghijklmnopqrstuvwx-05a1"


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert public_names(Client) == public_names(AsyncClient)
    assert public_names(Consumer) == public_names(AsyncConsumer)


def test_every_method_has_documentation() -> None:
    for name in public_names(Client) - {"make_transport", "node"}:
        for kind in (Client, AsyncClient):
            assert inspect.getdoc(getattr(kind, name)), name
    assert list(inspect.signature(Client(["x"]).get).parameters)[:2] == ["queues", "count"]


def test_job_is_added_fetched_and_acknowledged(client: Any) -> None:
    job_id = client.add("mail", "hello", retry_s=60)
    assert isinstance(job_id, JobId)
    assert client.qlen("mail") == 1
    [job] = client.get(["mail"], timeout_ms=1000)
    assert (job.queue, job.id, job.body, job.nacks) == ("mail", job_id, b"hello", None)
    assert client.ack(job.id) == 1
    assert client.show(job.id) is None


def test_get_returns_an_empty_list_after_its_timeout(client: Any) -> None:
    assert client.get("mail", nohang=True) == []
    assert client.get("mail", timeout_ms=1) == []


def test_names_and_bodies_can_be_any_bytes(client: Any) -> None:
    queue, body = "post \r\n ü \udcff", bytes(range(256))
    client.add(queue, body)
    [job] = client.get([queue])
    assert (job.queue, job.body) == (queue, body)


def test_nack_is_counted_as_a_failure(client: Any) -> None:
    job_id = client.add("mail", "x")
    client.get("mail")
    assert client.nack(job_id) == 1
    [again] = client.get("mail", with_counters=True)
    assert (again.nacks, again.additional_deliveries) == (1, 0)


def test_jobs_have_priorities_and_metadata(client: Any) -> None:
    plain = client.add("mail", "x")
    urgent = client.add("mail", "x", priority=3, meta=b"trace 7")
    assert client.qstat("mail").length_by_priority == {"below-0": 0, "0": 1, "1-to-9": 1, "from-10": 0}
    details = client.show(urgent)
    assert (details.priority, details.meta) == (3, b"trace 7")
    assert (client.show(plain).priority, client.show(plain).meta) == (0, b"")
    jobs = client.get("mail", count=2, with_meta=True)
    assert [(job.id, job.priority, job.meta) for job in jobs] == [(urgent, 3, b"trace 7"), (plain, 0, b"")]
    client.nack(urgent)
    assert [(job.id, job.priority, job.meta) for job in client.get("mail")] == [(urgent, None, None)]


def test_enqueue_and_dequeue_move_jobs(client: Any) -> None:
    job_id = client.add("mail", "x")
    assert client.dequeue(job_id) == 1
    assert client.qlen("mail") == 0
    assert client.enqueue(job_id) == 1
    assert [job.id for job in client.qpeek("mail")] == [job_id]
    assert client.delete(job_id) == 1
    assert client.fast_ack(job_id) == 0


def test_show_returns_all_options_of_the_job(client: Any) -> None:
    job_id = client.add("mail", "x", replicate=1, delay_s=50, retry_s=7, ttl_s=100, asynchronous=True)
    details = client.show(job_id)
    assert (details.id, details.queue, details.body, details.state) == (job_id, "mail", b"x", "active")
    assert (details.replicate, details.delay_s, details.retry_s) == (1, 50, 7)
    assert 90 < details.ttl_s <= 100
    assert 40_000 < details.next_requeue_within_ms <= 50_000


def test_qstat_returns_statistics_of_a_queue(client: Any) -> None:
    assert client.qstat("mail") is None
    client.add("mail", "x")
    stats = client.qstat("mail")
    assert (stats.name, stats.length, stats.jobs_in, stats.jobs_out, stats.pause) == ("mail", 1, 1, 0, "none")


def test_the_end_of_a_job_is_known(client: Any) -> None:
    job = client.add("mail", "x", retain_s=60)
    assert client.result(job) == JobFate("waiting", None, None, None)
    assert client.wait(job, timeout_ms=1) == {}
    client.ack(job, result="42", copies=1)
    assert client.wait([job]) == {job: JobEnd("done", b"42")}
    fate = client.result(job)
    assert (fate.outcome, fate.claim, fate.result) == ("done", None, b"42")
    assert fate.ended_ms is not None
    unknown = "D-00000000-" + "a" * 24 + "-05a1"
    assert client.result(unknown) is None
    assert client.results([unknown, job, unknown]) == {unknown: None, job: fate}
    assert client.results([job]) == {job: fate}
    assert client.results([unknown]) == {unknown: None}


def test_jobs_are_counted_and_listed_by_what_they_wait_for(client: Any) -> None:
    client.add("mail", "x")
    client.add("mail", "y", delay_s=60)
    client.qconf_set("mail", {"ttl": 90})
    leased = client.get("mail", nohang=True)[0].id
    assert client.qcount("mail") == QueueCount(queued=0, leased=1, delayed=1, dead=0, nodes_answered=1, nodes_known=1)
    assert list(client.jscan(queue="mail", states=["leased"])) == [leased]
    assert client.qstat("mail").leased == 1
    client.nack(leased)
    stats = client.qstat("mail")
    assert (stats.leased, stats.delayed, stats.dead, stats.settings) == (0, 1, 0, ("mail",))
    assert stats.oldest_ms > 0
    client.qconf_unset("mail")


def test_purged_jobs_are_gone_and_younger_ones_stay(client: Any) -> None:
    client.add("old", "x")
    assert client.qpurge("old") == Purged(deleted=1, nodes_answered=1, nodes_known=1)
    client.add("old", "y")
    assert client.qpurge("old", states=["delayed", "dead"]).deleted == 0
    assert client.qlen("old") == 1


def test_scans_return_all_elements_page_by_page(client: Any) -> None:
    ids = {client.add(f"queue-{number}", "x") for number in range(30)}
    client.add("long", "x")
    client.add("long", "y")
    assert set(client.qscan(page_size=3)) == {"long", *(f"queue-{number}" for number in range(30))}
    assert list(client.qscan(min_len=2)) == ["long"]
    assert set(client.jscan(page_size=3)) > ids
    assert {details.body for details in client.jscan_details(queue="long", states=["queued"])} == {b"x", b"y"}
    assert list(client.jscan(states=["acked"])) == []


def test_paused_queue_refuses_jobs(client: Any) -> None:
    assert client.pause("mail", "in") == "in"
    with pytest.raises(QueuePaused):
        client.add("mail", "x")
    assert client.pause("mail") == "in"
    assert client.pause("mail", "none") == "none"
    client.add("mail", "x")


def test_settings_of_queues_are_set_shown_and_removed(client: Any) -> None:
    assert client.qconf_set("mail:*", {"retry": 30, "maxlen": 1}) == "OK"
    assert client.qconf_get("mail:eu")["retry"] == QueueSetting("30", "mail:*")
    assert client.qconf_get("mail:eu")["dead"] == QueueSetting("mail:eu.dead", "")
    (stored,) = [row for row in client.qconf_show() if row.setting == "retry"]
    assert (stored.name, stored.value, stored.node_id) == ("mail:*", "30", client.hello().node_id)
    assert stored.changed_ms > 1_700_000_000_000
    client.add("mail:eu", "x")
    with pytest.raises(QueueFull, match="maxlen is 1"):
        client.add("mail:eu", "y")
    assert client.qconf_unset("mail:*") == 2
    assert client.qconf_show("mail*") == []


def test_hello_and_info_describe_the_node(client: Any, server: ServerProcess) -> None:
    hello = client.hello()
    assert [node.id for node in hello.nodes] == [hello.node_id]
    assert client.node == f"127.0.0.1:{server.port}"
    assert client.info("server")["tcp_port"] == str(server.port)
    assert client.ping() == "PONG"


def test_working_returns_the_retry_time(client: Any) -> None:
    assert client.working(client.add("mail", "x", retry_s=90)) == 90


def test_error_replies_raise_their_types(client: Any) -> None:
    client.add("mail", "x")
    with pytest.raises(QueueFull):
        client.add("mail", "y", maxlen=1)
    with pytest.raises(NotReplicated):
        client.add("mail", "y", replicate=2)
    with pytest.raises(BadJobId):
        client.ack("nonsense")
    with pytest.raises(NoSuchJob):
        client.working(UNKNOWN)
    with pytest.raises(ResponseError, match="ERR unknown command 'NOSUCH'"):
        client.execute("NOSUCH")


def test_job_near_its_expiry_cannot_be_postponed(client: Any) -> None:
    job_id = client.add("mail", "x", ttl_s=1, retry_s=1)
    client.get("mail", timeout_ms=600)
    client.get("empty", timeout_ms=600)  # lets more than half of its time to live pass
    with pytest.raises((TooLate, NoSuchJob)):
        client.working(job_id)


def test_execute_sends_any_command(client: Any) -> None:
    assert client.execute("QLEN", b"mail") == 0
    assert client.execute("CONFIG", "GET", "maxmemory-policy")[0] == b"maxmemory-policy"
    pong, refused, length = client.execute_many([["PING"], ["NOSUCH"], ["QLEN", "mail"]])
    assert (pong, type(refused), length) == (b"PONG", ResponseError, 0)


def test_execute_ahead_returns_the_replies_in_order(client: Any) -> None:
    commands = [["ADDJOB", "mail", "x", 0], ["NOSUCH"], *([["QLEN", "mail"]] * 50)]
    job_id, refused, *lengths = client.execute_ahead(commands)
    assert (job_id[:2], type(refused), lengths) == (b"D-", ResponseError, [1] * 50)


def test_add_many_returns_a_result_for_each_job(client: Any) -> None:
    results = client.add_many("mail", (str(number) for number in range(300)), maxlen=290)
    assert sum(isinstance(result, JobId) for result in results) == 290
    assert {type(result) for result in results[290:]} == {QueueFull}
    assert [job.body for job in client.qpeek("mail", 3)] == [b"0", b"1", b"2"]
    retries = client.working_many([results[0], UNKNOWN])
    assert retries[0] == 300
    assert isinstance(retries[1], NoSuchJob)


def test_job_with_an_id_of_its_own_is_added_once_and_in_one_queue(client: Any) -> None:
    ids = {client.add("named", "body", job_id="0123456789abcdefABCDEF+/") for _ in range(3)}
    assert ids == {"D-00000000-0123456789abcdefABCDEF+/-05a1"}
    assert client.qlen("named") == 1
    with pytest.raises(JobExists):
        client.add("other", "body", job_id="0123456789abcdefABCDEF+/")


def test_job_with_a_key_is_added_once(client: Any) -> None:
    job_id = client.add("mail", "x", key="order-17", window_s=60, repeat=True)
    assert client.add("mail", "x", key=b"order-17") == job_id
    assert client.qlen("mail") == 1


def test_get_matching_takes_jobs_of_all_queues_that_match(client: Any) -> None:
    ids = {client.add(queue, "x", replicate=1) for queue in ("mail:a", "mail:b")}
    assert {job.id for job in client.get_matching("mail:*", count=5)} == ids
    assert client.get_matching(["mail:*"], nohang=True) == []


def test_add_to_returns_a_result_for_each_queue(client: Any) -> None:
    client.pause("b", "in")
    one, paused, other = client.add_to(["a", "b", "c"], "x", replicate=1)
    assert isinstance(paused, QueuePaused)
    assert [client.get(queue)[0].id for queue in "ac"] == [one, other]


def test_add_jobs_returns_a_result_for_each_job(client: Any) -> None:
    rows = [NewJob("mail", f"row {number}", key=f"row-{number}", retry_s=60) for number in range(300)]
    ids = client.add_jobs(iter(rows))
    assert len(set(ids)) == 300
    *again, refused = client.add_jobs([*rows, NewJob("post", "x", replicate=2)])
    assert again == ids
    assert isinstance(refused, NotReplicated)
    assert client.qlen("mail") == 300


def test_blocked_get_does_not_block_other_calls(client: Any) -> None:
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(client.get("mail", timeout_ms=20_000)))
    waiting.start()
    while client.info("clients")["blocked_clients"] != "1":
        pass
    client.add("mail", "x")
    waiting.join(20)
    assert [job.body for job in got] == [b"x"]


def test_password_is_sent(connect: Any, tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--requirepass", "open sesame") as server:
        node = f"127.0.0.1:{server.port}"
        assert connect([node], password="open sesame").ping() == "PONG"
        with pytest.raises(ResponseError, match="invalid password"):
            connect([node], password="guess").ping()
        with pytest.raises(AuthenticationRequired):
            connect([node]).ping()


def test_unix_socket_is_a_valid_address(connect: Any, tmp_path: Path) -> None:
    path = tmp_path / "disque.sock"
    with ServerProcess(tmp_path, "--unixsocket", str(path)):
        client = connect([str(path)], discover=False)
        assert client.ping() == "PONG"
        assert client.node == str(path)


def test_client_survives_a_restart_of_the_node(connect: Any, tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as first:
        client = connect([f"127.0.0.1:{first.port}"])
        client.add("mail", "x")
    with ServerProcess(tmp_path, port=first.port):
        client.add("mail", "y")
        assert [job.body for job in client.get("mail", timeout_ms=1000)] == [b"y"]


def test_other_node_is_used_when_one_stops(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with ServerProcess(tmp_path / "a") as a, ServerProcess(tmp_path / "b") as b:
        nodes = {f"127.0.0.1:{server.port}": server for server in (a, b)}
        client = connect(list(nodes))
        client.ping()
        first = client.node
        nodes[first].stop()
        assert client.ping() == "PONG"
        assert client.node in nodes.keys() - {first}


def test_error_names_the_unreachable_node(connect: Any) -> None:
    port = free_port()
    with pytest.raises(ConnectionFailed, match=f"127.0.0.1:{port}"):
        connect([f"127.0.0.1:{port}"], backoff=Backoff(attempts=2)).ping()


def test_connection_is_lost_when_the_node_times_out(connect: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = connect([f"127.0.0.1:{port}"], discover=False, timeout_s=0.05, backoff=Backoff(attempts=1))
        with pytest.raises(ConnectionLost, match=r"no data for 0\.051 s"):
            client.add("mail", "x", timeout_ms=1)


def test_server_of_another_protocol_is_detected(connect: Any) -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,)).start()
        client = connect([f"127.0.0.1:{listener.getsockname()[1]}"], backoff=Backoff(attempts=1))
        with pytest.raises(ConnectionFailed, match="Protocol error"):
            client.ping()


def test_closed_client_refuses_calls(client: Any) -> None:
    client.ping()
    client.close()
    with pytest.raises(ClientClosed):
        client.ping()


def test_single_string_of_nodes_is_refused() -> None:
    with pytest.raises(TypeError, match="list of addresses"):
        Client("localhost:7711")


def test_cancelled_get_leaves_no_blocked_client_on_the_node(server: ServerProcess) -> None:
    async def scenario() -> None:
        async with AsyncClient([f"127.0.0.1:{server.port}"]) as client:
            fetch = asyncio.create_task(client.get("mail"))
            while (await client.info("clients"))["blocked_clients"] != "1":
                pass
            fetch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetch
            while (await client.info("clients"))["blocked_clients"] != "0":
                pass
            await client.add("mail", "x")
            assert [job.body for job in await client.get("mail")] == [b"x"]

    asyncio.run(scenario())


def test_max_connections_limits_concurrent_calls(server: ServerProcess) -> None:
    async def scenario() -> int:
        async with AsyncClient([f"127.0.0.1:{server.port}"], max_connections=3) as client:
            await asyncio.gather(*(client.get("mail", timeout_ms=1) for _ in range(20)))
            return int((await client.info("stats"))["total_connections_received"])

    connections_before = 1  # the connection of the fixture, which checks that the node is ready
    assert asyncio.run(scenario()) <= connections_before + 3


def test_blocked_get_moves_to_another_node_when_its_node_leaves(connect: Any, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        nodes = [f"127.0.0.1:{node.port}" for node in cluster.nodes]
        client = connect(nodes)
        client.ping()
        first = client.node
        [second] = set(nodes) - {first}
        observers = {node: Client([node], discover=False) for node in nodes}
        got: list[Any] = []
        waiting = threading.Thread(target=lambda: got.extend(client.get("mail", timeout_ms=20_000)))
        waiting.start()
        cluster.wait_until(lambda: observers[first].info("clients")["blocked_clients"] == "1")
        observers[first].execute("CLUSTER", "LEAVING", "yes")
        cluster.wait_until(lambda: observers[second].info("clients")["blocked_clients"] == "1")
        observers[second].add("mail", "x", replicate=1)
        waiting.join(20)
        assert [job.body for job in got] == [b"x"]
        assert client.node == second
        for observer in observers.values():
            observer.close()


def test_get_raises_node_leaving_when_there_is_no_other_node(connect: Any, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        client = connect([f"127.0.0.1:{cluster.nodes[0].port}"], backoff=Backoff(attempts=2), discover=False)
        client.execute("CLUSTER", "LEAVING", "yes")
        with pytest.raises(NodeLeaving):
            client.get("mail", timeout_ms=10_000)


def test_dead_letters_are_redriven(client: Any) -> None:
    client.add("mail", "x", retry_s=30)
    [job] = client.get("mail")
    client.nack(job.id, reason="no such address", dead=True)
    assert client.redrive_status("mail.dead") is None
    assert client.redrive("mail.dead", reason="no such*") == "started"
    while client.qlen("mail") == 0:
        pass
    status = client.redrive_status("mail.dead")
    assert (status.moved, status.failed) == (1, 0)


def test_job_is_moved(client: Any) -> None:
    job_id = client.add("mail", "x", retry_s=30)
    assert client.movejob(job_id, "other") == 1
    [job] = client.get("other")
    assert job.body == b"x"
    assert client.show(job.id).origin_queue == "mail"


def test_a_node_says_whether_copies_are_missing(client: Any) -> None:
    client.add("mail", "x")
    assert client.repair_now() == "OK"
    status = client.repair_status()
    assert (status.enabled, status.done, status.waits_for) == (True, True, "")
    assert (status.jobs_under_replicated, status.jobs_in_flight, status.jobs_without_node) == (0, 0, 0)
