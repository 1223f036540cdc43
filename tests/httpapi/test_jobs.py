"""Jobs over HTTP: add, take, acknowledge, give back, postpone, delete."""

from __future__ import annotations

import contextlib
import threading
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from httpapi.nodes import ApiNode, OpenNode, Reply, send

UNKNOWN = "D-00000000-0123456789012345678901ab-05a1"
BINARY = bytes(range(256))


def add(node: ApiNode, queue: str, body: str = "body", **fields: object) -> str:
    answer = node.ask("POST", f"queues/{queue}/jobs", {"body": body, **fields})
    assert answer.status == 201, answer.data
    return str(answer.json["id"])


def test_job_is_added_taken_and_acknowledged(node: ApiNode) -> None:
    job_id = add(node, "mail", "hello")
    reply = node.ask("POST", "queues/mail/claims")
    assert reply.status == 200
    [job] = reply.json["jobs"]
    assert reply.json["node"] == node.id
    assert (job["id"], job["queue"], job["body"]) == (job_id, "mail", "hello")
    assert (job["nacks"], job["additional_deliveries"], job["priority"]) == (0, 0, 0)
    assert 0 < job["requeue_in_ms"] <= 301_000
    assert node.ask("POST", f"jobs/{job_id}/ack").json == {"known": True}
    assert node.ask("GET", f"jobs/{job_id}").code == "NOJOB"


def test_options_are_those_of_the_command(node: ApiNode) -> None:
    given = {"retry_s": 7, "ttl_s": 700, "delay_s": 3, "priority": 5, "meta": "trace", "replicate": 1, "maxlen": 10}
    reply = node.ask("POST", "queues/options/jobs", {"body": "x", "id": "A" * 24, **given})
    assert (reply.status, reply.json["copies"]) == (201, 1)
    job_id = reply.json["id"]
    shown = node.ask("GET", f"jobs/{job_id}").json
    assert "A" * 24 in job_id
    assert (shown["retry_s"], shown["delay_s"], shown["replicate"], shown["priority"]) == (7, 3, 1, 5)
    assert (shown["meta"], shown["body"], shown["state"]) == ("trace", "x", "active")
    assert 690 < shown["ttl_s"] <= 700
    assert abs(shown["created_ms"] / 1000 - int(node.call("TIME")[0])) < 60
    again = node.ask("POST", "queues/options/jobs", {"body": "x", "id": "A" * 24, **given})
    assert (again.status, again.json) == (201, {"id": job_id, "copies": None})


def test_bytes_travel_as_base64(node: ApiNode) -> None:
    reply = node.ask("POST", "queues/binary/jobs", {"body_base64": b64encode(BINARY).decode()})
    assert reply.status == 201
    assert node.call("SHOW", reply.json["id"])[29] == BINARY
    [job] = node.ask("POST", "queues/binary/claims").json["jobs"]
    assert "body" not in job
    assert job["body_base64"] == b64encode(BINARY).decode()
    add(node, "binary", "text ✓")
    assert node.ask("POST", "queues/binary/claims", {"base64": True}).json["jobs"][0]["body_base64"]
    add(node, "binary", "text ✓")
    assert node.ask("POST", "queues/binary/claims").json["jobs"][0]["body"] == "text ✓"


def test_any_bytes_can_be_the_name_of_a_queue(node: ApiNode) -> None:
    for name in (b"a/b?c#d e%", "übung".encode(), b"\xff\x00"):
        job_id = add(node, quote(name, safe=""))
        assert node.call("SHOW", job_id)[3] == name
        [job] = node.ask("POST", f"queues/{quote(name, safe='')}/claims").json["jobs"]
        assert job["id"] == job_id


def test_a_large_job_is_added_and_taken(node: ApiNode) -> None:
    body = "x" * (1 << 20)
    add(node, "large", body)
    assert node.ask("POST", "queues/large/claims").json["jobs"][0]["body"] == body


def test_job_that_is_too_large_for_an_answer_is_given_back(node: ApiNode) -> None:
    job_id = node.call("ADDJOB", "huge", b"x" * ((1 << 20) + 1), 0).decode()
    reply = node.ask("POST", "queues/huge/claims")
    assert (reply.status, reply.code) == (413, "TOOLARGE")
    node.until(lambda: node.call("QLEN", "huge") == 1, "the job is queued")
    assert node.call("SHOW", job_id)[17] == 0, "it does not count as a failed attempt"
    assert node.ask("GET", f"jobs/{job_id}").code == "TOOLARGE"


def test_jobs_that_do_not_fit_into_one_answer_are_given_back(node: ApiNode) -> None:
    for _ in range(6):
        node.call("ADDJOB", "several", b"x" * (1 << 20), 0)
    assert len(node.ask("POST", "queues/several/claims", {"count": 6}).json["jobs"]) == 4
    node.until(lambda: node.call("QLEN", "several") == 2, "the jobs are queued")
    assert len(node.ask("POST", "queues/several/claims", {"count": 6}).json["jobs"]) == 2


def test_several_jobs_of_several_queues(node: ApiNode) -> None:
    ids = [add(node, queue) for queue in ("first", "first", "second")]
    reply = node.ask("POST", "queues/first/claims", {"count": 5, "more_queues": ["second"]})
    assert sorted(job["id"] for job in reply.json["jobs"]) == sorted(ids)


def test_empty_queue_has_no_job(node: ApiNode) -> None:
    assert node.ask("POST", "queues/empty/claims").json["jobs"] == []
    assert node.ask("POST", "queues/empty/claims", {"timeout_ms": 50}).json["jobs"] == []


def test_waiting_client_gets_the_job_that_is_added(node: ApiNode) -> None:
    with waiting(node, "waited") as received:
        job_id = add(node, "waited")
    assert [job["id"] for job in received[0].json["jobs"]] == [job_id]


@contextlib.contextmanager
def waiting(node: ApiNode, queue: str) -> Iterator[list[Reply]]:
    """A client that waits for a job; its answer is in the list when the context has ended."""
    received: list[Reply] = []

    def wait() -> None:
        received.append(node.ask("POST", f"queues/{queue}/claims", {"timeout_ms": 20_000}))

    blocked = node.blocked_clients
    thread = threading.Thread(target=wait)
    thread.start()
    node.until(lambda: node.blocked_clients == blocked + 1, "the client waits")
    yield received
    thread.join()


def test_client_that_disconnects_while_it_waits_loses_no_job(node: ApiNode) -> None:
    connection = node.open_connection()
    connection.request("POST", "/v1/queues/left/claims", b'{"timeout_ms": 60000}')
    node.until(lambda: node.blocked_clients == 1, "the client waits")
    connection.close()
    node.until(lambda: node.blocked_clients == 0, "no client waits")
    job_id = add(node, "left")
    assert [job["id"] for job in node.ask("POST", "queues/left/claims").json["jobs"]] == [job_id]


def test_job_is_given_back_and_counted(node: ApiNode) -> None:
    job_id = add(node, "back")
    for expected in (0, 1):
        [job] = node.ask("POST", "queues/back/claims").json["jobs"]
        assert job["nacks"] == expected
        reply = node.ask("POST", f"jobs/{job_id}/nack", {"reason": "no printer"})
        assert (reply.status, reply.json) == (200, {})
    assert node.ask("GET", f"jobs/{job_id}").json["reason"] == "no printer"
    node.ask("POST", "queues/back/claims")
    node.ask("POST", f"jobs/{job_id}/nack", {"uncounted": True})
    assert node.ask("GET", f"jobs/{job_id}").json["nacks"] == 2
    node.ask("POST", "queues/back/claims")
    assert node.ask("POST", f"jobs/{job_id}/nack", {"delay_s": 100}).status == 200
    assert node.ask("POST", "queues/back/claims").json["jobs"] == []


def test_job_becomes_a_dead_letter(node: ApiNode) -> None:
    job_id = add(node, "rejected")
    node.ask("POST", "queues/rejected/claims")
    assert node.ask("POST", f"jobs/{job_id}/nack", {"dead": True, "reason": "bad"}).status == 200
    [dead] = node.ask("POST", "queues/rejected.dead/claims").json["jobs"]
    shown = node.ask("GET", f"jobs/{dead['id']}").json
    assert (shown["origin_queue"], shown["reason"]) == ("rejected", "bad")


def test_job_is_postponed(node: ApiNode) -> None:
    job_id = add(node, "long", retry_s=17)
    node.ask("POST", "queues/long/claims")
    assert node.ask("POST", f"jobs/{job_id}/working").json == {"postponed_s": 17}


def test_job_is_deleted(node: ApiNode) -> None:
    job_id = add(node, "deleted")
    assert node.ask("DELETE", f"jobs/{job_id}").status == 200
    assert node.ask("DELETE", f"jobs/{job_id}").code == "NOJOB"


def test_queues_are_listed_in_pages(open_node: OpenNode) -> None:
    node = open_node()
    names = [f"queue-{number}" for number in range(25)]
    for name in names:
        add(node, name)
    found: list[str] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = node.ask("GET", f"queues?count=10&cursor={cursor}").json
        found += page["queues"]
        cursor = page["cursor"]
    assert found == names
    assert node.ask("GET", "queues?minlen=2").json["queues"] == []


def test_jobs_of_a_queue_are_counted(node: ApiNode) -> None:
    for _ in range(3):
        add(node, "counted")
    node.ask("POST", "queues/counted/claims")
    counts = node.ask("GET", "queues/counted/count?timeout_ms=1000").json
    assert (counts["queued"], counts["leased"], counts["nodes_answered"], counts["nodes_known"]) == (2, 1, 1, 1)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"jobs/{UNKNOWN}", 404, "NOJOB"),
        ("GET", "jobs/nonsense", 400, "BADID"),
        ("DELETE", f"jobs/{UNKNOWN}", 404, "NOJOB"),
        ("POST", f"jobs/{UNKNOWN}/nack", 404, "NOJOB"),
        ("POST", f"jobs/{UNKNOWN}/working", 404, "NOJOB"),
        ("POST", "jobs/nonsense/ack", 400, "BADID"),
    ],
)
def test_unknown_jobs(node: ApiNode, method: str, path: str, status: int, code: str) -> None:
    reply = node.ask(method, path)
    assert (reply.status, reply.code) == (status, code)


def test_acknowledgement_of_an_unknown_job_is_accepted(node: ApiNode) -> None:
    assert node.ask("POST", f"jobs/{UNKNOWN}/ack").json == {"known": False}


def test_refusals_of_commands_have_their_status(node: ApiNode) -> None:
    node.call("PAUSE", "paused", "in")
    reply = node.ask("POST", "queues/paused/jobs", {"body": "x"})
    assert (reply.status, reply.code, reply.headers["Retry-After"]) == (503, "PAUSED", "1")
    add(node, "full")
    assert node.ask("POST", "queues/full/jobs", {"body": "x", "maxlen": 1}).code == "MAXLEN"
    reply = node.ask("POST", "queues/alone/jobs", {"body": "x", "replicate": 3})
    assert (reply.status, reply.code) == (504, "NOREPL")
    assert node.ask("POST", "queues/q/jobs", {"body": "x", "delay_s": 10, "ttl_s": 5}).status == 400
    assert (
        "DELAY is greater"
        in node.ask("POST", "queues/q/jobs", {"body": "x", "delay_s": 10, "ttl_s": 5}).json["message"]
    )


def test_connection_is_kept_for_many_requests(node: ApiNode) -> None:
    with contextlib.closing(node.open_connection()) as connection:
        for number in range(50):
            reply = send(connection, "POST", "queues/kept/jobs", {"body": str(number)})
            assert reply.status == 201
            sock = connection.sock
            assert sock is not None
        reply = send(connection, "POST", "queues/kept/claims", {"count": 100})
        assert [job["body"] for job in reply.json["jobs"]] == [str(number) for number in range(50)]
        assert connection.sock is sock
