"""Results by key on real nodes: every process finds them, the right one stands, and they outlive a node."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from disqued.client import Client, ResultJobs, ResultTooLong
from disqued.client.resultjobs import LIFE_S, MOST_KEYS, MOST_RESULT_BYTES
from support.cluster import RealCluster

QUEUE = "tasks.results"
WAIT_S = 60.0
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("results"), 3) as nodes:
        yield nodes


@pytest.fixture
def worker(cluster: RealCluster) -> Iterator[ResultJobs]:
    """What a worker uses, which is connected to the first node."""
    with Client([cluster.nodes[0].address]) as client:
        yield ResultJobs(client, QUEUE, retain_s=600)


@pytest.fixture
def reader(cluster: RealCluster) -> Iterator[ResultJobs]:
    """What another process uses, which is connected to another node and forgets later."""
    with Client([cluster.nodes[1].address], discover=False) as client:
        yield ResultJobs(client, QUEUE)


@pytest.fixture
def key() -> str:
    return f"task-{next(_numbers)}"


def test_states_and_the_result_are_found_at_another_node(worker: ResultJobs, reader: ResultJobs, key: str) -> None:
    assert reader.latest(key) is None
    assert worker.log(key, b"started", run=1, seq=0)
    assert reader.latest(key) == (b"started", False)
    assert worker.log(key, b"half", run=1, seq=1)
    assert reader.latest(key) == (b"half", False)
    assert reader.read([key, "unknown"]) == {}
    worker.store(key, b"42")
    assert reader.latest(key) == (b"42", True)
    assert reader.read([key, "unknown"]) == {key: b"42"}
    assert not worker.log(key, b"late", run=1, seq=2)
    assert reader.latest(key) == (b"42", True)


def test_a_result_job_is_in_no_queue_and_its_id_never_changes(
    cluster: RealCluster, worker: ResultJobs, reader: ResultJobs, key: str
) -> None:
    assert worker.job_id(key) == reader.job_id(key) != worker.job_id(key + "x")
    assert worker.job_id("task") == "D-00000000-3EaX5ax1sDhTMAHfkeX4lvNu-2761"
    worker.log(key, b"started", run=1, seq=0)
    with Client([cluster.nodes[0].address]) as client:
        details = client.show(worker.job_id(key))
        assert details is not None
        assert (details.queue, details.body, details.state) == (QUEUE, key.encode(), "active")
        assert LIFE_S - 60 <= details.ttl_s <= LIFE_S
        assert client.get(QUEUE, nohang=True) == []


def test_entries_of_a_later_run_win(worker: ResultJobs, reader: ResultJobs, key: str) -> None:
    worker.log(key, b"first run", run=1, seq=0)
    reader.log(key, b"second run", run=2, seq=0)
    assert not worker.log(key, b"first run is late", run=1, seq=1)
    assert worker.latest(key) == (b"second run", False)


def test_first_final_result_stands_and_others_are_replaced(cluster: RealCluster, key: str) -> None:
    """What all nodes know when `store` returns is read at each of them."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client([node.address], discover=False)) for node in cluster.nodes[:2]]
        worker, reader = (ResultJobs(client, QUEUE, copies=len(cluster.nodes)) for client in clients)
        replace_results(worker, reader, key)


def replace_results(worker: ResultJobs, reader: ResultJobs, key: str) -> None:
    """Store results that are replaced, then one that stands."""
    for number, store in enumerate((worker, reader, worker)):
        store.store(key, b"failed %d" % number, final=False)
        assert reader.latest(key) == worker.latest(key) == (b"failed %d" % number, True)
    worker.store(key, b"done")
    for final in (True, False):
        reader.store(key, b"late", final=final)
    assert reader.latest(key) == worker.latest(key) == (b"done", True)


def test_a_forgotten_key_has_no_result(worker: ResultJobs, reader: ResultJobs, key: str) -> None:
    worker.store(key, b"42")
    reader.forget(key)
    assert (worker.latest(key), worker.read([key])) == (None, {})
    assert worker.wait([key], timeout_s=WAIT_S) == {key: None}


def test_too_long_results_are_refused_and_the_longest_is_kept(worker: ResultJobs, key: str) -> None:
    with pytest.raises(ResultTooLong, match="the result has 65537 bytes, and nodes keep 65536: store it elsewhere"):
        worker.store(key, b"x" * (MOST_RESULT_BYTES + 1))
    assert worker.latest(key) is None
    worker.store(key, b"x" * MOST_RESULT_BYTES)
    assert worker.latest(key) == (b"x" * MOST_RESULT_BYTES, True)


def test_a_state_for_which_the_log_has_no_room_is_not_taken(worker: ResultJobs, key: str) -> None:
    assert worker.log(key, b"x" * 60_000, run=1, seq=0)
    assert not worker.log(key, b"x" * 6000, run=1, seq=1)
    worker.store(key, b"42")
    assert worker.latest(key) == (b"42", True)


def test_a_wait_for_many_keys_returns_what_is_there(worker: ResultJobs, reader: ResultJobs, key: str) -> None:
    keys = [f"{key}.{number}" for number in range(MOST_KEYS)]
    for limit in ([], [*keys, key]):
        with pytest.raises(ValueError, match="1 to 1000 keys"):
            reader.wait(limit, timeout_s=1)
    assert reader.wait(keys, timeout_s=0.01) == {}
    stored = threading.Thread(target=worker.store, args=(keys[-1], b"42"))
    stored.start()
    assert reader.wait(keys, timeout_s=WAIT_S) == {keys[-1]: b"42"}
    stored.join()
    assert reader.read([*keys, key]) == {keys[-1]: b"42"}


def test_states_are_written_and_read_at_nodes_that_do_not_have_the_job(cluster: RealCluster, key: str) -> None:
    """In a cluster of more than three nodes that is the rule; here, two nodes have each job."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client([node.address], discover=False)) for node in cluster.nodes]
        clients[0].qconf_set("few.results", {"replicate": 2})
        nodes = [ResultJobs(client, "few.results") for client in clients]
        for first, second, third in itertools.permutations(nodes):
            task = f"{key}.{next(_numbers)}"
            assert first.log(task, b"started", run=1, seq=0)
            assert second.log(task, b"half", run=1, seq=1)
            assert third.log(task, b"again", run=2, seq=0)
            assert {node.latest(task) for node in nodes} == {(b"again", False)}
            second.store(task, b"42")
            assert {node.latest(task) for node in nodes} == {(b"42", True)}
            assert not third.log(task, b"late", run=2, seq=1)


def test_a_result_survives_the_death_of_a_node_while_somebody_waits(cluster: RealCluster, key: str) -> None:
    first, second, _ = cluster.nodes
    found: list[dict[str, bytes | None]] = []
    with Client([first.address]) as one, Client([second.address]) as two:
        stored, waiting = ResultJobs(one, QUEUE), ResultJobs(two, QUEUE)
        waiting.add([key])
        thread = threading.Thread(target=lambda: found.append(waiting.wait([key], timeout_s=WAIT_S)))
        thread.start()
        cluster.wait_until(lambda: second.info("clients")["blocked_clients"] == "1", "the reader waits")
        second.kill()
        stored.store(key, b"42")
        first.kill()
        thread.join()
        assert found == [{key: b"42"}]
        assert waiting.read([key]) == {key: b"42"}
        assert waiting.add([f"{key}.alone"]) == [waiting.job_id(f"{key}.alone")]
        waiting.store(f"{key}.alone", b"43")
        assert waiting.latest(f"{key}.alone") == (b"43", True)
    for node in (first, second):
        node.restart()
    cluster.wait_whole()
