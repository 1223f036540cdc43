"""Claims: which deliveries have one, and which commands of a worker are refused because of a later one."""

from __future__ import annotations

import pytest

from disqued.core.runtime.claiming import learn_claim
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode, Reply
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


@pytest.mark.parametrize("command", ["ACKJOB", "NACK", "WORKING"])
def test_options_behind_a_word_that_is_no_job_are_refused(client: LocalClient, command: str) -> None:
    assert str(client.call(command, "36", "CLAIM", 10)) == "BADID Invalid Job ID format."


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
    claim = client.show(successor)["claim"]
    assert isinstance(claim, int)
    assert claim > CLAIM


# --- claims with deliveries -------------------------------------------------------------------------------------------


def taken(client: LocalClient, *options: str, by: str = "FROM", queue: str = "mail") -> dict[bytes, int]:
    """Take a job with a claim: what the reply has of it behind ID and body."""
    jobs = client.call("GETJOB", "NOHANG", "WITHCLAIM", *options, by, queue)
    assert isinstance(jobs, list)
    return fields_of(jobs)


def fields_of(jobs: Reply) -> dict[bytes, int]:
    assert isinstance(jobs, list)
    (job,) = jobs
    assert isinstance(job, list)
    return dict(zip(job[3::2], job[4::2], strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(("by", "queue"), [("FROM", "mail"), ("FROMPATTERN", "m*")])
def test_a_delivery_has_its_claim_and_the_time_of_the_lease(
    local: LocalNode, client: LocalClient, by: str, queue: str
) -> None:
    client.add("mail", "body", "RETRY", 300)
    local.run(seconds=30)
    before_ms = local.now_ms
    found = taken(client, by=by, queue=queue)
    assert list(found) == [b"claim", b"lease"]
    assert found[b"claim"] >> 16 == before_ms
    assert abs(found[b"lease"] - 300_000) <= 250
    assert b"claims:1\r\n" in client.raw("INFO", "delivery")


def test_the_claim_stands_behind_the_counters_and_before_the_metadata(client: LocalClient) -> None:
    client.add("mail")
    found = taken(client, "WITHCOUNTERS", "WITHMETA", "WITHREQUEUE")
    assert list(found) == [
        b"nacks",
        b"additional-deliveries",
        b"requeue-in-ms",
        b"claim",
        b"lease",
        b"meta",
        b"priority",
    ]


@pytest.mark.parametrize("by", [("FROM", "mail"), ("FROMPATTERN", "m*")])
def test_a_client_that_waited_gets_a_claim(local: LocalNode, client: LocalClient, by: tuple[str, str]) -> None:
    worker = local.client()
    worker.send("GETJOB", "WITHCLAIM", *by)
    client.add("mail")
    assert fields_of(worker.next_reply())[b"claim"] >> 16 == local.now_ms


def test_many_jobs_have_different_claims_or_are_different_jobs(client: LocalClient) -> None:
    for _ in range(700):
        client.add("mail")
    jobs = client.call("GETJOB", "WITHCLAIM", "COUNT", 700, "FROM", "mail")
    assert isinstance(jobs, list)
    assert len({(job[1], job[4]) for job in jobs}) == 700  # type: ignore[index]
    assert all(job[4] > 0 for job in jobs)  # type: ignore[index, operator]


def test_each_delivery_has_a_greater_claim(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 300)
    claims = []
    for _ in range(5):
        claims.append(taken(client)[b"claim"])
        client.call("NACK", job_id, "CLAIM", claims[-1])
    assert claims == sorted(set(claims))
    assert {claim & 0xFFFF for claim in claims} == {int(local.node.state.view.claim_number)}


def test_a_delivery_without_a_claim_ends_the_one_before(client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 300)
    claim = taken(client)[b"claim"]
    client.call("NACK", job_id, "CLAIM", claim)
    assert client.take("mail") == [job_id]
    assert str(client.call("ACKJOB", job_id, "CLAIM", claim)).startswith("STALE")


def test_a_job_that_waits_in_its_queue_can_still_be_acknowledged_under_its_last_claim(
    local: LocalNode, client: LocalClient
) -> None:
    """The work is done, and nobody else has begun it."""
    job_id = client.add("mail", "body", "RETRY", 5)
    claim = taken(client)[b"claim"]
    local.run(seconds=6)
    assert client.show(job_id)["state"] == b"queued"
    assert client.call("ACKJOB", job_id, "CLAIM", claim) == 1


def test_a_job_that_is_delivered_at_most_once_has_a_claim(client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 0, "REPLICATE", 1)
    found = taken(client)
    assert found[b"lease"] == -1
    assert client.call("ACKJOB", job_id, "CLAIM", found[b"claim"]) == 1


def test_memory_is_counted_with_the_claim(local: LocalNode, client: LocalClient) -> None:
    memory = local.node.state.lifecycle.memory
    client.call("QLEN", "mail")
    client.add("mail", "body", "RETRY", 300)
    before = memory.used_bytes
    claim = taken(client)[b"claim"]
    assert memory.used_bytes > before
    (job,) = local.node.state.lifecycle.table.jobs()
    client.call("ACKJOB", job.id, "CLAIM", claim)
    client.add("mail", "body", "RETRY", 300)
    assert memory.used_bytes == before


def test_no_claims_are_given_in_quarantine(local: LocalNode, client: LocalClient) -> None:
    """Workers that wait for a claim get the error, and the jobs are delivered to others."""
    job_id = client.add("mail", "body", "RETRY", 300)
    client.take("mail")
    claiming, by_pattern, plain = (local.client() for _ in range(3))
    claiming.send("GETJOB", "WITHCLAIM", "FROM", "mail")
    by_pattern.send("GETJOB", "WITHCLAIM", "FROMPATTERN", "m*")
    plain.send("GETJOB", "FROM", "mail")
    local.node.state.clock_refusal = "CLOCK too far ahead"
    assert str(client.call("GETJOB", "WITHCLAIM", "FROM", "mail")) == "CLOCK too far ahead"
    for _ in range(2):
        client.call("NACK", job_id)
    assert str(claiming.next_reply()) == "CLOCK too far ahead"
    assert isinstance(plain.next_reply(), list)
    assert str(by_pattern.next_reply()) == "CLOCK too far ahead"
    assert client.call("QLEN", "mail") == 1
    assert client.call("WORKING", job_id) == 300


# --- in a cluster -----------------------------------------------------------------------------------------------------


def ahead_by(skew_ms: int) -> Cluster:
    """Two nodes; the clock of the first one is ahead."""
    cluster = Cluster(2, meet=False)
    cluster.members[0].skew_ms = skew_ms
    for member in cluster.members:
        member.jump()
    cluster.meet()
    cluster.run(seconds=10)
    return cluster


def imported(cluster: Cluster, worker: LocalClient) -> dict[bytes, int]:
    """Take a job with a claim at a node that has none of the queue."""
    worker.send("GETJOB", "WITHCLAIM", "FROM", "mail")
    cluster.until(lambda: not worker.silent, within_s=5)
    return fields_of(worker.next_reply())


def test_the_next_claim_is_greater_on_a_node_that_knows_the_one_before_whatever_the_clocks_say() -> None:
    """T3: the job moves to the other node with its claim, and this one knows that it is queued there."""
    cluster = ahead_by(3_600_000)
    client = cluster.members[0].client()
    job_id = client.add("mail", "body", "RETRY", 300, "REPLICATE", 1)
    early = taken(client)[b"claim"]
    client.call("NACK", job_id, "CLAIM", early)
    worker = cluster.members[1].client()
    assert imported(cluster, worker)[b"claim"] > early
    for member in cluster.members:
        assert str(member.client().call("ACKJOB", job_id, "CLAIM", early)).startswith("STALE")


def test_a_job_that_comes_back_after_its_lease_has_a_greater_claim_without_any_message() -> None:
    """T2: the clocks differ by less than RETRY, and the second node learns nothing about the first delivery."""
    cluster = ahead_by(4_000)
    first, second = cluster.members
    client = adding(cluster, "RETRY", 5, "REPLICATE", 2)
    job_id = id_of(cluster, client)
    cluster.partition([first], [second])
    early = taken(client)[b"claim"]
    cluster.until(lambda: second.admin.call("QLEN", "mail") == 1)
    late = taken(second.client())[b"claim"]
    assert late > early
    cluster.heal()
    cluster.run(seconds=6)
    assert str(client.call("ACKJOB", job_id, "CLAIM", early)).startswith("STALE")


def test_a_claim_of_the_node_that_queued_the_job_is_not_ended_by_its_late_message(pair: Cluster) -> None:
    """The worker comes with its claim before the first node hears that the second one has queued the job."""
    first, second = pair.members
    client = adding(pair, "RETRY", 5, "REPLICATE", 2)
    job_id = id_of(pair, client)
    client.take("mail")
    pair.partition([first], [second])
    pair.until(lambda: second.admin.call("QLEN", "mail") == 1)
    claim = taken(second.client())[b"claim"]
    assert client.call("WORKING", job_id, "CLAIM", claim) == 5
    pair.heal()
    pair.run(seconds=4)
    assert client.call("WORKING", job_id, "CLAIM", claim) == 5
