"""Jobs go to where a client waits for them: at once, also when it has been waiting for long, and no further."""

from __future__ import annotations

from disqued.federation.interest import federation_of
from disqued.testing.cluster import Cluster
from disqued.testing.local import encode
from federation.moving import added, asked, holders, jobs_at, length_at, moves, needjobs, received, waiting
from support.stories import tell


def test_queued_job_is_sent_to_the_node_that_asks(pair: Cluster) -> None:
    first, second = pair.members
    job = added(first)
    worker = waiting(second)
    pair.run(milliseconds=2)
    assert received(worker) == [job]
    assert second.admin.stat("mail")["import-from"] == [first.id]
    assert second.admin.stat("mail")["import-rate"] == 20
    assert second.admin.call("QSCAN", "IMPORTRATE", 20) == [b"0", [b"mail"]]
    assert second.admin.call("QSCAN", "IMPORTRATE", 21) == [b"0", []]
    assert first.admin.stat("mail")["jobs-out"] == second.admin.stat("mail")["jobs-in"] == 1
    pair.run(seconds=6)
    assert second.admin.stat("mail")["import-from"] == []
    assert second.admin.stat("mail")["import-rate"] == 0


def test_client_that_has_waited_for_minutes_gets_a_job_within_a_tenth_of_a_second(cluster: Cluster) -> None:
    _, second, third = cluster.members
    worker = waiting(third)
    cluster.run(seconds=600)
    for _ in range(5):
        job = added(second)
        cluster.run(milliseconds=100)
        assert received(worker) == [job]
        worker.send("GETJOB", "FROM", "mail")
        cluster.run(seconds=33.3)
    assert cluster.sent("ENOUGH") == []


def test_burst_of_jobs_reaches_many_waiting_clients_as_soon(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    workers = [waiting(second) for _ in range(200)]
    cluster.run(seconds=600)
    jobs = [added(first) for _ in range(200)]
    cluster.run(milliseconds=100)
    assert sorted(job for worker in workers for job in received(worker)) == sorted(jobs)


def test_many_jobs_take_few_messages(pair: Cluster) -> None:
    first, second = pair.members
    total = 1000
    for _ in range(total):
        added(first)
    worker = second.client()
    got = 0
    while got < total:
        worker.send("GETJOB", "FROM", "mail")
        pair.until(lambda: not worker.silent, within_s=1)
        got += len(received(worker))
    assert len(pair.sent("NEEDJOBS")) + len(pair.sent("YOURJOBS")) < total // 10


def test_jobs_that_several_clients_add_in_one_turn_leave_in_one_message(pair: Cluster) -> None:
    first, second = pair.members
    tell(first, needjobs(second.node.state.bus, b"mail", 5))
    request = encode("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    for client in [first.client() for _ in range(3)]:
        first.node.client_bytes(client.session, request, first.now_ms, 0)
    assert moves(pair) == []
    first.flush()
    assert moves(pair) == [(1, 2, 3)]


def test_jobs_of_the_turn_in_which_a_node_ends_stay_in_its_file(pair: Cluster) -> None:
    first, second = pair.members
    tell(first, needjobs(second.node.state.bus, b"mail", 5))
    request = encode("ADDJOB", "mail", "body", 0, "REPLICATE", 1, "RETRY", 0)
    client = first.client()
    first.node.client_bytes(client.session, request, first.now_ms, 0)
    assert first.node.end(first.now_ms)
    first.flush()
    assert moves(pair) == []


def test_local_clients_are_served_first(pair: Cluster) -> None:
    first, second = pair.members
    far = waiting(second)
    pair.run(seconds=60)
    near = waiting(first)
    jobs = [added(first), added(first)]
    pair.run(milliseconds=10)
    assert received(near) == jobs[:1]
    assert received(far) == jobs[1:]


def test_nodes_get_jobs_in_the_order_in_which_they_asked(cluster: Cluster) -> None:
    first, second, third = cluster.members
    workers = [waiting(third), waiting(second)]
    cluster.run(seconds=10)
    jobs = [added(first), added(first)]
    cluster.run(milliseconds=10)
    assert [received(worker) for worker in workers] == [[jobs[0]], [jobs[1]]]


def test_jobs_queued_together_are_shared_among_the_nodes_that_asked(cluster: Cluster) -> None:
    first, second, third = cluster.members
    workers = [waiting(member) for member in (second, third) for _ in range(2)]
    cluster.run(seconds=10)
    jobs = [added(first, "DELAY", 1) for _ in range(4)]
    cluster.run(seconds=1.2)
    assert sorted(job for worker in workers for job in received(worker)) == sorted(jobs)


def test_job_that_two_nodes_asked_for_moves_to_one_of_them_once(pair: Cluster) -> None:
    first, second = pair.members
    workers = [waiting(first), waiting(second)]
    pair.run(seconds=60)
    jobs = [added(first), added(first)]
    pair.run(seconds=2)
    assert [received(worker) for worker in workers] == [[jobs[0]], [jobs[1]]]
    assert moves(pair) == [(1, 2, 1)]


def test_nodes_that_both_polled_do_not_exchange_a_job_forever(cluster: Cluster) -> None:
    for member in cluster.members:
        member.admin.take("mail")
    cluster.run(milliseconds=10)
    added(cluster.members[0])
    cluster.run(seconds=1)
    assert len(moves(cluster)) <= len(cluster.members) * (len(cluster.members) - 1)
    cluster.forget_sent()
    cluster.run(seconds=5)
    assert moves(cluster) == []
    assert sum(length_at(member) for member in cluster.members) == 1


def test_job_moves_to_another_waiting_client_when_its_client_has_gone(cluster: Cluster) -> None:
    first, second, third = cluster.members
    gone = waiting(second)
    cluster.run(seconds=10)
    third_client = waiting(third)
    cluster.run(seconds=10)
    gone.disconnect()
    job = added(first)
    cluster.run(milliseconds=100)
    assert received(third_client) == [job]
    assert moves(cluster)[0] == (1, 2, 1)


def test_request_is_forgotten_when_the_client_has_gone(pair: Cluster) -> None:
    first, second = pair.members
    gone = waiting(second)
    pair.run(seconds=10)
    gone.disconnect()
    pair.run(seconds=1.5)
    added(first)
    pair.run(seconds=5)
    assert moves(pair) == []
    assert length_at(first) == 1


def test_request_expires_without_enough(pair: Cluster) -> None:
    first, second = pair.members
    second.admin.take("mail")
    pair.lose("ENOUGH")
    pair.run(seconds=39)
    assert federation_of(first.node.state).requested_queues == 1
    pair.run(seconds=2)
    assert federation_of(first.node.state).requested_queues == 0
    added(first)
    pair.run(seconds=5)
    assert moves(pair) == []


def test_idle_queue_is_kept_while_other_nodes_want_its_jobs(pair: Cluster) -> None:
    first, second = pair.members
    worker = waiting(second)
    pair.run(seconds=1000)
    job = added(first)
    pair.run(milliseconds=10)
    assert received(worker) == [job]
    worker.send("ACKJOB", job)
    pair.run(seconds=400)
    assert first.admin.stat("mail") == second.admin.stat("mail") == {}


def test_queue_paused_in_output_exports_no_jobs_until_it_is_resumed(pair: Cluster) -> None:
    first, second = pair.members
    worker = waiting(second)
    pair.run(seconds=1)
    first.admin.call("PAUSE", "mail", "out")
    job = added(first)
    pair.run(seconds=5)
    assert moves(pair) == []
    first.admin.call("PAUSE", "mail", "none")
    pair.run(seconds=0.3)
    assert received(worker) == [job]


def test_queue_paused_in_input_imports_jobs(pair: Cluster) -> None:
    first, second = pair.members
    second.admin.call("PAUSE", "mail", "in")
    worker = waiting(second)
    job = added(first, "RETRY", 0)
    pair.run(milliseconds=10)
    assert received(worker) == [job]


def test_no_job_is_exported_to_a_leaving_node(pair: Cluster) -> None:
    first, second = pair.members
    waiting(second)
    pair.run(seconds=1)
    second.admin.call("CLUSTER", "LEAVING", "yes")
    pair.run(seconds=20)
    pair.forget_sent()
    added(first)
    pair.run(seconds=1)
    assert [move for move in moves(pair) if move[0] == 1] == []


def test_jobs_wait_while_a_node_that_asked_is_unreachable(pair: Cluster) -> None:
    first, second = pair.members
    worker = waiting(second)
    pair.run(seconds=1)
    peer = first.node.state.view.peers[second.id]
    assert peer.link is not None
    peer.link.congested = True
    job = added(first, "RETRY", 0)
    pair.run(milliseconds=50)
    assert jobs_at(first) == 1
    peer.link.congested = False
    pair.run(seconds=1)
    assert received(worker) == [job]


def test_large_jobs_are_sent_in_several_frames(pair: Cluster) -> None:
    first, second = pair.members
    body = b"x" * 600_000
    jobs = [first.admin.add("mail", body, "REPLICATE", 1) for _ in range(10)]
    worker = second.client()
    got: list[bytes] = []
    while len(got) < len(jobs):
        worker.send("GETJOB", "FROM", "mail")
        pair.until(lambda: not worker.silent, within_s=1)
        got += received(worker)
    assert got == jobs
    assert max(count for _, _, count in moves(pair)) <= 2


def test_imported_jobs_keep_their_order_of_creation(pair: Cluster) -> None:
    first, second = pair.members
    jobs = []
    for number in range(10):
        jobs.append(added(pair.members[number % 2]))
        pair.run(milliseconds=3)
    worker = second.client()
    got: list[bytes] = []
    while len(got) < 5:
        worker.send("GETJOB", "FROM", "mail")
        got += received(worker)
    assert got == jobs[1::2]
    for _ in range(5):
        worker.send("GETJOB", "FROM", "mail")
        pair.until(lambda: not worker.silent, within_s=1)
        got += received(worker)
    assert got[5:] == jobs[0::2]
    assert first.admin.call("QLEN", "mail") == 0
    assert len(asked(pair, by=second)) > 0


def test_moved_job_has_two_holders_until_it_is_acknowledged(pair: Cluster) -> None:
    first, second = pair.members
    job = added(first, "RETRY", 10)
    worker = waiting(second)
    pair.run(milliseconds=5)
    assert received(worker) == [job]
    assert holders(first, job) == holders(second, job) == {first.id, second.id}
    assert pair.sent("WILLQUEUE") == []
    second.admin.call("ACKJOB", job)
    pair.run(milliseconds=200)
    assert pair.copies(job) == []


def test_moved_job_acknowledged_on_a_third_node_is_forgotten_everywhere(cluster: Cluster) -> None:
    first = cluster.members[0]
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 2, "RETRY", 5)
    cluster.until(lambda: not client.silent, within_s=1)
    job = client.next_reply()
    assert isinstance(job, bytes)
    (third,) = [member for member in cluster.members if member not in cluster.copies(job)]
    worker = waiting(third)
    cluster.run(milliseconds=5)
    assert received(worker) == [job]
    cluster.run(milliseconds=5)
    assert [holders(member, job) for member in cluster.members] == [{member.id for member in cluster.members}] * 3
    worker.send("ACKJOB", job)
    cluster.run(seconds=1)
    assert cluster.copies(job) == []
    cluster.run(seconds=20)
    assert sum(length_at(member) for member in cluster.members) == 0


def test_moved_job_is_requeued_once_when_its_worker_has_gone(pair: Cluster) -> None:
    first, second = pair.members
    job = added(first, "RETRY", 10)
    lost = waiting(second)
    pair.run(milliseconds=5)
    assert received(lost) == [job]
    lost.disconnect()
    pair.run(seconds=12)
    assert length_at(first) + length_at(second) == 1


def test_copy_of_the_exporter_is_not_requeued_before_the_moved_job(pair: Cluster) -> None:
    first, second = pair.members
    job = added(first, "RETRY", 10)
    pair.run(seconds=9)
    worker = waiting(second)
    pair.run(milliseconds=5)
    assert received(worker) == [job]
    pair.run(seconds=9)
    assert length_at(first) + length_at(second) == 0
    worker.send("ACKJOB", job)
    pair.run(seconds=5)
    assert pair.copies(job) == []


def test_at_most_once_job_moves(pair: Cluster) -> None:
    first, second = pair.members
    job = added(first, "RETRY", 0)
    worker = waiting(second)
    pair.run(milliseconds=5)
    assert received(worker) == [job]
    assert pair.copies(job) == [second]
    assert holders(second, job) is None
    shown = second.admin.call("INFO", "federation")
    assert isinstance(shown, bytes)
    assert [line for line in shown.splitlines() if b"import" in line] == [
        b"jobs_imported:1",
        b"imported_at_most_once:1",
    ]
    pair.run(seconds=60)
    assert length_at(first) + length_at(second) == 0
    worker.send("ACKJOB", job)
    assert pair.copies(job) == []


def test_at_most_once_jobs_are_never_delivered_twice_when_links_break(pair: Cluster) -> None:
    first, second = pair.members
    jobs = [added(first, "RETRY", 0) for _ in range(60)]
    got: list[bytes] = []
    for number in range(40):
        for member in (first, second):
            got += member.admin.take("mail", count=2) if number % 3 else []
        if number % 4 == 0:
            pair.network.reset(first, second)
        pair.run(milliseconds=number % 7 * 20)
    pair.run(seconds=5)
    for member in (first, second):
        got += member.admin.take("mail", count=100)
    assert len(got) == len(set(got))
    assert set(got) <= set(jobs)


def test_at_most_once_job_is_not_sent_on_a_connection_that_has_no_answer_yet(pair: Cluster) -> None:
    first, second = pair.members
    worker = waiting(second)
    pair.run(seconds=1)
    for one, other in ((first, second), (second, first)):
        pair.cut(one, other)
    pair.network.reset(first, second)
    pair.run(milliseconds=300)
    assert first.node.state.view.peers[second.id].link is not None
    job = added(first, "RETRY", 0)
    pair.run(seconds=1)
    assert pair.copies(job) == [first]

    pair.heal()
    pair.run(seconds=5)
    assert received(worker) == [job]


def test_at_most_once_job_is_not_sent_without_a_link(pair: Cluster) -> None:
    first, second = pair.members
    worker = waiting(second)
    pair.run(seconds=1)
    second.crash(silent=True)
    pair.run(seconds=40)
    job = added(first, "RETRY", 0)
    pair.run(seconds=2)
    assert pair.copies(job) == [first]
    assert length_at(first) == 1
    assert worker.silent
