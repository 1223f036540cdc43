"""Fixtures for the tests of the server."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from compat.replay import Client
from disqued.testing.processes import ServerProcess

Connect: TypeAlias = Callable[[ServerProcess], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients of a server, and closes those left open when the test ends."""
    with contextlib.ExitStack() as opened:

        def client(server: ServerProcess) -> Client:
            new = Client(server)
            opened.callback(new.socket.close)
            return new

        yield client


@pytest.fixture
def plain_user() -> list[str]:
    """A launcher whose programs have to respect the permissions of files, as everybody but root has to."""
    if os.geteuid():
        return []
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
