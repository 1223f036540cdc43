"""Clients that wait in GETJOB: which clients get which jobs, in which order, and how a wait ends."""

from __future__ import annotations

import pytest

from disqued.testing.local import LocalClient, LocalNode, Reply, encode


@pytest.fixture
def producer(local: LocalNode) -> LocalClient:
    return local.client()


def waiting(local: LocalNode, *queues: str, timeout_ms: int = 0) -> LocalClient:
    """A new client that waits for a job from these queues."""
    client = local.client()
    client.send("GETJOB", "TIMEOUT", timeout_ms, "FROM", *queues)
    assert client.silent
    return client


def received(client: LocalClient) -> list[bytes]:
    """The IDs of the jobs that the client received since the last call; an empty ID stands for a timeout."""
    ids: list[bytes] = []
    for reply in client.replies():
        if reply is None:
            ids.append(b"")
            continue
        assert isinstance(reply, list)
        ids += [_id(job) for job in reply]
    return ids


def _id(job: Reply) -> bytes:
    assert isinstance(job, list)
    assert isinstance(job[1], bytes)
    return job[1]


def test_waiting_client_gets_a_job_as_soon_as_it_is_queued(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    job = producer.add("mail", "hello")
    assert worker.next_reply() == [[b"mail", job, b"hello"]]
    assert producer.call("QLEN", "mail") == 0


def test_clients_are_served_in_the_order_of_their_requests(local: LocalNode, producer: LocalClient) -> None:
    workers = [waiting(local, "mail") for _ in range(3)]
    jobs = [producer.add("mail") for _ in range(4)]
    assert [received(worker) for worker in workers] == [[job] for job in jobs[:3]]
    assert producer.call("QLEN", "mail") == 1


def test_waiting_client_gets_the_requeue_time(local: LocalNode, producer: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "WITHREQUEUE", "FROM", "mail")
    job = producer.add("mail", "hello", "RETRY", 0)
    assert worker.next_reply() == [[b"mail", job, b"hello", b"requeue-in-ms", -1]]


def test_waiting_client_gets_one_job_whatever_its_count(local: LocalNode, producer: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "COUNT", 10, "WITHCOUNTERS", "FROM", "mail")
    producer.send_bytes(encode("ADDJOB", "mail", "one", 0) + encode("ADDJOB", "mail", "two", 0))
    (reply,) = worker.replies()
    assert isinstance(reply, list)
    assert len(reply) == 1
    assert isinstance(reply[0], list)
    assert reply[0][3:] == [b"nacks", 0, b"additional-deliveries", 0]
    assert len(producer.replies()) == 2
    assert producer.call("QLEN", "mail") == 1


def test_client_that_waits_for_many_queues_is_served_once(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "a", "b", "c", "b")
    job = producer.add("b")
    assert received(worker) == [job]
    producer.add("a")
    assert worker.silent
    assert [producer.stat(queue)["blocked"] for queue in ("a", "b", "c")] == [0, 0, 0]


def test_jobs_queued_by_one_command_are_served_in_the_order_in_which_they_were_queued(
    local: LocalNode, producer: LocalClient
) -> None:
    first, second = producer.add("a", "1", "DELAY", 100), producer.add("b", "2", "DELAY", 100)
    worker = waiting(local, "a", "b")
    assert producer.call("ENQUEUE", first, second) == 2
    assert received(worker) == [first]


def test_two_clients_with_different_queues_each_get_their_own(local: LocalNode, producer: LocalClient) -> None:
    both, only_b = waiting(local, "a", "b"), waiting(local, "b")
    for_both, for_b = producer.add("a"), producer.add("b")
    assert received(both) == [for_both]
    assert received(only_b) == [for_b]


def test_delayed_job_wakes_the_client_when_its_delay_is_over(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    job = producer.add("mail", "later", "DELAY", 2)
    local.run(milliseconds=1999)
    assert worker.silent
    local.run(milliseconds=17)
    assert received(worker) == [job]


def test_nacked_job_wakes_the_client(local: LocalNode, producer: LocalClient) -> None:
    job = producer.add("mail")
    assert producer.take("mail") == [job]
    worker = waiting(local, "mail")
    producer.call("NACK", job)
    assert received(worker) == [job]


def test_a_job_of_a_lost_worker_wakes_the_client(local: LocalNode, producer: LocalClient) -> None:
    job = producer.add("mail", "again", "RETRY", 3)
    lost = local.client()
    assert lost.take("mail") == [job]
    lost.disconnect()
    worker = waiting(local, "mail")
    local.run(seconds=4)
    assert received(worker) == [job]


def test_a_wait_ends_after_its_timeout_with_a_null_array(local: LocalNode) -> None:
    worker = waiting(local, "mail", timeout_ms=1500)
    local.run(milliseconds=1499)
    assert worker.silent
    local.run(milliseconds=17)
    assert worker.received == b"*-1\r\n"
    assert local.node.state.blocked_clients == 0


def test_client_gets_no_job_after_its_timeout(local: LocalNode, producer: LocalClient) -> None:
    timed_out, still_waiting = waiting(local, "mail", timeout_ms=100), waiting(local, "mail")
    local.run(seconds=1)
    job = producer.add("mail")
    assert received(timed_out) == [b""]
    assert received(still_waiting) == [job]


def test_wait_without_a_timeout_does_not_end(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    local.run(seconds=3600)
    job = producer.add("mail")
    assert received(worker) == [job]


def test_largest_timeout_means_a_wait_without_limit(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail", timeout_ms=(1 << 63) - 1)
    local.run(seconds=10)
    job = producer.add("mail")
    assert received(worker) == [job]


def test_commands_sent_by_a_waiting_client_run_afterwards_in_order(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    worker.send_bytes(encode("PING", "one") + encode("QLEN", "mail"))
    worker.send_bytes(encode("PING", "two")[:-3])
    assert worker.silent
    job = producer.add("mail", "hello")
    assert worker.replies() == [[[b"mail", job, b"hello"]], b"one", 0]
    worker.send_bytes(encode("PING", "two")[-3:])
    assert worker.next_reply() == b"two"


def test_client_can_wait_repeatedly_in_one_pipeline(local: LocalNode, producer: LocalClient) -> None:
    worker = local.client()
    worker.send_bytes(encode("GETJOB", "FROM", "mail") * 3 + encode("PING"))
    jobs = [producer.add("mail") for _ in range(3)]
    *got, pong = worker.replies()
    assert [_id(reply[0]) for reply in got if isinstance(reply, list)] == jobs
    assert pong == b"PONG"


def test_waiting_client_is_not_served_by_an_addjob_in_its_own_pipeline(local: LocalNode, producer: LocalClient) -> None:
    worker = local.client()
    worker.send_bytes(encode("GETJOB", "FROM", "mail") + encode("ADDJOB", "mail", "mine", 0))
    assert worker.silent
    job = producer.add("mail", "theirs")
    (got, mine) = worker.replies()
    assert isinstance(got, list)
    assert _id(got[0]) == job
    assert producer.take("mail") == [mine]


def test_clients_that_wait_again_at_once_keep_their_order(local: LocalNode, producer: LocalClient) -> None:
    workers = [local.client() for _ in range(3)]
    for worker in workers:
        worker.send_bytes(encode("GETJOB", "FROM", "mail") * 2)
    producer.send_bytes(encode("ADDJOB", "mail", "b", 0) * 3)
    assert len(producer.replies()) == 3
    assert [len(received(worker)) for worker in workers] == [1, 1, 1]
    later = [producer.add("mail") for _ in range(3)]
    assert [received(worker) for worker in workers] == [[job] for job in later]


def test_a_client_that_disconnects_while_it_waits_gets_no_job(local: LocalNode, producer: LocalClient) -> None:
    gone, next_in_line = waiting(local, "mail", "other"), waiting(local, "mail")
    gone.disconnect()
    job = producer.add("mail", "once", "RETRY", 0)
    assert received(next_in_line) == [job]
    assert local.node.state.blocked_clients == 0


def test_a_client_that_is_killed_while_it_waits_gets_no_job(local: LocalNode, producer: LocalClient) -> None:
    killed, next_in_line = waiting(local, "mail"), waiting(local, "mail")
    producer.send_bytes(
        encode("CLIENT", "KILL", killed.session.address) + encode("ADDJOB", "mail", "once", 0, "RETRY", 0)
    )
    ok, job = producer.replies()
    assert ok == b"OK"
    assert killed.closed
    assert received(next_in_line) == [job]


def test_a_queue_paused_in_output_serves_nobody_until_it_is_resumed(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    assert producer.call("PAUSE", "mail", "out") == b"out"
    jobs = [producer.add("mail") for _ in range(2)]
    assert worker.silent
    second = waiting(local, "mail")
    assert producer.call("PAUSE", "mail", "none") == b"none"
    assert [received(client) for client in (worker, second)] == [[job] for job in jobs]


def test_a_client_of_a_paused_queue_is_served_from_another(local: LocalNode, producer: LocalClient) -> None:
    producer.call("PAUSE", "mail", "out")
    producer.add("mail")
    worker = waiting(local, "mail", "other")
    job = producer.add("other")
    assert received(worker) == [job]


def test_nothing_is_lost_or_delivered_twice_when_many_wait_for_many_queues(local: LocalNode) -> None:
    producer = local.client()
    workers = [waiting(local, f"q{number % 7}", f"q{number % 5}", f"q{number % 3}") for number in range(60)]
    jobs = [producer.add(f"q{number % 7}") for number in range(40)]
    got = [job for worker in workers for job in received(worker)]
    left = producer.take(*(f"q{number}" for number in range(7)), count=100)
    assert len(got) == len(set(got))
    assert sorted(got + left) == sorted(jobs)
    still_waiting = local.node.state.blocked_clients
    assert still_waiting == len(workers) - len(got)


def test_flushing_everything_ends_all_waits_with_a_null_array(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail", "other")
    worker.send("PING")
    assert producer.call("DEBUG", "FLUSHALL") == b"OK"
    assert worker.replies() == [None, b"PONG"]
    assert producer.stat("mail") == {}


def test_unused_queue_is_removed_when_its_waiting_client_disconnects(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    local.run(seconds=301)
    assert producer.stat("mail")["blocked"] == 1
    worker.disconnect()
    assert producer.stat("mail") == {}


def test_a_client_counts_as_blocked_while_it_waits(local: LocalNode, producer: LocalClient) -> None:
    worker = waiting(local, "mail")
    listed = producer.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    assert b"flags=b" in next(line for line in listed.splitlines() if worker.session.address in line)
    assert producer.stat("mail")["blocked"] == 1
