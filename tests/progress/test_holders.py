"""The progress log of a job with several holders: copies of entries, what a new worker finds, and lost messages."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, LocalNode
from membership.stories import ScriptedNode
from progress.test_log import CLAIM, LATER, shown
from support.stories import added


def add(cluster: Cluster, copies: int = 3) -> bytes:
    job_id = added(cluster, "REPLICATE", copies, "RETRY", 300)
    cluster.members[0].admin.take("mail")
    return job_id


def log(
    cluster: Cluster, member: Member, job_id: bytes, seq: int, entry: str, *options: str | int, claim: int = CLAIM
) -> str:
    """Send LOGJOB, and wait for the reply."""
    client = member.client()
    client.send("LOGJOB", job_id, "CLAIM", claim, "SEQ", seq, entry, *options)
    cluster.until(lambda: not client.silent)
    return str(client.next_reply())


def read(cluster: Cluster, member: Member, job_id: bytes) -> list[tuple[int, int, bytes]]:
    client = member.client()
    client.send("SHOWLOG", job_id)
    cluster.until(lambda: not client.silent)
    reply = client.next_reply()
    assert isinstance(reply, list), reply
    return [(claim, seq, entry) for claim, seq, _, entry in reply]  # type: ignore[misc, str-unpack]


def lines(member: Member, job_id: bytes) -> list[int]:
    """The numbers of the entries that a member has, with gaps."""
    found = member.node.state.lifecycle.logs.get(job_id)
    return [] if found is None else sorted(seq for _, seq, _, _ in found.lines())


def test_the_client_is_answered_when_the_majority_of_the_holders_has_the_entry(cluster: Cluster) -> None:
    job_id = add(cluster)
    assert log(cluster, cluster.members[0], job_id, 0, "begun") == "2"
    cluster.run(milliseconds=50)
    assert [lines(member, job_id) for member in cluster.members] == [[0], [0], [0]]


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_the_client_can_choose_how_many(cluster: Cluster, copies: int) -> None:
    assert log(cluster, cluster.members[0], add(cluster), 0, "begun", "COPIES", copies) == str(copies)


def test_an_entry_with_too_few_copies_stays_and_the_same_request_succeeds_later(cluster: Cluster) -> None:
    first, *others = cluster.members
    job_id = add(cluster)
    cluster.partition([first], others)
    reply = log(cluster, first, job_id, 0, "begun", "TIMEOUT", 2000)
    assert reply.startswith("NOREPL 1 of 2 holders have the entry")
    cluster.heal()
    cluster.run(seconds=5)
    assert log(cluster, first, job_id, 0, "begun") == "2"


def test_lost_messages_are_repeated(cluster: Cluster) -> None:
    job_id = add(cluster)
    cluster.lose("LOGENTRY", count=2)
    cluster.lose("GOTENTRY", count=1)
    assert log(cluster, cluster.members[0], job_id, 0, "begun", "COPIES", 3) == "3"


def test_a_holder_that_missed_an_entry_asks_when_it_sees_the_gap(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job_id = add(cluster)
    cluster.lose("LOGENTRY", to=third, count=1)
    log(cluster, first, job_id, 0, "begun")
    log(cluster, first, job_id, 1, "half")
    cluster.run(seconds=1)
    assert (lines(second, job_id), lines(third, job_id)) == ([0, 1], [0, 1])


def test_a_new_worker_on_another_node_finds_the_checkpoint_of_the_last(cluster: Cluster) -> None:
    """The node is no holder before it imports the job."""
    first, second, third = cluster.members
    job_id = added(cluster, "REPLICATE", 2, "RETRY", 300)
    (new,) = [member for member in cluster.members if not member.admin.show(job_id)]
    first.admin.take("mail")
    log(cluster, first, job_id, 0, "begun")
    log(cluster, first, job_id, 1, "half")
    first.admin.call("NACK", job_id)
    worker = new.client()
    worker.send("GETJOB", "WITHCLAIM", "FROM", "mail")
    cluster.until(lambda: not worker.silent, within_s=5)
    assert read(cluster, new, job_id) == [(CLAIM, 0, b"begun"), (CLAIM, 1, b"half")]
    assert lines(new, job_id) == [0, 1]
    assert second is not third


def test_a_holder_that_lost_its_memory_gets_the_log_again(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job_id = add(cluster)
    log(cluster, first, job_id, 0, "begun")
    second.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=1)
    cluster.until(lambda: bool(second.admin.show(job_id)) and lines(second, job_id) == [0], within_s=90)


def test_the_log_goes_with_a_job_that_leaves_its_node(pair: Cluster) -> None:
    """A leaving node transfers the only copy of the job."""
    first, second = pair.members
    job_id = added(pair, "REPLICATE", 1, "RETRY", 300)
    first.admin.take("mail")
    assert log(pair, first, job_id, 0, "begun") == "1"
    first.admin.call("CLUSTER", "LEAVING", "yes")
    pair.until(lambda: lines(second, job_id) == [0], within_s=20)


def test_a_reader_learns_that_the_job_ended_while_it_waited(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job_id = add(cluster)
    log(cluster, first, job_id, 0, "begun")
    second.pause()
    reader = first.client()
    reader.send("SHOWLOG", job_id)
    first.admin.call("DELJOB", job_id)
    third.admin.call("DELJOB", job_id)
    cluster.until(lambda: not reader.silent)
    assert str(reader.next_reply()).startswith("NOJOB")


def test_an_acknowledgement_without_the_job_knows_no_log(cluster: Cluster) -> None:
    """Seed 4146, "logged calm": a late worker acknowledged the job again, and a reader saw an empty log."""
    job_id = add(cluster)
    first, second, third = cluster.members
    log(cluster, first, job_id, 0, "begun")
    first.admin.call("ACKJOB", job_id)
    cluster.run(seconds=1)
    cluster.partition([first], [second, third])
    first.admin.call("ACKJOB", job_id)
    reader = first.client()
    reader.send("SHOWLOG", job_id)
    cluster.run(seconds=3)
    assert str(reader.next_reply()).startswith("NOJOB")


def test_a_reader_does_not_wait_long_for_a_holder_that_does_not_answer(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job_id = add(cluster)
    log(cluster, first, job_id, 0, "begun")
    second.pause()
    before_ms = cluster.network.now_ms
    assert read(cluster, first, job_id) == [(CLAIM, 0, b"begun")]
    assert cluster.network.now_ms - before_ms <= 550


def test_a_holder_that_knows_a_later_claim_refuses_the_entry(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job_id = add(cluster)
    cluster.lose("CLAIMED", to=first)
    second.admin.call("WORKING", job_id, "CLAIM", LATER)
    cluster.run(milliseconds=50)
    assert log(cluster, first, job_id, 0, "late", "COPIES", 3).startswith("STALE")
    assert log(cluster, second, job_id, 0, "begun", claim=LATER) == "2"


def test_a_client_that_disconnects_is_forgotten(cluster: Cluster) -> None:
    first, *others = cluster.members
    job_id = add(cluster)
    cluster.partition([first], others)
    client = first.client()
    client.send("LOGJOB", job_id, "begun", "TIMEOUT", 0)
    client.disconnect()
    cluster.heal()
    cluster.run(seconds=5)
    assert first.node.state.blocked_clients == 0


@pytest.mark.parametrize("kind", [kinds.LOGENTRY, kinds.GOTENTRY, kinds.LOGASK])
@pytest.mark.parametrize("payload", [b"", b"x", b"\xff" * 40, b"\xff" * 53, b"\xff" * 61, b"\xff" * 99])
def test_malformed_messages_change_nothing(kind: int, payload: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(kinds.FEATURE_LOGS, 17711, NOBODY, b"only-run"))
    scripted.join()
    client: LocalClient = local.client()
    job_id = client.add("mail", "body", "RETRY", 300, "REPLICATE", 1)
    for data in (payload, job_id + payload):
        scripted.deliver(scripted.link, scripted.writer.other(kind, data))
    assert not local.node.state.lifecycle.logs
    assert shown(client, job_id) == []


# --- nodes without the job --------------------------------------------------------------------------------------------


def other_than(cluster: Cluster, job_id: bytes) -> Member:
    """The node that is no holder."""
    (member,) = [member for member in cluster.members if not member.admin.show(job_id)]
    return member


@pytest.fixture
def held_by_two(cluster: Cluster) -> bytes:
    return added(cluster, "REPLICATE", 2, "RETRY", 300)


def test_a_node_without_the_job_has_its_holders_keep_an_entry(cluster: Cluster, held_by_two: bytes) -> None:
    other = other_than(cluster, held_by_two)
    for seq in range(3):
        assert log(cluster, other, held_by_two, seq, f"step {seq}") == "2"
    assert log(cluster, other, held_by_two, 2, "step 2", "COPIES", 1) in {"1", "2"}, "the same entry again"
    for member in cluster.members:
        assert [entry for _, _, entry in read(cluster, member, held_by_two)] == [b"step 0", b"step 1", b"step 2"]
    assert lines(other, held_by_two) == []


def test_a_node_without_the_job_passes_on_why_an_entry_is_refused(cluster: Cluster, held_by_two: bytes) -> None:
    other = other_than(cluster, held_by_two)
    assert log(cluster, other, held_by_two, 0, "begun", claim=LATER) == "2"
    assert log(cluster, other, held_by_two, 0, "other", claim=LATER).startswith("SEQ another entry has the number 0")
    assert log(cluster, other, held_by_two, 1, "late").startswith("STALE")
    assert log(cluster, other, held_by_two, 1, "x" * 65_536, claim=LATER).startswith("LOGFULL")
    assert log(cluster, other, held_by_two, 1, "more", "COPIES", 3, claim=LATER).startswith("NOREPL 2 of 3 holders")
    assert str(other.admin.call("LOGJOB", held_by_two, "unnumbered")).startswith("NOJOB")
    assert log(cluster, other, held_by_two[:-5] + b"-0001", 0, "unknown").startswith("NOJOB")
    other.admin.call("ACKJOB", held_by_two)
    cluster.run(seconds=5)
    assert log(cluster, other, held_by_two, 2, "ended", claim=LATER).startswith("NOJOB")


def test_a_node_without_the_job_asks_again_and_does_not_wait_for_nodes_that_hang(
    cluster: Cluster, held_by_two: bytes
) -> None:
    other = other_than(cluster, held_by_two)
    cluster.lose("LOGENTRY", count=2)
    assert log(cluster, other, held_by_two, 0, "begun") == "2"
    holder, hung = [member for member in cluster.members if member is not other]
    hung.pause()
    assert log(cluster, other, held_by_two, 1, "half") == "1"
    holder.pause()
    assert log(cluster, other, held_by_two, 2, "end", "TIMEOUT", 3000).startswith("NOREPL No holder of the job")


def test_a_node_alone_knows_no_job_that_it_does_not_have(local: LocalNode, client: LocalClient) -> None:
    unknown = b"D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
    assert str(client.call("LOGJOB", unknown, "CLAIM", 1, "SEQ", 0, "entry")).startswith("NOJOB")
    assert not local.node.state.lifecycle.logs
