"""`disque job`: a job on all nodes of a cluster of real processes, unfinished and ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.cli.views.job import COLUMNS
from disqued.client import Client
from support.cluster import RealCluster

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"
NOBODY = "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 2) as nodes:
        yield nodes


@pytest.fixture
def other(cluster: RealCluster) -> Iterator[Client]:
    """A client of the node that the command line is not connected to."""
    with Client([cluster.nodes[1].address], discover=False) as client:
        yield client


@pytest.fixture(scope="module")
def disque(cluster: RealCluster) -> Disque:
    return Disque(cluster.nodes[0].port)


def described(disque: Disque, job_id: str) -> dict[str, Any]:
    (found,) = json.loads(disque.ok("job", job_id, "--json"))
    assert isinstance(found, dict)
    return found


def test_job_is_found_at_whichever_node_it_is(disque: Disque, other: Client) -> None:
    job_id = other.add("away", "body", replicate=1)
    assert described(disque, job_id) == {
        "id": job_id,
        "state": "queued",
        "queue": "away",
        "ended_ms": None,
        "claim": None,
        "result": None,
        "nodes": 1,
        "attempts": 0,
        "body": "body",
        "log": 0,
    }


def test_job_that_has_ended_is_shown_with_its_outcome_and_result(disque: Disque, other: Client) -> None:
    job_id = other.add("ended", "body", replicate=1, retain_s=60)
    [job] = other.get("ended", with_claim=True)
    other.logjob(job_id, "half done", claim=job.claim, seq=0)
    other.ack(job_id, claim=job.claim, result="x" * 100)
    found = described(disque, job_id)
    assert isinstance(found.pop("ended_ms"), int)
    assert found == {
        "id": job_id,
        "state": "done",
        "queue": "",
        "claim": job.claim,
        "result": "x" * 100,
        "nodes": 0,
        "attempts": None,
        "body": None,
        "log": 1,
    }
    with disque.in_terminal("job", job_id, COLUMNS="200") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        shown = terminal.text
    assert "done" in shown
    assert "x" * 39 + "…" in shown, "a long result is shortened"
    assert "half done" in shown, "the progress log follows"
    assert "BODY" not in shown, "a finished job has none"


def test_job_that_no_node_knows_is_refused(disque: Disque) -> None:
    done = disque("job", NOBODY)
    assert (done.returncode, done.stdout) == (Exit.REFUSED, b"")
    assert done.stderr.decode() == (
        f"No node that answered knows {NOBODY}: it ended without a record, or never existed.\n"
    )


def test_word_that_is_no_id_is_refused(disque: Disque) -> None:
    done = disque("job", "mail")
    assert done.returncode == Exit.REFUSED
    assert b"BADID" in done.stderr


@pytest.mark.parametrize("word", [column.name for column in COLUMNS])
def test_guide_names_the_columns(word: str) -> None:
    section = GUIDE.read_text(encoding="utf-8").split("### `disque job ID`")[1].split("###")[0]
    assert f"`{word}`" in section
