"""GETJOB FROMPATTERN: the patterns that a client names, and the next queue with jobs that matches one of them."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.queues.patterns import MOST_BYTES, MOST_LOCAL, QueuePattern
from disqued.core.queues.queue import Queue
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError

MOST_PATTERNS: Final = 16
"""How many patterns one request may name."""


def patterns_of(state: NodeState, session: Session, texts: list[bytes]) -> list[QueuePattern]:
    """The patterns that a client names, each once. Raises ReplyError if they are too many or too long."""
    texts = list(dict.fromkeys(texts))
    if len(texts) > MOST_PATTERNS:
        raise ReplyError(f"ERR GETJOB takes at most {MOST_PATTERNS} patterns, {len(texts)} were given")
    user = session.user
    rules = None if user is None or user.rules.every_queue else user.rules
    name = b"" if user is None or rules is None else user.name
    known = state.lifecycle.patterns
    patterns: list[QueuePattern] = []
    for text in texts:
        if len(text) > MOST_BYTES:
            raise ReplyError(f"ERR a pattern of GETJOB has at most {MOST_BYTES} bytes, not {len(text)}")
        pattern = known.find(state.lifecycle.queues, text, name, rules, state.now_ms)
        if pattern is None or (not pattern.waiters and known.local() >= MOST_LOCAL):
            raise ReplyError(f"ERR clients of this node wait for {MOST_LOCAL} patterns already")
        pattern.used_ms = state.now_ms
        pattern.local_ms = state.now_ms
        patterns.append(pattern)
    return patterns


def next_queue(patterns: list[QueuePattern], turn: int) -> tuple[int, Queue | None]:
    """The next queue of the first pattern that has one, from the pattern at `turn` on, and the next turn."""
    for _ in patterns:
        pattern = patterns[turn % len(patterns)]
        turn += 1
        queue = pattern.next_queue()
        if queue is not None:
            return turn, queue
    return turn, None
