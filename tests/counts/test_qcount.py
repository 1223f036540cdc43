"""QCOUNT adds what all nodes have of a queue; each job is counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.core.jobs.jobid import is_made_by
from disqued.counts.collecting import FEATURE_COUNTS
from disqued.counts.counting import FRESH_MS
from disqued.counts.payload import JOBS, Question, pack_answer, pack_question
from disqued.counts.room import counts_of
from membership.stories import ScriptedNode

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalClient, LocalNode, Reply


def flat(reply: Reply) -> dict[str, int]:
    """The names and numbers of a reply."""
    assert isinstance(reply, list), reply
    names, numbers = reply[::2], reply[1::2]
    counted: dict[str, int] = {}
    for name, number in zip(names, numbers, strict=True):
        assert isinstance(name, bytes)
        assert isinstance(number, int)
        counted[name.decode()] = number
    return counted


def add(cluster: Cluster, member: Member, *options: str | int) -> bytes:
    """The ID of a new job with three copies."""
    client = member.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, *options)
    cluster.until(lambda: not client.silent)
    job = client.next_reply()
    assert isinstance(job, bytes)
    return job


def count(cluster: Cluster, member: Member, *options: str | int, queue: str = "mail") -> dict[str, int]:
    """What QCOUNT replies on a node."""
    client = member.client()
    client.send("QCOUNT", queue, *options)
    cluster.until(lambda: not client.silent, within_s=10)
    return flat(client.next_reply())


def jobs(counted: dict[str, int]) -> dict[str, int]:
    """The counts of jobs that are not zero."""
    return {name: number for name, number in counted.items() if number and not name.startswith("nodes-")}


def test_delayed_jobs_with_given_ids_are_counted_once(cluster: Cluster) -> None:
    for number, member in enumerate(cluster.members):
        add(cluster, member, "DELAY", 60, "ID", f"{number}".rjust(24, "A"))
    cluster.run(seconds=2)
    assert [jobs(count(cluster, member)) for member in cluster.members] == [{"delayed": 3}] * 3


def test_jobs_of_a_single_node_are_counted_by_what_they_wait_for(client: LocalClient) -> None:
    client.add("mail")
    client.add("mail", "body", "DELAY", 60)
    client.add("print")
    client.add("mail")
    client.call("GETJOB", "FROM", "mail")
    assert flat(client.call("QCOUNT", "mail")) == {
        "queued": 1,
        "leased": 1,
        "delayed": 1,
        "dead": 0,
        "held": 0,
        "records": 0,
        "nodes-answered": 1,
        "nodes-known": 1,
    }


def test_a_queue_that_does_not_exist_has_no_jobs_and_is_not_made(client: LocalClient) -> None:
    assert jobs(flat(client.call("QCOUNT", "nobody"))) == {}
    assert client.call("QSCAN") == [b"0", []]


def test_a_dead_letter_is_counted_as_dead_and_not_as_queued(client: LocalClient) -> None:
    client.add("mail")
    (job,) = client.take("mail")
    client.call("NACK", job, "DEAD")
    assert jobs(flat(client.call("QCOUNT", "mail.dead"))) == {"dead": 1}


def test_a_dead_letter_that_a_worker_has_is_leased(local: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    client.call("NACK", client.take("mail")[0], "DEAD")
    client.take("mail.dead")
    local.run(milliseconds=FRESH_MS + 100)
    assert jobs(flat(client.call("QCOUNT", "mail.dead"))) == {"leased": 1}


def test_finished_jobs_and_delivered_at_most_once_jobs_are_not_counted(client: LocalClient) -> None:
    client.add("mail", "body", "RETRY", 0)
    client.add("mail")
    for job in client.take("mail", count=2)[1:]:
        client.call("ACKJOB", job)
    assert jobs(flat(client.call("QCOUNT", "mail"))) == {}


def test_records_of_a_queue_are_counted_until_they_are_forgotten(local: LocalNode, client: LocalClient) -> None:
    for queue in ("mail", "mail", "print"):
        client.call("ACKJOB", client.add(queue, "body", "RETAIN", 60))
    assert jobs(flat(client.call("QCOUNT", "mail"))) == {"records": 2}
    local.run(seconds=61)
    assert jobs(flat(client.call("QCOUNT", "mail"))) == {}
    client.call("ACKJOB", client.add("mail", "body", "RETAIN", 60))
    client.call("DEBUG", "FLUSHALL")
    assert jobs(flat(client.call("QCOUNT", "mail"))) == {}


def test_each_node_counts_its_record_of_a_job(cluster: Cluster) -> None:
    first, *_ = cluster.members
    job = add(cluster, first, "REPLICATE", 2, "RETAIN", 60)
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=1)
    assert jobs(count(cluster, first)) == {"records": 2}


def test_each_job_of_a_cluster_is_counted_once_wherever_the_client_asks(cluster: Cluster) -> None:
    for member in cluster.members:
        for _ in range(2):
            add(cluster, member)
        add(cluster, member, "DELAY", 60)
    cluster.run(seconds=1)
    cluster.members[1].admin.call("GETJOB", "FROM", "mail")
    for member in cluster.members:
        counted = count(cluster, member)
        assert jobs(counted) == {"queued": 5, "leased": 1, "delayed": 3}
        assert (counted["nodes-answered"], counted["nodes-known"]) == (3, 3)


def test_a_job_that_was_given_back_for_later_is_counted_once_as_delayed(cluster: Cluster) -> None:
    first, *_ = cluster.members
    job = add(cluster, first)
    cluster.run(seconds=1)
    first.admin.take("mail")
    first.admin.call("NACK", job, "DELAY", 60)
    cluster.run(seconds=1)
    assert jobs(count(cluster, cluster.members[2])) == {"delayed": 1}
    assert is_made_by(job, first.id)


def test_delayed_jobs_of_a_dead_node_are_counted_by_their_other_holders(cluster: Cluster) -> None:
    first, second, third = cluster.members
    for _ in range(8):
        add(cluster, first, "DELAY", 300)
    cluster.run(seconds=1)
    first.crash()
    cluster.until(lambda: second.sees == third.sees == 1)
    counted = count(cluster, second)
    assert jobs(counted) == {"delayed": 8}
    assert (counted["nodes-answered"], counted["nodes-known"]) == (2, 3)


def test_a_job_that_is_run_now_is_no_longer_delayed(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = add(cluster, first, "DELAY", 300)
    cluster.run(seconds=1)
    first.admin.call("ENQUEUE", job)
    cluster.run(seconds=1)
    assert jobs(count(cluster, second)) == {"queued": 1}


def test_a_node_that_does_not_answer_in_time_is_missing(cluster: Cluster) -> None:
    first, second, third = cluster.members
    third.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    second.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    cluster.lose("COUNTED", by=third)
    client = first.client()
    client.send("QCOUNT", "mail", "TIMEOUT", 700)
    cluster.run(milliseconds=600)
    assert client.silent
    cluster.run(milliseconds=250)
    counted = flat(client.next_reply())
    assert jobs(counted) == {"queued": 1}
    assert (counted["nodes-answered"], counted["nodes-known"]) == (2, 3)


def test_no_node_is_waited_for_that_fails_meanwhile(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.lose("COUNTED", by=third)
    client = first.client()
    client.send("QCOUNT", "mail", "TIMEOUT", 60_000)
    cluster.run(milliseconds=300)
    third.crash()
    cluster.until(lambda: not client.silent, within_s=30)
    assert flat(client.next_reply())["nodes-answered"] == 2


def test_nodes_without_the_feature_are_not_asked(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    peer = first.node.state.view.peers[second.id]
    peer.features &= ~FEATURE_COUNTS
    cluster.forget_sent()
    client = first.client()
    client.send("QCOUNT", "mail")
    cluster.run(milliseconds=100)
    assert flat(client.next_reply())["nodes-answered"] == 2
    assert len(cluster.sent("COUNTASK")) == 1


def test_many_questions_within_a_second_cost_one_pass(pair: Cluster) -> None:
    first, second = pair.members
    second.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    assert count(pair, first)["queued"] == 1
    second.admin.add("mail", "body", "REPLICATE", 1, "RETRY", 0)
    for _ in range(10):
        assert count(pair, first)["queued"] == 1, "the figures of a moment ago are good enough"
        assert not counts_of(second.node.state).counting.active
    pair.run(milliseconds=FRESH_MS + 100)
    assert count(pair, first)["queued"] == 2


def test_other_clients_are_served_while_many_jobs_are_counted(local: LocalNode, client: LocalClient) -> None:
    for number in range(9000):
        client.send("ADDJOB", "mail", number, 0)
    client.replies()
    other = local.client()
    asking = local.client()
    asking.send("QCOUNT", "mail")
    assert asking.silent
    assert other.call("QLEN", "mail") == 9000
    local.run(milliseconds=50)
    assert flat(asking.next_reply())["queued"] == 9000


def test_a_client_that_disconnects_leaves_nothing_behind(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.lose("COUNTED", by=third)
    client = first.client()
    client.send("QCOUNT", "mail", "TIMEOUT", 1000)
    client.disconnect()
    cluster.run(seconds=2)
    assert not first.node.state.long_commands
    assert count(cluster, first, "TIMEOUT", 500)["nodes-answered"] == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("TIMEOUT",), "ERR syntax error"),
        (("SOON", 5), "ERR syntax error"),
        (("TIMEOUT", "x"), "ERR value is not an integer or out of range"),
        (("TIMEOUT", 0), "ERR timeout must be 1 to 60000 ms, not 0"),
        (("TIMEOUT", 60_001), "ERR timeout must be 1 to 60000 ms, not 60001"),
    ],
)
def test_wrong_options_are_refused(client: LocalClient, words: tuple[str | int, ...], error: str) -> None:
    assert client.raw("QCOUNT", "mail", *words) == f"-{error}\r\n".encode()


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (kinds.COUNTASK, b""),
        (kinds.COUNTASK, b"x" * 12),
        (kinds.COUNTASK, pack_question(Question(1, JOBS, 0, b""))),
        (kinds.COUNTASK, pack_question(Question(1, 99, 0, b"mail"))),
        (kinds.COUNTED, b""),
        (kinds.COUNTED, pack_answer(1, [])),
        (kinds.COUNTED, pack_answer(1, [1, 2]) + b"x"),
        (kinds.COUNTED, pack_answer(1, [1] * 65)),
        (kinds.COUNTED, pack_answer(1, [1, 2, (1 << 64) - 1])),
        (kinds.COUNTED, pack_answer(77, [1, 2, 3, 4])),
    ],
)
def test_malformed_and_unexpected_frames_are_ignored(local: LocalNode, kind: int, payload: bytes) -> None:
    node = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_COUNTS, 17711, NOBODY, b"only-run"))
    node.join()
    node.deliver(node.link, node.writer.other(kind, payload))
    local.run(seconds=1)
    node.collect()
    assert not [frame for frame in node.wire.frames if frame.kind == kinds.COUNTED]
    client = local.client()
    client.send("QCOUNT", "mail", "TIMEOUT", 100)
    local.run(milliseconds=300)
    assert jobs(flat(client.next_reply())) == {}


def test_huge_figures_of_another_node_are_not_added(local: LocalNode) -> None:
    node = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_COUNTS, 17711, NOBODY, b"only-run"))
    node.join()
    client = local.client()
    client.send("QCOUNT", "mail", "TIMEOUT", 100)
    node.deliver(node.link, node.writer.other(kinds.COUNTED, pack_answer(1, [(1 << 64) - 1] * 4)))
    local.run(milliseconds=300)
    assert jobs(flat(client.next_reply())) == {}


def test_a_name_that_no_frame_can_have_is_refused_and_breaks_no_link(cluster: Cluster) -> None:
    one = cluster.members[0]
    assert one.client().raw("QCOUNT", "x" * 70_000) == b"-ERR QCOUNT takes names of at most 65536 bytes\r\n"
    client = one.client()
    client.send("QCOUNT", "x" * 65_536)
    cluster.run(seconds=1)
    assert flat(client.next_reply())["nodes-answered"] == 3
