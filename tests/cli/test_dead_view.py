"""`disque dead` with a cluster of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.running import Disque
from disqued.cli.views.dead import GROUPS, LETTERS
from disqued.client import Client
from support.cluster import RealCluster

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 2) as nodes:
        yield nodes


def fail(port: int, queue: str, body: str, reason: str) -> None:
    """Add a job and reject it, on one node."""
    with Client([f"127.0.0.1:{port}"], discover=False) as client:
        client.add(queue, body, replicate=1)
        [job] = client.get(queue)
        client.nack(job.id, reason=reason, dead=True)


@pytest.fixture(scope="module")
def disque(cluster: RealCluster) -> Disque:
    """Four dead letters, made on two nodes."""
    one, two = cluster.nodes
    fail(one.port, "mail", "a", "timeout")
    fail(two.port, "mail", "b", "timeout")
    fail(two.port, "sms", "c", "no such number")
    fail(one.port, "mail", "d", "no such address")
    with Client([f"127.0.0.1:{one.port}"], discover=False) as client:
        client.add("mail", "good")
    until_queued(cluster, 4)
    return Disque(one.port)


def until_queued(cluster: RealCluster, count: int) -> None:
    """Wait until the moves are done."""
    clients = [Client([f"127.0.0.1:{node.port}"], discover=False) for node in cluster.nodes]
    while sum(client.qlen("mail.dead") + client.qlen("sms.dead") for client in clients) < count:
        pass
    for client in clients:
        client.close()


def listed(disque: Disque, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(disque.ok("dead", *words, "--json"))
    return found


def test_dead_letters_of_all_nodes_are_counted_by_queue_and_reason(disque: Disque) -> None:
    assert [(row["queue"], row["jobs"], row["from"], row["reason"]) for row in listed(disque)] == [
        ("mail.dead", 2, ["mail"], "timeout"),
        ("mail.dead", 1, ["mail"], "no such address"),
        ("sms.dead", 1, ["sms"], "no such number"),
    ]


@pytest.mark.parametrize("name", ["sms", "sms.dead"])
def test_queue_is_that_of_the_dead_letters_or_the_one_they_failed_in(disque: Disque, name: str) -> None:
    [row] = listed(disque, name, "--show")
    assert (row["queue"], row["from"], row["attempts"], row["body"]) == ("sms.dead", "sms", 1, "c")
    assert row["reason"] == "no such number"


def test_letters_are_listed_from_the_oldest_on(disque: Disque) -> None:
    letters = listed(disque, "--show")
    assert sorted(row["body"] for row in letters) == ["a", "b", "c", "d"]
    ages_s = [row["dead_s"] for row in letters]
    assert ages_s == sorted(ages_s, reverse=True)
    done = disque("dead", "--show", "--limit", "1", "--json")
    assert len(json.loads(done.stdout)) == 1
    assert done.stderr == b"4 dead letters found; use --limit 0 to list all.\n"


def test_no_dead_letters_are_an_empty_list(disque: Disque) -> None:
    assert listed(disque, "unknown") == []


def test_node_that_does_not_answer_is_named(cluster: RealCluster, disque: Disque) -> None:
    two = cluster.nodes[1]
    two.kill()
    done = disque("dead", "sms", "--json")
    assert done.returncode == 0
    assert done.stderr == f"127.0.0.1:{two.port} does not answer; its dead letters are missing.\n".encode()


@pytest.mark.parametrize("columns", [GROUPS, LETTERS], ids=["counted", "listed"])
def test_guide_lists_the_columns_in_order(columns: tuple[Any, ...]) -> None:
    names = ", ".join(f"`{column.name}`" for column in columns)
    assert names in " ".join(GUIDE.read_text(encoding="utf-8").split())
