"""ACKJOB RESULT and COPIES: what a worker gives with an acknowledgement is read at any node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.bus import kinds
from disqued.core.fates.ended import pack_ended
from disqued.core.fates.fate import DELETED, DONE, MOVED, WAITING, Fate, pack_fate
from disqued.core.fates.record import united
from disqued.errors import ResultNotKept
from disqued.fates.payload import pack_answer
from disqued.testing.local import encode
from fates.asking import add, elsewhere, result, scripted

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster
    from disqued.testing.local import LocalClient, LocalNode
    from membership.stories import ScriptedNode

JOB = b"D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"


def stored(local: LocalNode, job_id: bytes) -> bytes | None:
    """The result that a node knows."""
    return local.node.state.events.fate_of(job_id).result


# --- one node -----------------------------------------------------------------------------------------------------


def test_a_result_is_kept_with_the_record(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    assert client.call("ACKJOB", job, "RESULT", "42") == 1
    client.send("RESULT", job)
    ended_ms = local.now_ms
    local.run(milliseconds=50)
    assert client.next_reply() == [b"done", ended_ms, 0, b"42"]
    client.send("WAITJOB", job, "WITHRESULT", "TIMEOUT", 100)
    local.run(milliseconds=50)
    assert client.next_reply() == [[job, b"done", b"42"]]


@pytest.mark.parametrize("size", [0, 40, 65536])
def test_a_result_may_have_any_bytes_up_to_64_kib(local: LocalNode, client: LocalClient, size: int) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    assert client.call("ACKJOB", job, "RESULT", b"D" * size) == 1
    assert stored(local, job) == b"D" * size


def test_a_result_that_nobody_would_keep_is_refused(client: LocalClient) -> None:
    job = client.add("q")
    reply = client.call("ACKJOB", job, "RESULT", "42")
    assert str(reply) == str(ResultNotKept()) == "ERR nobody would keep it: add the job with RETAIN"
    assert client.show(job)["state"] == b"queued"


def test_a_watched_job_keeps_its_result(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "WITHRESULT", "TIMEOUT", 0)
    local.run(milliseconds=50)
    assert client.call("ACKJOB", job, "RESULT", "42") == 1
    local.run(milliseconds=50)
    assert waiter.next_reply() == [[job, b"done", b"42"]]


def test_the_first_result_stays(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    client.call("ACKJOB", job, "RESULT", "first")
    local.run(milliseconds=50)
    assert client.call("ACKJOB", job, "RESULT", "second") == 0
    assert stored(local, job) == b"first"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["RESULT", b"x" * 65537], "ERR RESULT must have at most 65536 bytes, not 65537"),
        (["RESULT"], "ERR syntax"),
        (["COPIES", 0, "TIMEOUT", 1], "ERR COPIES must be between"),
        (["COPIES", 1], "ERR COPIES needs a TIMEOUT"),
        (["TIMEOUT", 1], "ERR COPIES needs a TIMEOUT"),
        (["COPIES", 1, "TIMEOUT", -1], "ERR timeout is negative"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_options_that_are_wrong_are_refused(client: LocalClient, options: list[str | bytes | int], error: str) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    assert str(client.call("ACKJOB", job, *options)).startswith(error)
    assert str(client.call("ACKJOB", job, JOB, "RESULT", "x")).startswith("ERR RESULT takes one job ID")
    assert client.show(job)["state"] == b"queued"


def test_a_successor_keeps_the_result(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    client.call("MOVEJOB", job, "TO", "r")
    client.call("ACKJOB", *client.take("r"), "RESULT", "42")
    assert stored(local, job) == b"42"


# --- several nodes ------------------------------------------------------------------------------------------------


def test_a_result_is_read_where_it_was_not_written(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0], "RETAIN", 60)
    holder = cluster.copies(job)[1]
    assert holder.admin.call("ACKJOB", job, "RESULT", "42") == 1
    cluster.run(seconds=3)
    assert not cluster.copies(job)
    for member in cluster.members:
        reply = result(cluster, member, job)
        assert isinstance(reply, list)
        assert (reply[0], reply[3]) == (b"done", b"42")


def test_each_holder_keeps_the_result(cluster: Cluster) -> None:
    one, *_ = cluster.members
    job = add(cluster, one, "RETAIN", 60, copies=3)
    one.admin.call("ACKJOB", job, "RESULT", "42")
    cluster.run(seconds=3)
    assert [stored(member, job) for member in cluster.members] == [b"42"] * 3


def test_a_result_given_at_a_node_without_the_job_reaches_the_holders(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0], "RETAIN", 60)
    holders = cluster.copies(job)
    assert elsewhere(cluster, job).admin.call("ACKJOB", job, "RESULT", "42") == 0
    cluster.run(seconds=5)
    assert [stored(member, job) for member in holders] == [b"42"] * 2
    assert not cluster.copies(job)


def test_a_result_given_during_a_partition_reaches_the_holders_later(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0], "RETAIN", 3600)
    holders = cluster.copies(job)
    other = elsewhere(cluster, job)
    cluster.partition([other], holders)
    other.admin.call("ACKJOB", job, "RESULT", "42")
    cluster.run(seconds=1000)
    cluster.heal()
    cluster.run(seconds=30)
    assert [stored(member, job) for member in holders] == [b"42"] * 2


@pytest.mark.parametrize("given_at_a_holder", [True, False])
def test_a_result_with_a_greater_claim_replaces_another_one_while_a_holder_is_down(
    cluster: Cluster, given_at_a_holder: bool
) -> None:
    """The other holders have confirmed the earlier result, and the job is not collected before the last one has."""
    one, other, lost = cluster.members
    holders = 3 if given_at_a_holder else 2
    job = add(cluster, other, "RETAIN", 3600, copies=holders)
    if not given_at_a_holder:
        one = elsewhere(cluster, job)
        other, lost = cluster.copies(job)
    lost.crash()
    for claim, text in ((7, "first"), (9, "second"), (8, "third")):
        one.admin.call("ACKJOB", job, "CLAIM", claim, "RESULT", text)
        cluster.run(seconds=20)
        assert [stored(member, job) for member in (one, other)] == [b"first" if claim == 7 else b"second"] * 2
    lost.restart()
    cluster.run(seconds=200)
    assert stored(lost, job) in {b"second", None}
    assert not cluster.copies(job)


def test_a_leaving_node_passes_a_result_on(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0], "RETAIN", 60)
    holders = cluster.copies(job)
    other = elsewhere(cluster, job)
    other.tell("CLUSTER", "LEAVING", "YES")
    cluster.run(seconds=2)
    other.admin.call("ACKJOB", job, "RESULT", "42")
    cluster.run(seconds=5)
    assert [stored(member, job) for member in holders] == [b"42"] * 2


def test_copies_answers_when_the_holders_know(cluster: Cluster) -> None:
    one, *_ = cluster.members
    job = add(cluster, one, copies=3)
    client = one.client()
    client.send("ACKJOB", job, "COPIES", 3, "TIMEOUT", 1000)
    assert client.silent
    cluster.until(lambda: not client.silent, within_s=1)
    assert client.next_reply() == 1
    assert not cluster.members[0].node.state.lifecycle.watched


def test_copies_answers_at_a_node_without_the_job(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0])
    other = elsewhere(cluster, job)
    client = other.client()
    client.send("ACKJOB", job, "COPIES", 2, "TIMEOUT", 1000)
    cluster.until(lambda: not client.silent, within_s=1)
    assert client.next_reply() == 0


def test_an_acknowledgement_that_too_few_holders_know_stands_and_spreads(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, "RETAIN", 600, copies=3)
    cluster.partition([one, two], [three])
    client = one.client()
    client.send("ACKJOB", job, "RESULT", "42", "COPIES", 3, "TIMEOUT", 500)
    cluster.run(seconds=1)
    known = "NOREPL 2 of 3 holders know that the job has ended; it is acknowledged, and others follow"
    assert str(client.next_reply()) == known
    cluster.heal()
    cluster.run(seconds=30)
    assert stored(three, job) == b"42"
    assert not cluster.copies(job)


def test_a_client_that_disconnects_while_it_waits_for_copies_is_forgotten(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, copies=3)
    cluster.partition([one], [two, three])
    client = one.client()
    client.send("ACKJOB", job, "COPIES", 3, "TIMEOUT", 0)
    cluster.run(seconds=1)
    client.disconnect()
    cluster.run(seconds=1)
    assert not one.node.state.lifecycle.watched


# --- claims -------------------------------------------------------------------------------------------------------


def claimed(client: LocalClient) -> tuple[bytes, int]:
    """A job and its claim."""
    reply = client.call("GETJOB", "WITHCLAIM", "FROM", "q")
    assert isinstance(reply, list)
    (row,) = reply
    assert isinstance(row, list)
    job, claim = row[1], row[row.index(b"claim") + 1]
    assert isinstance(job, bytes)
    assert isinstance(claim, int)
    return job, claim


def test_the_record_has_the_claim(local: LocalNode, client: LocalClient) -> None:
    client.add("q", "body", "RETAIN", 60)
    job, claim = claimed(client)
    client.call("ACKJOB", job, "CLAIM", claim, "RESULT", "42")
    client.send("RESULT", job)
    ended_ms = local.now_ms
    local.run(milliseconds=50)
    assert client.next_reply() == [b"done", ended_ms, claim, b"42"]


def test_a_holder_that_knows_a_greater_claim_ignores_the_result_and_says_so(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, "RETAIN", 600, "RETRY", 5, copies=3)
    _, stale = claimed(one.admin)
    cluster.run(milliseconds=100)
    cluster.partition([one], [two, three])
    cluster.run(seconds=8)
    (again,) = [member for member in (two, three) if member.client().call("QLEN", "q")]
    _, newer = claimed(again.admin)
    assert newer > stale
    one.admin.call("ACKJOB", job, "CLAIM", stale, "RESULT", "stale")
    cluster.run(seconds=1)
    cluster.heal()
    cluster.run(seconds=20)
    assert [stored(member, job) for member in cluster.members] == [None] * 3
    assert not cluster.copies(job)


def test_result_stands_when_the_job_was_queued_again_but_not_delivered(cluster: Cluster) -> None:
    """The holders know the claim and that the job was queued again, but no worker got it under a greater claim."""
    one, two, three = cluster.members
    job = add(cluster, one, "RETAIN", 600, "RETRY", 5, copies=3)
    _, claim = claimed(one.admin)
    assert one.admin.call("WORKING", job, "CLAIM", claim) == 5
    cluster.run(milliseconds=100)
    cluster.partition([one], [two, three])
    cluster.run(seconds=8)
    assert {member.client().call("QLEN", "q") for member in (two, three)} == {0, 1}
    one.admin.call("ACKJOB", job, "CLAIM", claim, "RESULT", "42")
    cluster.run(seconds=1)
    cluster.heal()
    cluster.run(seconds=20)
    assert [stored(member, job) for member in cluster.members] == [b"42"] * 3
    assert not cluster.copies(job)


# --- late answers about an earlier result -------------------------------------------------------------------------


def replaced(client: LocalClient) -> tuple[bytes, Fate, Fate]:
    """A job whose first result is known, and the fates with its first and its second result."""
    job = client.add("q", "body", "RETAIN", 60, "REPLICATE", 1)
    client.call("ACKJOB", job, "CLAIM", 7, "RESULT", "first")
    return job, Fate(DONE, 1, 7, 0, None, b"first"), Fate(DONE, 2, 9, 0, None, b"second")


def told(peer: ScriptedNode, job: bytes, fate: Fate) -> None:
    """Tell the node what the peer knows about a job."""
    peer.deliver(peer.link, peer.writer.other(kinds.JOBTOLD, pack_answer(job, fate)))


def test_copies_counts_no_holder_that_knows_an_earlier_result(local: LocalNode, client: LocalClient) -> None:
    peer = scripted(local)
    job, earlier, later = replaced(client)
    client.send("ACKJOB", job, "CLAIM", 9, "RESULT", "second", "COPIES", 2, "TIMEOUT", 1000)
    told(peer, job, earlier)
    local.run(milliseconds=100)
    assert client.silent
    told(peer, job, later)
    assert client.next_reply() == 0


def test_a_holder_whose_job_is_collected_counts_as_a_copy(local: LocalNode, client: LocalClient) -> None:
    scripted(local)
    job, *_ = replaced(client)
    client.send("ACKJOB", job, "CLAIM", 9, "RESULT", "second", "COPIES", 1, "TIMEOUT", 1000)
    local.run(milliseconds=100)
    assert client.next_reply() == 0


def test_a_node_answers_with_the_later_result_that_it_has(local: LocalNode, client: LocalClient) -> None:
    peer = scripted(local)
    job, earlier, _ = replaced(client)
    client.call("ACKJOB", job, "CLAIM", 9, "RESULT", "second")
    ended_ms = local.now_ms
    for request, expected in (
        (("RESULT", job), [b"done", ended_ms, 9, b"second"]),
        (("WAITJOB", job, "WITHRESULT", "TIMEOUT", 1000), [[job, b"done", b"second"]]),
    ):
        local.node.client_bytes(client.session, encode(*request), local.now_ms, 0)
        told(peer, job, earlier)
        local.run(milliseconds=50)
        assert client.next_reply() == expected


# --- what two nodes know ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "wins"),
    [
        (Fate(DONE, 5), Fate(DELETED, 1), Fate(DONE, 5)),
        (Fate(MOVED, 5, 0, 0, JOB), Fate(DELETED, 1), Fate(MOVED, 5, 0, 0, JOB)),
        (Fate(DONE, 5, 0, 0, None, b"a"), Fate(DONE, 1), Fate(DONE, 5, 0, 0, None, b"a")),
        (Fate(DONE, 5, 0, 0, None, b"a"), Fate(DONE, 1, 0, 0, None, b"b"), Fate(DONE, 1, 0, 0, None, b"b")),
        (Fate(DONE, 5, 0, 0, None, b"a"), Fate(DONE, 5, 0, 0, None, b"b"), Fate(DONE, 5, 0, 0, None, b"a")),
        (Fate(DONE, 5, 7, 0, None, b"a"), Fate(DONE, 1, 6, 0, None, b"b"), Fate(DONE, 5, 7, 0, None, b"a")),
        (Fate(DONE, 5, 7), Fate(DONE, 1, 6, 0, None, b"b"), Fate(DONE, 5, 7)),
        (Fate(DONE, 5, 7), Fate(DONE, 1, 0, 0, None, b"b"), Fate(DONE, 1, 7, 0, None, b"b")),
    ],
    ids=range(8),
)
def test_two_nodes_come_to_the_same_end_whoever_is_first(one: Fate, other: Fate, wins: Fate) -> None:
    assert pack_fate(united(one, other)) == pack_fate(united(other, one)) == pack_fate(wins)


# --- messages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        JOB,
        pack_ended(JOB, Fate(DONE), 2, 0)[:-1],
        pack_ended(JOB, Fate(DONE), 2, 0) + b"x",
        pack_ended(b"X" * 40, Fate(DONE), 2, 0),
        pack_ended(JOB, Fate(WAITING), 2, 0),
    ],
    ids=range(6),
)
def test_a_malformed_setrec_has_no_answer(local: LocalNode, payload: bytes) -> None:
    peer = scripted(local)
    peer.deliver(peer.link, peer.writer.other(kinds.SETREC, payload))
    local.run(seconds=1)
    peer.collect()
    link = peer.dialed_link
    assert link is not None
    carrier = link.carrier
    assert not [frame for frame in getattr(carrier, "frames") if frame.kind == kinds.GOTACK]  # noqa: B009 - of the wire
