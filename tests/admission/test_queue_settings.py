"""Settings of queues and ADDJOB: defaults, and limits of a queue."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, Reply


def conf(client: LocalClient, name: str, *words: str | int) -> None:
    assert client.call("QCONF", name, "SET", *words) == b"OK"


def error(reply: Reply) -> str:
    assert isinstance(reply, ResponseError), reply
    return str(reply)


def shown(client: LocalClient, queue: str, *options: str | int) -> tuple[Reply, ...]:
    """RETRY, TTL and REPLICATE of a job that is added now."""
    job = client.show(client.add(queue, "body", *options))
    return job["retry"], job["ttl"], job["repl"]


def test_settings_are_the_defaults_and_options_win(client: LocalClient) -> None:
    conf(client, "mail*", "retry", 7, "ttl", 600, "replicate", 1)
    assert shown(client, "mail") == (7, 600, 1)
    assert shown(client, "mail", "RETRY", 8) == (8, 600, 1)
    assert shown(client, "mail", "TTL", 500) == (7, 500, 1)
    assert shown(client, "jobs") == (300, 86400, 1)


def test_priority_is_the_default_and_the_option_wins(client: LocalClient) -> None:
    conf(client, "mail", "priority", 5)
    assert client.show(client.add("mail"))["priority"] == 5
    assert client.show(client.add("mail", "body", "PRIORITY", -1))["priority"] == -1
    assert "priority" not in client.show(client.add("mail", "body", "PRIORITY", 0))
    assert "priority" not in client.show(client.add("other"))


def test_each_job_of_addto_has_the_priority_of_its_queue(client: LocalClient) -> None:
    conf(client, "urgent", "priority", 5)
    conf(client, "late", "priority", -5)
    jobs = client.call("ADDTO", 3, "urgent", "plain", "late", "body", 0, "META", "trace")
    assert isinstance(jobs, list)
    shown = [client.show(job) for job in jobs if isinstance(job, bytes)]
    assert [(job.get("priority", 0), job["meta"]) for job in shown] == [(5, b"trace"), (0, b"trace"), (-5, b"trace")]


def test_retry_follows_from_a_ttl_that_is_set(client: LocalClient) -> None:
    conf(client, "mail", "ttl", 600)
    assert shown(client, "mail") == (60, 600, 1)


def test_settings_hold_before_the_queue_exists_and_after_it_was_removed(client: LocalClient, local: LocalNode) -> None:
    conf(client, "mail", "ttl", 3)
    assert shown(client, "mail")[1] == 3
    local.run(seconds=1000)
    assert client.stat("mail") == {}
    assert shown(client, "mail")[1] == 3


def test_replicate_is_the_number_of_copies(cluster: Cluster) -> None:
    first = cluster.members[0]
    conf(first.admin, "mail", "replicate", 2)
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000)
    cluster.run(milliseconds=50)
    job = client.next_reply()
    assert isinstance(job, bytes)
    assert len(cluster.copies(job)) == 2


def test_at_most_once_by_setting_makes_one_copy(cluster: Cluster) -> None:
    first = cluster.members[0]
    conf(first.admin, "mail", "retry", 0)
    assert shown(first.admin, "mail")[::2] == (0, 1)
    reply = error(first.admin.call("ADDJOB", "mail", "body", 0, "REPLICATE", 2))
    assert "REPLICATE 2 needs a RETRY above 0, and the setting retry of this queue is 0" in reply


def test_options_that_contradict_settings_are_refused_with_the_setting(client: LocalClient) -> None:
    conf(client, "mail", "ttl", 60, "replicate", 3)
    reply = error(client.call("ADDJOB", "mail", "body", 0, "DELAY", 60))
    assert "DELAY is 60 seconds, and the setting ttl of this queue 60" in reply
    reply = error(client.call("ADDJOB", "mail", "body", 0, "RETRY", 0))
    assert "RETRY 0 needs REPLICATE 1, and the setting replicate of this queue is 3" in reply
    assert shown(client, "mail", "RETRY", 0, "REPLICATE", 1)[0] == 0


def test_full_queue_refuses_jobs_with_a_reason(client: LocalClient) -> None:
    conf(client, "mail", "maxlen", 2)
    client.add("mail")
    client.add("mail")
    reply = error(client.call("ADDJOB", "mail", "body", 0))
    assert reply.startswith("MAXLEN This node has 2 jobs in the queue, and its maxlen is 2")
    client.take("mail")
    client.add("mail")


def test_bytes_of_waiting_jobs_are_limited(client: LocalClient) -> None:
    client.add("mail", "x" * 30)
    conf(client, "mail", "maxbytes", 100)
    client.add("mail", "x" * 60)
    assert "90 bytes in the queue, and its maxbytes is 100" in error(client.call("ADDJOB", "mail", "x" * 11, 0))
    client.add("mail", "x" * 10)
    assert "The body has 101 bytes" in error(client.call("ADDJOB", "mail", "x" * 101, 0))
    client.take("mail")
    client.add("mail", "x" * 30)


def test_bytes_are_counted_whatever_happens_to_jobs(client: LocalClient, local: LocalNode) -> None:
    queue = local.node.state.lifecycle.make_queue(b"mail", local.now_ms)
    jobs = [client.add("mail", "x" * size, "RETRY", 1) for size in (10, 20, 30, 40)]
    assert queue.body_bytes == 100
    assert client.take("mail") == jobs[:1]
    client.call("DEQUEUE", jobs[1])
    client.call("ACKJOB", jobs[2])
    assert queue.body_bytes == 40
    client.call("ENQUEUE", jobs[1])
    client.call("DELJOB", jobs[3])
    assert queue.body_bytes == 20
    local.run(seconds=3)  # the first one is queued again
    assert queue.body_bytes == 30
    client.call("FASTACK", *jobs)
    assert queue.body_bytes == 0


def test_oldest_jobs_make_room_on_all_nodes_if_wanted(cluster: Cluster) -> None:
    first = cluster.members[0]
    conf(first.admin, "mail", "maxlen", 3, "overflow", "drop-oldest")
    jobs: list[bytes] = []
    for number in range(5):
        client = first.client()
        client.send("ADDJOB", "mail", f"body {number}", 1000)
        cluster.run(milliseconds=50)
        reply = client.next_reply()
        assert isinstance(reply, bytes)
        jobs.append(reply)
    assert [len(cluster.copies(job)) for job in jobs] == [0, 0, 3, 3, 3]
    assert first.admin.take("mail", count=9) == jobs[2:]
    assert b"jobs_dropped_oldest:2" in first.admin.raw("INFO", "admission")


def test_no_job_is_dropped_for_one_that_is_refused(client: LocalClient) -> None:
    conf(client, "mail", "maxbytes", 100, "overflow", "drop-oldest")
    job = client.add("mail", "x" * 60)
    assert "MAXLEN" in error(client.call("ADDJOB", "mail", "x" * 101, 0))
    assert "NOREPL" in error(client.call("ADDJOB", "mail", "x" * 60, 0, "REPLICATE", 2))
    assert client.show(job)["state"] == b"queued"
    client.add("mail", "x" * 60)
    assert client.call("SHOW", job) is None


def test_the_oldest_job_is_dropped_whatever_its_priority(client: LocalClient) -> None:
    conf(client, "mail", "maxlen", 2, "overflow", "drop-oldest")
    oldest = client.add("mail", "body", "PRIORITY", 9)
    low = client.add("mail", "body", "PRIORITY", -1)
    plain = client.add("mail")
    assert client.show(oldest) == {}
    assert client.take("mail", count=3) == [plain, low]


def test_queue_becomes_shorter_step_by_step_under_a_lower_limit(client: LocalClient) -> None:
    for _ in range(100):
        client.add("mail")
    conf(client, "mail", "maxlen", 10, "overflow", "drop-oldest")
    client.add("mail")
    assert client.call("QLEN", "mail") == 85
    for _ in range(10):
        client.add("mail")
    assert client.call("QLEN", "mail") == 10


def test_pipeline_that_waits_for_copies_does_not_pass_the_limit(pair: Cluster) -> None:
    first = pair.members[0]
    conf(first.admin, "mail", "maxlen", 2)
    client = first.client()
    for _ in range(4):
        client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 2)
    pair.run(seconds=1)
    replies = client.replies()
    assert [isinstance(reply, bytes) for reply in replies] == [True, True, False, False]


@pytest.mark.parametrize("word", ["in", "all"])
def test_input_paused_by_setting_refuses_jobs_of_queues_that_do_not_exist(client: LocalClient, word: str) -> None:
    conf(client, "mail*", "pause", word)
    assert error(client.call("ADDJOB", "mail", "body", 0)).startswith("PAUSED")
    assert client.stat("mail") == {}
    conf(client, "mail", "pause", "none")
    client.add("mail")


def test_a_key_is_answered_although_the_queue_is_full(client: LocalClient) -> None:
    conf(client, "mail", "maxlen", 1)
    job = client.add("mail", "body", "KEY", "k")
    assert client.add("mail", "body", "KEY", "k") == job


def test_each_queue_of_addto_has_its_own_settings(client: LocalClient) -> None:
    conf(client, "mail", "ttl", 60, "retry", 7)
    conf(client, "full", "maxlen", 1)
    client.add("full")
    replies = client.call("ADDTO", 3, "mail", "full", "jobs", "body", 0)
    assert isinstance(replies, list)
    mail, full, jobs = replies
    assert isinstance(mail, bytes)
    assert isinstance(jobs, bytes)
    assert (client.show(mail)["ttl"], client.show(mail)["retry"]) == (60, 7)
    assert "MAXLEN" in error(full)
    assert client.show(jobs)["ttl"] == 86400
