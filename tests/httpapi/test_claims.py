"""Claims and ends of jobs over HTTP."""

from __future__ import annotations

import threading

import pytest

from httpapi.nodes import ApiNode, Reply

UNKNOWN = "D-00000000-0123456789012345678901ab-05a1"


def add(node: ApiNode, queue: str, **fields: object) -> str:
    answer = node.ask("POST", f"queues/{queue}/jobs", {"body": "x", **fields})
    assert answer.status == 201, answer.data
    return str(answer.json["id"])


def claim(node: ApiNode, queue: str) -> str:
    [job] = node.ask("POST", f"queues/{queue}/claims").json["jobs"]
    return str(job["claim"])


def test_claim_grows_and_a_stale_one_is_refused(node: ApiNode) -> None:
    job_id = add(node, "stale")
    old = claim(node, "stale")
    assert int(old) > 1 << 53, "which is why it is text"
    assert node.ask("POST", f"jobs/{job_id}/nack", {"claim": old}).status == 200
    new = claim(node, "stale")
    assert int(new) > int(old)
    for verb in ("ack", "nack", "working"):
        refused = node.ask("POST", f"jobs/{job_id}/{verb}", {"claim": old})
        assert (refused.status, refused.code) == (409, "STALE"), verb
    assert node.ask("GET", f"jobs/{job_id}").json["claim"] == new
    assert node.ask("POST", f"jobs/{job_id}/ack", {"claim": new}).json == {"known": True}


def test_worker_chooses_its_lease_and_leaves_a_note(node: ApiNode) -> None:
    job_id = add(node, "lease", retry_s=60)
    held = claim(node, "lease")
    reply = node.ask("POST", f"jobs/{job_id}/working", {"claim": held, "for_s": 500, "note": "half done"})
    assert reply.json == {"postponed_s": 500}
    assert node.ask("GET", f"jobs/{job_id}").json["note"] == "half done"


def test_new_worker_finds_the_progress_of_the_last_one(node: ApiNode) -> None:
    job_id = add(node, "logged")
    old = claim(node, "logged")
    for seq in (0, 1, 1):
        reply = node.ask("POST", f"jobs/{job_id}/log", {"claim": old, "seq": seq, "entry": f"page {seq}"})
        assert (reply.status, reply.json) == (200, {"copies": 1})
    refused = node.ask("POST", f"jobs/{job_id}/log", {"claim": old, "seq": 1, "entry": "other"})
    assert (refused.status, refused.code) == (409, "SEQ")
    node.ask("POST", f"jobs/{job_id}/nack", {"claim": old})
    new = claim(node, "logged")
    entries = node.ask("GET", f"jobs/{job_id}/log").json["entries"]
    assert [(entry["claim"], entry["seq"], entry["entry"]) for entry in entries] == [
        (old, 0, "page 0"),
        (old, 1, "page 1"),
    ]
    assert node.ask("POST", f"jobs/{job_id}/log", {"claim": old, "seq": 2, "entry": "late"}).code == "STALE"
    assert node.ask("POST", f"jobs/{job_id}/log", {"claim": new, "seq": 0, "entry_base64": "/w=="}).status == 200
    [entry] = node.ask("GET", f"jobs/{job_id}/log?claim={new}&from=0&count=1").json["entries"]
    assert (entry["claim"], entry["entry_base64"]) == (new, "/w==")
    assert node.ask("POST", f"jobs/{job_id}/ack", {"claim": new, "seq": 2}).code == "SEQ"
    assert node.ask("POST", f"jobs/{job_id}/ack", {"claim": new, "seq": 1}).status == 200


def test_end_of_a_job_is_known_while_it_is_retained(node: ApiNode) -> None:
    job_id = add(node, "kept", retain_s=100)
    assert node.ask("GET", f"jobs/{job_id}/result").json == {
        "outcome": "waiting",
        "ended_ms": None,
        "claim": None,
        "result": None,
    }
    held = claim(node, "kept")
    assert node.ask("POST", f"jobs/{job_id}/ack", {"claim": held, "result": "42", "copies": 1}).status == 200
    found = node.ask("GET", f"jobs/{job_id}/result").json
    assert (found["outcome"], found["claim"], found["result"]) == ("done", held, "42")
    assert abs(found["ended_ms"] / 1000 - int(node.call("TIME")[0])) < 60
    assert node.ask("GET", f"jobs/{job_id}/wait").json == {"outcome": "done", "result": "42"}
    assert node.ask("GET", f"jobs/{job_id}/wait?base64=true").json == {"outcome": "done", "result_base64": "NDI="}
    assert node.ask("GET", f"jobs/{UNKNOWN}/result").code == "NOJOB"


def test_job_is_held_until_another_one_is_done(node: ApiNode) -> None:
    parent = add(node, "parents", retain_s=100)
    child = add(node, "children", after=[parent], **{"else": "run"})
    shown = node.ask("GET", f"jobs/{child}").json
    assert (shown["after"], shown["waits_for"]) == ([parent], [parent])
    assert node.ask("GET", "queues/children/count").json["held"] == 1
    assert node.ask("POST", "queues/children/claims").json["jobs"] == []
    node.ask("POST", f"jobs/{parent}/ack")
    [job] = node.ask("POST", "queues/children/claims", {"timeout_ms": 20_000}).json["jobs"]
    assert job["id"] == child
    refused = node.ask("POST", "queues/children/jobs", {"body": "x", "timeout_ms": 100, "after": [UNKNOWN]})
    assert (refused.status, refused.code) == (409, "NOPARENT")


def test_result_that_nobody_would_keep_is_refused(node: ApiNode) -> None:
    job_id = add(node, "unkept")
    refused = node.ask("POST", f"jobs/{job_id}/ack", {"result": "42"})
    assert (refused.status, refused.code) == (400, "ERR")
    assert "RETAIN" in refused.json["message"]


def test_acknowledgement_in_too_few_copies_stands(node: ApiNode) -> None:
    job_id = add(node, "copies", retain_s=100)
    refused = node.ask("POST", f"jobs/{job_id}/ack", {"copies": 3, "timeout_ms": 50})
    assert (refused.status, refused.code) == (504, "NOREPL")
    assert node.ask("GET", f"jobs/{job_id}/result").json["outcome"] == "done"


@pytest.mark.parametrize("retain_s", [0, 100])
def test_client_waits_for_the_end_of_a_job(node: ApiNode, retain_s: int) -> None:
    job_id = add(node, "watched", retain_s=retain_s)
    assert node.ask("GET", f"jobs/{job_id}/wait?timeout_ms=10").json == {"outcome": "waiting", "result": None}
    received: list[Reply] = []
    blocked = node.blocked_clients
    thread = threading.Thread(target=lambda: received.append(node.ask("GET", f"jobs/{job_id}/wait?timeout_ms=20000")))
    thread.start()
    node.until(lambda: node.blocked_clients == blocked + 1, "the client waits")
    node.ask("POST", f"jobs/{job_id}/ack")
    thread.join()
    assert received[0].json["outcome"] == "done"
