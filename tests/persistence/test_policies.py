"""appendfsync: what survives a killed process or a power loss under each policy, and what a change of policy does."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from support.logging_node import config, finish_all, info, keeps, logging_node, refused, synced, syncing, written

WINDOW_MS = 1000


def age_of_unsynced_ms(local: LocalNode, added: dict[bytes, int]) -> int:
    """Remove the synced jobs, and return the age of the oldest remaining one in milliseconds; 0 if none remains."""
    data = synced(local)
    for job_id, at_ms in list(added.items()):
        if job_id not in data:
            return local.now_ms - at_ms
        del added[job_id]
    return 0


# --- always -----------------------------------------------------------------------------------------------------------


def test_always_syncs_before_the_reply() -> None:
    local = logging_node("always")
    client = local.client()
    for _ in range(5):
        job_id = client.add("mail")
        assert keeps(synced(local), job_id)
    assert local.host.disk.done["sync"] == 5


def test_groups_logged_during_a_sync_share_the_next_one() -> None:
    local = logging_node("always")
    local.host.disk.hold(disk.SYNC)
    clients = [local.client() for _ in range(50)]
    for client in clients:
        client.send("ADDJOB", "mail", "body", 0)
    assert local.host.disk.done["write to"] == 50  # writing does not wait for the sync
    local.finish()
    assert [client.silent for client in clients] == [False] + 49 * [True]
    local.finish()
    assert not any(client.silent for client in clients)
    assert local.host.disk.done["sync"] == 2


def test_a_sync_does_not_cover_later_writes() -> None:
    local = logging_node("always")
    local.host.disk.delay_ms = {disk.APPEND: 100, disk.SYNC: 10}
    first, second = local.client(), local.client()
    first.send("ADDJOB", "mail", "body", 0)
    second.send("ADDJOB", "mail", "body", 0)
    local.run(milliseconds=150)  # one is synced, the other one is being written
    assert not first.silent
    assert second.silent
    local.run(milliseconds=55)
    assert second.silent
    local.run(milliseconds=10)
    job_id = second.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(synced(local), job_id)


def test_nothing_is_synced_while_nothing_changes() -> None:
    local = logging_node("always")
    local.client().add("mail")
    local.run(seconds=10)
    assert local.host.disk.done["sync"] == 1


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_unsynced_data_of_a_killed_node_is_synced_by_the_next_run(policy: str) -> None:
    """Found by the simulator: the node took the file for synced, and a power loss destroyed the jobs much later."""
    local = logging_node(policy)
    local.host.disk.hold(disk.SYNC)
    local.client().send("ADDJOB", "mail", "body", 0)
    assert synced(local) == b""
    local.host.disk.repair()
    local.restart()
    local.run(milliseconds=200)
    assert synced(local) == written(local) != b""


# --- everysec ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every_ms", [1, 7, 90, 450, 999, 1001, 2500])
def test_everysec_syncs_data_that_is_a_second_old(every_ms: int) -> None:
    local = logging_node("everysec")
    client = local.client()
    added: dict[bytes, int] = {}
    for _ in range(3000 // every_ms + 3):
        added[client.add("mail")] = local.now_ms
        for _ in range(every_ms):
            local.run(milliseconds=1)
            assert age_of_unsynced_ms(local, added) <= WINDOW_MS


def test_everysec_syncs_once_per_second() -> None:
    local = logging_node("everysec")
    client = local.client()
    for _ in range(1000):
        client.add("mail")
        local.run(milliseconds=10)
    assert 9 <= local.host.disk.done["sync"] <= 11


def test_an_idle_node_syncs_its_last_write() -> None:
    local = logging_node("everysec")
    client = local.client()
    client.add("mail")
    job_id = client.add("mail")
    assert not keeps(synced(local), job_id)
    local.run(milliseconds=WINDOW_MS)
    assert keeps(synced(local), job_id)
    syncs = local.host.disk.done["sync"]
    local.run(seconds=60)
    assert local.host.disk.done["sync"] == syncs


def test_a_node_that_rarely_wakes_syncs_in_time() -> None:
    local = logging_node("everysec", hz=1)
    client = local.client()
    client.add("mail")
    job_id = client.add("mail")
    local.run(milliseconds=WINDOW_MS)
    assert keeps(synced(local), job_id)


def test_everysec_does_not_wait_for_the_sync() -> None:
    local = logging_node("everysec")
    local.host.disk.hold(disk.SYNC)
    client = local.client()
    client.add("mail")
    local.run(milliseconds=WINDOW_MS)
    assert syncing(local)
    for _ in range(10):
        client.add("mail")
        local.run(milliseconds=100)


def test_a_power_loss_takes_the_changes_since_the_last_sync_began() -> None:
    local = logging_node("everysec")
    local.host.disk.delay_ms[disk.SYNC] = 700
    client = local.client()
    added: dict[bytes, int] = {}
    for _ in range(100):
        added[client.add("mail")] = local.now_ms
        local.run(milliseconds=100)
        assert age_of_unsynced_ms(local, added) <= WINDOW_MS + 700
    assert refused(client) == ""


# --- no ---------------------------------------------------------------------------------------------------------------


def test_no_never_syncs() -> None:
    local = logging_node("no")
    client = local.client()
    job_id = client.add("mail")
    local.run(seconds=60)
    assert keeps(written(local), job_id)
    assert local.host.disk.done["sync"] == 0


# --- changes ----------------------------------------------------------------------------------------------------------


def change(local: LocalNode, policy: str) -> None:
    """Set appendfsync through a connection of its own."""
    assert local.client().call("CONFIG", "SET", "appendfsync", policy) == b"OK"


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_waiting_clients_are_answered_when_always_is_switched_off(policy: str) -> None:
    local = logging_node("always")
    local.host.disk.hold(disk.SYNC)
    waiting = [local.client() for _ in range(3)]
    for client in waiting:
        client.send("ADDJOB", "mail", "body", 0)
    change(local, policy)
    local.run(milliseconds=150)
    for client in waiting:
        assert isinstance(client.next_reply(), bytes)


@pytest.mark.parametrize("before", ["everysec", "no"])
def test_clients_that_wait_for_a_write_wait_for_a_sync_when_always_is_switched_on(before: str) -> None:
    local = logging_node(before)
    local.host.disk.hold(disk.APPEND)
    client = local.client()
    client.send("ADDJOB", "mail", "body", 0)
    change(local, "always")
    local.host.disk.repair()
    local.host.disk.hold(disk.SYNC)
    local.finish()
    local.run(milliseconds=150)
    assert client.silent
    assert syncing(local)
    local.finish()
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(synced(local), job_id)


@pytest.mark.parametrize("before", ["everysec", "no"])
def test_unsynced_writes_are_not_safe_when_always_is_switched_on(before: str) -> None:
    """A client that repeats a written, unsynced acknowledgement under `always` waits for the sync."""
    local = logging_node(before)
    client, other = local.client(), local.client()
    job_id = client.add("mail")
    local.run(seconds=2)
    client.add("mail")
    assert client.call("ACKJOB", job_id) == 1
    local.host.disk.hold(disk.SYNC)
    change(local, "always")
    other.send("ACKJOB", job_id)
    assert other.silent
    finish_all(local)
    assert other.next_reply() == 0


def test_unsynced_writes_are_synced_when_syncs_are_switched_on() -> None:
    local = logging_node("no")
    job_id = local.client().add("mail")
    change(local, "always")
    local.run(milliseconds=150)
    assert keeps(synced(local), job_id)


# --- during a rewrite -------------------------------------------------------------------------------------------------


def rewriting(local: LocalNode) -> LocalClient:
    """Start a rewrite that does not complete."""
    local.host.disk.hold(disk.OPEN)
    client = local.client()
    assert client.call("BGREWRITEAOF") == b"Background append only file rewriting started"
    assert info(client)["aof_rewrite_in_progress"] == "1"
    return client


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_syncs_continue_during_a_rewrite(policy: str) -> None:
    local = logging_node(policy)
    job_id = rewriting(local).add("mail")
    local.run(milliseconds=WINDOW_MS)
    assert keeps(synced(local), job_id)


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_no_appendfsync_on_rewrite_means_no_syncs_until_it_is_over(policy: str) -> None:
    local = logging_node(policy, no_appendfsync_on_rewrite=True)
    job_id = rewriting(local).add("mail")
    local.run(seconds=5)
    assert keeps(written(local), job_id)
    assert not keeps(synced(local), job_id)
    local.host.disk.repair()
    local.finish()
    local.run(seconds=2)
    assert keeps(synced(local), job_id)


@pytest.mark.parametrize("policy", ["no", "everysec", "always"])
def test_changes_during_a_replace_are_not_safe_after_it(policy: str) -> None:
    local = logging_node(policy)
    local.host.disk.hold(disk.REPLACE)
    client = local.client()
    client.call("BGREWRITEAOF")
    local.run(seconds=1)
    assert [work.verb for work in local.host.disk.pending] == [disk.REPLACE]
    client.send("ADDJOB", "mail", "body", 0)
    local.host.disk.hold(disk.APPEND, disk.SYNC)
    for _ in range(3 if policy == "always" else 2):  # the new name, the record, the sync
        assert client.silent
        assert local.host.disk.pending
        local.finish()
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(synced(local) if policy == "always" else written(local), job_id)


# --- in a cluster -----------------------------------------------------------------------------------------------------


def test_with_always_a_copy_is_confirmed_after_its_sync() -> None:
    cluster = Cluster(3, config=lambda: config("always"))
    for member in cluster.members:
        member.host.disk.delay_ms[disk.SYNC] = 30
    client = cluster.members[0].client()
    for _ in range(10):
        client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
        cluster.until(lambda: not client.silent)
        job_id = client.next_reply()
        assert isinstance(job_id, bytes)
        assert all(keeps(synced(member), job_id) for member in cluster.members)
