"""The client of the views, which uses one node only.

A view shows the node of its endpoint. If that node fails, the view reports the error at once and tries no other node.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from disqued.cli.connection import CommandRefusedError, Connection, ConnectionLostError, tls_settings
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
    """Connect to the node; errors inside become errors of the command line."""
    with Connection(endpoint) as first:  # handles unreachable nodes and superfluous passwords like commands do
        password = endpoint.password if first.password_accepted else None
    tls = False if endpoint.tls is None or endpoint.path is not None else tls_settings(endpoint.tls)
    user = endpoint.user if password is not None else None
    name = None if endpoint.tls is None else endpoint.tls.server_name
    client = Client(
        [str(endpoint)],
        user=user,
        password=password,
        tls=tls,
        tls_server_name=name,
        discover=False,
        backoff=Backoff(attempts=1),
    )
    try:
        with client:
            yield client
    except ResponseError as error:
        raise CommandRefusedError(str(error)) from error
    except DisqueError as error:
        raise ConnectionLostError(f"Error: {error}") from error


def ask_many(client: Client, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
    """Send commands in a pipeline and return the replies. Raises the first error among them."""
    replies: list[Reply] = []
    for answer in client.execute_many(commands):
        if isinstance(answer, DisqueError):
            raise answer
        replies.append(answer)
    return replies


def client_for(options: argparse.Namespace) -> AbstractContextManager[Client]:
    """Return the client for the parsed options."""
    return connected_client(choose_endpoint(options))
