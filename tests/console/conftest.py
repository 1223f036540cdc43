"""Fixtures of the console: real nodes with an HTTP port, and a real browser if one is installed."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess
from support.chromium import find_chromium
from support.nodeclient import NodeClient

TIMEOUT_MS = 20_000
OWN = {"X-Disque-Console": "1"}


class Reply:
    """A reply of the HTTP port."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.data = reply.read()

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.data)


class ConsoleNode:
    """A node with a console."""

    def __init__(self, server: ServerProcess, http_port: int) -> None:
        self.server = server
        self.http_port = http_port
        self.host = LOOPBACK
        """The address as a browser uses it."""
        self.wait_open()

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.http_port}/"

    def wait_open(self) -> None:
        """Wait until the HTTP port is open; the client port can open earlier."""
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((LOOPBACK, self.http_port), 10).close()
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            else:
                return

    def client(self) -> AbstractContextManager[NodeClient]:
        return contextlib.closing(NodeClient(self.server.port))

    def call(self, *words: bytes | str | int) -> Any:
        with self.client() as client:
            return client.call(*words)

    def ask(self, target: str, body: object = None, headers: dict[str, str] | None = None, method: str = "") -> Reply:
        """Request a page; a body is sent as JSON."""
        connection = http.client.HTTPConnection(LOOPBACK, self.http_port, timeout=30)
        with contextlib.closing(connection):
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            method = method or ("GET" if body is None else "POST")
            connection.request(method, target, None if body is None else sent, headers or {})
            return Reply(connection.getresponse())

    def act(self, **action: object) -> Reply:
        """Send an action, like a button of the page."""
        return self.ask("/console/act", action, OWN)

    @contextlib.contextmanager
    def events(self, query: str = "", headers: dict[str, str] | None = None) -> Iterator[Iterator[Any]]:
        """The states that a live page receives, one after another."""
        connection = http.client.HTTPConnection(LOOPBACK, self.http_port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", f"/console/events?{query}", headers=headers or {})
            with connection.getresponse() as reply:
                assert reply.status == 200, reply.read()
                assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
                yield (json.loads(line[6:]) for line in reply if line.startswith(b"data: "))

    def state(self, query: str = "", until: Callable[[Any], bool] = lambda _update: True) -> Any:
        """The first state that satisfies `until`."""
        with self.events(query) as updates:
            return next(update for update in updates if until(update))


OpenNode: TypeAlias = Callable[..., ConsoleNode]
Look: TypeAlias = Callable[..., Page]

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture
def open_node(tmp_path: Path) -> Iterator[OpenNode]:
    """Starts nodes with a console, with the given directives; they are stopped when the test ends."""
    with contextlib.ExitStack() as opened:

        def start(*arguments: str) -> ConsoleNode:
            port = free_port()
            directory = tmp_path / str(port)
            directory.mkdir()
            server = ServerProcess(directory, "--http-port", str(port), *arguments)
            return ConsoleNode(opened.enter_context(server), port)

        yield start


@pytest.fixture(scope="module")
def acting_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleNode]:
    """One node with enabled actions, for all tests of a module that leave no state behind."""
    port = free_port()
    directory = tmp_path_factory.mktemp("acting")
    with ServerProcess(directory, "--http-port", str(port), "--http-actions", "yes") as server:
        yield ConsoleNode(server, port)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium for one module; its driver runs an event loop, which would disturb other modules."""
    path = find_chromium()
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Opens the console of a node; errors of the page fail the test."""
    wrong: list[str] = []
    with contextlib.ExitStack() as opened:

        def open_page(node: ConsoleNode, target: str = "", **options: Any) -> Page:
            context = browser.new_context(**options)
            opened.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
            page.on(
                "console",
                lambda update: wrong.append(update.text) if "Content Security Policy" in update.text else None,
            )
            page.on(
                "request",
                lambda sent: None if sent.url.startswith(node.address) else wrong.append(f"asks {sent.url}"),
            )
            page.goto(node.address + target)
            return page

        yield open_page
    assert wrong == []
