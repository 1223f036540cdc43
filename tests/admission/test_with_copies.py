"""ADDJOB WITHCOPIES: the reply says how many nodes have confirmed the job so far. NEWID: an ID before the job."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, Reply
from replication.adding import adding
from replication.test_external import leave

MIDDLE = "0123456789abcdefABCDEF+/"


def reply_of(cluster: Cluster, client: LocalClient) -> list[Reply]:
    cluster.until(lambda: not client.silent, within_s=1)
    reply = client.next_reply()
    assert isinstance(reply, list), reply
    return reply


def test_a_single_node_is_the_only_copy(client: LocalClient) -> None:
    reply = client.call("ADDJOB", "mail", "body", 0, "WITHCOPIES")
    assert reply == [client.take("mail")[0], 1]


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        (("REPLICATE", 3), 3),
        (("REPLICATE", 3, "SYNC", 2), 2),
        (("REPLICATE", 3, "SYNC", 1), 1),
        (("REPLICATE", 3, "ASYNC"), 1),
        (("REPLICATE", 1), 1),
        (("REPLICATE", 2, "ID", MIDDLE), 2),
    ],
)
def test_the_number_is_that_of_the_nodes_that_have_confirmed(
    cluster: Cluster, options: tuple[str | int, ...], copies: int
) -> None:
    job_id, confirmed = reply_of(cluster, adding(cluster, *options, "WITHCOPIES", timeout_ms=1000))
    assert isinstance(job_id, bytes)
    assert len(job_id) == 40
    assert confirmed == copies


def test_a_leaving_node_counts_the_other_nodes(cluster: Cluster) -> None:
    leave(cluster.members[0])
    _, confirmed = reply_of(cluster, adding(cluster, "REPLICATE", 2, "WITHCOPIES", timeout_ms=1000))
    assert confirmed == 2


@pytest.mark.parametrize("option", [("KEY", "k"), ("ID", MIDDLE)])
def test_an_add_that_was_added_before_does_not_know_the_number(client: LocalClient, option: tuple[str, str]) -> None:
    first = client.call("ADDJOB", "mail", "body", 0, *option, "WITHCOPIES")
    again = client.call("ADDJOB", "mail", "body", 0, *option, "WITHCOPIES")
    assert isinstance(first, list)
    assert isinstance(again, list)
    assert (first[1], again[1]) == (1, None)
    assert first[0] == again[0]


def test_each_queue_of_an_addto_has_its_own_pair(client: LocalClient) -> None:
    reply = client.call("ADDTO", 2, "a", "b", "body", 0, "WITHCOPIES")
    assert isinstance(reply, list)
    assert [isinstance(pair, list) and pair[1] for pair in reply] == [1, 1]


def test_an_id_is_taken_for_the_same_ttl_and_retry(client: LocalClient) -> None:
    for options in ((), ("TTL", 60), ("TTL", 60, "RETRY", 9), ("RETRY", 0)):
        job_id = client.call("NEWID", *options)
        assert isinstance(job_id, bytes)
        copies = ("REPLICATE", 1) if "RETRY" in options else ()
        assert client.call("ADDJOB", "mail", "body", 0, *options, *copies, "ID", job_id) == job_id


def test_ids_differ_and_nothing_is_kept(local: LocalNode, client: LocalClient) -> None:
    assert len({bytes(client.call("NEWID")) for _ in range(300)}) == 300  # type: ignore[arg-type]
    assert local.node.state.lifecycle.table.count == 0


@pytest.mark.parametrize("options", [("TTL",), ("TTL", 0), ("RETRY", -1), ("DELAY", 4), ("TTL", "x"), ("ASYNC",)])
def test_other_options_are_refused(client: LocalClient, options: tuple[str | int, ...]) -> None:
    assert str(client.call("NEWID", *options)).startswith("ERR ")
