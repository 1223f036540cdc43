"""Claims: which commands of a worker are refused because its job was delivered again since."""

from __future__ import annotations

import pytest

from disqued.core.runtime.claiming import learn_claim
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from replication.adding import adding, id_of

CLAIM = 1_800_000_000_000 << 16 | 7
LATER = CLAIM + (1 << 16)
COMMANDS = [("ACKJOB",), ("NACK",), ("WORKING",)]


def claimed(local: LocalNode, client: LocalClient, claim: int = CLAIM) -> bytes:
    """Add a job, take it, and have its claim known."""
    job_id = client.add("mail", "body", "RETRY", 300)
    client.take("mail")
    know(local, job_id, claim)
    return job_id


def know(local: LocalNode, job_id: bytes, claim: int) -> None:
    job = local.node.state.lifecycle.table.get(job_id)
    assert job is not None
    learn_claim(local.node.state, job, claim)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_worker_with_the_last_claim_is_served(local: LocalNode, client: LocalClient, words: tuple[str]) -> None:
    job_id = claimed(local, client)
    assert client.call(*words, job_id, "CLAIM", CLAIM) in {1, 300}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_worker_with_an_earlier_claim_is_refused(local: LocalNode, client: LocalClient, words: tuple[str]) -> None:
    job_id = claimed(local, client)
    know(local, job_id, LATER)
    before = client.show(job_id)
    local.run(seconds=5)
    reply = client.call(*words, job_id, "CLAIM", CLAIM)
    assert str(reply) == f"STALE The job was handed out again under claim {LATER}, stop working on it"
    after = client.show(job_id)
    assert after["state"] == before["state"]
    assert after["next-requeue-within"] == int(str(before["next-requeue-within"])) - 5000
    assert b"stale_refused:1\r\n" in client.raw("INFO", "delivery")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_claim_that_is_not_known_here_is_noted(local: LocalNode, client: LocalClient, words: tuple[str]) -> None:
    """It was given by a node that this one did not hear."""
    job_id = claimed(local, client)
    client.call(*words, job_id, "CLAIM", LATER)
    if words != ("ACKJOB",):
        assert str(client.call("NACK", job_id, "CLAIM", CLAIM)).startswith("STALE")


def test_without_a_claim_every_worker_is_served(local: LocalNode, client: LocalClient) -> None:
    job_id = claimed(local, client, LATER)
    assert client.call("WORKING", job_id) == 300
    assert client.call("ACKJOB", job_id) == 1


def test_show_has_the_claim(local: LocalNode, client: LocalClient) -> None:
    job_id = claimed(local, client)
    assert client.show(job_id)["claim"] == CLAIM


@pytest.mark.parametrize("words", COMMANDS)
def test_the_claim_of_an_unknown_job_changes_nothing(client: LocalClient, words: tuple[str]) -> None:
    job_id = b"D-5ca1ab1e-s2cR6zkGp8hgPXHUCeelTYe9-05a1"
    with_claim = client.call(*words, job_id, "CLAIM", CLAIM)
    assert str(with_claim) == str(client.call(*words, job_id))


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("CLAIM",), "ERR syntax error"),
        (("CLAIM", "0"), "ERR CLAIM must be a number that GETJOB WITHCLAIM returned"),
        (("CLAIM", "later"), "ERR CLAIM must be a number that GETJOB WITHCLAIM returned"),
        (("CLAIM", str(CLAIM), "NEVER", "1"), "ERR syntax error"),
    ],
)
def test_wrong_options_are_refused_and_the_job_stays_with_its_worker(
    local: LocalNode, client: LocalClient, words: tuple[str], options: tuple[str, ...], error: str
) -> None:
    job_id = claimed(local, client)
    assert str(client.call(*words, job_id, *options)).startswith(error)
    assert client.show(job_id)["state"] == b"active"


@pytest.mark.parametrize("command", ["ACKJOB", "NACK"])
def test_a_claim_belongs_to_one_job(local: LocalNode, client: LocalClient, command: str) -> None:
    jobs = [claimed(local, client) for _ in range(3)]
    assert str(client.call(command, *jobs, "CLAIM", CLAIM)) == "ERR CLAIM takes one job ID, 3 were given"
    assert [client.show(job_id)["state"] for job_id in jobs] == [b"active"] * 3


@pytest.mark.parametrize("command", ["ACKJOB", "NACK"])
@pytest.mark.parametrize("word", ["later", "", "D-5ca1ab1e-s2cR6zkGp8hgPXHUCeelTYe9-05a"])
def test_a_word_that_is_neither_a_job_nor_an_option_is_refused(
    local: LocalNode, client: LocalClient, command: str, word: str
) -> None:
    job_id = claimed(local, client)
    for words in [(job_id, word), (job_id, job_id, word), (job_id, word, job_id)]:
        assert str(client.call(command, *words)) == "BADID Invalid Job ID format."
    assert client.show(job_id)["state"] == b"active"


def test_a_claim_is_stale_when_another_holder_has_queued_the_job(pair: Cluster) -> None:
    """The second node queued it because it could not hear that a worker of the first one has it."""
    first, second = pair.members
    client = adding(pair, "RETRY", 5, "REPLICATE", 2)
    job_id = id_of(pair, client)
    client.take("mail")
    know(first, job_id, CLAIM)
    pair.partition([first], [second])
    pair.run(seconds=4)
    assert client.call("WORKING", job_id, "CLAIM", CLAIM) == 5
    pair.run(seconds=4)
    assert second.admin.call("QLEN", "mail") == 1
    pair.heal()
    pair.run(seconds=1)
    assert str(client.call("WORKING", job_id, "CLAIM", CLAIM)).startswith("STALE The job was queued again")


def test_a_successor_has_the_claim_of_the_job_before(local: LocalNode, client: LocalClient) -> None:
    job_id = claimed(local, client)
    assert client.call("NACK", job_id, "CLAIM", CLAIM, "DEAD") == 1
    local.run(seconds=1)
    letters = client.call("GETJOB", "NOHANG", "FROM", "mail.dead")
    assert isinstance(letters, list)
    successor = letters[0][1]  # type: ignore[index]
    assert isinstance(successor, bytes)
    assert client.show(successor)["claim"] == CLAIM
