"""The client that the views use: one node, no detours.

A view shows the node it was pointed at, so other nodes of the cluster are not tried when that one fails, and a failure
is told at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from disqued.cli.connection import Connection, ConnectionLostError, RefusedError
from disqued.cli.endpoint import Endpoint, choose_endpoint
from disqued.client import (
    Argument,
    Backoff,
    Client,
    DisqueError,
    Reply,
    ResponseError,
)


@contextmanager
def connected_client(endpoint: Endpoint) -> Iterator[Client]:
    """A client of that node; what goes wrong inside becomes an error of the command line."""
    with Connection(endpoint) as first:  # so a node that can not be reached, or wants no password, is treated alike
        password = endpoint.password if first.password_accepted else None
    try:
        with Client([str(endpoint)], password=password, discover=False, backoff=Backoff(attempts=1)) as client:
            yield client
    except ResponseError as error:
        raise RefusedError(str(error)) from error
    except DisqueError as error:
        raise ConnectionLostError(f"Error: {error}") from error


def ask_many(client: Client, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
    """The replies to pipelined commands. The first error among them is raised."""
    replies: list[Reply] = []
    for answer in client.execute_many(commands):
        if isinstance(answer, DisqueError):
            raise answer
        replies.append(answer)
    return replies


def client_for(options: argparse.Namespace) -> AbstractContextManager[Client]:
    """The client for the parsed options."""
    return connected_client(choose_endpoint(options))
