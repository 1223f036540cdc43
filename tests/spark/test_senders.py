"""Senders with real nodes: which node gets a row, and what happens when nodes fail, refuse, leave or return.

The tests control the time: each sleep of a sender advances it, and runs an action of the test.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from disqued.testing.ports import free_port
from pyspark_disque.addedjobs import ID_BYTES, AddedJobs, decode_ids, encode_ids
from pyspark_disque.brokers import Brokers
from pyspark_disque.clock import Clock
from pyspark_disque.options import Options, parse
from pyspark_disque.rows import Slice
from pyspark_disque.senders import (
    HOME_TIMEOUT_S,
    REFRESH_S,
    AnyNode,
    HomeNode,
    Sender,
    WriteFailed,
    rendezvous,
    roll_back,
)
from support.cluster import RealCluster, RealNode
from support.jobs import bodies, jobs

pytestmark = pytest.mark.slow

NUMBER = count()


class Time:
    """A clock that advances only by sleeping; each of the first sleeps runs one of the actions `meanwhile`."""

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self.now_s = 1000.0
        self.waits = 0
        self._meanwhile = list(meanwhile)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.waits += 1
        if self._meanwhile:
            self._meanwhile.pop(0)()

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)


class Writer:
    """A sender with its route and added jobs."""

    def __init__(
        self,
        brokers: Brokers,
        time: Time,
        *,
        partition: int = 0,
        planned: Sequence[str] = (),
        give_up_after_s: float = 120,
    ) -> None:
        route = (
            HomeNode(brokers, planned, time.clock.now_s) if planned else AnyNode(brokers, partition, time.clock.now_s)
        )
        self.added = AddedJobs(10_000)
        self.sender = Sender(brokers, route, give_up_after_s, self.added, time.clock, random.Random(8))

    def send(self, part: Slice) -> list[str]:
        self.sender.send(part)
        return self.ids

    @property
    def ids(self) -> list[str]:
        return [job for some in decode_ids(self.added.packed(), 100) for job in some]


def rows(queue: str, numbers: range, *words: bytes | int, slot: int = 0, key: str = "") -> Slice:
    """Return rows with their numbers as bodies, and as keys if `key` is set."""
    keyed = [(b"KEY", f"{key}/{number}".encode()) if key else () for number in numbers]
    commands = [
        (b"ADDJOB", queue.encode(), b"%d" % number, 5000, *words, *keyed[at]) for at, number in enumerate(numbers)
    ]
    return Slice(numbers.start, commands, [slot] * len(numbers))


def numbered(numbers: range) -> list[bytes]:
    return sorted(b"%d" % number for number in numbers)


def finish(cluster: RealCluster, queue: str) -> int:
    """Lease and acknowledge the jobs that each node has queued, and return their number."""
    finished = 0
    for node in cluster.nodes:
        waiting = node.call("QLEN", queue)
        if waiting:
            taken = node.call("GETJOB", "NOHANG", "COUNT", waiting, "FROM", queue)
            finished += node.call("ACKJOB", *[job[1] for job in taken])
    return finished


def options(cluster: RealCluster, **more: str) -> Options:
    return parse({"nodes": ",".join(node.address for node in cluster.nodes), **more}, "write")


def bring_back(cluster: RealCluster, node: RealNode) -> None:
    """Restart a node, and wait until it has loaded its log and all nodes know it."""
    node.restart()
    cluster.wait_until(lambda: node.info()["loading"] == "0", "the log is loaded")
    cluster.wait_whole()


def stay(cluster: RealCluster, node: RealNode) -> None:
    """Cancel the leaving of a node, and wait until all nodes know."""
    node.call("CLUSTER", "LEAVING", "no")
    cluster.wait_until(lambda: not any("leaving" in other.view()[node.id] for other in cluster.nodes), "the node stays")


def home_of(cluster: RealCluster, slot: int) -> RealNode:
    home = rendezvous(slot, [node.id for node in cluster.nodes])[0]
    return next(node for node in cluster.nodes if node.id == home)


@pytest.fixture
def queue() -> str:
    return f"q{next(NUMBER)}"


@pytest.fixture
def brokers(cluster: RealCluster) -> Iterator[Brokers]:
    with Brokers(options(cluster)) as found:
        yield found


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Three durable nodes for one test, which may kill them."""
    with RealCluster(tmp_path, 3, "--appendonly", "yes", "--appendfsync", "always") as nodes:
        yield nodes


@pytest.fixture
def own_brokers(own_cluster: RealCluster) -> Iterator[Brokers]:
    with Brokers(options(own_cluster)) as found:
        yield found


# --- at least once ----------------------------------------------------------------------------------------------------


def test_partitions_start_with_different_nodes(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    for partition in range(3):
        Writer(brokers, Time(), partition=partition).send(rows(queue, range(10), b"REPLICATE", 1))
    assert [node.call("QLEN", queue) for node in cluster.nodes] == [10, 10, 10]


def test_partition_stays_with_its_node(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    writer = Writer(brokers, Time(), partition=1)
    for first in range(0, 50, 10):
        writer.send(rows(queue, range(first, first + 10), b"REPLICATE", 1))
    assert sorted(node.call("QLEN", queue) for node in cluster.nodes) == [0, 0, 50]
    assert bodies(cluster, queue) == numbered(range(50))


def test_sender_records_the_ids_of_added_jobs(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    writer = Writer(brokers, Time())
    ids = writer.send(rows(queue, range(300)))
    assert {job.encode() for job in ids} == set(jobs(cluster, queue))
    assert writer.added.rows == 300


def test_partition_switches_to_another_node_when_its_node_dies(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    time = Time()
    writer = Writer(own_brokers, time)
    writer.send(rows("q", range(20), b"REPLICATE", 1))
    node = next(node for node in own_cluster.nodes if node.call("QLEN", "q"))
    node.kill()
    writer.send(rows("q", range(20, 60), b"REPLICATE", 1))
    assert bodies(own_cluster, "q") == numbered(range(20, 60))
    assert time.waits == 1
    bring_back(own_cluster, node)
    own_cluster.wait_until(lambda: bodies(own_cluster, "q") == numbered(range(60)), "nothing is lost")


def test_partition_switches_to_another_node_before_its_node_leaves(
    cluster: RealCluster, brokers: Brokers, queue: str
) -> None:
    time = Time()
    writer = Writer(brokers, time)
    writer.send(rows(queue, range(10), b"REPLICATE", 1))
    leaving = next(node for node in cluster.nodes if node.call("QLEN", queue))
    assert leaving.call("CLUSTER", "LEAVING", "yes") == b"OK"
    try:
        others = [node for node in cluster.nodes if node is not leaving]
        cluster.wait_until(lambda: all("leaving" in node.view()[leaving.id] for node in others))
        time.now_s += REFRESH_S + 1
        later = writer.send(rows(queue, range(10, 30), b"REPLICATE", 1))[10:]
    finally:
        stay(cluster, leaving)
    cluster.wait_until(lambda: bodies(cluster, queue) == numbered(range(30)))
    assert {job.split("-")[1] for job in later}.isdisjoint({leaving.id[:8]})
    assert time.waits == 0


def test_write_waits_for_a_paused_queue(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    for node in cluster.nodes:
        node.call("PAUSE", queue, "in")

    def open_it() -> None:
        for node in cluster.nodes:
            node.call("PAUSE", queue, "none")

    time = Time(lambda: None, open_it)
    Writer(brokers, time).send(rows(queue, range(20), b"REPLICATE", 1))
    assert bodies(cluster, queue) == numbered(range(20))
    assert time.waits == 2


def test_write_waits_for_a_full_queue_and_keeps_its_limit(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    lengths: list[int] = []

    def work() -> None:
        lengths.append(finish(cluster, queue))

    time = Time(*[work] * 10)
    writer = Writer(brokers, time)
    writer.send(rows(queue, range(12), b"REPLICATE", 1, b"MAXLEN", 5))
    assert writer.added.rows == 12
    assert lengths == [5, 5]


def test_write_to_a_paused_queue_fails_at_the_deadline_with_the_broker_error(
    cluster: RealCluster, brokers: Brokers, queue: str
) -> None:
    writer = Writer(brokers, Time(), give_up_after_s=60)
    writer.send(rows(queue, range(7), b"REPLICATE", 1))
    for node in cluster.nodes:
        node.call("PAUSE", queue, "in")
    with pytest.raises(WriteFailed) as failure:
        writer.send(rows(queue, range(7, 20), b"REPLICATE", 1))
    assert str(failure.value).startswith(
        "no row could be added for 60 s, from row 7 on; 7 rows of the partition were added before: PAUSED"
    )


def test_deadline_counts_only_time_without_progress(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    def work() -> None:
        finish(cluster, queue)

    slow = [*[lambda: None] * 6, work]
    time = Time(*slow * 20)
    Writer(brokers, time, give_up_after_s=6).send(rows(queue, range(10), b"REPLICATE", 1, b"MAXLEN", 1))
    assert time.now_s > 1000 + 4 * 6


def test_row_rejected_by_the_broker_fails_immediately_and_is_named(
    cluster: RealCluster, brokers: Brokers, queue: str
) -> None:
    time = Time()
    writer = Writer(brokers, time)
    good, bad = rows(queue, range(100, 110), b"REPLICATE", 1), rows(queue, range(110, 111), b"TTL", 0)
    with pytest.raises(WriteFailed) as failure:
        writer.send(Slice(100, [*good.commands[:4], *bad.commands, *good.commands[4:]], [0] * 11))
    assert str(failure.value) == (
        "row 104 was rejected; 10 rows of the partition were added: ERR TTL must be a number > 0"
    )
    assert {job.encode() for job in writer.ids} == set(jobs(cluster, queue))
    assert time.waits == 0


def test_wrong_password_fails_immediately(tmp_path: Path) -> None:
    time = Time()
    with RealCluster(tmp_path, 1, "--requirepass", "open sesame") as locked, Brokers(options(locked)) as ours:
        with pytest.raises(WriteFailed, match="NOAUTH"):
            Writer(ours, time).send(rows("q", range(3)))
        given = options(locked, password="open sesame")
        with Brokers(given) as right:
            assert Writer(right, time).send(rows("q", range(3)))
    assert time.waits == 0


def test_write_without_nodes_is_retried_until_the_deadline() -> None:
    time = Time()
    unreachable = Brokers(parse({"nodes": f"127.0.0.1:{free_port()}"}, "write"))
    with unreachable, pytest.raises(WriteFailed, match=r"added for 30 s, from row 5 on; 0 rows .* cannot reach any"):
        Writer(unreachable, time, give_up_after_s=30).send(rows("q", range(5, 9)))
    assert time.now_s == pytest.approx(1030)
    assert time.waits > 10


def test_rows_with_too_few_copies_are_sent_again(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    *others, three = own_cluster.nodes
    missed = three.id
    three.kill()
    own_cluster.wait_until(lambda: all("fail" in node.view()[missed] for node in others), "the failure is known")

    time = Time(lambda: None, lambda: bring_back(own_cluster, three))
    Writer(own_brokers, time).send(rows("q", range(10), b"REPLICATE", 3))
    assert set(bodies(own_cluster, "q")) == set(numbered(range(10)))
    assert time.waits == 2


# --- home nodes -------------------------------------------------------------------------------------------------------


def test_node_that_joins_moves_only_its_own_share_of_slots() -> None:
    three = [f"{number:040x}" for number in range(3)]
    before = {slot: rendezvous(slot, three)[0] for slot in range(3000)}
    after = {slot: rendezvous(slot, [*three, "new"])[0] for slot in range(3000)}
    moved = [slot for slot in before if before[slot] != after[slot]]
    assert {after[slot] for slot in moved} == {"new"}
    assert 600 < len(moved) < 900
    for home in three:
        assert 900 < sum(found == home for found in before.values()) < 1100


def test_rows_go_to_their_homes_and_a_second_run_adds_nothing(
    cluster: RealCluster, brokers: Brokers, queue: str
) -> None:
    planned = [node.id for node in cluster.nodes]

    def run() -> list[str]:
        writer = Writer(brokers, Time(), planned=planned)
        for slot in range(20):
            writer.send(rows(queue, range(slot * 10, slot * 10 + 10), b"REPLICATE", 1, slot=slot, key="run"))
        return writer.ids

    first = run()
    assert run() == first
    assert bodies(cluster, queue) == numbered(range(200))
    for slot in range(20):
        found = {cluster.holders(job)[0] for job in first[slot * 10 : slot * 10 + 10]}
        assert found == {home_of(cluster, slot)}


def test_home_restarted_at_another_address_adds_no_duplicates(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    planned = [node.id for node in own_cluster.nodes]
    home = home_of(own_cluster, 7)

    time = Time(lambda: None, lambda: bring_back(own_cluster, home))
    writer = Writer(own_brokers, time, planned=planned)
    writer.send(rows("q", range(50), slot=7, key="run"))
    home.kill()
    home.port = free_port()
    writer.send(rows("q", range(40, 100), slot=7, key="run"))
    assert bodies(own_cluster, "q") == numbered(range(100))
    assert time.waits >= 2


def test_home_that_stays_down_is_given_up_after_the_timeout(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    planned = [node.id for node in own_cluster.nodes]
    home = home_of(own_cluster, 7)
    time = Time()
    writer = Writer(own_brokers, time, planned=planned)
    home.kill()
    writer.send(rows("q", range(10), b"REPLICATE", 1, slot=7, key="run"))
    assert HOME_TIMEOUT_S <= time.now_s - 1000 <= HOME_TIMEOUT_S + 5
    assert bodies(own_cluster, "q") == numbered(range(10))
    waited = time.waits
    writer.send(rows("q", range(10, 20), b"REPLICATE", 1, slot=7, key="run"))
    assert time.waits == waited


def test_write_that_gives_up_before_the_home_timeout_adds_nothing_elsewhere(
    own_cluster: RealCluster, own_brokers: Brokers
) -> None:
    planned = [node.id for node in own_cluster.nodes]
    home_of(own_cluster, 7).kill()
    with pytest.raises(WriteFailed, match="no row could be added for 10 s"):
        Writer(own_brokers, Time(), planned=planned, give_up_after_s=10).send(rows("q", range(10), slot=7, key="run"))
    assert jobs(own_cluster, "q") == {}


def test_forgotten_home_is_given_up_immediately(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    planned = [node.id for node in own_cluster.nodes]
    home = home_of(own_cluster, 7)
    forgotten = home.id
    home.kill()
    for node in own_cluster.running:
        node.call("CLUSTER", "FORGET", forgotten)
    time = Time()
    Writer(own_brokers, time, planned=planned).send(rows("q", range(10), b"REPLICATE", 1, slot=7, key="run"))
    assert bodies(own_cluster, "q") == numbered(range(10))
    assert time.waits == 0


def test_leaving_home_still_answers_for_the_keys_it_knows(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    planned = [node.id for node in own_cluster.nodes]
    home = home_of(own_cluster, 7)
    Writer(own_brokers, Time(), planned=planned).send(rows("q", range(30), slot=7, key="run"))
    assert home.call("CLUSTER", "LEAVING", "yes") == b"OK"
    again = Writer(own_brokers, Time(), planned=planned)
    again.send(rows("q", range(60), b"REPLICATE", 2, slot=7, key="run"))
    assert again.added.rows == 60
    assert bodies(own_cluster, "q") == numbered(range(60))


def test_leaving_home_that_refuses_is_given_up_immediately(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    home = home_of(cluster, 7)
    assert home.call("CLUSTER", "LEAVING", "yes") == b"OK"
    home.call("PAUSE", queue, "in")
    time = Time()
    try:
        writer = Writer(brokers, time, planned=[node.id for node in cluster.nodes])
        ids = writer.send(rows(queue, range(20), b"REPLICATE", 1, slot=7, key="run"))
    finally:
        stay(cluster, home)
    next_home = rendezvous(7, [node.id for node in cluster.nodes])[1]
    assert {job.split("-")[1] for job in ids} == {next_home[:8]}
    assert time.waits == 1


# --- rollback ---------------------------------------------------------------------------------------------------------


def test_rolled_back_jobs_are_removed_from_all_nodes(cluster: RealCluster, brokers: Brokers, queue: str) -> None:
    writer = Writer(brokers, Time())
    writer.send(rows(queue, range(1200)))
    assert roll_back(brokers, writer.added.packed()) == 1200
    cluster.wait_until(lambda: not jobs(cluster, queue), "no node has a job")


def test_roll_back_uses_any_node_and_fails_without_one(own_cluster: RealCluster, own_brokers: Brokers) -> None:
    writer = Writer(own_brokers, Time())
    writer.send(rows("q", range(5)))
    own_brokers.members()
    for node in own_cluster.nodes[1:]:
        node.kill()
    assert roll_back(own_brokers, writer.added.packed()) == 5
    own_cluster.nodes[0].kill()
    with pytest.raises(ConnectionError):
        roll_back(own_brokers, writer.added.packed())


IDS = [b"D-0a1b2c3d-abcdefghijklmnopqrstuv+/-05a1", b"D-ffffffff-AAAAAAAAAAAAAAAAAAAAAAAA-0000"]


def test_ids_are_encoded_in_27_bytes_and_decoded_unchanged() -> None:
    packed = encode_ids(IDS * 500)
    assert len(packed) == 1000 * ID_BYTES
    assert [job.encode() for some in decode_ids(packed, 7) for job in some] == IDS * 500


def test_value_that_is_not_a_job_id_is_rejected() -> None:
    with pytest.raises(ValueError, match="b'OK' is not a job ID"):
        encode_ids([*IDS, b"OK"])


def test_added_jobs_counts_rows_beyond_its_id_limit() -> None:
    added = AddedJobs(3)
    added.add(IDS)
    added.add(IDS)
    assert added.rows == 4
    assert list(decode_ids(added.packed(), 10)) == [[job.decode() for job in [*IDS, IDS[0]]]]
    assert added.packed(1) == encode_ids(IDS[:1])
