"""Which queues a request touches (`Command.queues`)."""

from __future__ import annotations

from typing import Any


def first_word(_state: Any, args: list[bytes]) -> list[bytes]:
    """The word after the name of the command."""
    return args[1:2]
