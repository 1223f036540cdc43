"""The message types that a node knows: their names and the kinds of their payloads."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus.kinds import KINDS, OF_UNKNOWN


class MessageTable:
    """Types by their numbers, below `kinds.KINDS`."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.payloads: list[int] = [OF_UNKNOWN] * KINDS

    def add(self, number: int, name: str, payload: int) -> None:
        """Add a type.

        Raises:
            ValueError: the number or the name is already used.
        """
        if not 0 <= number < KINDS:
            raise ValueError(f"message {name}: number {number} is not below {KINDS}")
        if number in self.names or name in self.names.values():
            raise ValueError(f"message {name}: number {number} or the name is already used")
        self.names[number] = name
        self.payloads[number] = payload

    def name(self, number: i64) -> str:
        """The name of a type, or its number."""
        return self.names.get(int(number), f"type {number}")


UNKNOWN_MESSAGES: MessageTable = MessageTable()
"""A table without types."""
