"""The catalog in a cluster: it is founded once, survives restarts, and is known to all nodes."""

from __future__ import annotations

from itertools import count

import pytest

from disqued.ordered.catalog import Catalog, QueueOptions, pack_create
from disqued.ordered.catalogcopy import SMALL_QUEUES, CatalogCopy
from disqued.ordered.counters import JOBS_ADOPTED
from disqued.ordered.early import EarlyMessages
from disqued.ordered.jobids import index_of
from disqued.ordered.payload import NO_CATALOG
from disqued.raft.message import VOTE, Message
from disqued.testing.cluster import Cluster
from ordered.story import Story


def test_a_catalog_is_founded_once() -> None:
    story = Story()
    again = story.call(story.nodes[1], "CLUSTER", "ORDERED", "INIT", story.nodes[1].id)
    assert str(again).startswith("EXISTS the cluster has a catalog")


def test_no_catalog_is_founded_while_a_member_cannot_be_asked() -> None:
    story = Story(founders=0)
    a, b, c = story.nodes
    story.cluster.cut(a, c)
    refused = story.call(a, "CLUSTER", "ORDERED", "INIT", a.id, b.id, within_s=20)
    assert str(refused).startswith("ERR only 2 of 3 members answered")
    assert not any(story.room(node).has_catalog for node in story.nodes)


def test_a_node_that_finds_a_catalog_in_its_log_founds_no_other_one() -> None:
    story = Story(1, founders=1)
    [only] = story.nodes
    before = story.room(only).catalog.identity
    only.crash()
    only.restart()
    story.room(only).catalog.identity = NO_CATALOG  # as while the log is being opened
    story.room(only).hosting._opened = False
    founder = story.send(only, "CLUSTER", "ORDERED", "INIT", only.id)
    story.room(only).catalog.identity = before
    story.room(only).hosting.log_opened()
    assert str(founder.reply()).startswith("EXISTS the cluster has a catalog")


def test_two_founders_at_once_make_one_catalog_at_most() -> None:
    story = Story(founders=0)
    a, b, _ = story.nodes
    replies = [story.send(node, "CLUSTER", "ORDERED", "INIT", node.id) for node in (a, b)]
    told = [str(reply.reply(within_s=20)) for reply in replies]
    story.cluster.run(seconds=5)
    identities = {story.room(node).catalog.identity for node in story.nodes if story.room(node).has_catalog}
    assert len(identities) <= 1, told


def test_a_node_that_begins_alone_has_the_others_follow() -> None:
    story = Story(founders=0)
    a, b, c = story.nodes
    story.send(a, "CLUSTER", "ORDERED", "INIT", a.id, b.id, c.id)
    story.cluster.until(lambda: any(story.room(node).has_catalog for node in story.nodes))
    story.cluster.lose("FOUND", to=c)
    story.cluster.run(seconds=1)
    a.crash()
    story.cluster.heal()
    story.cluster.until(lambda: story.room(c).has_catalog)
    story.cluster.until(lambda: story.room(b).exchange.leaders.get(0, b"") in {b.id, c.id})


@pytest.mark.parametrize("lost", range(1, 7))
def test_a_catalog_is_founded_although_a_message_is_lost(lost: int) -> None:
    story = Story(founders=0)
    sent = count(1)
    story.cluster.network.filters.append(lambda frame: frame.kind == "FOUND" and next(sent) == lost)
    nodes = [node.id for node in story.nodes]
    assert story.call(story.nodes[0], "CLUSTER", "ORDERED", "INIT", *nodes) == b"OK"


def test_a_node_without_catalog_has_no_file_and_sends_nothing() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=5)
    kinds = {sent.kind for sent in cluster.sent()}
    assert not kinds & {"RAFT", "BEAT", "CATALOG", "CATALOGASK", "PROPOSE", "PROPOSED", "DELIVER", "FOUND"}
    assert [name for member in cluster.members for name in member.host.disk.files if name.startswith("ordered")] == []


def test_qnew_needs_a_catalog() -> None:
    story = Story(founders=0)
    assert "CLUSTER ORDERED INIT" in str(story.call(story.nodes[0], "QNEW", "q", "ORDERED"))


def test_a_queue_that_is_made_as_soon_as_the_catalog_is_founded_has_all_replicas() -> None:
    story = Story(founders=0)
    nodes = [node.id for node in story.nodes]
    story.cluster.lose("BEAT", count=8)
    assert story.call(story.nodes[0], "CLUSTER", "ORDERED", "INIT", *nodes) == b"OK"
    assert story.call(story.nodes[0], "QNEW", "q", "ORDERED") == b"OK"
    assert len(story.room(story.nodes[0]).catalog.by_name[b"q"].replicas) == 3


def test_qnew_waits_for_a_silent_member_only_for_a_time() -> None:
    story = Story(4)
    story.cluster.lose("BEAT", by=story.nodes[3])
    story.room(story.nodes[0]).beats.pop(story.nodes[3].id)
    began_ms = story.cluster.network.now_ms
    assert story.call(story.nodes[0], "QNEW", "q", "ORDERED") == b"OK"
    assert 2000 <= story.cluster.network.now_ms - began_ms < 3000


def test_a_new_queue_has_a_leader_within_a_tenth_of_a_second() -> None:
    """It took 140 ms, and an election more if the node that leads it was the first to know of it."""
    story = Story()
    network = story.cluster.network
    leads = set()
    for number in range(6):
        began_ms = network.now_ms
        story.new(f"q{number}")
        assert network.now_ms - began_ms < 100
        leads.add(story.leader(f"q{number}").id)
    assert len(leads) == 3


def test_all_nodes_know_a_queue_as_soon_as_it_is_made_and_as_soon_as_it_is_removed() -> None:
    story = Story(5)
    for number in range(5):
        story.new(f"q{number}")
        assert [story.call(node, "QTYPE", f"q{number}") for node in story.nodes] == [b"ordered"] * 5
        assert story.call(story.nodes[number], "QDROP", f"q{number}") == b"OK"
        assert [story.call(node, "QTYPE", f"q{number}") for node in story.nodes] == [b"jobs"] * 5


def test_qnew_waits_only_a_second_for_a_node_that_does_not_get_the_catalog() -> None:
    story = Story(4)
    story.cluster.lose("CATALOG", to=story.nodes[3])
    began_ms = story.cluster.network.now_ms
    story.new()
    assert 1000 <= story.cluster.network.now_ms - began_ms < 1500


def test_messages_of_a_group_that_is_not_known_are_kept_for_a_second() -> None:
    early = EarlyMessages()
    message = Message(VOTE, b"a", b"b", 2)
    early.keep(1, [message], 1000)
    assert early.take(1) == [message]
    assert early.take(1) == []
    early.keep(2, [message], 2000)
    early.forget(2999)
    assert early.take(2) == [message]
    early.keep(3, [message], 3000)
    early.forget(4000)
    assert early.take(3) == []


def test_the_same_qnew_again_is_ok_and_another_one_is_refused() -> None:
    story = Story()
    story.new("q", "SINGLE", "PREFETCH", 4)
    story.cluster.run(seconds=1)
    assert story.call(story.nodes[2], "QNEW", "q", "ORDERED", "SINGLE", "PREFETCH", 4) == b"OK"
    assert str(story.call(story.nodes[2], "QNEW", "q", "ORDERED")).startswith("EXISTS")


def test_a_queue_of_jobs_with_that_name_is_not_taken_over() -> None:
    story = Story()
    story.call(story.nodes[0], "ADDJOB", "q", "job", 0)
    assert str(story.call(story.nodes[0], "QNEW", "q", "ORDERED")).startswith("EXISTS")


def test_a_job_that_a_node_took_before_it_was_told_the_catalog_is_moved_into_the_ordered_queue() -> None:
    """The node lost its disk, so it takes the queue for one of jobs until another node tells it the catalog."""
    story = Story()
    story.new("q", "ON", story.nodes[0].id)
    node = story.nodes[2]
    node.restart(keep_disk=False)
    for other in story.nodes[:2]:
        story.cluster.cut(other, node)
        story.cluster.cut(node, other)
    assert index_of(story.add(node, "job", "REPLICATE", 1)) == 0
    story.cluster.heal()
    story.cluster.until(lambda: story.stat(story.nodes[0])[b"len"] == 1)
    assert story.take(story.nodes[1], 9) == [b"job"]
    assert story.room(node).state.counters.value(JOBS_ADOPTED) == 1


def test_queues_are_there_after_all_nodes_have_restarted() -> None:
    story = Story()
    story.new()
    for number in range(3):
        story.add(story.nodes[0], f"{number}")
    for node in story.nodes:
        node.crash()
    for node in story.nodes:
        node.restart()
    assert story.take(story.nodes[1], 9) == [b"0", b"1", b"2"]
    story.settle()


def test_a_large_catalog_is_copied_when_it_has_stopped_changing() -> None:
    catalog = Catalog()
    copy = CatalogCopy(catalog)
    for number in range(SMALL_QUEUES + 1):
        assert copy.is_due(changes=True) == (number > 0)
        salt = number.to_bytes(16, "big")
        catalog.apply(number + 2, pack_create(b"q%d" % number, QueueOptions(), (b"r" * 48,), b"r" * 40, salt))
    assert not copy.is_due(changes=True)
    assert copy.is_due(changes=False)


def test_a_node_without_replicas_uses_queues_like_any_other() -> None:
    story = Story(4)
    story.new("q", "ON", *[node.id for node in story.nodes[:3]])
    other = story.nodes[3]
    worker = story.send(other, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    job_id = story.add(other, "job")
    job = worker.reply()[0]
    assert job == [b"q", job_id, b"job"]
    assert story.call(other, "ACKJOB", job_id) == 1


def test_cluster_ordered_status_shows_queues_leaders_and_replicas() -> None:
    story = Story()
    story.new()
    leader = story.leader()
    fields = story.call(story.nodes[1], "CLUSTER", "ORDERED", "STATUS")
    queue = fields[fields.index(b"queues") + 1][0]
    shown = dict(zip(queue[::2], queue[1::2], strict=True))
    assert shown[b"queue"] == b"q"
    assert shown[b"leader"] == leader.id
    assert sorted(shown[b"replicas"]) == sorted(node.id for node in story.nodes)
    assert (shown[b"single"], shown[b"prefetch"]) == (b"no", 0)


def test_a_node_that_is_reset_forgets_the_ordered_queues() -> None:
    story = Story()
    story.new()
    node = story.followers()[0]
    assert story.call(node, "CLUSTER", "RESET", "HARD") == b"OK"
    story.cluster.run(seconds=1)
    assert story.call(node, "QTYPE", "q") == b"jobs"
    assert story.replicas(node) == {}
    node.restart()
    story.cluster.run(seconds=1)
    assert not story.room(node).has_catalog


def test_cluster_ordered_status_shows_pause_and_jobs_of_the_replica_on_the_node() -> None:
    story = Story(4)
    story.new("q", "SINGLE", "PREFETCH", 2, "ON", *[node.id for node in story.nodes[:3]])
    story.add(story.nodes[0], "job")
    story.call(story.nodes[0], "PAUSE", "q", "out")
    story.settle()
    shown = []
    for node in (story.leader(), story.nodes[3]):
        fields = story.call(node, "CLUSTER", "ORDERED", "STATUS")
        queue = fields[fields.index(b"queues") + 1][0]
        shown.append(dict(zip(queue[::2], queue[1::2], strict=True)))
    here, elsewhere = shown
    assert (here[b"single"], here[b"prefetch"], here[b"pause"], here[b"jobs"]) == (b"yes", 2, b"out", 1)
    assert (elsewhere[b"leader"], elsewhere[b"pause"], elsewhere[b"jobs"]) == (b"", b"", -1)


def test_a_client_that_waits_while_its_queue_becomes_an_ordered_one_is_sent_to_ask_again() -> None:
    story = Story()
    node = story.nodes[2]
    waiting = [story.send(node, "GETJOB", "FROM", "q", "other"), story.send(node, "GETJOB", "FROM", "other")]
    story.cluster.run(seconds=1)
    story.new()
    assert waiting[0].reply() is None
    assert waiting[1].waits
