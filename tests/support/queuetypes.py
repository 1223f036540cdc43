"""A type of queue for tests of queues without a node around them."""

from disqued.core.queues.queue import Placement, QueueType, Release

PLAIN = QueueType(b"plain", Placement(by_copies=False), Release())
"""Orders jobs by age; nothing can be placed in it or taken from it."""
