"""QSCAN lists ordered queues after the others, each once, and queries of other members get those that a node leads."""

from __future__ import annotations

from disqued.queries.room import Asker, queries_of
from disqued.resp.replies import Reply, read_replies
from disqued.testing.cluster import Member
from ordered.story import Story


def scanned(story: Story, node: Member, *options: str | int, count: int = 3) -> list[bytes]:
    """The names of a whole iteration."""
    names: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, page = story.call(node, "QSCAN", cursor, "COUNT", count, *options)
        assert len(page) <= count
        names += page
        if cursor == b"0":
            return names


def with_queues(story: Story, count: int) -> list[bytes]:
    for number in range(count):
        story.new(f"ordered-{number}", "REPLICAS", 1)
    story.cluster.run(seconds=1)
    return [b"ordered-%d" % number for number in range(count)]


def test_all_nodes_list_all_ordered_queues_and_their_own_queues_of_jobs() -> None:
    story = Story()
    ordered = with_queues(story, 7)
    for number in range(5):
        story.add(story.nodes[0], "job", "REPLICATE", 1, queue=f"plain-{number}")
    plain = [b"plain-%d" % number for number in range(5)]
    assert scanned(story, story.nodes[0]) == [*plain, *ordered]
    assert scanned(story, story.nodes[1]) == ordered
    assert story.call(story.nodes[0], "QSCAN", "BUSYLOOP") == [b"0", [*plain, *ordered]]
    assert story.call(story.nodes[0], "QSCAN", "COUNT", 12) == [b"0", [*plain, *ordered]]


def test_queues_that_stay_are_listed_once_while_others_come_and_go() -> None:
    story = Story()
    ordered = with_queues(story, 6)
    cursor, names = story.call(story.nodes[2], "QSCAN", 0, "COUNT", 3)
    assert names == ordered[:3]
    for name in (ordered[1], ordered[2], ordered[4]):
        assert story.call(story.nodes[0], "QDROP", name) == b"OK"
    story.new("late", "REPLICAS", 1)
    story.cluster.run(seconds=1)
    assert story.call(story.nodes[2], "QSCAN", cursor, "COUNT", 3) == [b"0", [ordered[3], ordered[5], b"late"]]


def test_a_name_of_both_types_is_listed_once() -> None:
    story = Story(4)
    away = story.nodes[3]
    story.cluster.partition([away], story.nodes[:3])
    job_id = story.add(away, "job", "REPLICATE", 1, "DELAY", 600, queue="q")
    story.new("q")
    story.cluster.heal()
    story.cluster.run(seconds=2)
    assert job_id
    assert scanned(story, away) == [b"q"]


def test_lengths_are_those_of_the_replica_and_queues_without_one_pass() -> None:
    story = Story(4)
    nodes = story.nodes
    story.new("full", "ON", nodes[0].id, nodes[1].id, nodes[2].id)
    story.new("empty", "ON", nodes[0].id, nodes[1].id, nodes[2].id)
    story.add(nodes[0], "job", queue="full")
    story.cluster.run(seconds=1)
    assert scanned(story, nodes[0], "MINLEN", 1) == [b"full"]
    assert scanned(story, nodes[1], "MAXLEN", 0) == [b"empty"]
    assert scanned(story, nodes[3], "MINLEN", 1) == [b"full", b"empty"]
    assert scanned(story, nodes[0], "IMPORTRATE", 1) == []


def test_local_lists_of_all_nodes_have_each_ordered_queue_once() -> None:
    story = Story()
    for number in range(6):
        story.new(f"ordered-{number}")
    story.cluster.run(seconds=2)
    lists = [scanned(story, node, "LOCAL") for node in story.nodes]
    assert sorted(name for names in lists for name in names) == [b"ordered-%d" % number for number in range(6)]
    leader = story.nodes.index(story.leader("ordered-0"))
    assert b"ordered-0" in lists[leader]


def test_a_user_sees_only_the_queues_that_its_rules_allow() -> None:
    story = Story()
    with_queues(story, 2)
    node = story.nodes[0]
    assert story.call(node, "ACL", "SETUSER", "some", "on", "nopass", "+@all", "~ordered-1") == b"OK"
    client = node.client()
    client.send("AUTH", "some", "")
    client.send("QSCAN")
    story.cluster.run(milliseconds=100)
    assert client.replies()[-1] == [b"0", [b"ordered-1"]]


def asked(story: Story, one: Member, other: Member, *commands: str) -> list[Reply]:
    """What a member answers to a query of another one."""
    received: list[bytes] = []
    state = one.node.state
    requests = [command.encode().split() for command in commands]

    def ask() -> None:
        queries_of(state).ask(state.view.peers[other.id], Asker(b"default", logged_in=False), requests, received.append)
        one.flush()

    one.on_input(ask)
    story.cluster.until(lambda: bool(received))
    return read_replies(received, 1 << 20)


def test_the_leader_answers_queries_of_members_about_its_ordered_queues() -> None:
    story = Story()
    story.new()
    story.add(story.nodes[0], "job")
    leader, follower = story.leader(), story.followers()[0]
    other = next(node for node in story.nodes if node not in (leader, follower))
    names, stat = asked(story, other, leader, "QSCAN 0", "QSTAT q")
    assert names == [b"0", [b"q"]]
    assert isinstance(stat, list)
    assert stat[:6] == [b"name", b"q", b"type", b"ordered", b"len", 1]
    assert asked(story, other, follower, "QSCAN 0") == [[b"0", []]]


def test_a_leader_replies_in_the_order_of_the_requests() -> None:
    story = Story()
    story.new()
    client = story.leader().client()
    for words in (("ADDJOB", "q", "a", 0), ("QLEN", "q"), ("ADDJOB", "q", "b", 0), ("QLEN", "q")):
        client.send(*words)
    story.cluster.run(seconds=1)
    first, length, second, last = client.replies()
    assert (length, last) == (1, 2)
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
