"""Fixtures of tests about users."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from disqued.testing.local import LocalClient, LocalNode

PASSWORD = "secret"
LogIn: TypeAlias = Callable[..., LocalClient]


@pytest.fixture
def admin(local: LocalNode) -> LocalClient:
    """A client that may do everything."""
    return local.client()


@pytest.fixture
def log_in(admin: LocalClient) -> LogIn:
    """Returns a function that sets a user's rules and returns a client of that user."""

    def log_in(name: str, rules: str) -> LocalClient:
        assert admin.raw("ACL", "SETUSER", name, "on", f">{PASSWORD}", *rules.split()) == b"+OK\r\n"
        client = admin.local.client()
        assert client.raw("AUTH", name, PASSWORD) == b"+OK\r\n"
        return client

    return log_in
