"""Disks that are full, fail, hang or are slow.

The node refuses new jobs with the reason, loses no confirmed job, and recovers by itself when the disk works again.
"""

from __future__ import annotations

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disqued.core.host import disk
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, encode
from support.logging_node import (
    REFUSAL,
    config,
    finish_all,
    info,
    keeps,
    logging_node,
    refused,
    synced,
    told,
    written,
)

WRITING_FAILS = {errno.ENOSPC: "No space left on device", errno.EROFS: "Read-only file system", errno.EIO: "I/O error"}
WINDOW_MS = 1000
SLOW_MS = 2000
A_CRON_MS = 120


@pytest.fixture
def local() -> LocalNode:
    return logging_node()


def add_unanswered(local: LocalNode, queue: str = "mail") -> LocalClient:
    """Return a client that waits for the reply of ADDJOB, because the record cannot be written."""
    client = local.client()
    client.send("ADDJOB", queue, "body", 0, "REPLICATE", 1)
    assert client.silent
    return client


def is_answered(client: LocalClient) -> bytes:
    """Return the ID in the next reply of the client."""
    job_id = client.next_reply()
    assert isinstance(job_id, bytes), job_id
    return job_id


# --- writes that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["no", "everysec", "always"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_an_add_is_answered_when_its_write_succeeds_at_last(policy: str, error: int) -> None:
    local = logging_node(policy)
    local.host.disk.fail(disk.APPEND, error=error)
    client = add_unanswered(local)
    local.run(seconds=30)
    assert client.silent
    local.host.disk.repair()
    local.run(seconds=2)
    assert keeps(written(local), is_answered(client))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_new_jobs_are_refused_with_the_reason_and_what_to_do(local: LocalNode, error: int) -> None:
    local.host.disk.fail(disk.APPEND, error=error)
    add_unanswered(local)
    client = local.client()
    answer = refused(client)
    assert answer.startswith(REFUSAL)
    assert WRITING_FAILS[error] in answer
    assert "CONFIG SET appendonly no" in answer
    assert ("Free space" in answer) == (error == errno.ENOSPC)
    assert str(client.call("PING")) == answer
    local.host.disk.repair()
    local.run(seconds=2)
    assert refused(client) == ""
    assert client.call("PING") == b"PONG"


def test_reads_deliveries_and_acknowledgements_continue(local: LocalNode) -> None:
    client = local.client()
    ids = [client.add("mail") for _ in range(3)]
    local.host.disk.fail(disk.APPEND)
    add_unanswered(local)
    assert client.call("QLEN", "mail") == 4
    assert client.take("mail", count=2) == ids[:2]
    client.send("ACKJOB", ids[0])
    assert client.silent
    assert local.client().show(ids[0]) == {}
    local.host.disk.repair()
    local.run(seconds=2)
    assert client.next_reply() == 1


def test_a_failed_write_is_retried_each_second(local: LocalNode) -> None:
    local.host.disk.fail(disk.APPEND)
    add_unanswered(local)
    local.run(seconds=60)
    assert 50 <= local.host.disk.failed["write to"] <= 61


def test_records_keep_their_order_through_failures(local: LocalNode) -> None:
    client = local.client()
    job_id = client.add("mail")
    local.host.disk.hold(disk.APPEND)
    client.send("ACKJOB", job_id)
    others = [local.client() for _ in range(3)]
    for number, other in enumerate(others):
        other.send("PAUSE", "mail", "in" if number % 2 else "out")
        if number == 1:  # while one was being written, and others wait
            local.host.disk.fail(disk.APPEND, times=3)
            local.finish()
    local.host.disk.held.clear()
    local.run(seconds=10)
    assert client.next_reply() == 1
    assert [other.next_reply() for other in others] == [b"out", b"in", b"out"]
    in_order = [("DELJOB", job_id), *(("PAUSE", "mail", word) for word in ("out", "in", "out"))]
    assert written(local).endswith(b"".join(encode(*record) for record in in_order))


def test_large_backlog_is_not_rewritten_at_every_retry(local: LocalNode) -> None:
    """A full disk accepts a part of each write. The node must truncate that part."""
    client = local.client()
    client.send_bytes(b"".join(encode("ADDJOB", "mail", "body", 0) for _ in range(30_000)))
    ids = client.replies()
    disk_in_memory = local.host.disk
    disk_in_memory.fail(disk.APPEND, error=errno.ENOSPC)
    for start in range(0, 30_000, 100):
        client.send("ACKJOB", *ids[start : start + 100])  # type: ignore[arg-type]
    local.run(seconds=3)
    disk_in_memory.hold(disk.APPEND)
    local.run(seconds=2)
    (attempt,) = disk_in_memory.pending
    assert sum(map(len, attempt.data)) < 1_100_000 < int(info(local.client())["aof_buffer_length"])
    disk_in_memory.repair()
    finish_all(local)
    local.run(seconds=2)
    assert client.replies() == 300 * [100]
    assert int(info(client)["aof_current_size"]) == len(written(local))


def test_jobs_are_accepted_again_when_a_full_disk_has_space(local: LocalNode) -> None:
    client = local.client()
    client.add("mail")
    local.host.disk.fill(spare_bytes=100)
    waiting = add_unanswered(local)
    local.run(seconds=5)
    assert REFUSAL in refused(client)
    local.host.disk.capacity_bytes += 10_000
    local.run(seconds=2)
    assert keeps(written(local), is_answered(waiting))
    assert refused(client) == ""


def test_a_change_of_the_refusal_is_logged_once(local: LocalNode) -> None:
    local.host.disk.fail(disk.APPEND, error=errno.ENOSPC)
    add_unanswered(local)
    local.run(seconds=30)
    (line,) = told(local, "warning")
    assert "No space left on device" in line
    local.host.disk.repair()
    local.run(seconds=10)
    assert len([line for line in told(local, "notice") if "New jobs are taken again" in line]) == 1


def test_info_shows_why_jobs_are_refused(local: LocalNode) -> None:
    local.host.disk.fail(disk.APPEND, error=errno.ENOSPC)
    add_unanswered(local)
    shown = info(local.client())
    assert shown["aof_last_write_status"] == "err"
    assert "No space left on device" in shown["aof_refusing"]
    local.host.disk.repair()
    local.run(seconds=2)
    shown = info(local.client())
    assert shown["aof_last_write_status"] == "ok"
    assert shown["aof_refusing"] == ""


# --- syncs that fail --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_file_is_rewritten_after_a_failed_sync(policy: str) -> None:
    local = logging_node(policy)
    client = local.client()
    ids = [client.add("mail") for _ in range(5)]
    local.host.disk.fail(disk.SYNC, times=1)
    client.send("ADDJOB", "mail", "body", 0)
    local.run(seconds=3)
    ids.append(is_answered(client))
    assert local.host.disk.done["replace"] == 1
    assert all(keeps(synced(local), job_id) for job_id in ids)
    assert refused(client) == ""


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_nothing_is_confirmed_and_new_jobs_are_refused_until_it_is_rewritten(policy: str) -> None:
    local = logging_node(policy)
    client = local.client()
    job_id = client.add("mail")
    local.host.disk.fail(disk.SYNC)
    local.host.disk.hold(disk.REPLACE)
    other = local.client()
    other.send("ADDJOB", "mail", "body", 0)
    local.run(seconds=2)
    answer = refused(local.client())
    assert answer.startswith(REFUSAL)
    assert "rewritten" in answer
    client.send("ACKJOB", job_id)
    local.run(seconds=10)
    assert client.silent
    local.host.disk.repair()
    finish_all(local)
    local.run(seconds=20)
    assert client.next_reply() == 1
    assert refused(local.client()) == ""


def test_a_rewrite_after_a_failed_sync_is_retried_until_it_succeeds() -> None:
    local = logging_node("always")
    local.host.disk.fail(disk.SYNC, disk.REPLACE)
    client = add_unanswered(local)
    local.run(seconds=60)
    assert 5 <= local.host.disk.failed["sync"] <= 61
    assert client.silent
    local.host.disk.repair()
    local.run(seconds=20)
    assert keeps(synced(local), is_answered(client))


@pytest.mark.parametrize("under_way", [0, 1])
def test_shutdown_notices_a_failed_sync(under_way: int) -> None:
    """The kernel reports a failed sync only once. The next sync succeeds, although data was lost."""
    local = logging_node("everysec")
    job_id = local.client().add("mail")
    if under_way:
        local.host.disk.hold(disk.SYNC)
        local.run(seconds=1)
    else:
        local.client().add("mail")
    local.host.disk.fail(disk.SYNC, times=1)
    assert not local.node.end(local.now_ms)
    assert local.node.end(local.now_ms)
    assert local.host.disk.done["replace"] == 1
    assert keeps(synced(local), job_id)


def test_changes_during_the_rewrite_after_a_failed_sync_are_in_the_new_file() -> None:
    local = logging_node("always")
    workers = [local.client() for _ in range(5)]
    ids = [worker.add("mail") for worker in workers]
    local.host.disk.fail(disk.SYNC, times=1)
    local.host.disk.delay_ms[disk.REPLACE] = 500
    for worker, job_id in zip(workers, ids, strict=True):
        worker.send("ACKJOB", job_id)
        local.run(milliseconds=100)
    local.run(seconds=3)
    assert [worker.next_reply() for worker in workers] == [1] * 5
    local.lose_power()
    local.restart()
    local.run(milliseconds=100)
    assert local.client().call("QLEN", "mail") == 0
    assert int(local.node.state.lifecycle.table.count) == 0


# --- a disk that does not finish --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [disk.APPEND, disk.SYNC])
@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_new_jobs_are_refused_while_the_disk_does_not_finish(policy: str, verb: int) -> None:
    local = logging_node(policy)
    local.host.disk.hold(verb)
    local.client().send("ADDJOB", "mail", "body", 0)
    local.run(milliseconds=WINDOW_MS + SLOW_MS + A_CRON_MS)
    client = local.client()
    answer = refused(client)
    assert answer.startswith(REFUSAL)
    assert "more than two seconds" in answer
    local.host.disk.repair()
    finish_all(local)
    assert refused(client) == ""


def test_a_slow_sync_is_counted_once(local: LocalNode) -> None:
    local.host.disk.delay_ms[disk.SYNC] = 10_000
    client = local.client()
    client.add("mail")
    local.run(seconds=9)
    client.call("ACKJOB", "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1")
    assert info(client)["aof_delayed_fsync"] == "1"
    local.run(seconds=3)
    assert refused(client) == ""
    local.run(seconds=9)
    assert info(client)["aof_delayed_fsync"] == "2"


def test_new_jobs_are_refused_while_a_replace_hangs(local: LocalNode) -> None:
    local.host.disk.hold(disk.REPLACE)
    client = local.client()
    client.add("mail")
    client.call("BGREWRITEAOF")
    local.run(seconds=1)
    waiting = add_unanswered(local)
    local.run(milliseconds=SLOW_MS + A_CRON_MS)
    assert "more than two seconds" in refused(client)
    local.host.disk.repair()
    finish_all(local)
    assert keeps(written(local), is_answered(waiting))
    assert refused(client) == ""


def test_new_jobs_are_refused_if_the_rewrite_after_a_flush_fails(local: LocalNode) -> None:
    client = local.client()
    client.add("mail")
    local.host.disk.fail(disk.REPLACE)
    client.send("DEBUG", "FLUSHALL")
    waiting = add_unanswered(local)
    local.run(milliseconds=SLOW_MS + A_CRON_MS)
    assert client.silent
    assert "must be rewritten" in refused(local.client())
    local.host.disk.repair()
    local.run(seconds=20)
    assert client.next_reply() == b"OK"
    assert keeps(written(local), is_answered(waiting))
    assert refused(client) == ""


def test_reads_are_answered_in_their_turn_while_the_disk_hangs(local: LocalNode) -> None:
    local.host.disk.hold()
    for _ in range(20):
        add_unanswered(local)
        local.run(milliseconds=50)
    reader = local.client()
    for _ in range(100):
        assert reader.call("QLEN", "mail") == 20
        local.run(milliseconds=10)


def test_records_that_wait_for_the_disk_are_counted_once_in_the_used_memory(local: LocalNode) -> None:
    local.host.disk.hold()
    memory = local.node.state.lifecycle.memory
    local.run(milliseconds=A_CRON_MS)
    before_bytes = memory.buffer_bytes
    for _ in range(20):
        add_unanswered(local)
    local.run(milliseconds=3 * A_CRON_MS)
    waiting_bytes = int(info(local.client())["aof_buffer_length"])
    assert waiting_bytes > 20 * 100
    assert memory.buffer_bytes - before_bytes == pytest.approx(waiting_bytes, rel=0.2)


# --- other nodes ------------------------------------------------------------------------------------------------------


def test_no_copies_are_taken_while_the_disk_fails() -> None:
    cluster = Cluster(3, config=config)
    first, second, third = cluster.members
    second.host.disk.fail(disk.APPEND)
    add_unanswered(second, "other")
    client = first.client()
    client.send("ADDJOB", "mail", "body", 2000, "REPLICATE", 2)
    cluster.until(lambda: not client.silent)
    assert cluster.copies(is_answered(client)) == [first, third]
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3)
    cluster.until(lambda: not client.silent)
    assert "NOREPL" in str(client.next_reply())
    second.host.disk.repair()
    cluster.run(seconds=2)
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3)
    cluster.until(lambda: not client.silent)
    assert len(cluster.copies(is_answered(client))) == 3


def test_transferred_jobs_are_kept_while_the_disk_fails() -> None:
    """No other node has a copy: the sender of an at-most-once job forgets it."""
    cluster = Cluster(2, config=config)
    first, second = cluster.members
    second.host.disk.fail(disk.APPEND)
    add_unanswered(second, "other")
    worker = second.client()
    worker.send("GETJOB", "FROM", "mail")
    job_id = first.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    cluster.run(seconds=3)
    assert cluster.copies(job_id) == [second]
    assert worker.silent  # it is delivered only when it cannot return
    second.host.disk.repair()
    cluster.run(seconds=2)
    assert worker.next_reply() == [[b"mail", job_id, b"body"]]


# --- anything ---------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "acknowledge", "take once", "rewrite"]), st.just(0)),
        st.tuples(st.just("pass"), st.integers(1, 3000)),
        st.tuples(st.just("fail"), st.sampled_from([disk.APPEND, disk.SYNC, disk.REPLACE])),
        st.tuples(st.just("fail once"), st.sampled_from([disk.APPEND, disk.SYNC, disk.REPLACE])),
        st.tuples(st.just("hold"), st.sampled_from([disk.OPEN, disk.APPEND, disk.SYNC, disk.REPLACE, disk.REMOVE])),
        st.tuples(st.just("finish"), st.integers(1, 3)),
        st.tuples(st.just("delay"), st.integers(1, 700)),
        st.tuples(st.just("repair"), st.just(0)),
        st.tuples(st.just("policy"), st.sampled_from(["everysec", "always"])),
    ),
    max_size=50,
)


class Worker:
    """Clients that add, fetch and acknowledge jobs, with the time of each confirmation."""

    def __init__(self, local: LocalNode) -> None:
        self.local = local
        self.clients: list[tuple[LocalClient, str, bytes]] = []
        """Clients with the reply that each waits for."""
        self.here: dict[bytes, int] = {}
        """When each job was confirmed, in milliseconds."""
        self.gone: dict[bytes, int] = {}
        """When the end of each job was confirmed, in milliseconds."""
        self.unsure: set[bytes] = set()
        """Jobs that a client tried to end; they may or may not exist."""

    def ask(self, kind: str, job_id: bytes, *words: bytes | str | int) -> None:
        client = self.local.client()
        client.send(*words)
        self.clients.append((client, kind, job_id))

    def hear(self) -> None:
        """Record the replies that arrived."""
        waiting = []
        for client, kind, job_id in self.clients:
            replies = client.replies()
            if not replies:
                waiting.append((client, kind, job_id))
                continue
            (reply,) = replies
            match kind:
                case "add":
                    if isinstance(reply, bytes):
                        self.here[reply] = self.local.now_ms
                case "acknowledge":
                    self.gone[job_id] = self.local.now_ms
                case "take once":
                    if isinstance(reply, list):
                        self.gone[reply[0][1]] = self.local.now_ms  # type: ignore[index]
        self.clients = waiting

    def step(self, number: int, kind: str) -> None:
        """Send a command of this kind."""
        if kind == "add":
            once = number % 3 == 0
            self.ask("add", b"", "ADDJOB", "once" if once else "mail", "body", 0, "RETRY", 0 if once else 300)
        elif kind == "acknowledge":
            sure = [job_id for job_id in self.here if job_id not in self.unsure]
            if sure:
                job_id = sure[number % len(sure)]
                self.unsure.add(job_id)
                self.ask("acknowledge", job_id, "ACKJOB", job_id)
        elif kind == "take once":
            for job in self.local.node.state.lifecycle.table.jobs():
                if job.retry_s == 0:
                    self.unsure.add(job.id)
            self.ask("take once", b"", "GETJOB", "NOHANG", "FROM", "once")


def inject(local: LocalNode, worker: Worker, number: int, step: str, value: int | str) -> None:
    """Execute one step of the scenario."""
    disk_in_memory = local.host.disk
    match step, value:
        case "pass", int():
            local.run(milliseconds=value)
        case "fail", int():
            disk_in_memory.fail(value)
        case "fail once", int():
            disk_in_memory.fail(value, times=1)
        case "hold", int():
            disk_in_memory.hold(value)
        case "finish", int():
            local.finish(value)
        case "delay", int():
            disk_in_memory.delay_ms = {disk.APPEND: value // 7, disk.SYNC: value, disk.REPLACE: value}
        case "repair", _:
            disk_in_memory.repair()
            local.finish()
        case "policy", str():
            local.client().call("CONFIG", "SET", "appendfsync", value)
        case "rewrite", _:
            local.client().call("BGREWRITEAOF")
        case _:
            worker.step(number, step)
    worker.hear()


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.booleans(), st.sampled_from(["everysec", "always"]), STEPS)
def test_confirmed_jobs_are_found_by_the_next_process_after_any_faults(
    power: bool, policy: str, steps: list[tuple[str, int | str]]
) -> None:
    local = logging_node(policy)
    worker = Worker(local)
    for number, (step, value) in enumerate(steps):
        inject(local, worker, number, step, value)
    always = policy == "always" and not any(step == "policy" for step, _ in steps)
    if power:
        local.lose_power()
    else:
        local.crash()
    local.host.disk.repair()
    local.restart()
    local.run(milliseconds=100)
    found = {job.id for job in local.node.state.lifecycle.table.jobs()}
    lost = [at_ms for job_id, at_ms in worker.here.items() if job_id not in found and job_id not in worker.unsure]
    back = [at_ms for job_id, at_ms in worker.gone.items() if job_id in found]
    missing = lost + back
    if always or not power:
        assert not missing
    elif missing:
        assert max(missing) - min(missing) <= WINDOW_MS + SLOW_MS + A_CRON_MS


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["everysec", "always"]), STEPS)
def test_every_client_is_answered_when_the_disk_recovers_from_any_faults(
    policy: str, steps: list[tuple[str, int | str]]
) -> None:
    local = logging_node(policy)
    worker = Worker(local)
    for number, (step, value) in enumerate(steps):
        inject(local, worker, number, step, value)
    local.host.disk.repair()
    finish_all(local)
    local.run(seconds=20)
    worker.hear()
    assert worker.clients == []
    assert local.barrier_empty
    assert refused(local.client()) == ""
    assert info(local.client())["aof_buffer_length"] == "0"
    assert local.host.disk.files.keys() == {"disque.aof"}
    assert int(info(local.client())["aof_current_size"]) == len(written(local))
    before = {job.id for job in local.node.state.lifecycle.table.jobs()}
    local.restart()
    local.run(milliseconds=100)
    after = {job.id for job in local.node.state.lifecycle.table.jobs()}
    assert before >= after
    assert {job_id for job_id in before - after if job_id not in worker.unsure} == set()
