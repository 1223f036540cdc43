"""Requests that are wrong, or that somebody may not make."""

from __future__ import annotations

import contextlib
import json
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from disqued.errors import CODES
from disqued.httpapi.requests import find, values_of
from disqued.httpapi.statuses import OWN_CODES, STATUSES, ApiError, error_reply, status_of
from disqued.httpapi.table import MAX_BODY_BYTES, OPERATIONS
from disqued.testing.certificates import Authority
from disqued.testing.ports import LOOPBACK
from httpapi.nodes import OpenNode, basic, send

JOB = "D-dcb833cf-lCpXB2wl+DfvfrBV/kz5od/a-05a1"


def why(method: str, path: str, body: bytes = b"", query: str = "") -> str:
    """Why a request is refused; empty if it is not."""
    try:
        values_of(find(method, path), path, query, body)
    except ApiError as refused:
        return f"{refused.code} {refused.message}"
    return ""


def given(path: str, body: Any, query: str = "") -> dict[str, Any]:
    return values_of(find("POST", path), path, query, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "INVALID body or body_base64 is missing"),
        (b"[]", "INVALID the content must be a JSON object"),
        (b"{", "INVALID the content must be a JSON object"),
        (b"\xff", "INVALID the content must be a JSON object"),
        (b"[" * 100_000, "INVALID the content must be a JSON object"),
        (b'{"body": 5}', f"INVALID body must be text of at most {MAX_BODY_BYTES} bytes"),
        (b'{"body": "\\ud800"}', "INVALID body must be valid Unicode text"),
        (b'{"body": "x", "body_base64": "eA=="}', "INVALID give body or body_base64, not both"),
        (b'{"body_base64": "?"}', "INVALID body_base64 must be base64"),
        (b'{"body_base64": "\xc3\xa4"}', "INVALID body_base64 must be base64"),
        (b'{"body": "x", "retry_s": -1}', "INVALID retry_s must be an integer from 0 to 4294967295"),
        (b'{"body": "x", "retry_s": true}', "INVALID retry_s must be an integer from 0 to 4294967295"),
        (b'{"body": "x", "retry_s": 1.5}', "INVALID retry_s must be an integer from 0 to 4294967295"),
        (b'{"body": "x", "retry_s": NaN}', "INVALID retry_s must be an integer from 0 to 4294967295"),
        (b'{"body": "x", "retry_s": ' + b"9" * 5000 + b"}", "INVALID the content must be a JSON object"),
        (b'{"body": "x", "async": 1}', "INVALID async must be true or false"),
        (b'{"body": "x", "window_s": 5}', "INVALID window_s has no effect without key"),
        (b'{"body": "x", "until": "never"}', "INVALID until must be one of: window, done"),
        (b'{"body": "x", "prio": 1}', 'INVALID unknown field "prio"; known: body, body_base64, timeout_ms'),
    ],
)
def test_content_that_is_wrong_is_refused_with_the_reason(body: bytes, expected: str) -> None:
    assert why("POST", "queues/q/jobs", body).startswith(expected)


@pytest.mark.parametrize("claim", ["5", '"-5"', '"5x"', '""', f'"{"9" * 20}"'])
def test_claim_is_text_with_digits(claim: str) -> None:
    assert why("POST", f"jobs/{JOB}/ack", f'{{"claim": {claim}}}'.encode()) == "INVALID claim must be a claim, as text"


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("queues", "count=0", "INVALID count must be an integer from 1 to 1000"),
        ("queues", "count=ten", "INVALID count must be an integer from 1 to 1000"),
        ("queues", "most=1", 'INVALID unknown query field "most"; known: cursor, count, minlen'),
        ("queues", "&".join(["count=1"] * 20), "INVALID the query has too many fields"),
        (f"jobs/{JOB}", "base64=1", "INVALID base64 must be true or false"),
        (f"queues/{'x' * 1025}/count", "", "INVALID queue must be text of at most 1024 bytes"),
        ("schedules/%2A", "", "INVALID name must not be empty, and not contain *, ? or ["),
        (f"schedules/{'x' * 257}", "", "INVALID name must be text of at most 256 bytes"),
    ],
)
def test_query_that_is_wrong_is_refused_with_the_reason(path: str, query: str, expected: str) -> None:
    assert why("GET", path, query=query) == expected


@pytest.mark.parametrize("path", ["", "nothing", "queues/", "queues//jobs", "jobs/", f"jobs/{JOB}/", f"jobs/{JOB}x"])
def test_unknown_path_is_refused(path: str) -> None:
    assert why("GET", path) == "NOTFOUND there is no such path; see /v1/docs"


def test_unknown_method_is_refused_with_those_that_exist() -> None:
    assert why("PUT", f"jobs/{JOB}") == "METHOD this path has no PUT; use GET, DELETE"


def test_job_id_may_be_in_a_path_as_it_is_or_percent_encoded() -> None:
    for path in (f"jobs/{JOB}/ack", f"jobs/{quote(JOB, safe='')}/ack"):
        assert given(path, {}) == {"id": JOB.encode()}
    assert find("GET", f"jobs/{JOB}").name == "showJob"


def test_defaults_and_null_fields() -> None:
    assert given("queues/q/claims", {"count": None, "more_queues": ["a", "b"]}) == {
        "queue": b"q",
        "timeout_ms": 0,
        "count": 1,
        "more_queues": [b"a", b"b"],
    }


def test_words_of_the_commands() -> None:
    def words(method: str, path: str, body: Any) -> str:
        operation = find(method, path)
        values = values_of(operation, path, "", json.dumps(body).encode())
        return b" ".join(operation.request_words(values)).decode()

    assert words("POST", "queues/q/jobs", {"body": "x", "async": True, "retry_s": 0, "meta": "m"}) == (
        "ADDJOB q x 5000 RETRY 0 META m ASYNC WITHCOPIES"
    )
    assert words("POST", "queues/q/jobs", {"body": "x", "after": ["a", "b"], "else": "run"}) == (
        "ADDJOB q x 5000 AFTER a AFTER b ELSE run WITHCOPIES"
    )
    assert words("POST", "queues/q/jobs", {"body": "x", "async": False}) == "ADDJOB q x 5000 WITHCOPIES"
    assert (
        words("POST", "queues/q/claims", {})
        == "GETJOB WITHCOUNTERS WITHREQUEUE WITHCLAIM WITHMETA NOHANG COUNT 1 FROM q"
    )
    assert words("POST", "queues/q/claims", {"timeout_ms": 7, "more_queues": ["r"]}) == (
        "GETJOB WITHCOUNTERS WITHREQUEUE WITHCLAIM WITHMETA TIMEOUT 7 COUNT 1 FROM q r"
    )
    assert words("POST", f"jobs/{JOB}/nack", {"delay_s": 5, "reason": "r s"}) == f"NACK {JOB} DELAY 5 REASON r s"
    assert words("POST", f"jobs/{JOB}/ack", {"claim": "7"}) == f"ACKJOB {JOB} CLAIM 7"
    assert words("POST", f"jobs/{JOB}/log", {"entry": "e", "claim": "7", "seq": 0, "copies": 2}) == (
        f"LOGJOB {JOB} CLAIM 7 SEQ 0 e COPIES 2"
    )
    assert words("POST", f"jobs/{JOB}/log", {"entry": "e"}) == f"LOGJOB {JOB} e"
    assert words("POST", f"jobs/{JOB}/ack", {"copies": 2}) == f"ACKJOB {JOB} COPIES 2 TIMEOUT 5000"
    assert words("POST", f"jobs/{JOB}/ack", {"result": "r"}) == f"ACKJOB {JOB} RESULT r"
    assert words(
        "PUT", "schedules/s", {"when": "@daily", "queue": "q", "body": "x", "zone": "UTC", "strict": False}
    ) == ("SCHEDULE s SET @daily q x TZ UTC STRICT no")
    assert words("PUT", "schedules/s", {"when": "@daily", "queue": "q", "body": "x", "strict": True, "ttl_s": 9}) == (
        "SCHEDULE s SET @daily q x STRICT yes TTL 9"
    )
    assert words("POST", "schedules/s/run", {}) == "SCHEDULE s RUN"
    assert words("GET", "schedules", {}) == "SCHEDULE * SHOW"
    assert words("GET", f"jobs/{JOB}/wait", {}) == f"WAITJOB {JOB} WITHRESULT TIMEOUT 30000"


def test_every_error_reply_has_a_status() -> None:
    assert set(CODES) - set(STATUSES) == set()
    assert not set(STATUSES) & set(OWN_CODES)
    for operation in OPERATIONS:
        assert all(status_of(code) >= 400 for code in operation.errors)


def test_error_of_an_unknown_code_is_shown_whole() -> None:
    answer = error_reply("NEWCODE something")
    assert (answer.status, answer.content) == (400, '{"code": "ERR", "message": "NEWCODE something"}')
    assert error_reply("ERR internal error, the server's log has the details").status == 500


def test_api_is_off_by_default_and_can_be_read_only(open_node: OpenNode) -> None:
    off = open_node("--http-api", "no")
    assert off.ask("GET", "queues").status == 404
    reading = open_node("--http-api", "read")
    reading.call("ADDJOB", "q", "x", 0)
    assert reading.ask("GET", "queues").json["queues"] == ["q"]
    refused = reading.ask("POST", "queues/q/claims")
    assert (refused.status, refused.code) == (403, "FORBIDDEN")
    assert "http-api read" in refused.json["message"]
    assert reading.call("QLEN", "q") == 1


def test_password_is_required_as_bearer_or_basic(open_node: OpenNode) -> None:
    node = open_node("--requirepass", "secret")
    refused = node.ask("GET", "queues")
    assert (refused.status, refused.code) == (401, "UNAUTHORIZED")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    for headers in ({"Authorization": "Bearer secret"}, basic("default", "secret")):
        assert node.ask("GET", "queues", headers=headers).status == 200
    assert node.ask("GET", "queues", headers={"Authorization": "Bearer wrong"}).status == 401
    large = json.dumps({"body": "x" * 100_000}).encode()
    assert node.ask("POST", "queues/q/jobs", large).code == "UNAUTHORIZED"
    assert node.ask("POST", "queues/q/jobs", large, {"Authorization": "Bearer secret"}).status == 201


def test_rules_and_limits_of_users_apply(open_node: OpenNode) -> None:
    node = open_node()
    node.call("ACL", "SETUSER", "producer", "on", ">word", "+@producer", "~mail*")
    headers = basic("producer", "word")
    assert node.ask("POST", "queues/mail/jobs", {"body": "x"}, headers).status == 201
    for method, path in (("POST", "queues/other/jobs"), ("POST", "queues/mail/claims"), ("GET", "queues")):
        refused = node.ask(method, path, {"body": "x"} if path.endswith("jobs") else {}, headers)
        assert (refused.status, refused.code) == (403, "NOPERM"), path
    node.call("ACL", "SETUSER", "producer", "%r=1")
    codes = {node.ask("POST", "queues/mail/jobs", {"body": "x"}, headers).status for _ in range(5)}
    assert codes == {201, 429}


def test_requests_of_pages_in_browsers_are_refused(open_node: OpenNode) -> None:
    node = open_node()
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        refused = node.ask("POST", "queues/q/jobs", {"body": "x"}, headers)
        assert (refused.status, refused.code) == (403, "FORBIDDEN"), headers
    assert node.call("QLEN", "q") == 0


def test_audit_log_shows_changes_by_the_api(open_node: OpenNode, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    node = open_node("--audit-log-file", str(log))
    job_id = node.ask("POST", "queues/q/jobs", {"body": "x"}).json["id"]
    assert node.ask("DELETE", f"jobs/{job_id}").status == 200
    node.until(lambda: job_id in log.read_text(), "the deletion is in the audit log")


def test_content_that_is_too_long_is_refused(open_node: OpenNode) -> None:
    node = open_node()
    reply = node.ask("POST", "queues/q/jobs", b" " * (2 * MAX_BODY_BYTES + 1))
    assert reply.status == 413


def test_head_has_no_content(open_node: OpenNode) -> None:
    node = open_node()
    with contextlib.closing(node.open_connection()) as connection:
        reply = send(connection, "HEAD", "queues")
        assert (reply.status, reply.data) == (200, b"")
        assert send(connection, "GET", "queues").json["queues"] == []


def test_api_works_with_tls(open_node: OpenNode, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("node")
    node = open_node("--http-tls", "yes", "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with contextlib.closing(HTTPSConnection(LOOPBACK, node.http_port, timeout=30, context=context)) as connection:
        body = "x" * MAX_BODY_BYTES
        assert send(connection, "POST", "queues/q/jobs", {"body": body}).status == 201
        assert send(connection, "POST", "queues/q/claims").json["jobs"][0]["body"] == body


def test_waiting_client_with_tls_that_disconnects_loses_no_job(open_node: OpenNode, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("node")
    node = open_node("--http-tls", "yes", "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with contextlib.closing(HTTPSConnection(LOOPBACK, node.http_port, timeout=30, context=context)) as connection:
        connection.request("POST", "/v1/queues/q/claims", b'{"timeout_ms": 60000}')
        node.until(lambda: node.blocked_clients == 1, "the client waits")
    node.until(lambda: node.blocked_clients == 0, "no client waits")
    node.call("ADDJOB", "q", "x", 0)
    assert node.call("QLEN", "q") == 1
