"""The HTTP port: which users can read the metrics, and what happens after failed logins."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field

import pytest

from disqued.console.access import metrics_refusal, wait_answer
from disqued.core.access.failures import FREE_FAILURES
from disqued.httproutes import Answer, Exchange, Request
from disqued.metrics.server import ServerFigures
from disqued.server import metricspage
from disqued.testing.local import LocalClient, LocalNode

CLIENT = "192.0.2.7:555"


def basic(user: str, password: str) -> dict[str, str]:
    """The header of a user."""
    return {"authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def bearer(password: str) -> dict[str, str]:
    """The header of the default user."""
    return {"authorization": f"Bearer {password}"}


def status(local: LocalNode, headers: dict[str, str], *words: bytes) -> int:
    """The status of an answer without the page."""
    refused = metrics_refusal(local.node.state, headers, CLIENT, *(words or (b"INFO",)))
    return 200 if refused is None else refused.status


@pytest.fixture
def guarded(local: LocalNode, client: LocalClient) -> LocalNode:
    """A node whose metrics need a login."""
    client.call("ACL", "SETUSER", "prometheus", "on", ">scrape", "+info")
    client.call("ACL", "SETUSER", "mail", "on", ">secret", "+@producer")
    client.call("CONFIG", "SET", "http-auth", "yes")
    client.call("CONFIG", "SET", "requirepass", "top")
    return local


def test_metrics_are_open_by_default(local: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "requirepass", "top")
    assert status(local, {}) == 200


def test_metrics_need_a_user_who_can_run_info(guarded: LocalNode) -> None:
    assert status(guarded, {}) == 401
    assert status(guarded, basic("prometheus", "wrong")) == 401
    assert status(guarded, basic("nobody", "scrape")) == 401
    assert status(guarded, {"authorization": "Digest x"}) == 401
    assert status(guarded, basic("mail", "secret")) == 403
    assert status(guarded, basic("prometheus", "scrape")) == 200
    assert status(guarded, bearer("top")) == 200


def test_metrics_of_a_queue_need_a_user_who_can_run_qstat_on_it(guarded: LocalNode) -> None:
    client = guarded.client()
    client.call("AUTH", "top")
    client.call("ACL", "SETUSER", "scaler", "on", ">count", "~mail:*", "+qstat")
    scaler = basic("scaler", "count")
    assert status(guarded, scaler, b"QSTAT", b"mail:welcome") == 200
    assert status(guarded, scaler, b"QSTAT", b"print") == 403
    assert status(guarded, scaler) == 403
    assert status(guarded, {}, b"QSTAT", b"mail:welcome") == 401


def test_without_a_password_the_default_user_reads_the_metrics(local: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "http-auth", "yes")
    assert status(local, {}) == 200
    assert status(local, bearer("any")) == 200
    client.call("ACL", "SETUSER", "default", "-info")
    assert status(local, {}) == 403


def test_an_address_with_many_failures_must_wait_even_with_the_right_password(guarded: LocalNode) -> None:
    for _ in range(FREE_FAILURES + 1):
        assert status(guarded, basic("prometheus", "wrong")) == 401
    assert status(guarded, basic("prometheus", "scrape")) == 429
    assert wait_answer(guarded.node.state, "192.0.2.8:1") is None
    answer = wait_answer(guarded.node.state, CLIENT)
    assert answer is not None
    assert answer.headers == (("Retry-After", "1"),)
    guarded.run(milliseconds=200)
    assert status(guarded, basic("prometheus", "scrape")) == 200


@dataclass
class Browser:
    """The client of an exchange."""

    answers: list[Answer] = field(default_factory=list)
    reads: bool = True

    def deliver(self, answer: Answer) -> None:
        self.answers.append(answer)

    begin = deliver

    def push(self, data: bytes) -> None:
        """Ignore the rest of the page."""

    def complete(self) -> None:
        """Ignore the end of the page."""

    def fail(self, error: Exception) -> None:
        raise error


def test_the_page_asks_before_it_is_made(guarded: LocalNode) -> None:
    loop = asyncio.new_event_loop()
    found = []
    for route in metricspage.routes(ServerFigures(lambda: "")):
        for headers in ({}, basic("prometheus", "scrape")):
            browser = Browser()
            exchange = Exchange(loop, route, Request(headers=headers, client=CLIENT, below="mail"))
            exchange.client = browser
            route.handler(guarded.node, exchange)
            found.append(browser.answers[0].status)
            exchange.end()
    loop.close()
    assert found == [401, 200, 401, 403], "the user may run INFO, and not QSTAT"
