"""The page `/metrics` of real processes: formats, limits, metrics of the server, and that slow clients block nobody."""

from __future__ import annotations

import contextlib
import http.client
import platform
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued import __version__
from disqued.build import FLAVOUR
from disqued.server.metricspage import MOST_AT_A_TIME
from disqued.testing.local import encode
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess
from metrics.pages import OPENMETRICS, Page
from persistence.samples import kept, make_job

LONG = 200_000 if FLAVOUR == "compiled" else 30_000
MANY = 3000
ASK = b"GET /metrics?queues=all HTTP/1.1\r\nHost: node\r\n\r\n"


class Reply:
    """An HTTP reply."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.status = reply.status
        self.type = reply.getheader("Content-Type", "")
        self.text = reply.read().decode()


class Scraped:
    """A node with its HTTP port."""

    def __init__(self, server: ServerProcess, port: int) -> None:
        self.server = server
        self.port = port

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)

    def get(self, target: str, method: str = "GET", accept: str = "") -> Reply:
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, target, headers={"Accept": accept} if accept else {})
            return Reply(connection.getresponse())

    def page(self, query: str = "") -> Page:
        return Page(self.get(f"/metrics{query}").text)

    def silent_client(self) -> socket.socket:
        """A client that requests a long page and does not read it."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((LOOPBACK, self.port))
        client.sendall(ASK)
        return client


@contextlib.contextmanager
def scraped(directory: Path, *arguments: str) -> Iterator[Scraped]:
    port = free_port()
    with ServerProcess(directory, "--http-port", str(port), *arguments) as server:
        yield Scraped(server, port)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Scraped]:
    with scraped(tmp_path) as node:
        yield node


def test_accept_header_selects_the_format(node: Scraped) -> None:
    plain = node.get("/metrics")
    assert (plain.status, plain.type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert Page(plain.text).value("disque_ready") == 1
    chosen = node.get("/metrics", accept=OPENMETRICS)
    assert chosen.type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert chosen.text.endswith("\n# EOF\n")
    assert Page(chosen.text, openmetrics=True).value("disque_ready") == 1


def test_page_accepts_only_get(node: Scraped) -> None:
    head = node.get("/metrics", "HEAD")
    assert (head.status, head.text) == (200, "")
    assert head.type.startswith("text/plain; version=0.0.4")
    assert node.get("/metrics", "POST").status == 405
    wrong = node.get("/metrics?queues=few")
    assert (wrong.status, wrong.text) == (
        400,
        "invalid value 'few'; use queues=all, queues=none or queues=NUMBER, queue=PATTERN, and name=NAME\n",
    )


def test_page_of_a_queue_is_found_by_the_path(node: Scraped) -> None:
    node.server.ask("ADDJOB mail/new x 0")
    page = Page(node.get("/metrics/queues/mail%2Fnew").text)
    assert page.by("queue", "disque_queue_jobs") == {"mail/new": 1}
    assert Page(node.get("/metrics/queues/mail/new").text).by("queue", "disque_queue_jobs") == {"mail/new": 1}
    assert Page(node.get("/metrics/queues/other").text).by("queue", "disque_queue_jobs") == {"other": 0}
    for path in ("/metrics/queues", "/metrics/queues/"):
        reply = node.get(path)
        assert (reply.status, reply.text) == (400, "use /metrics/queues/NAME\n")
    assert node.get("/metrics/queues/" + "x" * 257).status == 400
    unknown = node.get("/metrics/other")
    assert unknown.status == 404
    assert "/metrics, /metrics/queues/NAME" in unknown.text


def test_one_connection_serves_many_requests_which_are_counted(node: Scraped) -> None:
    with contextlib.closing(node.connect()) as connection:
        for _ in range(3):
            connection.request("GET", "/metrics")
            assert Reply(connection.getresponse()).status == 200
        connection.request("GET", "/metrics?queues=x")
        assert Reply(connection.getresponse()).status == 400
        connection.request("GET", "/nothing")
        assert Reply(connection.getresponse()).status == 404
        connection.request("GET", "/livez")
        assert Reply(connection.getresponse()).status == 200
    page = node.page()
    counted = page.by("code", "disque_http_requests_total", page="/metrics")
    assert counted in ({"200": 3, "400": 1}, {"200": 4, "400": 1}), "a page counts its own request"
    assert page.by("page", "disque_http_requests_total", code="404") == {"other": 1}
    assert page.value("disque_http_requests_total", page="/livez", code="200") == 1
    assert page.value("disque_scrape_duration_seconds") > 0


def test_page_has_process_and_event_loop_metrics(node: Scraped) -> None:
    deadline = time.monotonic() + 30
    while node.page().value("disque_event_loop_lag_seconds_count") < 3:
        assert time.monotonic() < deadline
    page = node.page()
    assert page.value("process_resident_memory_bytes") > 1 << 20
    assert page.value("process_open_fds") > 5
    assert page.value("process_max_fds") > page.value("process_open_fds")
    assert page.value("process_cpu_seconds_total") > 0
    assert page.value("process_start_time_seconds") == pytest.approx(time.time(), abs=120)
    assert page.value("disque_start_time_seconds") == pytest.approx(time.time(), abs=120)
    assert page.by("build", "disque_build_info", version=__version__, python=platform.python_version()) == {FLAVOUR: 1}


def test_loading_node_reports_it(tmp_path: Path) -> None:
    records = [kept(make_job(random.Random(seed), b"body %d" % seed)) for seed in range(100)]
    (tmp_path / "disque.aof").write_bytes(b"".join(records) * (LONG // 100))
    with scraped(tmp_path, "--appendonly", "yes") as node:
        page = node.page()
        assert (page.value("disque_loading"), page.value("disque_ready")) == (1, 0)
        node.server.wait_loaded(60)
        page = node.page()
        assert (page.value("disque_loading"), page.value("disque_ready")) == (0, 1)
        assert page.value("disque_aof_enabled") == 1


def _ping(client: socket.socket) -> bytes:
    """Send PING and return the end of all replies."""
    client.sendall(b"PING\r\n")
    received = b""
    while not received.endswith(b"+PONG\r\n"):
        received += client.recv(1 << 16)
    return received[-7:]


def test_client_that_does_not_read_does_not_block_others(node: Scraped) -> None:
    adds = [encode("ADDJOB", f"a-queue-with-a-rather-long-name-of-its-own-{number}", "x", 0) for number in range(MANY)]
    with node.server.connect() as client, contextlib.ExitStack() as silent:
        client.sendall(b"".join(adds))
        assert _ping(client) == b"+PONG\r\n"
        for _ in range(MOST_AT_A_TIME):
            silent.callback(node.silent_client().close)
        refused = node.get("/metrics")
        while refused.status == 200:  # until the limit of pending requests is reached
            refused = node.get("/metrics")
        assert (refused.status, refused.text) == (503, "too many pending requests for this page\n")
        assert node.get("/livez").status == 200
        assert _ping(client) == b"+PONG\r\n"
    deadline = time.monotonic() + 30
    while (last := node.get("/metrics?queues=all")).status != 200:
        assert time.monotonic() < deadline
    page = Page(last.text)
    assert len(page.by("queue", "disque_queue_jobs")) == MANY
    assert page.value("disque_queues_left_out") == 0
