"""Real nodes with an HTTP API, and requests to them with Python's own HTTP client."""

from __future__ import annotations

import contextlib
import http.client
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess, wait_until
from support.nodeclient import NodeAccess


class Reply:
    """An answer of the API."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.data = reply.read()

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json", self.data
        return json.loads(self.data)

    @property
    def code(self) -> str:
        """The code of an error."""
        answer = self.json
        assert set(answer) == {"code", "message"}, answer
        return str(answer["code"])


class ApiNode(NodeAccess):
    """A node with an HTTP API."""

    def __init__(self, server: ServerProcess, http_port: int) -> None:
        super().__init__(server.port)
        self.server = server
        self.http_port = http_port
        self.until(lambda: is_open(http_port), "the HTTP port is open")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""
        wait_until(condition, what, lambda: self.server.output)

    @property
    def id(self) -> str:
        """Its node ID."""
        return str(self.call("CLUSTER", "MYID").decode())

    @property
    def blocked_clients(self) -> int:
        """How many clients wait for jobs or copies."""
        text = self.call("INFO", "clients").decode()
        return int(text.split("blocked_clients:")[1].split()[0])

    def open_connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self.http_port, timeout=30)

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None, **fields: object
    ) -> Reply:
        """Send a request on a connection of its own; fields, or a body, are sent as JSON."""
        with contextlib.closing(self.open_connection()) as connection:
            return send(connection, method, path, body, headers, **fields)


def send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
    **fields: object,
) -> Reply:
    """Send a request and return its answer."""
    content = body if isinstance(body, bytes) else json.dumps(fields if body is None else body).encode()
    connection.request(method, f"/v1/{path}", content if method in {"POST", "PUT"} else None, headers or {})
    return Reply(connection.getresponse())


def is_open(port: int) -> bool:
    """Whether a port accepts connections; the client port can open earlier."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    with contextlib.closing(connection), contextlib.suppress(ConnectionRefusedError):
        connection.connect()
        return True
    return False


def basic(user: str, password: str) -> dict[str, str]:
    """The header of a user."""
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


OpenNode: TypeAlias = Callable[..., ApiNode]


@contextlib.contextmanager
def running(directory: Path, *arguments: str) -> Iterator[ApiNode]:
    """A node that serves the API."""
    port = free_port()
    with ServerProcess(directory, "--http-port", str(port), "--http-api", "full", *arguments) as server:
        node = ApiNode(server, port)
        yield node
        node.hang_up()
