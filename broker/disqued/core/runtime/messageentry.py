"""A bus message in the table of one node: its handler, unpacked for fast dispatch, and its counters."""

from __future__ import annotations

from disqued.core.runtime.message import Message
from disqued.core.telemetry.traffic import Traffic


class MessageEntry:
    """One type of bus message of one node."""

    def __init__(self, message: Message, traffic: Traffic) -> None:
        self.handler = message.handler
        self.from_anyone = message.from_anyone
        self.traffic = traffic
