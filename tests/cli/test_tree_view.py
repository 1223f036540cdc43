"""`disque tree` with a cluster of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.cli.views.tree import COLUMNS
from disqued.client import Client
from support.cluster import RealCluster

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"
NOBODY = "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 2) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def jobs(cluster: RealCluster) -> dict[str, str]:
    """A diamond, added at both nodes: `clean` is done, `tidy` is queued, and `report` waits for `join`."""
    one, two = (Client([node.address], discover=False) for node in cluster.nodes)
    with one, two:
        source = one.add("extract", "", replicate=1, retain_s=3600)
        clean = two.add("clean", "", replicate=1, after=[source], retain_s=3600)
        tidy = one.add("tidy", "", replicate=1, after=[source], retain_s=3600)
        join = two.add("join", "", replicate=1, after=[clean, tidy])
        report = one.add("report", "", replicate=1, after=[join])
        for client, queue in ((one, "extract"), (two, "clean")):
            [job] = client.get(queue, timeout_ms=20_000)
            client.ack(job.id)
        cluster.wait_until(lambda: one.qlen("tidy") == 1)
        cluster.wait_until(lambda: len((two.show(join) or pytest.fail(join)).waits_for) == 1)
    return {"extract": source, "clean": clean, "tidy": tidy, "join": join, "report": report}


@pytest.fixture(scope="module")
def disque(cluster: RealCluster) -> Disque:
    return Disque(cluster.nodes[0].port)


def drawn(disque: Disque, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(disque.ok("tree", *words, "--json"))
    return found


def test_graph_has_each_job_once_with_its_state_from_whichever_node(disque: Disque, jobs: dict[str, str]) -> None:
    rows = drawn(disque, jobs["join"])
    assert [(row["id"], row["queue"], row["state"], row["relation"], row["depth"]) for row in rows] == [
        (jobs["join"], "join", "held", "job", 0),
        (jobs["clean"], "", "done", "parent", 1),
        (jobs["tidy"], "tidy", "queued", "parent", 1),
        (jobs["extract"], "", "done", "parent", 2),
    ], "children are known where a node has both jobs"
    assert (rows[0]["after"], rows[0]["waits_for"]) == ([jobs["clean"], jobs["tidy"]], [jobs["tidy"]])


def test_terminal_draws_lines_from_a_job_to_those_it_waits_for(disque: Disque, jobs: dict[str, str]) -> None:
    with disque.in_terminal("tree", jobs["report"], COLUMNS="140") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        lines = [line.rstrip() for line in terminal.text.splitlines() if "D-" in line]
    assert [line.split(" D-")[0].split() for line in lines] == [
        ["report", "held"],
        ["└─", "join", "held"],
        ["├─", "?", "done"],
        ["└─", "tidy", "queued"],
        ["└─", "?", "done"],
    ]
    assert lines[2].lstrip().startswith("├─ ?")


@pytest.fixture(scope="module")
def hourglass(cluster: RealCluster) -> list[str]:
    """Two jobs that wait for the same one, and one that waits for both."""
    with Client([cluster.nodes[0].address], discover=False) as client:
        top = client.add("top", "", replicate=1)
        left = client.add("left", "", replicate=1, after=[top])
        right = client.add("right", "", replicate=1, after=[top])
        return [top, left, right, client.add("end", "", replicate=1, after=[left, right])]


def test_second_parent_of_a_job_is_named_beside_it(disque: Disque, hourglass: list[str]) -> None:
    top, left, right, end = hourglass
    rows = drawn(disque, end)
    assert [(row["id"], row["also_after"]) for row in rows] == [(end, []), (left, []), (top, []), (right, [top[:18]])]


def test_children_are_drawn_below_the_job_that_they_wait_for(disque: Disque, hourglass: list[str]) -> None:
    top, left, right, end = hourglass
    assert [(row["id"], row["relation"], row["depth"]) for row in drawn(disque, top)] == [
        (top, "job", 0),
        (left, "child", 1),
        (end, "child", 2),
        (right, "child", 1),
    ]


def test_job_that_waits_for_two_drawn_children_names_the_second(disque: Disque, hourglass: list[str]) -> None:
    top, _, right, end = hourglass
    [row] = [row for row in drawn(disque, top) if row["id"] == end]
    assert row["also_after"] == [right[:18]]


def test_number_of_jobs_is_bounded(disque: Disque, hourglass: list[str]) -> None:
    done = disque("tree", hourglass[3], "--limit", "2", "--json")
    assert len(json.loads(done.stdout)) == 2
    assert done.stderr == b"2 more jobs were found; use --limit to draw more.\n"


def test_unknown_job_is_refused(disque: Disque) -> None:
    done = disque("tree", NOBODY)
    assert (done.returncode, done.stdout) == (Exit.REFUSED, b"")
    assert done.stderr == f"No node that answered knows {NOBODY}.\n".encode()


def test_word_that_is_no_id_is_refused(disque: Disque) -> None:
    done = disque("tree", "mail")
    assert done.returncode == Exit.REFUSED
    assert b"BADID" in done.stderr


def test_node_that_does_not_answer_and_parents_that_only_it_knew_are_named(
    disque: Disque, cluster: RealCluster, jobs: dict[str, str]
) -> None:
    two = cluster.nodes[1]
    two.kill()
    done = disque("tree", jobs["report"], "--json")
    assert {row["id"]: row["state"] for row in json.loads(done.stdout)} == {
        jobs["report"]: "held",
        jobs["join"]: "unknown",
    }
    assert done.stderr.decode().splitlines() == [
        f"127.0.0.1:{two.port} does not answer; what only that node knows is missing.",
        f"No node that answered knows {jobs['join']}: it ended without a record, or is lost.",
    ]


@pytest.mark.parametrize("word", [column.name for column in COLUMNS])
def test_guide_names_the_columns(word: str) -> None:
    section = GUIDE.read_text(encoding="utf-8").split("### `disque tree ID`")[1].split("###")[0]
    assert f"`{word}`" in section
