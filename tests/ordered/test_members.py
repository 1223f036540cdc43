"""Replicas move: by command, because nodes leave or come, and because a disk is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

from disqued.client import ResponseError
from disqued.ordered.exchange import node_of
from disqued.testing.cluster import Member
from ordered.story import Story, ids


def settled(story: Story, *nodes: Member, queue: bytes = b"q") -> bool:
    """Whether the queue has its replicas on exactly these nodes, as all nodes know."""
    wanted = sorted(node.id for node in nodes)
    for node in story.nodes:
        known = story.room(node).catalog.by_name.get(queue) if node.running else None
        if node.running and (known is None or not known.settled or sorted(map(node_of, known.replicas)) != wanted):
            return False
        if node.running and (node in nodes) != (known is not None and int(known.group) in story.replicas(node)):
            return False
    return True


def leaving_status(story: Story, node: Member) -> dict[bytes, Any]:
    """CLUSTER LEAVING STATUS by name."""
    status = story.call(node, "CLUSTER", "LEAVING", "STATUS")
    return dict(zip(status[::2], status[1::2], strict=True))


def test_a_replica_moves_by_command_without_losing_jobs_or_order() -> None:
    story = Story(4)
    a, b, c, d = story.nodes
    story.new("q", "ON", a.id, b.id, c.id)
    job_ids = [story.add(a, f"{number}") for number in range(20)]
    assert story.call(b, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", c.id, "TO", d.id) == b"OK"
    job_ids += [story.add(b, f"{number}") for number in range(20, 30)]
    story.cluster.until(lambda: settled(story, a, b, d))
    assert ids(story.call(d, "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids
    assert story.call(c, "ACKJOB", *job_ids) == 30


def test_the_replica_that_leads_moves_too() -> None:
    story = Story(4)
    a, b, c, d = story.nodes
    story.new("q", "ON", a.id, b.id, c.id)
    leader = story.leader()
    story.add(a, "job")
    assert story.call(a, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", leader.id, "TO", d.id) == b"OK"
    story.cluster.until(lambda: settled(story, *[node for node in (a, b, c, d) if node is not leader]))
    assert story.leader() is not leader
    assert story.take(leader) == [b"job"]


def test_the_only_replica_moves() -> None:
    story = Story(3)
    a, b, _ = story.nodes
    story.new("q", "ON", a.id)
    job_ids = [story.add(b, f"{number}") for number in range(5)]
    assert story.call(a, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", a.id, "TO", b.id) == b"OK"
    story.cluster.until(lambda: settled(story, b))
    assert ids(story.call(a, "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids


def test_moves_that_are_impossible_are_refused() -> None:
    story = Story(3)
    a, b, c = story.nodes
    story.new("q", "ON", a.id, b.id)
    for words in (
        ("MOVE", "other", "FROM", a.id, "TO", c.id),
        ("MOVE", "q", "FROM", c.id, "TO", a.id),
        ("MOVE", "q", "FROM", a.id, "TO", b.id),
        ("MOVE", "q", "FROM", a.id, "TO", "0" * 40),
        ("LEAD", "q", c.id),
    ):
        assert isinstance(story.call(a, "CLUSTER", "ORDERED", *words), ResponseError)


def test_a_leaving_node_hands_its_replicas_to_the_others() -> None:
    story = Story(4)
    story.new()
    on = [node for node in story.nodes if 1 in story.replicas(node)]
    leaving = story.leader()
    job_ids = [story.add(leaving, f"{number}") for number in range(20)]
    assert story.call(leaving, "CLUSTER", "LEAVING", "yes") == b"OK"
    others = [node for node in story.nodes if node is not leaving]
    story.cluster.run(milliseconds=500)
    early = leaving_status(story, leaving)
    assert (early[b"done"], early[b"jobs-left"]) == (b"no", 0)
    assert early[b"waits-for"] == b"replicas of ordered queues that must move to other nodes: %d" % len(
        story.replicas(leaving)
    )
    story.cluster.until(lambda: settled(story, *others), within_s=60)
    story.cluster.until(lambda: story.replicas(leaving) == {}, within_s=60)
    late = leaving_status(story, leaving)
    assert (late[b"ordered-replicas-left"], late[b"done"], late[b"waits-for"]) == (0, b"yes", b"")
    story.cluster.run(seconds=1)
    assert any("this node can be stopped" in text for _, text in leaving.host.log_lines)
    leaving.crash()
    assert len(on) == 3
    assert ids(story.call(others[0], "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids


def _has_none(story: Story, node: Member) -> bool:
    return story.replicas(node) == {}


def test_the_catalog_gets_smaller_with_the_cluster() -> None:
    story = Story(5, founders=5)
    story.new()
    for number in (4, 3):
        leaving, others = story.nodes[number], story.nodes[:number]
        assert story.call(leaving, "CLUSTER", "LEAVING", "yes") == b"OK"
        story.cluster.until(partial(_has_none, story, leaving), within_s=60)
        leaving.crash()
        for other in others:
            story.call(other, "CLUSTER", "FORGET", leaving.id)
    story.cluster.run(seconds=60)
    assert len(story.room(story.nodes[0]).hosting.founders.voters) == 3
    story.nodes[0].crash()
    assert story.call(story.nodes[1], "QNEW", "other", "ORDERED", "REPLICAS", 1) == b"OK"


def test_a_node_that_lost_its_disk_gets_a_new_replica() -> None:
    story = Story(3)
    story.new()
    lost = story.followers()[0]
    job_ids = [story.add(lost, f"{number}") for number in range(20)]
    before = story.room(story.leader()).catalog.by_name[b"q"].replicas
    lost.crash()
    lost.restart(keep_disk=False)
    story.cluster.until(
        lambda: (
            story.room(story.leader()).catalog.by_name[b"q"].replicas != before
            and settled(story, *story.nodes)
            and 0 in story.replicas(lost)
        ),
        within_s=60,
    )
    other = next(node for node in story.nodes if node is not lost)
    other.crash()
    assert ids(story.call(lost, "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids


def test_a_new_node_gets_its_share_of_replicas() -> None:
    story = Story(3)
    for number in range(8):
        story.new(f"q{number}")
    node = story.cluster.add()
    assert node.admin.call("CLUSTER", "MEET", story.nodes[0].ip.decode(), 7711) == b"OK"
    story.cluster.until(story.cluster.is_whole)
    story.cluster.until(lambda: len(story.replicas(node)) == 6, within_s=300)
    story.add(node, "job", queue="q0")
    assert story.take(node, queue="q0") == [b"job"]


def test_the_node_that_should_lead_gets_the_leadership_back() -> None:
    story = Story(3)
    story.new()
    leader = story.leader()
    leader.crash()
    assert story.leader() is not leader
    leader.restart()
    story.cluster.until(lambda: story.leader() is leader, within_s=90)


def test_a_node_that_is_about_to_stop_hands_over_what_it_leads() -> None:
    story = Story(3)
    story.new()
    leader = story.leader()
    state = leader.node.state
    assert "are led here" in state.events.unsafe_to_stop()
    leader.flush()
    story.cluster.until(lambda: state.events.unsafe_to_stop() == "", within_s=5)
    assert story.leader() is not leader


def test_a_node_must_not_stop_while_the_others_are_no_majority() -> None:
    story = Story(3)
    story.new()
    down = story.followers()[0]
    down.crash()
    story.cluster.run(seconds=3)
    assert "no majority" in story.leader().node.state.events.unsafe_to_stop()
