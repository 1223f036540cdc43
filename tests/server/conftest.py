"""Fixtures for the tests of the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from compat.replay import Client
from disqued.testing.processes import ServerProcess
from support.fixtures import clients_of

Connect: TypeAlias = Callable[[ServerProcess], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A function that makes clients of a server; they are closed when the test ends."""
    yield from clients_of(Client)


@pytest.fixture
def plain_user() -> list[str]:
    """A launcher whose programs obey file permissions even if the tests run as root."""
    if os.geteuid():
        return []
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
