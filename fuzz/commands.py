"""Sends valid commands with extreme arguments to a node, and measures how long each turn takes.

Every node of the run lives for a few hundred requests on several connections. Another client always gets its reply,
whatever the others sent.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Final

from disqued.client import wire
from disqued.node import ROOMS
from fuzz.grammar import Grammar
from fuzz.victim import MAX_GROWTH_BYTES, Collector, Victim, Violation, resident_bytes

REQUESTS_PER_NODE: Final = 400
READ_BYTES: Final = 256 << 10
"""The server reads at most this much from a client in one turn."""
_CONNECTIONS: Final = 6
_JOBS: Final = 200
_MAX_STEPS: Final = 20_000
"""More steps of virtual time than the longest sliced command needs."""
_STEP_MS: Final = 5
_SHOWN_BYTES: Final = 300
_RESTRICTED: Final = ("restricted", "on", "nopass", "~q0", "~*1", "+@all")
"""A user whose commands are judged by their queues, and its rules."""


def run(requests: int, seed: int) -> str:
    """Send this many requests. Returns what was done, as a line for people.

    Raises:
        Violation: with the seed and the number of the node, which repeat it.
    """
    longest_ms = 0.0
    grown = 0
    left = requests
    nodes = 0
    while left > 0:
        name = f"{seed}/{nodes}"
        nodes += 1
        try:
            story = _Story(name)
            before = resident_bytes()
            left -= story.play(min(REQUESTS_PER_NODE, left))
            grown = max(grown, resident_bytes() - before)
            if grown > MAX_GROWTH_BYTES:
                raise Violation(f"the process grew by {grown >> 20} MiB")
        except Violation as violation:
            raise Violation(f"commands, node {name}: {violation}") from violation
        longest_ms = max(longest_ms, story.victim.longest_ms)
    return f"{requests} requests to {nodes} nodes; longest turn {longest_ms:.1f} ms, largest growth {grown >> 20} MiB"


class _Story:
    """One node with jobs, its hostile clients, and a bystander."""

    def __init__(self, name: str) -> None:
        chance = random.Random(name)
        self._chance = chance
        self.victim = Victim(chance.getrandbits(32))
        self._bystander = self.victim.collector()
        keeper = self.victim.client()
        jobs = [keeper.add(f"q{n % 3}", "body", *(("RETRY", 0) if n % 5 == 0 else ())) for n in range(_JOBS)]
        self._grammar = Grammar(ROOMS.commands, chance, jobs)
        keeper.call("ACL", "SETUSER", *_RESTRICTED)
        self._clients = [self._connect() for _ in range(_CONNECTIONS)]

    def play(self, requests: int) -> int:
        """Send so many requests, fewer if one ends the node or takes the rights of the other client away.

        Returns the number.
        """
        for number in range(requests):
            words = self._grammar.request()
            at = self._chance.randrange(_CONNECTIONS)
            try:
                self._attack(self._connection(at), words)
                self._serve_bystander()
            except Violation as violation:
                raise Violation(f"{_shown(words)}: {violation}") from violation
            if self.victim.host.ended is not None or not self._bystander.session.unrestricted:
                return number + 1
        return requests

    def _connection(self, at: int) -> Collector:
        """A hostile connection; a new one if the node closed it, or if it waits for jobs that never come."""
        client = self._clients[at]
        if client.closed or client.session.blocked is not None or self._chance.random() < 0.02:
            self.victim.forget(client)
            client = self._clients[at] = self._connect()
        return client

    def _connect(self) -> Collector:
        """A hostile connection, as a restricted user every other time."""
        client = self.victim.collector()
        if self._chance.random() < 0.5:
            client.send("AUTH", _RESTRICTED[0], "any")
            client.decode()
        return client

    def _attack(self, client: Collector, words: list[bytes]) -> None:
        """Send a request in parts, and let the node work until nothing long is left."""
        victim = self.victim
        data = wire.encode(words)
        size = self._chance.randrange(1, 100) if len(data) < 1000 else READ_BYTES
        for at in range(0, len(data), size):
            part = data[at : at + size]
            victim.measured(partial(client.send_bytes, part))
        self._work()
        client.decode()

    def _work(self) -> None:
        """Let virtual time pass until no long command is left."""
        victim = self.victim
        for _ in range(_MAX_STEPS):
            victim.measured(partial(victim.step, victim.now_ms + _STEP_MS))
            state = victim.node.state
            if not state.long_commands and not state.lifecycle.dropped and not state.ending:
                return
        raise Violation(f"a command is not finished after {_MAX_STEPS} turns")

    def _serve_bystander(self) -> None:
        """Another client gets the reply to its PING."""
        victim = self.victim
        if victim.node.state.client_pause.until_ms > victim.now_ms:
            self._bystander.send("CLIENT", "UNPAUSE")
            self._bystander.decode()
        if self._bystander.closed:  # CLIENT KILL
            self._bystander = victim.collector()
        victim.measured(partial(self._bystander.send, "PING"))
        if victim.host.ended is None and not self._bystander.decode():
            raise Violation("another client gets no reply to PING")


def _shown(words: list[bytes]) -> str:
    """A request as people read it, long words and long requests cut."""
    text = b" ".join(word[:60] for word in words[:20]).decode("utf-8", "backslashreplace")
    return f"{text[:_SHOWN_BYTES]!r} ({len(words)} words, {sum(map(len, words))} bytes)"
