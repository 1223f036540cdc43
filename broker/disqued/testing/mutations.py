"""The protocol broken on purpose, to see that the checkers notice: a context manager for each way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

MUTATIONS: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {}
"""By name."""
