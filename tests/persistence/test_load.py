"""Loading the file: the state after a restart, the replies to clients meanwhile, and the damage that stops the node."""

from __future__ import annotations

import errno
import random

import pytest

from disqued.config import Config
from disqued.core.host import disk
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, QUEUED, Job
from disqued.persistence.records import forget
from disqued.testing.cluster import Cluster
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, LocalClient, LocalNode
from persistence.samples import NODE_IDS, kept, make_job, paused

FILE = "disque.aof"


def logging(**options: object) -> Config:
    """Return a configuration with the append-only file on."""
    config = Config()
    for attribute, value in {"appendonly": True, **options}.items():
        config.assign(attribute, value)
    return config


@pytest.fixture
def node() -> LocalNode:
    return LocalNode(logging())


def started(*records: bytes, **options: object) -> LocalNode:
    """Return a node that starts with a file of these records."""
    host = FakeHost()
    host.disk.put(FILE, b"".join(records))
    return LocalNode(logging(**options), host)


def back(node: LocalNode) -> LocalClient:
    """Kill the node, start it again, and return a client of the new process."""
    node.restart()
    return node.client()


def a_job(seed: int = 0, **fields: object) -> Job:
    """Return a queued job with these fields changed."""
    job = make_job(random.Random(seed))
    job.queue, job.state, job.flags = b"mail", QUEUED, BCAST_QUEUED | BCAST_WILLQUEUE
    job.retry_s, job.delay_s, job.nacks, job.additional_deliveries = 300, 0, 0, 0
    job.delivered = (NODE_ID,)
    for name, value in fields.items():
        setattr(job, name, value)
    return job


def found(node: LocalNode, job: Job) -> Job:
    """Return a job as the node loaded it."""
    known = node.node.state.lifecycle.table.get(job.id)
    assert known is not None
    return known


def info(client: LocalClient) -> dict[str, str]:
    text = client.call("INFO", "persistence")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)


def log_of(node: LocalNode) -> str:
    return "\n".join(text for _, text in node.host.log_lines)


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_loaded_job_is_queued_after_its_retry_time(node: LocalNode) -> None:
    job_id = node.client().add("mail", "hello", "RETRY", 60)

    client = back(node)
    assert client.show(job_id)["state"] == b"active"
    assert client.call("QLEN", "mail") == 0

    node.run(seconds=61)
    assert client.call("GETJOB", "NOHANG", "WITHCOUNTERS", "FROM", "mail") == [
        [b"mail", job_id, b"hello", b"nacks", 0, b"additional-deliveries", 1]
    ]


@pytest.mark.parametrize("how", ["ACKJOB", "FASTACK", "DELJOB"])
def test_a_finished_job_is_not_loaded(node: LocalNode, how: str) -> None:
    client = node.client()
    done, left = client.add("mail"), client.add("mail")
    assert client.call(how, done) == 1

    client = back(node)
    assert client.show(done) == {}
    assert client.show(left)["state"] == b"active"


def test_a_job_that_a_worker_had_is_queued_again(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "RETRY", 10)
    assert client.take("mail") == [job_id]

    client = back(node)
    node.run(seconds=11)
    assert client.take("mail") == [job_id]


def test_counters_and_holders_are_as_they_were_written() -> None:
    job = a_job(nacks=2, additional_deliveries=7, delivered=(NODE_IDS[1], NODE_ID, NODE_IDS[2]), repl=3)
    node = started(kept(job))
    shown = node.client().show(job.id)

    assert (shown["nacks"], shown["additional-deliveries"], shown["repl"]) == (2, 7, 3)
    assert shown["nodes-delivered"] == [NODE_ID], "the others are no members"
    assert found(node, job).delivered == (NODE_IDS[1], NODE_ID, NODE_IDS[2])
    assert shown["body"] == job.body


def test_a_node_is_among_the_holders_of_a_loaded_job() -> None:
    job = a_job(delivered=(NODE_IDS[1],))
    assert found(started(kept(job)), job).delivered == (NODE_IDS[1], NODE_ID)


def test_the_first_of_two_records_of_a_job_counts() -> None:
    first, second = a_job(), a_job()
    second.body = b"another"
    client = started(kept(first), kept(second)).client()
    assert client.show(first.id)["body"] == first.body


def test_a_job_that_was_forgotten_and_kept_again_is_loaded() -> None:
    job = a_job()
    assert started(kept(job), forget(job.id), kept(job)).client().show(job.id)


def test_expired_jobs_are_not_loaded(node: LocalNode) -> None:
    client = node.client()
    short, long = client.add("mail", "body", "TTL", 5), client.add("mail", "body", "TTL", 500)
    node.crash()
    node.host.now_ms += 10_000

    client = back(node)
    assert client.show(short) == {}
    assert client.show(long)["state"] == b"active"
    assert "1 jobs left out, whose time is over" in log_of(node)


def test_delay_is_counted_from_the_creation_of_the_job_after_a_restart(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "DELAY", 60, "RETRY", 500, "TTL", 5000)
    node.run(seconds=20)

    client = back(node)
    node.run(seconds=39)
    assert client.take("mail") == []
    node.run(seconds=2)
    assert client.take("mail") == [job_id]


def test_a_job_whose_delay_ended_during_the_downtime_waits_for_its_retry_time(node: LocalNode) -> None:
    job_id = node.client().add("mail", "body", "DELAY", 60, "RETRY", 100, "TTL", 5000)
    node.crash()
    node.host.now_ms += 70_000

    client = back(node)
    node.run(seconds=99)
    assert client.take("mail") == []
    node.run(seconds=2)
    assert client.take("mail") == [job_id]


def test_a_copy_waits_for_the_delay_and_then_for_its_retry_time() -> None:
    job = a_job(state=ACTIVE, delay_s=100, retry_s=50)
    node = started(kept(job))
    node.host.now_ms = job.ctime // 1_000_000 + 20_000

    client = back(node)
    node.run(seconds=129)
    assert client.show(job.id)["state"] == b"active"
    node.run(seconds=2)
    assert client.show(job.id)["state"] == b"queued"


def test_an_at_most_once_job_is_kept_and_never_queued_again(node: LocalNode) -> None:
    job_id = node.client().add("mail", "body", "RETRY", 0)

    client = back(node)
    assert client.show(job_id)["state"] == b"active"
    assert client.call("ENQUEUE", job_id) == 0
    node.run(seconds=1000)
    assert client.take("mail") == []


def test_a_delivered_at_most_once_job_is_not_loaded(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "RETRY", 0)
    assert client.take("mail") == [job_id]
    assert back(node).show(job_id) == {}


def test_an_at_most_once_job_is_queued_when_its_delay_ends_after_the_restart(node: LocalNode) -> None:
    job_id = node.client().add("mail", "body", "RETRY", 0, "DELAY", 30)
    node.run(seconds=10)

    client = back(node)
    node.run(seconds=19)
    assert client.take("mail") == []
    node.run(seconds=2)
    assert client.take("mail") == [job_id]
    assert client.take("mail") == []


@pytest.mark.parametrize("word", ["in", "out", "all"])
def test_pauses_are_loaded(node: LocalNode, word: str) -> None:
    client = node.client()
    client.call("PAUSE", "mail", word)
    client.call("PAUSE", "print", "all")
    client.call("PAUSE", "print", "none")

    client = back(node)
    assert client.call("PAUSE", "mail", "state") == word.encode()
    assert client.call("PAUSE", "print", "state") == b"none"


def test_changes_after_loading_are_appended(node: LocalNode) -> None:
    first = node.client().add("mail")
    client = back(node)
    second = client.add("mail")
    assert client.call("ACKJOB", first) == 1

    client = back(node)
    assert client.show(first) == {}
    assert client.show(second)["state"] == b"active"


def test_loading_writes_nothing(node: LocalNode) -> None:
    client = node.client()
    for number in range(20):
        client.add("mail", f"body {number}")
    written = bytes(node.host.disk.files[FILE])
    node.restart()
    node.run(seconds=2)
    assert bytes(node.host.disk.files[FILE]) == written


def test_loaded_jobs_take_as_much_memory_as_others(node: LocalNode) -> None:
    client = node.client()
    for number in range(500):
        client.add("mail", f"body {number}", "DELAY", 500)
    used_bytes = node.node.state.lifecycle.memory.used_bytes

    back(node)
    node.run(seconds=301)  # as long as each of them may have been added under a key
    assert node.node.state.lifecycle.memory.used_bytes == used_bytes
    jobs = node.node.state.lifecycle.table.jobs()
    assert len({id(job.queue) for job in jobs}) == 1, "the name of the queue is there once"
    assert all(job.delivered is None for job in jobs)


def test_nothing_is_loaded_while_the_file_is_off() -> None:
    host = FakeHost()
    host.disk.put(FILE, kept(a_job()))
    node = LocalNode(Config(), host)
    assert node.node.state.lifecycle.table.count == 0


# --- meanwhile --------------------------------------------------------------------------------------------------------

MANY = [kept(a_job(seed)) for seed in range(3500)]


def test_clients_get_loading_errors_and_can_read_the_progress() -> None:
    node = started(*MANY)
    client = node.client()
    for words in (("PING",), ("GETJOB", "FROM", "q"), ("CONFIG", "GET", "port"), ("HELLO",), ("ADDJOB", "q", "b", 0)):
        assert str(client.call(*words)) == "LOADING Disque is loading the dataset in memory"
    assert isinstance(client.call("COMMAND", "COUNT"), int)
    assert client.call("LATENCY", "LATEST") == []
    shown = info(client)
    total, loaded = int(shown["loading_total_bytes"]), int(shown["loading_loaded_bytes"])
    assert (shown["loading"], shown["aof_enabled"], shown["aof_state"]) == ("1", "0", "off")
    assert total == sum(map(len, MANY))
    assert 0 < loaded < total
    assert shown["loading_loaded_perc"] == f"{loaded * 100 / total:.2f}"
    assert shown["loading_eta_seconds"] == "1"
    assert shown["loading_start_time"] == str(node.host.now_ms // 1000)

    node.run(seconds=1)
    assert client.call("PING") == b"PONG"
    shown = info(client)
    assert (shown["loading"], shown["aof_enabled"], shown["aof_state"]) == ("0", "1", "on")
    assert "loading_total_bytes" not in shown
    assert shown["aof_current_size"] == shown["aof_base_size"] == str(total)
    assert node.node.state.lifecycle.table.count == len(MANY)


def test_large_files_are_loaded_in_chunks() -> None:
    jobs = [a_job(seed, body=random.Random(seed).randbytes(70_000)) for seed in range(80)]
    node = started(*[kept(job) for job in jobs])
    node.run(seconds=1)
    assert [found(node, job).body for job in jobs] == [job.body for job in jobs]


def test_the_next_chunk_is_read_while_one_is_loaded() -> None:
    jobs = [a_job(seed, body=bytes(70_000)) for seed in range(80)]
    node = started(*[kept(job) for job in jobs])
    node.host.disk.hold(disk.READ)
    node.restart()
    for count in (1, 2, 3):
        node.finish(1)
        node.run(milliseconds=5)
        assert [work.offset >> 20 for work in node.host.disk.pending] == [count]
        assert node.node.state.lifecycle.table.count in range(count * 14, count * 16)


def test_clients_are_answered_while_a_slow_disk_reads() -> None:
    node = started(*MANY)
    node.host.disk.delay_ms[disk.READ] = 30_000
    client = back(node)
    node.run(seconds=29)
    assert str(client.call("PING")).startswith("LOADING")
    assert info(client)["loading_loaded_bytes"] == "0"
    node.run(seconds=40)
    assert client.call("PING") == b"PONG"


def test_no_timer_fires_while_the_file_is_loaded() -> None:
    """A due job is neither queued nor deleted before all records are loaded."""
    job = a_job(retry_s=1)
    big = [kept(a_job(seed, body=bytes(70_000))) for seed in range(1, 40)]
    node = started(kept(job), *big, forget(job.id))
    node.host.disk.delay_ms[disk.READ] = 10_000
    node.restart()
    node.run(seconds=15)
    assert found(node, job).state == ACTIVE
    node.run(seconds=60)
    assert node.client().show(job.id) == {}


def test_the_progress_and_the_result_of_loading_are_logged() -> None:
    node = started(*[kept(a_job(seed, body=bytes(70_000))) for seed in range(60)])
    node.host.disk.delay_ms[disk.READ] = 2000
    node.host.log_lines.clear()
    node.restart()
    node.run(seconds=15)
    lines = [text for _, text in node.host.log_lines if "oad" in text]
    assert lines[0] == f"Loading the append only file disque.aof, {len(node.host.disk.files[FILE])} bytes"
    assert any(line.startswith("Loading disque.aof: 2") and "s left" in line for line in lines[1:-1]), lines
    assert lines[-1].startswith("DB loaded from append only file: ")
    assert f"seconds, 60 jobs, {len(node.host.disk.files[FILE])} bytes" in lines[-1]


def test_a_node_that_loads_sends_nothing_to_other_nodes() -> None:
    cluster = Cluster(3, config=lambda: logging(cluster_node_timeout=2000))
    one, two, _ = cluster.members
    one.admin.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3, "RETRY", 300)
    cluster.run(seconds=1)
    job_id = one.admin.next_reply()
    assert isinstance(job_id, bytes)
    one.host.disk.hold(disk.READ)
    one.restart()
    cluster.forget_sent()
    cluster.run(seconds=10)
    assert cluster.sent(by=one) == []
    assert b"fail" in two.admin.call("CLUSTER", "NODES")  # type: ignore[operator]

    one.host.disk.repair()
    one.finish()
    cluster.until(cluster.is_whole)
    assert cluster.copies(job_id) == cluster.members


@pytest.mark.parametrize("words", [("SHUTDOWN",), ("SHUTDOWN", "REWRITE-AOF")])
def test_shutdown_while_loading_leaves_the_file_unchanged(words: tuple[str, ...]) -> None:
    node = started(*MANY)
    client = node.client()
    assert str(client.call("PING")).startswith("LOADING")
    client.send(*words)
    assert node.host.ended == "shutdown"
    assert dict(node.host.disk.files) == {FILE: b"".join(MANY)}


def test_a_node_without_records_does_not_load() -> None:
    node = LocalNode(logging())
    assert node.client().call("PING") == b"PONG"
    assert "oad" not in log_of(node)


# --- what is wrong with a file ----------------------------------------------------------------------------------------

JOBS = [a_job(seed) for seed in range(6)]
RECORDS = [kept(job) for job in JOBS]
PLAIN = [kept(job, with_sum=False) for job in JOBS]


def known(node: LocalNode) -> list[int]:
    """Return the numbers of the jobs that the node has."""
    return [number for number, job in enumerate(JOBS) if node.node.state.lifecycle.table.get(job.id) is not None]


@pytest.mark.parametrize("records", [RECORDS, PLAIN], ids=["checksums", "none"])
@pytest.mark.parametrize(
    "tail", [RECORDS[5][:-1], RECORDS[5][:40], b"*", b"*2\r\n$6\r\nDELJOB\r\n$40\r\nD-", bytes(4096)]
)
def test_a_torn_end_is_dropped(records: list[bytes], tail: bytes) -> None:
    node = started(*records[:5], tail)
    assert node.host.ended is None
    assert known(node) == [0, 1, 2, 3, 4]
    assert bytes(node.host.disk.files[FILE]) == b"".join(records[:5])
    assert f"{len(tail)} bytes from {sum(map(len, records[:5]))} on are no whole record" in log_of(node)

    later = node.client().add("mail")
    assert back(node).show(later)["state"] == b"active"


def test_torn_end_stops_the_node_if_it_is_configured_so() -> None:
    node = started(*RECORDS[:5], RECORDS[5][:-1], aof_load_truncated=False)
    assert node.host.ended is not None
    assert f"from byte {sum(map(len, RECORDS[:5]))} on, is cut off" in node.host.ended
    assert "aof-load-truncated" in node.host.ended
    assert "disque-check-aof disque.aof" in node.host.ended
    assert bytes(node.host.disk.files[FILE]) == b"".join([*RECORDS[:5], RECORDS[5][:-1]])


LATER_FORMAT = b"*2\r\n$6\r\nFORMAT\r\n$1\r\n9\r\n"
UNKNOWN_RECORD = b"*2\r\n$6\r\nWISHES\r\n$1\r\n1\r\n"


def test_file_of_a_later_release_stops_the_node_and_stays_as_it_is() -> None:
    records = [LATER_FORMAT, *RECORDS[:3], UNKNOWN_RECORD, RECORDS[5][:-1]]
    node = started(*records)
    assert node.host.ended is not None
    assert "it has format 9, and this release" in node.host.ended
    assert "Start the release that wrote it. Nothing was changed." in node.host.ended
    node.run(seconds=30)
    assert bytes(node.host.disk.files[FILE]) == b"".join(records)


def test_file_that_says_a_known_format_is_loaded() -> None:
    job = a_job()
    node = started(b"*2\r\n$6\r\nFORMAT\r\n$1\r\n1\r\n", kept(job))
    assert node.client().show(job.id)
    assert info(node.client())["aof_damaged_records"] == "0"
    assert info(node.client())["aof_format"] == "1"


@pytest.mark.parametrize("bad", [b"garbage\r\n", b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$7\r\nLOADJOB\r\n$3\r\nabc\r\n"])
@pytest.mark.parametrize("behind", [3, 6])
def test_damage_without_checksums_ends_the_node(bad: bytes, behind: int) -> None:
    node = started(*PLAIN[:3], bad, *PLAIN[behind:])
    assert node.host.ended is not None
    assert node.host.ended.startswith("failed: Bad file format reading the append only file disque.aof at byte ")
    assert f"at byte {sum(map(len, PLAIN[:3]))}: " in node.host.ended
    assert "disque-check-aof disque.aof" in node.host.ended
    node.run(seconds=30)
    assert str(node.client().call("PING")).startswith("LOADING")


def test_a_wrong_checksum_of_the_only_job_shows_that_the_file_has_checksums() -> None:
    """Found by the simulator (mix "logged restarts", seed 6): the node did not start."""
    damaged = bytearray(RECORDS[0])
    damaged[100] ^= 1
    node = started(bytes(damaged), forget(JOBS[1].id))
    assert node.host.ended is None
    assert known(node) == []
    assert info(node.client())["aof_damaged_records"] == "1"


@pytest.mark.parametrize("behind", [forget(JOBS[1].id), paused(b"mail", b"in")])
def test_zeros_left_by_a_power_loss_are_skipped_without_checksums(behind: bytes) -> None:
    """Found by the simulator (mix "logged power", seed 2): the node did not start after a power loss."""
    node = started(bytes(300), behind)
    assert node.host.ended is None
    assert info(node.client())["aof_damaged_records"] == "1"
    assert any("damaged" in name for name in node.host.disk.files)


@pytest.mark.parametrize("at", [0, 3, 5])
@pytest.mark.parametrize("bit", [8 * 100, 8 * 2, 8 * 20 + 1, 8 * 25])
def test_with_checksums_only_the_damaged_record_is_lost(at: int, bit: int) -> None:
    damaged = bytearray(RECORDS[at])
    damaged[bit // 8] ^= 1 << bit % 8
    data = b"".join([*RECORDS[:at], bytes(damaged), *RECORDS[at + 1 :]])
    node = started(data)

    assert node.host.ended is None
    assert known(node) == [number for number in range(6) if number != at]
    assert f"Damage in the append only file disque.aof from byte {sum(map(len, RECORDS[:at]))} to" in log_of(node)
    assert info(node.client())["aof_damaged_records"] == "1"
    (name,) = [name for name in node.host.disk.files if "damaged" in name]
    assert name == f"disque.aof.damaged-{node.host.now_ms // 1000}"
    assert bytes(node.host.disk.files[name]) == data


def test_damaged_file_is_rewritten() -> None:
    damaged = bytearray(RECORDS[2])
    damaged[100] ^= 1
    node = started(*RECORDS[:2], bytes(damaged), *RECORDS[3:])
    node.run(seconds=5)
    node.host.log_lines.clear()

    client = back(node)
    assert known(node) == [0, 1, 3, 4, 5]
    assert "amage" not in log_of(node)
    assert info(client)["aof_damaged_records"] == "0"


def test_a_job_in_a_state_that_is_never_stored_is_damage() -> None:
    odd = a_job(9, state=0)
    node = started(*RECORDS, kept(odd))
    assert known(node) == list(range(6))
    assert "no job is kept in state 0" in log_of(node)


def test_damage_in_a_pause_or_a_deletion_is_skipped() -> None:
    node = started(*RECORDS[:2], paused(b"mail", b"inn"), forget(JOBS[0].id).replace(b"D-", b"d-"), *RECORDS[2:])
    assert known(node) == list(range(6))
    assert info(node.client())["aof_damaged_records"] == "2"


def test_unreadable_file_ends_the_node(node: LocalNode) -> None:
    node.client().add("mail")
    node.host.disk.fail(disk.READ, error=errno.EACCES)
    node.restart()
    assert node.host.ended is not None
    assert "Can't read the append only file disque.aof: Permission denied" in node.host.ended
    assert str(node.client().call("PING")).startswith("LOADING")


def test_file_that_cannot_be_opened_ends_the_node(node: LocalNode) -> None:
    node.client().add("mail")
    node.host.disk.fail(disk.OPEN, error=errno.EROFS)
    node.restart()
    assert node.host.ended is not None
    assert "Can't open the append only file disque.aof: Read-only file system" in node.host.ended
    assert str(node.client().call("PING")).startswith("LOADING")


def test_torn_end_that_cannot_be_truncated_ends_the_node() -> None:
    host = FakeHost()
    host.disk.put(FILE, b"".join(RECORDS) + b"*2\r\n")
    host.disk.fail(disk.TRUNCATE)
    node = LocalNode(logging(), host)
    assert host.ended is not None
    assert "Can't cut the append only file disque.aof off" in host.ended
    assert node.node.state.loading


def test_the_log_names_a_bounded_number_of_damaged_places() -> None:
    damaged = [bytes((*record[:100], record[100] ^ 1, *record[101:])) for record in MANY[:300]]
    node = started(*RECORDS, *damaged)
    assert log_of(node).count("Damage in") == 100
    assert info(node.client())["aof_damaged_records"] == "300"
