"""The append-only file of a running node: what is written, switching it on and off, INFO and LATENCY."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, encode
from support.logging_node import AOF, config, finish_all, forgets, info, keeps, logging_node, synced, written

ORIGINAL_FIELDS = [
    "loading",
    "aof_enabled",
    "aof_state",
    "aof_rewrite_in_progress",
    "aof_rewrite_scheduled",
    "aof_last_rewrite_time_sec",
    "aof_current_rewrite_time_sec",
    "aof_last_bgrewrite_status",
    "aof_last_write_status",
]
FIELDS_WHEN_ON = [
    "aof_current_size",
    "aof_base_size",
    "aof_pending_rewrite",
    "aof_buffer_length",
    "aof_rewrite_buffer_length",
    "aof_pending_bio_fsync",
    "aof_delayed_fsync",
]


@pytest.fixture
def local() -> LocalNode:
    return logging_node()


def appends(local: LocalNode) -> int:
    """Return the number of writes to files."""
    return local.host.disk.done["write to"]


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_job_is_kept_and_its_end_is_noted(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body")
    assert keeps(written(local), job_id)
    assert b"body" in written(local)
    client.call("ACKJOB", job_id)
    assert written(local).endswith(encode("DELJOB", job_id))


def test_deliveries_and_counters_of_a_job_are_not_written(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 10)
    before = written(local)
    assert client.take("mail") == [job_id]
    client.call("NACK", job_id)
    client.call("DEQUEUE", job_id)
    client.call("ENQUEUE", job_id)
    client.call("GETJOB", "FROM", "mail")
    client.call("WORKING", job_id)
    local.run(seconds=60)
    assert client.show(job_id)["state"] == b"queued"
    assert written(local) == before


def test_an_at_most_once_job_is_forgotten_when_it_is_delivered(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 0)
    assert keeps(written(local), job_id)
    assert client.take("mail") == [job_id]
    assert forgets(written(local), job_id)


def test_a_job_that_expires_is_forgotten(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "TTL", 2, "RETRY", 1)
    local.run(seconds=5)
    assert forgets(written(local), job_id)


def test_changes_of_one_turn_are_written_together(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(b"".join(encode("ADDJOB", "mail", f"body {number}", 0) for number in range(100)))
    assert len(client.replies()) == 100
    assert appends(local) == 1


def test_changes_during_a_write_are_written_together(local: LocalNode) -> None:
    local.host.disk.hold(disk.APPEND)
    for _ in range(100):
        local.client().send("ADDJOB", "mail", "body", 0)
    finish_all(local)
    assert appends(local) == 2


def test_a_node_without_an_append_only_file_writes_nothing() -> None:
    local = LocalNode()
    job_id = local.client().add("mail")
    local.client().call("ACKJOB", job_id)
    local.run(seconds=10)
    assert local.host.disk.files == {}
    assert local.host.disk.done == {"list files of": 1}  # it looks for a log of ordered queues when it starts


def test_a_job_is_written_when_it_has_its_copies() -> None:
    cluster = Cluster(3, config=config)
    first, *others = cluster.members
    cluster.lose("GOTJOB", by=others[1])
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(seconds=1)
    assert written(first) == b""
    assert all(b"LOADJOB" in written(member) for member in others)
    cluster.heal()
    cluster.run(seconds=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(written(first), job_id)


def test_a_job_that_comes_from_another_node_is_written_and_forgotten_there_if_it_is_the_only_copy() -> None:
    cluster = Cluster(2, config=config)
    first, second = cluster.members
    job_id = first.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    worker = second.client()
    worker.send("GETJOB", "FROM", "mail")
    cluster.run(seconds=3)
    assert not worker.silent
    assert forgets(written(first), job_id)
    assert job_id in written(second)
    assert forgets(written(second), job_id)


# --- switched on and off ----------------------------------------------------------------------------------------------


def switch(client: LocalClient, value: str) -> None:
    assert client.call("CONFIG", "SET", "appendonly", value) == b"OK"


def jobs_after_restart(local: LocalNode) -> set[bytes]:
    """Return the jobs that the next process loads after this one is killed."""
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    return {job.id for job in local.node.state.lifecycle.table.jobs()}


def test_a_file_that_is_switched_on_has_earlier_and_later_jobs() -> None:
    local = LocalNode()
    client = local.client()
    before = {client.add("mail") for _ in range(100)}
    switch(client, "yes")
    after = {client.add("mail") for _ in range(100)}
    local.run(seconds=1)
    assert info(client)["aof_state"] == "on"
    last = client.add("mail")
    assert jobs_after_restart(local) == before | after | {last}


def test_no_client_waits_for_the_first_rewrite() -> None:
    local = LocalNode()
    local.host.disk.hold(disk.OPEN)
    client = local.client()
    client.add("mail")
    switch(client, "yes")
    assert info(client)["aof_state"] == "wait-rewrite"
    client.add("mail")
    local.run(seconds=10)
    client.add("mail")
    assert info(client)["aof_state"] == "wait-rewrite"
    assert AOF not in local.host.disk.files


def test_changes_while_the_first_rewrite_ends_are_in_the_file() -> None:
    local = LocalNode()
    client = local.client()
    added = {client.add("mail")}
    local.host.disk.hold(disk.REPLACE)
    switch(client, "yes")
    local.run(seconds=1)
    assert [work.verb for work in local.host.disk.pending] == [disk.REPLACE]
    added.add(client.add("mail"))
    local.host.disk.repair()
    local.finish()
    assert info(client)["aof_state"] == "on"
    assert jobs_after_restart(local) == added


def test_the_first_rewrite_is_retried_until_it_succeeds() -> None:
    local = LocalNode()
    local.host.disk.fail(disk.APPEND)
    client = local.client()
    added = {client.add("mail")}
    switch(client, "yes")
    local.run(seconds=20)
    assert info(client)["aof_state"] == "wait-rewrite"
    assert info(client)["aof_last_bgrewrite_status"] == "err"
    added.add(client.add("mail"))
    local.host.disk.repair()
    local.run(seconds=20)
    assert info(client)["aof_state"] == "on"
    added.add(client.add("mail"))
    assert jobs_after_restart(local) == added


def test_a_file_that_is_switched_off_has_all_changes_until_then(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail")
    switch(client, "no")
    assert info(client)["aof_enabled"] == "0"
    assert keeps(synced(local), job_id)
    before = written(local)
    client.add("mail")
    client.call("ACKJOB", job_id)
    local.run(seconds=5)
    assert written(local) == before


@pytest.mark.parametrize("verb", [disk.APPEND, disk.SYNC])
def test_waiting_clients_are_answered_when_the_file_is_switched_off(verb: int) -> None:
    """An administrator can switch the file off so that the node continues while its disk hangs."""
    local = logging_node("always")
    client, admin = local.client(), local.client()
    local.host.disk.hold(verb)
    client.send("ADDJOB", "mail", "body", 0)
    local.run(seconds=3)
    assert client.silent
    switch(admin, "no")
    assert isinstance(client.next_reply(), bytes)
    assert isinstance(admin.add("mail"), bytes)


@pytest.mark.parametrize("rewriting", [False, True])
def test_waiting_records_are_written_when_the_file_is_switched_off(local: LocalNode, rewriting: bool) -> None:
    local.host.disk.hold(disk.APPEND)
    if rewriting:
        local.client().call("BGREWRITEAOF")
    clients = [local.client() for _ in range(3)]
    for client in clients:
        client.send("ADDJOB", "mail", "body", 0)
    switch(local.client(), "no")
    ids = [client.next_reply() for client in clients]
    local.host.disk.repair()
    local.finish()
    assert all(isinstance(job_id, bytes) and keeps(synced(local), job_id) for job_id in ids)


def test_the_file_can_be_switched_off_and_on_again(local: LocalNode, client: LocalClient) -> None:
    added = set()
    for _ in range(5):
        added.add(client.add("mail"))
        switch(client, "no")
        added.add(client.add("mail"))
        switch(client, "yes")
        added.add(client.add("mail"))
        local.run(seconds=1)
    assert jobs_after_restart(local) == added


def test_a_file_switched_on_while_a_rewrite_ends_is_complete() -> None:
    local = LocalNode()
    client = local.client()
    added = {client.add("mail") for _ in range(10)}
    local.host.disk.hold(disk.REPLACE)
    client.call("BGREWRITEAOF")
    local.run(seconds=1)
    assert [work.verb for work in local.host.disk.pending] == [disk.REPLACE]
    added.add(client.add("mail"))
    switch(client, "yes")
    added.add(client.add("mail"))
    local.host.disk.repair()
    local.finish()
    local.run(seconds=5)
    assert info(client)["aof_state"] == "on"
    added.add(client.add("mail"))
    assert jobs_after_restart(local) == added


def test_flushall_during_a_replace_waits_for_the_next_rewrite(local: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    local.host.disk.hold(disk.REPLACE)
    client.call("BGREWRITEAOF")
    local.run(seconds=1)
    client.send("DEBUG", "FLUSHALL")
    local.host.disk.hold(disk.OPEN)
    local.finish()
    local.run(seconds=1)
    assert b"LOADJOB" in written(local)
    assert client.silent
    local.host.disk.repair()
    finish_all(local)
    local.run(seconds=1)
    assert client.next_reply() == b"OK"
    assert jobs_after_restart(local) == set()


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["no", "everysec", "always"])
def test_everything_is_on_disk_after_shutdown(policy: str) -> None:
    local = logging_node(policy)
    local.host.disk.hold(disk.APPEND, disk.SYNC)
    clients = [local.client() for _ in range(3)]
    for client in clients:
        client.send("ADDJOB", "mail", "body", 0)
    assert local.shut_down() is None
    local.lose_power()
    assert len(jobs_after_restart(local)) == 3


@pytest.mark.parametrize("verb", [disk.APPEND, disk.SYNC])
def test_node_continues_when_shutdown_cannot_write_the_file(verb: int) -> None:
    local = logging_node("always")
    local.host.disk.fail(verb, disk.REPLACE)  # then the rewrite fails, too
    client = local.client()
    client.send("ADDJOB", "mail", "body", 0)
    assert str(local.shut_down()) == "ERR Errors trying to SHUTDOWN. Check logs."
    assert client.silent
    local.host.disk.repair()
    local.run(seconds=10)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(synced(local), job_id)
    assert local.shut_down() is None


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_info_shows_the_fields_of_the_original_first(client: LocalClient) -> None:
    fields = list(info(client))
    assert fields[: len(ORIGINAL_FIELDS + FIELDS_WHEN_ON)] == ORIGINAL_FIELDS + FIELDS_WHEN_ON
    assert fields[len(ORIGINAL_FIELDS + FIELDS_WHEN_ON) :] == [
        "aof_format",
        "aof_damaged_records",
        "aof_last_fsync_ms",
        "aof_unsynced_bytes",
        "aof_refusing",
        "clock_offset_ms",
        "clock_steps",
    ]


def test_info_shows_no_sizes_while_the_file_is_off() -> None:
    assert list(info(LocalNode().client())) == [*ORIGINAL_FIELDS, "clock_offset_ms", "clock_steps"]


def test_info_shows_written_and_unsynced_bytes(local: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    local.run(seconds=2)
    client.add("mail")  # the last sync was long ago
    assert info(client)["aof_unsynced_bytes"] == "0"
    synced_bytes = len(written(local))
    client.add("mail")
    client.add("mail")
    shown = info(client)
    assert shown["aof_current_size"] == str(len(written(local)))
    assert shown["aof_unsynced_bytes"] == str(len(written(local)) - synced_bytes)
    local.host.disk.hold(disk.APPEND)
    before = len(written(local))
    other = local.client()
    other.send("ADDJOB", "mail", "body", 0)
    other.send("ADDJOB", "mail", "body", 0)
    waiting = int(info(client)["aof_buffer_length"])
    finish_all(local)
    assert waiting == len(written(local)) - before


def test_info_shows_a_running_sync(local: LocalNode, client: LocalClient) -> None:
    local.host.disk.delay_ms[disk.SYNC] = 700
    client.add("mail")
    local.run(milliseconds=1100)
    assert info(client)["aof_pending_bio_fsync"] == "1"
    local.run(milliseconds=700)
    shown = info(client)
    assert shown["aof_pending_bio_fsync"] == "0"
    assert shown["aof_last_fsync_ms"] == "700"
    assert shown["aof_delayed_fsync"] == "0"


def latest(client: LocalClient) -> dict[bytes, int]:
    """Return the last duration of each kind of event in LATENCY LATEST, in milliseconds."""
    reply = client.call("LATENCY", "LATEST")
    assert isinstance(reply, list)
    return {event: last for event, _at, last, _worst in reply}  # type: ignore[misc, str-unpack]


def test_slow_writes_are_seen_by_the_latency_monitor() -> None:
    local = logging_node("always", latency_monitor_threshold=100)
    local.host.disk.delay_ms[disk.APPEND] = 300
    local.host.disk.delay_ms[disk.SYNC] = 99
    client = local.client()
    client.send("ADDJOB", "mail", "body", 0)
    local.run(seconds=1)
    assert latest(local.client()) == {b"aof-write": 300, b"aof-write-alone": 300}


def test_slow_syncs_before_replies_are_seen_by_the_latency_monitor() -> None:
    local = logging_node("always", latency_monitor_threshold=100)
    local.host.disk.delay_ms[disk.SYNC] = 400
    client = local.client()
    client.send("ADDJOB", "mail", "body", 0)
    local.run(seconds=1)
    assert latest(local.client()) == {b"aof-fsync-always": 400}


def test_latency_monitor_reports_a_slow_write() -> None:
    local = logging_node("everysec", latency_monitor_threshold=100)
    client = local.client()
    client.add("mail")
    local.host.disk.delay_ms[disk.SYNC] = 1000
    local.run(seconds=1)
    local.host.disk.delay_ms[disk.APPEND] = 200
    client.send("ADDJOB", "mail", "body", 0)
    local.run(milliseconds=500)
    assert latest(local.client()) == {b"aof-write": 200, b"aof-write-pending-fsync": 200}
