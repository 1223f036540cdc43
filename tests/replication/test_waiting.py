"""Synchronous replication: copies before the reply, one more node every 50 ms, and no copies after a failure."""

from __future__ import annotations

import pytest

from disqued.replication.counters import TIMEOUTS
from disqued.replication.room import replication_of
from disqued.testing.cluster import BUS_PORT, Cluster
from membership.stories import flags, short_node_timeout
from replication.adding import (
    A_TIMER_MS,
    FEW,
    REMOVED,
    TIMEOUT,
    adding,
    error_of,
    holders,
    id_of,
    jobs,
    waiting_job,
)


def test_all_copies_exist_when_the_client_gets_the_id(cluster: Cluster) -> None:
    client = adding(cluster, "REPLICATE", 3)
    assert client.silent
    job_id = id_of(cluster, client)
    assert cluster.copies(job_id) == cluster.members
    assert cluster.copies(job_id, "queued") == cluster.members[:1]
    everybody = {member.id for member in cluster.members}
    assert [holders(member, job_id) for member in cluster.members] == [everybody] * 3


def test_a_job_is_shown_but_not_delivered_before_it_has_its_copies(cluster: Cluster) -> None:
    first = cluster.members[0]
    client = adding(cluster, "REPLICATE", 3)
    shown = first.admin.show(waiting_job(first))
    assert shown["state"] == b"wait-repl"
    assert shown["nodes-confirmed"] == [first.id]
    assert first.admin.take("mail") == []
    job_id = id_of(cluster, client)
    assert first.admin.show(job_id)["nodes-confirmed"] == []
    assert first.admin.take("mail") == [job_id]


def test_copies_carry_the_job_and_would_queue_it_after_delay_and_retry(cluster: Cluster) -> None:
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "DELAY", 20, "RETRY", 10, "TTL", 100))
    first, copy = cluster.copies(job_id)
    shown, original = copy.admin.show(job_id), first.admin.show(job_id)
    for name in ("queue", "body", "ctime", "delay", "retry", "repl"):
        assert shown[name] == original[name]
    assert shown["state"] == b"active"
    assert shown["ttl"] == original["ttl"] == 100
    assert abs(int(shown["next-requeue-within"]) - 30_000) <= 260  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "copies"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_the_default_is_three_copies_or_as_many_as_there_are_nodes(count: int, copies: int) -> None:
    cluster = Cluster(count)
    job_id = id_of(cluster, adding(cluster))
    assert len(cluster.copies(job_id)) == copies
    assert cluster.copies(job_id)[0].admin.show(job_id)["repl"] == copies


def test_copies_are_spread_over_all_nodes() -> None:
    cluster = Cluster(5)
    for _ in range(100):
        cluster.members[0].client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    assert jobs(cluster)[0] == 100
    assert all(30 < count < 70 for count in jobs(cluster)[1:]), jobs(cluster)
    assert sum(jobs(cluster)) == 300


def test_more_copies_than_nodes_are_refused(cluster: Cluster) -> None:
    assert error_of(adding(cluster, "REPLICATE", 4)) == FEW
    assert jobs(cluster) == [0, 0, 0]


def test_a_delay_counts_from_the_add_not_from_the_confirmation(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.cut(second, first)
    cluster.cut(third, first)
    began_ms = first.now_ms
    client = adding(cluster, "REPLICATE", 3, "DELAY", 2)
    cluster.run(seconds=1)
    cluster.heal()
    job_id = id_of(cluster, client)
    assert first.admin.show(job_id)["state"] == b"active"
    cluster.until(lambda: first.admin.show(job_id)["state"] == b"queued")
    assert 2000 <= first.now_ms - began_ms <= 2000 + A_TIMER_MS


def test_one_more_node_is_asked_every_50_ms() -> None:
    cluster = Cluster(5)
    first = cluster.members[0]
    for member in cluster.members[1:]:
        cluster.cut(member, first)
    cluster.forget_sent()
    began_ms = first.now_ms
    adding(cluster, "REPLICATE", 2)
    cluster.run(milliseconds=300)
    asked: dict[bytes, int] = {}
    for sent in cluster.sent("REPLJOB"):
        assert sent.receiver is not None
        asked.setdefault(sent.receiver.ip, sent.at_ms - began_ms)
    gaps = [later - sooner for sooner, later in zip(sorted(asked.values()), sorted(asked.values())[1:], strict=False)]
    assert len(asked) == 4
    assert all(50 <= gap <= 50 + A_TIMER_MS for gap in gaps), gaps


def test_nodes_that_were_asked_before_get_the_longer_list(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.lose("GOTJOB", to=first)
    adding(cluster, "REPLICATE", 2)
    cluster.run(milliseconds=100)
    job_id = waiting_job(first)
    lists = [holders(member, job_id) for member in (first, second, third)]
    assert lists == [{first.id, second.id, third.id}] * 3


def test_nodes_that_confirmed_get_the_longer_list_and_need_not_answer() -> None:
    cluster = Cluster(4)
    first = cluster.members[0]
    deaf = cluster.members[1]
    cluster.lose("GOTJOB", by=deaf)
    cluster.forget_sent()
    client = first.client()
    while not cluster.sent("REPLJOB", to=deaf):
        client = adding(cluster, "REPLICATE", 3)
        cluster.run(milliseconds=5)
    job_id = id_of(cluster, client)
    confirmed = next(m for m in cluster.members[2:] if len(cluster.sent("REPLJOB", to=m)) == 2)
    flags = [sent.frame.message_flags for sent in cluster.sent("REPLJOB", to=confirmed)][-2:]
    assert flags == [0, 1]
    cluster.run(milliseconds=5)
    assert len(holders(confirmed, job_id)) == 4


def test_a_node_gets_the_longer_list_when_its_congested_link_has_room_again(cluster: Cluster) -> None:
    """Seed 4045, "logged power": a holder did not tell another one, which was down then, that the job was done."""
    first, second, third = cluster.members
    third.crash()
    cluster.run(milliseconds=10)
    client = adding(cluster, "REPLICATE", 3, timeout_ms=5000)
    cluster.run(milliseconds=10)
    job_id = waiting_job(first)
    assert holders(second, job_id) == {first.id, second.id}
    link = first.node.state.view.peers[second.id].link
    assert link is not None
    link.congested = True
    third.restart()
    assert id_of(cluster, client) == job_id
    assert len(holders(second, job_id)) == 2
    link.congested = False
    cluster.run(milliseconds=200)
    assert holders(second, job_id) == {first.id, second.id, third.id}


def test_a_node_that_does_not_answer_is_asked_again_until_it_does(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("REPLJOB", to=second)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(seconds=1)
    assert client.silent
    assert 8 <= len(cluster.sent("REPLJOB", to=second)) <= 11
    assert len(cluster.sent("REPLJOB", to=cluster.members[2])) == 1, "it confirmed and has the current list"
    cluster.heal()
    assert cluster.copies(id_of(cluster, client)) == cluster.members
    assert replication_of(first.node.state).waits == {}


def test_a_node_gets_its_copy_when_its_link_is_back_in_time(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.network.unlisten(second, BUS_PORT)
    cluster.network.reset(first, second)
    cluster.run(milliseconds=5)
    client = adding(cluster, "REPLICATE", 3, timeout_ms=5000)
    cluster.run(seconds=1)
    assert client.silent
    cluster.network.listen(second, BUS_PORT)
    job_id = id_of(cluster, client)
    assert cluster.copies(job_id) == cluster.members
    assert first.node.state.blocked_clients == 0


def test_an_add_waits_for_a_member_that_has_just_gone() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    first, _, gone = cluster.members
    cluster.run(seconds=3)
    gone.crash()
    cluster.until(lambda: flags(first, gone) == "fail?")
    client = adding(cluster, "REPLICATE", 3, timeout_ms=30_000)
    cluster.run(seconds=5)
    assert client.silent, "it waits on when the node has failed meanwhile"
    assert flags(first, gone) == "fail"
    gone.restart()
    cluster.run(milliseconds=20)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert cluster.copies(job_id) == cluster.members


def test_a_member_that_has_failed_is_not_waited_for() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    first, _, gone = cluster.members
    cluster.run(seconds=3)
    gone.crash()
    cluster.until(lambda: flags(first, gone) == "fail")
    assert error_of(adding(cluster, "REPLICATE", 3, timeout_ms=30_000)) == FEW
    assert error_of(adding(cluster, "REPLICATE", 4, timeout_ms=30_000)) == FEW


def test_a_member_that_no_majority_can_judge_is_waited_for_during_three_node_timeouts() -> None:
    cluster = Cluster(2, config=short_node_timeout)
    first, gone = cluster.members
    cluster.run(seconds=3)
    gone.crash()
    cluster.until(lambda: flags(first, gone) == "fail?")
    client = adding(cluster, "REPLICATE", 2, timeout_ms=1500)
    cluster.run(milliseconds=1500 + A_TIMER_MS)
    assert error_of(client) == TIMEOUT
    assert jobs(cluster)[0] == 0
    cluster.run(seconds=1)
    assert error_of(adding(cluster, "REPLICATE", 2, timeout_ms=1500)) == FEW


def test_an_asynchronous_add_does_not_wait_for_a_member_that_has_just_gone() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    first, _, gone = cluster.members
    cluster.run(seconds=3)
    gone.crash()
    cluster.until(lambda: flags(first, gone) == "fail?")
    assert error_of(adding(cluster, "REPLICATE", 3, "ASYNC", timeout_ms=30_000)) == FEW


def test_adds_that_wait_for_a_member_cost_one_check_per_second() -> None:
    cluster = Cluster(2)
    first, gone = cluster.members
    gone.crash()
    adding(cluster, "REPLICATE", 2)
    wait = replication_of(first.node.state).waits[waiting_job(first)]
    cluster.run(milliseconds=200)
    wakes = set()
    for _ in range(100):
        wakes.add(int(wait.awake_ms))
        cluster.run(milliseconds=50)
    assert 5 <= len(wakes) <= 7


def test_no_copy_is_left_after_a_timeout(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 3, timeout_ms=300)
    cluster.run(milliseconds=280)
    assert client.silent
    assert jobs(cluster) == [1, 1, 1]
    cluster.run(milliseconds=20 + A_TIMER_MS)
    assert error_of(client) == TIMEOUT
    assert jobs(cluster) == [0, 0, 0]
    assert replication_of(first.node.state).waits == {}
    assert first.node.state.counters.value(TIMEOUTS) == 1
    assert b"replication_timeouts:1" in first.admin.raw("INFO", "replication")


def test_no_copy_is_left_after_the_client_disconnects(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=200)
    client.disconnect()
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]
    assert replication_of(first.node.state).waits == {}
    assert first.node.state.blocked_clients == 0


def test_a_late_confirmation_of_a_refused_job_changes_nothing(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.cut(second, first)
    client = adding(cluster, "REPLICATE", 3, timeout_ms=100)
    cluster.run(milliseconds=150)
    assert error_of(client) == TIMEOUT
    cluster.heal()
    cluster.run(seconds=1)
    assert jobs(cluster) == [0, 0, 0]
    assert client.silent


def test_a_repeated_confirmation_counts_once(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=5)
    frame = second.node.state.bus.about_job(5, waiting_job(first))
    for _ in range(3):
        second.node.state.view.peers[first.id].link.out.append(frame)  # type: ignore[union-attr]
        second.node.ready.links.append(second.node.state.view.peers[first.id].link)  # type: ignore[arg-type]
        second.flush()
    cluster.run(milliseconds=5)
    assert client.silent
    assert first.admin.show(waiting_job(first))["nodes-confirmed"] == [first.id, second.id]


@pytest.mark.parametrize("command", ["DELJOB", "FASTACK"])
def test_the_client_gets_a_reply_and_the_copies_are_deleted_when_its_waiting_job_is_deleted(
    cluster: Cluster, command: str
) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=200)
    assert first.admin.call(command, waiting_job(first)) == 1
    assert error_of(client) == REMOVED
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]


def test_the_client_gets_a_reply_when_its_waiting_job_expires(cluster: Cluster) -> None:
    cluster.lose("GOTJOB", by=cluster.members[1])
    client = adding(cluster, "REPLICATE", 3, "TTL", 2)
    cluster.until(lambda: not client.silent, within_s=4)
    assert error_of(client) == REMOVED
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]


@pytest.mark.parametrize("command", [("DEBUG", "FLUSHALL"), ("CLUSTER", "RESET", "SOFT")])
def test_clients_that_wait_get_a_reply_when_all_jobs_are_flushed(cluster: Cluster, command: tuple[str, ...]) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    clients = [adding(cluster, "REPLICATE", 3) for _ in range(3)]
    cluster.run(milliseconds=200)
    assert first.admin.call(*command) == b"OK"
    assert [error_of(client) for client in clients] == [REMOVED] * 3
    assert jobs(cluster)[0] == 0
    assert first.node.state.blocked_clients == 0
    assert replication_of(first.node.state).waits == {}


def test_the_copies_of_waiting_jobs_are_deleted_when_all_jobs_are_flushed(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=200)
    first.admin.call("DEBUG", "FLUSHALL")
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]


def test_a_node_that_begins_to_leave_completes_the_adds_it_accepted(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=200)
    assert first.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    cluster.run(milliseconds=200)
    assert client.silent
    cluster.heal()
    id_of(cluster, client)


def test_the_client_gets_the_id_when_another_node_says_that_the_job_is_done(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    job = first.node.state.lifecycle.table.get(waiting_job(first))
    assert job is not None
    assert first.node.state.events.complete(job)
    first.flush()
    assert client.next_reply() == job.id
    assert first.admin.show(job.id)["state"] == b"queued"


def test_a_copy_that_is_requeued_while_the_client_waits_is_not_a_new_job(cluster: Cluster) -> None:
    """The retry time is shorter than the client's timeout, so the second node queues its copy."""
    first, second, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    client = adding(cluster, "REPLICATE", 3, "RETRY", 1)
    consumer = first.client()
    consumer.send("GETJOB", "FROM", "mail")
    cluster.until(lambda: bool(cluster.sent("YOURJOBS", by=second, to=first)))
    cluster.run(milliseconds=5)
    assert client.silent
    cluster.heal()
    assert cluster.copies(id_of(cluster, client)) == cluster.members
    assert not consumer.silent


def test_commands_after_a_waiting_add_run_in_order(cluster: Cluster) -> None:
    client = adding(cluster, "REPLICATE", 3)
    client.send("ADDJOB", "mail", "second", 0)
    client.send("QLEN", "mail")
    assert client.silent
    cluster.run(milliseconds=20)
    first_id, second_id, length = client.replies()
    assert [type(first_id), type(second_id), length] == [bytes, bytes, 2]


def test_a_client_with_replies_off_gets_none_and_continues(cluster: Cluster) -> None:
    client = cluster.members[0].client()
    client.send("CLIENT", "REPLY", "OFF")
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    client.send("CLIENT", "REPLY", "ON")
    cluster.run(milliseconds=10)
    assert client.replies() == [b"OK"]
    assert client.call("QLEN", "mail") == 1


def test_a_skipped_reply_is_the_only_one_that_is_missing(cluster: Cluster) -> None:
    client = cluster.members[0].client()
    client.send("CLIENT", "REPLY", "SKIP")
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    client.send("QLEN", "mail")
    cluster.run(milliseconds=10)
    assert client.replies() == [1]


def test_a_waiting_consumer_gets_a_job_as_soon_as_it_has_its_copies(cluster: Cluster) -> None:
    consumer = cluster.members[0].client()
    consumer.send("GETJOB", "FROM", "mail")
    client = adding(cluster, "REPLICATE", 3)
    job_id = id_of(cluster, client)
    assert consumer.next_reply() == [[b"mail", job_id, b"body"]]
